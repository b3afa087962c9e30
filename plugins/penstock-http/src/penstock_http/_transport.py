"""The transports ``http://host:port`` and ``https://host:port``, for `serve`: HTTP/1.1 and HTTP/2
on the TCP and TLS of penstock.

The first bytes decide: the preface of HTTP/2, a request of HTTP/1.1, or neither. Then a session
begins: RS.io and ReactiveSocket are served at the same port, and so are their WebSockets and their
streams of HTTP/2.
"""

from functools import partial
from typing import ClassVar, Final

import trio

from penstock.api import UsageError
from penstock.spi import (
    ByteConnection,
    Connection,
    ConnectionFacts,
    ConnectionHost,
    Listener,
    PeerIdentity,
    RequestTransport,
    SocketConnection,
    TlsConnection,
    TransportOptions,
    Url,
    listen_tcp,
)
from penstock_http._answering import Answering
from penstock_http._heads import Head
from penstock_http._http1 import Http1Connection
from penstock_http._http2 import Http2Connection
from penstock_http._late import WHY_NO_CONNECTION, LateHttp
from penstock_http._outlet import Outlet
from penstock_http._pages import check_metrics
from penstock_http._relay import Answers, Relays, purpose_of
from penstock_http._settings import settings_of
from penstock_http._site import Site
from penstock_http._site_connection import SiteConnection
from penstock_http.multiplex import PREFACE, Mount, subprotocols_of
from penstock_http.multiplex import settings_of as http2_settings_of

_ALPN: Final = ("h2", "http/1.1")


class HttpTransport(RequestTransport):
    """HTTP. The options in `TransportOptions.extra` begin with ``http.``; those with ``h2.``
    are for HTTP/2.
    """

    schemes: ClassVar[tuple[str, ...]] = LateHttp.schemes
    needs_certificate: ClassVar[tuple[str, ...]] = LateHttp.needs_certificate

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        await trio.lowlevel.checkpoint()
        raise UsageError(f"{str(url)!r} cannot be connected to: {WHY_NO_CONNECTION}")

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        if url.path:
            raise UsageError(
                f"{str(url)!r} has the path {url.path!r}; a server has paths of its own (/p/NAME): "
                "leave it out"
            )
        secure = url.transport == "https"
        if secure and options.tls is None:
            raise UsageError(
                f"to listen at {url.address}, give a certificate: "
                "tls=Tls(certificate='server.pem', key='server.key')"
            )
        # In a thread: reading files would block every task.
        context = (
            await trio.to_thread.run_sync(options.tls.server_context, _ALPN)
            if secure and options.tls
            else None
        )
        settings = settings_of(options)
        check_metrics(settings)
        group = options.workers
        site = Site(settings, secure=secure, group=group)
        http2 = http2_settings_of(options)
        place = Mount(
            protocols=subprotocols_of(options.protocols),
            origins=http2.origins | site.settings.origins,
        )

        def accepted(stream: trio.SocketStream, peer: PeerIdentity) -> Connection:
            facts = ConnectionFacts(half_close=True, local=peer.is_loopback)
            below: ByteConnection = SocketConnection(
                stream, peer=peer, options=options, facts=facts
            )
            if context is not None:
                below = TlsConnection(
                    trio.SSLStream(stream, context, server_side=True), peer=peer, options=options
                )
            return SiteConnection(
                below,
                site,
                options,
                place=place,
                ping=http2.ping,
                is_loopback=_is_local(stream),
                stream=stream,
            )

        listener = await listen_tcp(url, options, accepted)
        if group is not None:
            # The real port, which tells two listeners apart, and is the same in each worker.
            purpose = purpose_of(str(listener.addresses[0]))
            site.relays = Relays(group, purpose)
            group.answer(purpose, Answers(partial(_answer_relayed, site)).handle)
        return listener

    async def serve_connection(
        self, connection: Connection, host: ConnectionHost, /
    ) -> Connection | None:
        if not isinstance(connection, SiteConnection):
            return connection
        first = await _first_bytes(connection)
        if first is None:
            return None
        # Every method of HTTP begins with a capital letter, and no hello of RS.io
        # or ReactiveSocket does.
        if not first[:1].isupper():
            connection.unread(first)
            return connection
        site, is_loopback = connection.site, connection.is_loopback
        if first.startswith(PREFACE):
            place, ping = connection.place, connection.ping
            served = Http2Connection(
                connection,
                host,
                site,
                connection.options,
                place=place,
                ping=ping,
                is_loopback=is_loopback,
            )
            await served.run(bytes(first))
            return None
        request = await Http1Connection(connection, host, site, is_loopback=is_loopback).run(first)
        return await connection.upgrade(request) if request else None


async def _answer_relayed(
    site: Site, head: Head, peer: PeerIdentity, outlet: Outlet, host: ConnectionHost
) -> int:
    """Answer a request that has come to another worker, which has judged its host and origin."""
    return await Answering(host, site, is_loopback=False).answer_here(head, peer, outlet)


async def _first_bytes(connection: Connection) -> bytes | bytearray | None:
    """Return the first bytes of a client:
    enough of them to know whether they are the preface of HTTP/2.
    """
    first = await connection.receive()
    while first is not None and len(first) < len(PREFACE) and PREFACE.startswith(first):
        more = await connection.receive()
        if more is None:
            break
        first = bytes(first) + more
    return first


def _is_local(stream: trio.SocketStream) -> bool:
    """Return whether the client has reached an address of this machine's loopback interface."""
    host = stream.socket.getsockname()[0]
    return PeerIdentity(address="", host=host).is_loopback
