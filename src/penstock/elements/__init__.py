"""The serializers of penstock: ``bytes``, ``text``, and ``json``, also for elements of one type.

May import `penstock.spi`, `penstock.api`, attrs and the standard library. Programs select a
serializer by its name (``serializer="json"``), and import a class only to give it options:
``JsonSerializer(null=…)``.
"""

from penstock.elements._bytes import BytesSerializer
from penstock.elements._hooks import penstock_serializers
from penstock.elements._json import JsonSerializer
from penstock.elements._text import TextSerializer

__all__ = ["BytesSerializer", "JsonSerializer", "TextSerializer", "penstock_serializers"]
