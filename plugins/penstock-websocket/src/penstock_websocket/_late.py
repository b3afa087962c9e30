"""What a registry knows of this plugin before a URL of it is used. The modules behind it, h11 and
wsproto are imported with the first URL.
"""

from importlib import import_module
from typing import ClassVar

import trio

from penstock.spi import Connection, Listener, Transport, TransportOptions, Url


class LateTransport(Transport):
    """``ws`` and ``wss``: `WebSocketTransport`, when a URL of it is used."""

    schemes: ClassVar[tuple[str, ...]] = ("ws", "wss")
    needs_certificate: ClassVar[tuple[str, ...]] = ("wss",)
    has_mounts: ClassVar[bool] = True

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        return await _transport().connect(url, options=options, nursery=nursery)

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        return await _transport().listen(url, options=options, nursery=nursery)


def _transport() -> Transport:
    made: Transport = import_module("penstock_websocket._transport").WebSocketTransport()
    return made
