"""The command ``penstock``: serve a module's service, print a publisher's elements, publish lines,
list plugins, measure, check a server.

May import every layer; no layer imports it.
"""

from penstock.cli._main import main

__all__ = ["main"]
