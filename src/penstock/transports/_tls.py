"""The transport ``tls://host:port``: bytes over TLS 1.2 or newer, on TCP."""

from typing import ClassVar

import trio

from penstock.api import UsageError
from penstock.spi import (
    Connection,
    Listener,
    PeerIdentity,
    Tls,
    TlsConnection,
    Transport,
    TransportOptions,
    Url,
    listen_tcp,
    open_tcp,
)


class TlsTransport(Transport):
    """TLS on TCP. The client verifies the server's certificate and name. A listener with
    `Tls.authorities` verifies its clients as well.

    ALPN offers the names in `TransportOptions.protocols`.
    A peer without ALPN, or without a common name, is accepted.
    TLS cannot close one direction only: `Connection.send_eof` does nothing.
    """

    schemes: ClassVar[tuple[str, ...]] = ("tls",)
    needs_certificate: ClassVar[tuple[str, ...]] = ("tls",)

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        tls = options.tls or Tls()
        # In a thread: reading the system's authorities takes 50 ms, and would block every task.
        context = await trio.to_thread.run_sync(tls.client_context, options.protocols or ())
        stream, peer = await open_tcp(url, options)
        secured = trio.SSLStream(stream, context, server_hostname=tls.server_name or url.host)
        return TlsConnection(
            secured,
            peer=peer,
            options=options,
            may_be_asked=tls.certificate is None and tls.context is None,
        )

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        if options.tls is None:
            raise UsageError(
                f"to listen at {url.address}, give a certificate: "
                "tls=Tls(certificate='server.pem', key='server.key')"
            )
        context = await trio.to_thread.run_sync(options.tls.server_context, options.protocols or ())

        def accepted(stream: trio.SocketStream, peer: PeerIdentity) -> Connection:
            return TlsConnection(
                trio.SSLStream(stream, context, server_side=True), peer=peer, options=options
            )

        return await listen_tcp(url, options, accepted)
