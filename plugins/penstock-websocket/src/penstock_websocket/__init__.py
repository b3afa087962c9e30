"""WebSocket for Penstock: the transports ``ws`` and ``wss``."""

from penstock_websocket._connection import WebSocketConnection
from penstock_websocket._hooks import penstock_transports
from penstock_websocket._transport import WebSocketTransport, served_websocket

__all__ = ["WebSocketConnection", "WebSocketTransport", "penstock_transports", "served_websocket"]
