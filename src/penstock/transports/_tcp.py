"""The transport ``tcp://host:port``: bytes over TCP, not encrypted."""

from typing import ClassVar

import trio

from penstock.spi import (
    Connection,
    ConnectionFacts,
    Listener,
    PeerIdentity,
    SocketConnection,
    Transport,
    TransportOptions,
    Url,
    listen_tcp,
    open_tcp,
)


class TcpTransport(Transport):
    """TCP over IPv4 and IPv6. With port 0 the system chooses a port. Without a host it listens at
    every address of the machine.

    Small messages are sent at once (TCP_NODELAY).
    TCP_USER_TIMEOUT and keepalive probes detect a dead peer.
    """

    schemes: ClassVar[tuple[str, ...]] = ("tcp",)

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        stream, peer = await open_tcp(url, options)
        return _connection(stream, peer, options)

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        return await listen_tcp(
            url, options, lambda stream, peer: _connection(stream, peer, options)
        )


def _connection(
    stream: trio.SocketStream, peer: PeerIdentity, options: TransportOptions
) -> Connection:
    return SocketConnection(
        stream,
        peer=peer,
        options=options,
        facts=ConnectionFacts(half_close=True, local=peer.is_loopback),
    )
