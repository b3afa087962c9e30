"""The transport ``tcp://host:port``: bytes over TCP, in the clear."""

from typing import Any, ClassVar

import trio

from penstock.builtin._socket_connection import SocketConnection
from penstock.builtin._socket_listener import SocketListener
from penstock.builtin._tcp_sockets import bind_tcp, open_tcp, peer_at, peer_of, tcp_facts, tune
from penstock.plugins import Connection, Listener, Transport, TransportOptions, Url


class TcpTransport(Transport):
    """TCP, IPv4 and IPv6. With port 0 the system chooses; with no host it listens at every address of the machine.

    Small messages are sent at once (TCP_NODELAY); a dead peer is found by TCP_USER_TIMEOUT and by keepalive probes.
    """

    schemes: ClassVar[tuple[str, ...]] = ("tcp",)

    async def connect(self, url: Url, *, options: TransportOptions, nursery: trio.Nursery) -> Connection:
        stream = await open_tcp(url, options)
        peer = peer_of(stream)
        return SocketConnection(stream, peer=peer, options=options, facts=tcp_facts(peer))

    async def listen(self, url: Url, *, options: TransportOptions, nursery: trio.Nursery) -> Listener:
        def welcome(stream: trio.SocketStream, address: Any) -> Connection:
            tune(stream.socket, options)
            peer = peer_at(address)
            return SocketConnection(stream, peer=peer, options=options, facts=tcp_facts(peer))

        sockets, addresses = await bind_tcp(url, options)
        return SocketListener(sockets, addresses, welcome)
