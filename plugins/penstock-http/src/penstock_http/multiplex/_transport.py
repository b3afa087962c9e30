"""The transports ``h2://host:port`` and ``h2s://host:port``:
streams of HTTP/2 on the TCP and TLS of penstock.
"""

from typing import ClassVar, Final, cast

import attrs
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
    Tls,
    TlsConnection,
    TransportOptions,
    Url,
    listen_tcp,
    open_tcp,
)
from penstock_http._late import LateHttp2
from penstock_http.multiplex._accepted import AcceptedConnection, Attendance
from penstock_http.multiplex._connection import Http2ClientConnection
from penstock_http.multiplex._requests import Mount, request_headers, subprotocols_of
from penstock_http.multiplex._settings import settings_of

_PORTS: Final = {"h2": 80, "h2s": 443}
_ALPN: Final = ("h2",)


class Http2Transport(RequestTransport):
    """Streams of HTTP/2. Its options in `TransportOptions.extra` are ``h2.origins``
    and ``h2.ping``.

    A path before the ``#`` of the URL is asked for by a client and required by a server:
    ``h2://host:port/streams#name``.
    """

    schemes: ClassVar[tuple[str, ...]] = LateHttp2.schemes
    needs_certificate: ClassVar[tuple[str, ...]] = LateHttp2.needs_certificate

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        settings = settings_of(options)
        names = subprotocols_of(options.protocols) or (f"{url.dialect or 'rsio'}.v0",)
        # One without an encoding, if there is one: the hellos agree on the encoding then.
        subprotocol = next((name for name in names if "+" not in name), names[0])
        at = url if url.port or not url.host else url.at(url.host, _PORTS[url.transport])
        tls = (options.tls or Tls()) if url.transport == "h2s" else None
        # In a thread: reading the system's authorities takes 50 ms, and would block every task.
        context = None if tls is None else await trio.to_thread.run_sync(tls.client_context, _ALPN)
        stream, peer = await open_tcp(attrs.evolve(at, path=""), options)
        below: ByteConnection
        if tls is None or context is None:
            below = _plain(stream, peer, options)
        else:
            secured = trio.SSLStream(stream, context, server_hostname=tls.server_name or url.host)
            below = TlsConnection(
                secured,
                peer=peer,
                options=options,
                may_be_asked=tls.certificate is None and tls.context is None,
            )
        scheme = "http" if tls is None else "https"
        request = request_headers(
            scheme=scheme, host=_host_of(url), path=url.path or "/", subprotocol=subprotocol
        )
        return Http2ClientConnection(
            below,
            options,
            request=request,
            protocol=subprotocol if "+" in subprotocol else None,
            ping=settings.ping,
        )

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        settings = settings_of(options)
        secure = url.transport == "h2s"
        if secure and options.tls is None:
            raise UsageError(
                f"to listen at {url.address}, give a certificate: "
                "tls=Tls(certificate='server.pem', key='server.key')"
            )
        context = (
            await trio.to_thread.run_sync(options.tls.server_context, _ALPN)
            if secure and options.tls
            else None
        )
        place = Mount(
            path=url.path, protocols=subprotocols_of(options.protocols), origins=settings.origins
        )

        def accepted(stream: trio.SocketStream, peer: PeerIdentity) -> Connection:
            below: ByteConnection = _plain(stream, peer, options)
            if context is not None:
                below = TlsConnection(
                    trio.SSLStream(stream, context, server_side=True), peer=peer, options=options
                )
            return AcceptedConnection(below, options, place=place, ping=settings.ping)

        listener = await listen_tcp(attrs.evolve(url, path=""), options, accepted)
        listener.addresses = tuple(
            attrs.evolve(address, path=url.path) for address in listener.addresses
        )
        return listener

    async def serve_connection(self, connection: Connection, host: ConnectionHost, /) -> None:
        """Serve every stream of the client as a connection."""
        # A server attends what its listener has accepted.
        accepted = cast("AcceptedConnection", connection)
        await Attendance(
            accepted.below, accepted.options, host, place=accepted.place, ping=accepted.ping
        ).run()


def _plain(
    stream: trio.SocketStream, peer: PeerIdentity, options: TransportOptions
) -> SocketConnection:
    return SocketConnection(
        stream,
        peer=peer,
        options=options,
        facts=ConnectionFacts(half_close=True, local=peer.is_loopback),
    )


def _host_of(url: Url) -> str:
    """Return the authority of a request: the host and the port of the URL, as it writes them."""
    host = url.host or ""
    name = f"[{host}]" if ":" in host else host
    return name if url.port is None else f"{name}:{url.port}"
