"""The serializers of penstock: ``bytes``, ``text``, and ``json``, also for elements of one type.

May import `penstock.spi`, `penstock.api`, attrs and the standard library. Programs select a
serializer by its name (``serializer="json"``), and import a class only to give it options:
``JsonSerializer(null=…)``.
"""

import typing as _typing

from penstock._elsewhere import teller as _teller
from penstock.elements._bytes import BytesSerializer
from penstock.elements._hooks import penstock_serializers
from penstock.elements._json import JsonSerializer
from penstock.elements._text import TextSerializer

__all__ = ["BytesSerializer", "JsonSerializer", "TextSerializer", "penstock_serializers"]

if not _typing.TYPE_CHECKING:  # a checker would take each name for one of this package
    __getattr__ = _teller(__name__)
