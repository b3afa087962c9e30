"""The transport ``tcp://``, over real sockets."""

import socket

import pytest
import trio
from trio.testing import check_half_closeable_stream

from penstock.spi import ConnectionFacts
from penstock.transports import TcpTransport
from tests.transports._helpers import (
    both_sides,
    close,
    connect,
    exchange,
    listen,
    shake_hands,
    stream_of,
)

TCP = TcpTransport()


@pytest.mark.parametrize(
    "url", ["tcp://127.0.0.1:0", "tcp://[::1]:0", "tcp://localhost:0", "tcp://:0"]
)
async def test_bytes_arrive_in_both_directions(url: str, nursery: trio.Nursery) -> None:
    """Over IPv4, IPv6, a name, and every address of the machine."""
    client, server = await both_sides(TCP, url, nursery)
    await shake_hands(client, server)
    await exchange(client, server)
    await close(client, server)


async def test_a_listener_accepts_at_each_of_its_addresses(nursery: trio.Nursery) -> None:
    """One listener has two sockets."""
    listener = await listen(TCP, "tcp://:0", nursery)
    assert len(listener.addresses) == 2
    for address in listener.addresses:
        client = await connect(TCP, address, nursery)
        server = await listener.accept()
        await exchange(client, server)
        await close(client, server)
    await listener.aclose()


async def test_its_stream_keeps_the_promises_of_trio_s_streams() -> None:
    """Closing, half-closing, conflicts, cancellation: trio's own check."""

    async def maker() -> tuple[trio.abc.HalfCloseableStream, trio.abc.HalfCloseableStream]:
        async with trio.open_nursery() as nursery:
            client, server = await both_sides(TCP, "tcp://127.0.0.1:0", nursery)
        return stream_of(client), stream_of(server)  # type: ignore[return-value]  # a SocketStream can be half-closed

    await check_half_closeable_stream(maker, None)


async def test_after_send_eof_the_other_direction_still_works(nursery: trio.Nursery) -> None:
    """Each direction ends separately."""
    client, server = await both_sides(TCP, "tcp://127.0.0.1:0", nursery)
    await client.send_eof()
    assert await server.receive() is None
    await server.send(b"more")
    assert await client.receive() == b"more"
    await close(client, server)
    assert client.facts == ConnectionFacts(half_close=True, local=True)
    assert server.facts == client.facts


async def test_each_side_has_the_address_of_the_other(nursery: trio.Nursery) -> None:
    """It is the address of the other side's socket."""
    client, server = await both_sides(TCP, "tcp://127.0.0.1:0", nursery)
    assert server.peer.address == "{}:{}".format(*stream_of(client).socket.getsockname())  # type: ignore[attr-defined]  # a SocketStream
    assert client.peer.address == "{}:{}".format(*stream_of(server).socket.getsockname())  # type: ignore[attr-defined]  # the same
    assert (server.peer.host, server.peer.certificate, server.peer.credentials) == (
        "127.0.0.1",
        None,
        None,
    )
    await close(client, server)


async def test_both_sockets_have_the_tcp_options(nursery: trio.Nursery) -> None:
    """The socket that connects and the socket that is accepted."""
    client, server = await both_sides(TCP, "tcp://127.0.0.1:0", nursery)
    for connection in (client, server):
        sock = stream_of(connection).socket  # type: ignore[attr-defined]  # a SocketStream
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    await close(client, server)


async def test_sending_waits_for_a_peer_that_does_not_read(nursery: trio.Nursery) -> None:
    """It waits when the buffers of the system are full."""
    client, server = await both_sides(TCP, "tcp://127.0.0.1:0", nursery)
    sent = []

    async def send_without_end() -> None:
        while True:
            await client.send(bytes(1 << 20))
            sent.append(1)

    async with trio.open_nursery() as sending:
        sending.start_soon(send_without_end)
        await trio.testing.wait_all_tasks_blocked(0.05)
        before = len(sent)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert len(sent) == before < 100
        sending.cancel_scope.cancel()
    await client.abort()
    await server.abort()


async def test_a_reset_raises_broken_resource_error(nursery: trio.Nursery) -> None:
    """So a connection that was cut differs from one that has ended."""
    client, server = await both_sides(TCP, "tcp://127.0.0.1:0", nursery)
    sock = stream_of(client).socket  # type: ignore[attr-defined]  # a SocketStream
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    await client.abort()
    with pytest.raises(trio.BrokenResourceError):
        await server.receive()
    await server.aclose()
