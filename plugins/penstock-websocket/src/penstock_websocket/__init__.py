"""WebSocket for Penstock: the transports ``ws`` and ``wss``.

The names are imported at their first use: a registry needs the hooks alone.
"""

import importlib as _importlib
import typing as _typing

from penstock_websocket._hooks import penstock_transports

if _typing.TYPE_CHECKING:
    from penstock_websocket._connection import WebSocketConnection as WebSocketConnection
    from penstock_websocket._connection import close_code as close_code
    from penstock_websocket._subprotocols import WORD_SIZE as WORD_SIZE
    from penstock_websocket._subprotocols import is_framed as is_framed
    from penstock_websocket._subprotocols import is_framed_by as is_framed_by
    from penstock_websocket._subprotocols import subprotocols_of as subprotocols_of
    from penstock_websocket._transport import WebSocketTransport as WebSocketTransport
    from penstock_websocket._transport import served_websocket as served_websocket

__all__ = [
    "WORD_SIZE",
    "WebSocketConnection",
    "WebSocketTransport",
    "close_code",
    "is_framed",
    "is_framed_by",
    "penstock_transports",
    "served_websocket",
    "subprotocols_of",
]

_HOMES: _typing.Final = {
    "WebSocketConnection": "_connection",
    "close_code": "_connection",
    "WORD_SIZE": "_subprotocols",
    "is_framed": "_subprotocols",
    "is_framed_by": "_subprotocols",
    "subprotocols_of": "_subprotocols",
    "WebSocketTransport": "_transport",
    "served_websocket": "_transport",
}


def __getattr__(name: str) -> _typing.Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock_websocket' has no attribute {name!r}")
    return getattr(_importlib.import_module(f"penstock_websocket.{_HOMES[name]}"), name)
