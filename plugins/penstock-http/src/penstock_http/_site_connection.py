"""An accepted connection of a listener, before it is known what is spoken on it."""

import socket
import struct
import sys
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
from penstock_http._proxies import behind
from penstock_http._proxy_protocol import receive_header
from penstock_http._site import Site
from penstock_http._websocket import websocket_on
from penstock_http.multiplex import Mount

if sys.platform == "linux":
    import fcntl
    import termios

_INT: Final = struct.Struct("i")
_ACKNOWLEDGED: Final = struct.Struct("120xQ")
"""`tcpi_bytes_acked` of `struct tcp_info`, which Linux has since 4.2."""


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
        return await self.below.receive()

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

    def sent(self) -> int | None:
        """Return how many bytes this system has taken for the client since the beginning. None if
        it does not tell: only Linux does, of TCP.
        """
        known = self._acknowledged_bytes()
        while known is not None:
            waiting, before = self._waiting_bytes(), known
            known = self._acknowledged_bytes()
            if waiting is None or known is None:
                return None
            if known == before:  # no acknowledgement came between the two questions
                return known + waiting
        return None

    def has_acknowledged(self, sent: int | None) -> bool | None:
        """Return whether the client's system has acknowledged the first `sent` bytes, also after
        it has reset the connection. None if this system does not tell.
        """
        known = self._acknowledged_bytes()
        return None if sent is None or known is None else known >= sent

    def acknowledged(self) -> bool | None:
        """Return whether the client's system has acknowledged all bytes that were sent, also after
        it has reset the connection. None if this system does not tell: only Linux does.
        """
        waiting = self._waiting_bytes()
        return None if waiting is None else not waiting

    def _waiting_bytes(self) -> int | None:
        if self._stream is None or sys.platform != "linux":
            return None
        waiting = bytearray(_INT.size)
        try:
            fcntl.ioctl(self._stream.socket.fileno(), termios.TIOCOUTQ, waiting)
        except (OSError, ValueError):  # the socket is closed
            return None
        return int(_INT.unpack(waiting)[0])

    def _acknowledged_bytes(self) -> int | None:
        if self._stream is None or sys.platform != "linux":
            return None
        try:
            facts = self._stream.socket.getsockopt(
                socket.IPPROTO_TCP, socket.TCP_INFO, _ACKNOWLEDGED.size
            )
        except OSError:  # the socket is closed, or is not one of TCP
            return None
        return int(_ACKNOWLEDGED.unpack(facts)[0]) if len(facts) == _ACKNOWLEDGED.size else None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {self.peer}>"
