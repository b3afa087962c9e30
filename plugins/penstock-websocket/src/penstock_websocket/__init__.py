"""WebSocket for Penstock: the transports ``ws`` and ``wss``."""

from penstock_websocket._connection import WebSocketConnection, close_code
from penstock_websocket._hooks import penstock_transports
from penstock_websocket._subprotocols import WORD_SIZE, is_framed, is_framed_by, subprotocols_of
from penstock_websocket._transport import WebSocketTransport, served_websocket

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
