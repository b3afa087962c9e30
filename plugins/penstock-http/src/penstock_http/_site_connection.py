"""An accepted connection of a listener, before it is known what is spoken on it."""

import struct
import sys
from collections.abc import Callable
from typing import Final

import attrs
import trio

from penstock.spi import (
    ByteConnection,
    Bytes,
    Connection,
    ConnectionFacts,
    PeerIdentity,
    TransportOptions,
)
from penstock_http._outlet import GONE
from penstock_http._proxies import behind
from penstock_http._proxy_protocol import receive_header
from penstock_http._site import Site
from penstock_http._websocket import websocket_on
from penstock_http.multiplex import Mount

if sys.platform == "linux":
    import fcntl
    import termios

_INT: Final = struct.Struct("i")


class SiteConnection(Connection):
    """An accepted connection, the listener that it belongs to, and its first bytes,
    which can be put back.
    """

    framed = False

    def __init__(
        self,
        below: ByteConnection,
        site: Site,
        options: TransportOptions,
        *,
        place: Mount,
        ping: float,
        is_loopback: bool,
        stream: trio.SocketStream | None = None,
    ) -> None:
        """`stream` is the one of the socket: a proxy may name its client there, before TLS."""
        self.below: ByteConnection = below
        self.options: TransportOptions = options
        self.place: Mount = place
        self.ping: float = ping
        self._first: bytes | bytearray | None = None
        self._stream = stream
        self.client: PeerIdentity = below.peer
        """The peer with its address:
        the proxy if there is one, unless it has named its client for the whole connection.
        """
        self.peer: PeerIdentity = site.settings.proxies.counted(below.peer)
        self.facts: ConnectionFacts = below.facts
        self.site: Site = site
        self.is_loopback: bool = is_loopback
        """The client has reached an address of this machine that no other machine can reach."""
        self.holds_output: Callable[[], object] = bool
        """Whether bytes wait above this connection, of which the system knows nothing."""
        self.acknowledged_at_end: bool | None = None
        """Whether all bytes that had been sent were acknowledged when the client ended the
        connection; None before that.
        """

    def unread(self, data: bytes | bytearray) -> None:
        """Let the next `receive` return `data`."""
        self._first = data

    async def upgrade(self, request: bytes) -> Connection:
        """Answer `request`, which asks for a WebSocket, and return the connection on it. Raises
        ConnectionLost if it is refused.
        """
        websocket = websocket_on(
            self.below,
            request,
            self.options,
            peer=self.peer,
            secure=self.site.is_secure,
            is_loopback=self.is_loopback,
        )
        await websocket.handshake(self._nursery)
        return websocket

    async def handshake(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        proxies, named = self.site.settings.proxies, None
        if self._stream is not None and proxies.expect_header(self.client):
            named = await receive_header(self._stream)
        await self.below.handshake(nursery)
        # The handshake may have found a certificate.
        self.client = self.below.peer if named is None else behind(self.below.peer, *named)
        self.peer = proxies.counted(self.client)
        # ALPN has agreed on HTTP. A session that begins here knows its protocol by its first bytes.
        self.facts = attrs.evolve(self.below.facts, protocol=None)

    async def send(self, data: Bytes, /) -> None:
        await self.below.send(data)

    def send_now(self, data: Bytes, /) -> int:
        return self.below.send_now(data)

    async def receive(self) -> bytes | bytearray | None:
        if self._first is not None:
            await trio.lowlevel.checkpoint()
            first, self._first = self._first, None
            return first
        try:
            data = await self.below.receive()
        except GONE:
            self._note_end()
            raise
        if data is None:
            self._note_end()
        return data

    async def send_eof(self) -> None:
        await self.below.send_eof()

    async def aclose(self) -> None:
        await self.below.aclose()

    async def abort(self) -> None:
        await self.below.abort()

    def farewell(self) -> str | None:
        return self.below.farewell()

    def held(self) -> int:
        return len(self._first or b"")

    def _note_end(self) -> None:
        # Before this side writes its goodbye, which nobody will acknowledge.
        if self.acknowledged_at_end is None:
            self.acknowledged_at_end = bool(self.acknowledged()) and not self.holds_output()

    def acknowledged(self) -> bool | None:
        """Return whether the client's system has acknowledged all bytes that were sent, also after
        it has reset the connection. None if this system does not tell: only Linux does.
        """
        if self._stream is None or sys.platform != "linux":
            return None
        waiting = bytearray(_INT.size)
        try:
            fcntl.ioctl(self._stream.socket.fileno(), termios.TIOCOUTQ, waiting)
        except (OSError, ValueError):  # the socket is closed
            return None
        return _INT.unpack(waiting) == (0,)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {self.peer}>"
