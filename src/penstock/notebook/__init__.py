"""Streams in notebooks of Jupyter: a table that asks for what it can draw.

`penstock[notebook]` installs what it needs: anywidget, which is imported when a table is made. May
import `penstock.api`.
"""

import typing as _typing

from penstock._elsewhere import teller as _teller
from penstock.notebook._table import Table

__all__ = ["Table"]

if not _typing.TYPE_CHECKING:  # a checker would take each name for one of this package
    __getattr__ = _teller(__name__)
