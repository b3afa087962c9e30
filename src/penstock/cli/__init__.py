"""The command ``penstock``: serve a module's service, look at a publisher, publish lines, list plugins, measure.

May import every layer; nothing imports it.
"""

from penstock.cli._main import main

__all__ = ["main"]
