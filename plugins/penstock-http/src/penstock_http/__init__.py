"""HTTP for Penstock.

`AsgiApp` is imported at its first use: it needs both loops, and most programs have no web server.
"""

import importlib as _importlib
import typing as _typing

from penstock_http._hooks import penstock_sources, penstock_transports
from penstock_http._source import HttpSource
from penstock_http._transport import HttpTransport

if _typing.TYPE_CHECKING:
    from penstock_http._asgi import AsgiApp as AsgiApp

__all__ = ["AsgiApp", "HttpSource", "HttpTransport", "penstock_sources", "penstock_transports"]


def __getattr__(name: str) -> _typing.Any:
    if name != "AsgiApp":
        raise AttributeError(f"module 'penstock_http' has no attribute {name!r}")
    return _importlib.import_module("penstock_http._asgi").AsgiApp
