"""The transports ``http://host:port`` and ``https://host:port``, for `serve`: HTTP/1.1 on the TCP and TLS of penstock.

A connection that does not begin like a request of HTTP goes to a session: RS.io and ReactiveSocket are served at the same port.
"""

from typing import ClassVar, Final

import attrs
import trio

from penstock.api import UsageError
from penstock.plugins import (
    AttendingTransport,
    ByteConnection,
    Bytes,
    Connection,
    ConnectionFacts,
    ConnectionHost,
    Listener,
    PeerIdentity,
    SocketConnection,
    TlsConnection,
    TransportOptions,
    Url,
    listen_tcp,
)
from penstock_http._http1 import Http1Connection
from penstock_http._settings import settings_of
from penstock_http._site import Site

WHY_NO_CONNECTION: Final = "HTTP has requests, and no connection that both sides use; read its streams with subscribe() or remote()"
_ALPN: Final = ("http/1.1",)


class HttpTransport(AttendingTransport):
    """HTTP. The options in `TransportOptions.extra` begin with ``http.``."""

    schemes: ClassVar[tuple[str, ...]] = ("http", "https")
    needs_certificate: ClassVar[tuple[str, ...]] = ("https",)

    async def connect(self, url: Url, *, options: TransportOptions, nursery: trio.Nursery) -> Connection:
        await trio.lowlevel.checkpoint()
        raise UsageError(f"{str(url)!r} cannot be connected to: {WHY_NO_CONNECTION}")

    async def listen(self, url: Url, *, options: TransportOptions, nursery: trio.Nursery) -> Listener:
        if url.path:
            raise UsageError(f"{str(url)!r} has the path {url.path!r}; a server has paths of its own (/p/NAME): leave it out")
        secure = url.transport == "https"
        if secure and options.tls is None:
            raise UsageError(f"to listen at {url.address}, give a certificate: tls=Tls(certificate='server.pem', key='server.key')")
        # In a thread: reading files would block every task.
        context = await trio.to_thread.run_sync(options.tls.server_context, _ALPN) if secure and options.tls else None
        site = Site(settings_of(options), secure=secure)

        def accepted(stream: trio.SocketStream, peer: PeerIdentity) -> Connection:
            facts = ConnectionFacts(half_close=True, local=peer.is_loopback)
            below: ByteConnection = SocketConnection(stream, peer=peer, options=options, facts=facts)
            if context is not None:
                below = TlsConnection(trio.SSLStream(stream, context, server_side=True), peer=peer, options=options)
            return SiteConnection(below, site, is_loopback=_is_local(stream))

        return await listen_tcp(url, options, accepted)

    async def attend(self, connection: Connection, host: ConnectionHost, /) -> Connection | None:
        if not isinstance(connection, SiteConnection):
            return connection
        first = await connection.receive()
        if first is None:
            return None
        # Every method of HTTP begins with a capital letter, and no hello of RS.io or ReactiveSocket does.
        if not first[:1].isupper():
            connection.unread(first)
            return connection
        await Http1Connection(connection, host, connection.site, is_loopback=connection.is_loopback).run(first)
        return None


class SiteConnection(Connection):
    """An accepted connection, the listener that it belongs to, and its first bytes, which can be put back."""

    framed = False

    def __init__(self, below: ByteConnection, site: Site, *, is_loopback: bool) -> None:
        self._below = below
        self._first: bytes | bytearray | None = None
        self.peer: PeerIdentity = below.peer
        self.facts: ConnectionFacts = below.facts
        self.site: Site = site
        self.is_loopback: bool = is_loopback
        """The client has reached an address of this machine that no other machine can reach."""

    def unread(self, data: bytes | bytearray) -> None:
        """Let the next `receive` return `data`."""
        self._first = data

    async def handshake(self, nursery: trio.Nursery) -> None:
        await self._below.handshake(nursery)
        self.peer = self._below.peer
        # ALPN has agreed on HTTP. A session that begins here knows its protocol by its first bytes.
        self.facts = attrs.evolve(self._below.facts, protocol=None)

    async def send(self, data: Bytes, /) -> None:
        await self._below.send(data)

    def send_now(self, data: Bytes, /) -> int:
        return self._below.send_now(data)

    async def receive(self) -> bytes | bytearray | None:
        if self._first is not None:
            await trio.lowlevel.checkpoint()
            first, self._first = self._first, None
            return first
        return await self._below.receive()

    async def send_eof(self) -> None:
        await self._below.send_eof()

    async def aclose(self) -> None:
        await self._below.aclose()

    async def abort(self) -> None:
        await self._below.abort()

    def held(self) -> int:
        return len(self._first or b"")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {self.peer}>"


def _is_local(stream: trio.SocketStream) -> bool:
    """Return whether the client has reached an address of this machine's loopback interface."""
    host = stream.socket.getsockname()[0]
    return PeerIdentity(address="", host=host).is_loopback
