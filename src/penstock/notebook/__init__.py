"""Streams in notebooks of Jupyter: a table that asks for what it can draw.

`penstock[notebook]` installs what it needs: anywidget, which is imported when a table is made. May
import `penstock.api`.
"""

from penstock.notebook._table import Table

__all__ = ["Table"]
