"""HTTP for Penstock.

Its classes are imported at their first use: a registry needs the hooks alone. `AsgiApp` needs both
loops, and most programs have no web server.
"""

import importlib as _importlib
import typing as _typing

from penstock_http._hooks import penstock_sources, penstock_transports

if _typing.TYPE_CHECKING:
    from penstock_http._asgi import AsgiApp as AsgiApp
    from penstock_http._source import HttpSource as HttpSource
    from penstock_http._transport import HttpTransport as HttpTransport

__all__ = ["AsgiApp", "HttpSource", "HttpTransport", "penstock_sources", "penstock_transports"]

_HOMES: _typing.Final = {
    "AsgiApp": "_asgi",
    "HttpSource": "_source",
    "HttpTransport": "_transport",
}


def __getattr__(name: str) -> _typing.Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock_http' has no attribute {name!r}")
    return getattr(_importlib.import_module(f"penstock_http.{_HOMES[name]}"), name)
