"""The transports ``ws://host:port`` and ``wss://host:port``:
WebSocket on the TCP and TLS of penstock.
"""

from functools import partial
from typing import ClassVar, Final

import attrs
import trio

from penstock.api import UsageError
from penstock.spi import (
    ByteConnection,
    Connection,
    ConnectionFacts,
    Listener,
    PeerIdentity,
    SocketConnection,
    Tls,
    TlsConnection,
    Transport,
    TransportOptions,
    Url,
    listen_tcp,
    open_tcp,
)
from penstock_websocket._connection import OpeningRole, WebSocketConnection
from penstock_websocket._late import LateWebSocket
from penstock_websocket._requests import OpeningFacts
from penstock_websocket._settings import settings_of
from penstock_websocket._subprotocols import subprotocols_of
from penstock_websocket._upgrade import accept_upgrade, ask_for_upgrade

_PORTS: Final = {"ws": 80, "wss": 443}
_ALPN: Final = ("http/1.1",)
"""The protocol that a browser negotiates in TLS for a WebSocket."""


class WebSocketTransport(Transport):
    """WebSocket. Its options in `TransportOptions.extra` are ``ws.origins``, ``ws.hosts``
    and ``ws.ping``.

    A path before the ``#`` of the URL is asked for by a client and required by a server:
    ``ws://host:port/streams#name``. `connect` takes ``ws://host:port/streams`` as well.
    """

    schemes: ClassVar[tuple[str, ...]] = LateWebSocket.schemes
    needs_certificate: ClassVar[tuple[str, ...]] = LateWebSocket.needs_certificate
    has_mounts: ClassVar[bool] = LateWebSocket.has_mounts

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        settings = settings_of(options)
        subprotocols = subprotocols_of(options.protocols)
        at = url if url.port or not url.host else url.at(url.host, _PORTS[url.transport])
        tls = (options.tls or Tls()) if url.transport == "wss" else None
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
        upgrade = partial(
            ask_for_upgrade, host=_host_of(url), target=url.path or "/", subprotocols=subprotocols
        )
        usual = subprotocols[0] if subprotocols else f"{url.dialect or 'rsio'}.v0"
        return WebSocketConnection(
            below,
            OpeningRole(
                is_client=True, upgrade=upgrade, options=options, ping=settings.ping, usual=usual
            ),
        )

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        settings_of(options)  # raises for a wrong option
        secure = url.transport == "wss"
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

        def accepted(stream: trio.SocketStream, peer: PeerIdentity) -> Connection:
            below: ByteConnection = _plain(stream, peer, options)
            if context is not None:
                below = TlsConnection(
                    trio.SSLStream(stream, context, server_side=True), peer=peer, options=options
                )
            return served_websocket(
                below, options, secure=secure, is_loopback=_is_local(stream), path=url.path
            )

        listener = await listen_tcp(attrs.evolve(url, path=""), options, accepted)
        listener.addresses = tuple(
            attrs.evolve(address, path=url.path) for address in listener.addresses
        )
        return listener


def served_websocket(
    below: ByteConnection,
    options: TransportOptions,
    *,
    secure: bool,
    is_loopback: bool,
    path: str = "",
) -> WebSocketConnection:
    """Return the server's side of a WebSocket on `below`,
    whose client is about to send the request that opens it.

    For a transport that serves WebSockets at its own port: it passes the connection whose next
    bytes are the request. The `handshake` of the result answers that. `secure` and `is_loopback`
    say what is below, and at which address the client has arrived. `path` is required of the
    request, if it is given. The options ``ws.…`` in `options` hold.
    """
    settings = settings_of(options)
    subprotocols = subprotocols_of(options.protocols)
    place = OpeningFacts(
        secure=secure,
        path=path,
        subprotocols=subprotocols,
        is_loopback=is_loopback,
        settings=settings,
    )
    upgrade = partial(accept_upgrade, place=place)
    return WebSocketConnection(
        below, OpeningRole(is_client=False, upgrade=upgrade, options=options, ping=settings.ping)
    )


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
    """Return the Host header of a client: the host and the port of the URL, as it writes them."""
    host = url.host or ""
    name = f"[{host}]" if ":" in host else host
    return name if url.port is None else f"{name}:{url.port}"


def _is_local(stream: trio.SocketStream) -> bool:
    """Return whether the client has reached an address of this machine's loopback interface."""
    host = stream.socket.getsockname()[0]
    return PeerIdentity(address="", host=host).is_loopback
