"""The transport ``tcp://``, over real sockets."""

import socket

import pytest
import trio
from trio.testing import check_half_closeable_stream

from penstock.builtin import TcpTransport
from penstock.plugins import ConnectionFacts
from tests.builtin._helpers import both_sides, close, connect, exchange, listen, shake_hands, stream_of

TCP = TcpTransport()


@pytest.mark.parametrize("url", ["tcp://127.0.0.1:0", "tcp://[::1]:0", "tcp://localhost:0", "tcp://:0"])
async def test_a_word_each_way_arrives(url: str, nursery: trio.Nursery) -> None:
    """Over IPv4, IPv6, a name, and every address of the machine."""
    client, server = await both_sides(TCP, url, nursery)
    await shake_hands(client, server)
    await exchange(client, server)
    await close(client, server)


async def test_each_address_of_a_listener_is_answered(nursery: trio.Nursery) -> None:
    """Two sockets, one listener."""
    listener = await listen(TCP, "tcp://:0", nursery)
    assert len(listener.addresses) == 2
    for address in listener.addresses:
        client = await connect(TCP, address, nursery)
        server = await listener.accept()
        await exchange(client, server)
        await close(client, server)
    await listener.aclose()


async def test_its_stream_keeps_every_promise_of_trio_s_streams() -> None:
    """Closing, half-closing, conflicts, cancellation: trio's own check."""

    async def maker() -> tuple[trio.abc.HalfCloseableStream, trio.abc.HalfCloseableStream]:
        async with trio.open_nursery() as nursery:
            client, server = await both_sides(TCP, "tcp://127.0.0.1:0", nursery)
        return stream_of(client), stream_of(server)  # type: ignore[return-value]  # a SocketStream can

    await check_half_closeable_stream(maker, None)


async def test_one_half_ends_and_the_other_goes_on(nursery: trio.Nursery) -> None:
    """The end of what we send is not the end of what we receive."""
    client, server = await both_sides(TCP, "tcp://127.0.0.1:0", nursery)
    await client.send_eof()
    assert await server.receive() is None
    await server.send(b"still here")
    assert await client.receive() == b"still here"
    await close(client, server)
    assert client.facts == ConnectionFacts(half_close=True, local=True)
    assert server.facts == client.facts


async def test_both_sides_know_who_is_there(nursery: trio.Nursery) -> None:
    """Each sees the address of the other's socket."""
    client, server = await both_sides(TCP, "tcp://127.0.0.1:0", nursery)
    assert server.peer.address == "{}:{}".format(*stream_of(client).socket.getsockname())  # type: ignore[attr-defined]  # a SocketStream
    assert client.peer.address == "{}:{}".format(*stream_of(server).socket.getsockname())  # type: ignore[attr-defined]  # the same
    assert (server.peer.host, server.peer.certificate, server.peer.credentials) == ("127.0.0.1", None, None)
    await close(client, server)


async def test_both_sockets_are_tuned(nursery: trio.Nursery) -> None:
    """The one that connects and the one that is accepted."""
    client, server = await both_sides(TCP, "tcp://127.0.0.1:0", nursery)
    for connection in (client, server):
        sock = stream_of(connection).socket  # type: ignore[attr-defined]  # a SocketStream
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    await close(client, server)


async def test_sending_waits_for_a_peer_that_does_not_read(nursery: trio.Nursery) -> None:
    """What the system's buffers do not hold is not taken."""
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


async def test_a_reset_is_a_broken_stream(nursery: trio.Nursery) -> None:
    """A peer that is cut off is told from one that has ended."""
    client, server = await both_sides(TCP, "tcp://127.0.0.1:0", nursery)
    sock = stream_of(client).socket  # type: ignore[attr-defined]  # a SocketStream
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    await client.abort()
    with pytest.raises(trio.BrokenResourceError):
        await server.receive()
    await server.aclose()
