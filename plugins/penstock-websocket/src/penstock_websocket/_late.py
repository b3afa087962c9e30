"""The schemes of this plugin, for a registry. Its other modules, h11 and wsproto are imported with
the first URL.
"""

from typing import ClassVar

from penstock.spi import LateTransport


class LateWebSocket(LateTransport):
    """``ws`` and ``wss``: `WebSocketTransport`, when a URL of it is used."""

    schemes: ClassVar[tuple[str, ...]] = ("ws", "wss")
    needs_certificate: ClassVar[tuple[str, ...]] = ("wss",)
    has_mounts: ClassVar[bool] = True
    target: ClassVar[str] = "penstock_websocket._transport:WebSocketTransport"
