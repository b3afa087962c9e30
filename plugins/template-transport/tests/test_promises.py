"""The promises that every transport keeps. Keep this file: it uses the transport and the URLs of
conftest.py, and nothing of netstrings.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
import trio
from trio.testing import assert_checkpoints, wait_all_tasks_blocked

from penstock.api import ConnectionLost, LimitExceeded, UsageError
from penstock.spi import Connection, Listener, Transport, TransportOptions, parse_url

OPTIONS = TransportOptions(max_message=100)
Listen = Callable[[], Awaitable[Listener]]
Connect = Callable[..., Awaitable[Connection]]
Pair = Callable[..., Awaitable[tuple[Connection, Connection]]]


@pytest.fixture
def listen(transport: Transport, url: str, nursery: trio.Nursery) -> Listen:
    """Listen at `url`."""

    async def listen() -> Listener:
        return await transport.listen(parse_url(url), options=OPTIONS, nursery=nursery)

    return listen


@pytest.fixture
def connect(transport: Transport, nursery: trio.Nursery) -> Connect:
    """Connect to a listener."""

    async def connect(listener: Listener, options: TransportOptions = OPTIONS) -> Connection:
        return await transport.connect(listener.addresses[0], options=options, nursery=nursery)

    return connect


@pytest.fixture
def pair(listen: Listen, connect: Connect, nursery: trio.Nursery) -> Pair:
    """Return both sides of a connection after their handshakes. Their listener is closed."""

    async def pair(client_options: TransportOptions = OPTIONS) -> tuple[Connection, Connection]:
        listener = await listen()
        client = await connect(listener, client_options)
        server = await listener.accept()
        await listener.aclose()
        await _handshakes(nursery, client, server)
        return client, server

    return pair


async def _handshakes(nursery: trio.Nursery, *connections: Connection) -> None:
    # At the same time: a handshake may wait for the other side.
    async with trio.open_nursery() as handshakes:
        for connection in connections:
            handshakes.start_soon(connection.handshake, nursery)


async def _receive(connection: Connection, size: int) -> bytes:
    """Receive this many bytes: over a transport that is not framed they may come in several
    parts.
    """
    received = b""
    while len(received) < size:
        data = await connection.receive()
        assert data is not None, f"the end came after {received!r}"
        received += data
    return received


async def _close(*closing: Connection | Listener) -> None:
    for each in closing:
        await each.aclose()


# --- connecting and listening


async def test_both_sides_have_the_facts_and_the_peer(pair: Pair) -> None:
    """They are complete after the handshake. Both sides run on this machine."""
    client, server = await pair()
    assert client.framed is server.framed
    assert client.facts.local
    assert server.facts.local
    assert client.peer.address
    assert server.peer.address
    await _close(client, server)


async def test_a_listener_reports_addresses_to_connect_to(
    transport: Transport, url: str, nursery: trio.Nursery, connect: Connect
) -> None:
    """Without a publisher's name."""
    listener = await transport.listen(parse_url(f"{url}#name"), options=OPTIONS, nursery=nursery)
    assert [address.publisher for address in listener.addresses] == [None] * len(listener.addresses)
    client = await connect(listener)
    server = await listener.accept()
    await _handshakes(nursery, client, server)
    await _close(client, server, listener)


async def test_connecting_without_a_server_is_a_lost_connection(
    listen: Listen, connect: Connect
) -> None:
    """With the address in the message."""
    listener = await listen()
    await listener.aclose()
    with pytest.raises(ConnectionLost, match=re.escape(str(listener.addresses[0]))):
        await connect(listener)


async def test_a_wrong_url_is_a_usage_error(
    transport: Transport, wrong_url: str, nursery: trio.Nursery
) -> None:
    """For a client and for a listener."""
    with pytest.raises(UsageError):
        await transport.connect(parse_url(wrong_url), options=OPTIONS, nursery=nursery)
    with pytest.raises(UsageError):
        await transport.listen(parse_url(wrong_url), options=OPTIONS, nursery=nursery)


async def test_a_cancelled_accept_has_accepted_no_connection(
    listen: Listen, connect: Connect, nursery: trio.Nursery
) -> None:
    """The next `accept` returns the client."""
    listener = await listen()
    async with trio.open_nursery() as accepting:
        accepting.start_soon(listener.accept)
        await wait_all_tasks_blocked()
        accepting.cancel_scope.cancel()
    client = await connect(listener)
    server = await listener.accept()
    await _handshakes(nursery, client, server)
    await _close(client, server, listener)


async def test_a_client_that_has_left_is_not_returned(
    listen: Listen, connect: Connect, nursery: trio.Nursery
) -> None:
    """`accept` closes a client that has left before it sent a byte, and returns the next one."""
    listener = await listen()
    await (await connect(listener)).abort()
    client = await connect(listener)
    server = await listener.accept()
    await _handshakes(nursery, client, server)
    await client.send(b"hello")
    assert await _receive(server, 5) == b"hello"
    await _close(client, server, listener)


async def test_a_silent_client_does_not_delay_the_next_one(
    listen: Listen, connect: Connect, nursery: trio.Nursery
) -> None:
    """`accept` returns a client that sends nothing, not even the bytes of a handshake."""
    listener = await listen()
    silent = await connect(listener)
    client = await connect(listener)
    accepted = [await listener.accept() for _ in range(2)]
    async with trio.open_nursery() as handshakes:
        handshakes.start_soon(client.handshake, nursery)
        handshakes.start_soon(accepted[1].handshake, nursery)
    await client.send(b"hello")
    assert await _receive(accepted[1], 5) == b"hello"
    for connection in (silent, client, *accepted):
        await connection.abort()
    await listener.aclose()


async def test_a_closed_listener_raises_closed_resource_error(listen: Listen) -> None:
    """Both for a waiting `accept` and for a later one. It may be closed again."""
    listener = await listen()
    raised = []

    async def accept() -> None:
        try:
            await listener.accept()
        except trio.ClosedResourceError:
            raised.append(True)

    async with trio.open_nursery() as accepting:
        accepting.start_soon(accept)
        await wait_all_tasks_blocked()
        await listener.aclose()
    await accept()
    assert raised == [True, True]
    await listener.aclose()


async def test_accepted_connections_outlive_their_listener(pair: Pair) -> None:
    """`pair` has closed it."""
    client, server = await pair()
    await server.send(b"hello")
    assert await _receive(client, 5) == b"hello"
    await _close(client, server)


# --- sending and receiving


async def test_bytes_arrive_in_order_in_both_directions(pair: Pair) -> None:
    """Every type of `Bytes` can be sent. `send` and `receive` are checkpoints."""
    client, server = await pair()
    for sender, receiver in ((client, server), (server, client)):
        for data in (b"one", bytearray(b"two"), memoryview(b"three")):
            with assert_checkpoints():
                await sender.send(data)
        with assert_checkpoints():
            first = await receiver.receive()
        assert first
        assert first + await _receive(receiver, 11 - len(first)) == b"onetwothree"
    await _close(client, server)


async def test_after_send_eof_the_other_direction_still_works(pair: Pair) -> None:
    """If `facts.half_close` is True. `receive` returns None, again and again."""
    client, server = await pair()
    if client.facts.half_close:
        await client.send(b"last")
        await client.send_eof()
        assert await _receive(server, 4) == b"last"
        assert [await server.receive() for _ in range(3)] == [None, None, None]
        await server.send(b"answer")
        assert await _receive(client, 6) == b"answer"
    await _close(client, server)


async def test_a_cancelled_receive_loses_no_bytes(pair: Pair) -> None:
    """The next call returns what arrives later."""
    client, server = await pair()
    async with trio.open_nursery() as receiving:
        receiving.start_soon(server.receive)
        await wait_all_tasks_blocked(0.01)
        receiving.cancel_scope.cancel()
    await client.send(b"hello")
    assert await _receive(server, 5) == b"hello"
    await _close(client, server)


async def test_sending_waits_for_a_peer_that_does_not_read(pair: Pair) -> None:
    """It waits when the buffers of the system are full.
    Closing does not wait longer than `close_timeout`.
    """
    client, server = await pair(replace(OPTIONS, max_message=1 << 20, close_timeout=0.1))
    sent = []

    async def send_without_end() -> None:
        while True:
            await client.send(bytes(1 << 20))
            sent.append(True)

    async with trio.open_nursery() as sending:
        sending.start_soon(send_without_end)
        await wait_all_tasks_blocked(0.05)
        before = len(sent)
        await wait_all_tasks_blocked(0.05)
        assert len(sent) == before < 100
        sending.cancel_scope.cancel()
    await client.aclose()
    await server.abort()


# --- only for a transport that is framed


async def test_messages_stay_whole_in_both_directions(pair: Pair) -> None:
    """Two messages are not joined, and an empty one is not the end."""
    client, server = await pair()
    if client.framed:
        for sender, receiver in ((client, server), (server, client)):
            messages = [b"one", b"", b"three", b"x" * 100]
            for message in messages:
                await sender.send(message)
            for message in messages:
                # A message may have arrived together with the one before.
                with assert_checkpoints():
                    assert await receiver.receive() == message
    await _close(client, server)


async def test_a_message_above_max_message_is_refused(pair: Pair) -> None:
    """The option of the receiving side counts, and the connection can still be closed."""
    client, server = await pair(replace(OPTIONS, max_message=1000))
    if client.framed:
        await client.send(bytes(101))
        with pytest.raises(LimitExceeded) as caught:
            await server.receive()
        assert (caught.value.limit, caught.value.value) == ("max_message", 100)
    await _close(server, client)


# --- the end


@pytest.mark.parametrize("way", ["aclose", "abort"])
async def test_a_connection_can_be_closed_again(pair: Pair, way: str) -> None:
    """In either way, and after the peer has closed. Afterwards `send` and `receive` raise."""
    for connection in await pair():
        await getattr(connection, way)()
        await connection.aclose()
        await connection.abort()
        with pytest.raises(trio.ClosedResourceError):
            await connection.send(b"x")
        with pytest.raises(trio.ClosedResourceError):
            await connection.receive()


async def test_a_cancelled_aclose_closes_nevertheless(pair: Pair) -> None:
    """The peer sees the end of the connection."""
    client, server = await pair()
    with trio.CancelScope() as scope:
        scope.cancel()
        await client.aclose()
    assert await server.receive() is None
    await server.aclose()


@pytest.mark.parametrize("way", ["aclose", "abort"])
async def test_nothing_is_left_after_the_end(transport: Transport, url: str, way: str) -> None:
    """No task: the nursery ends by itself. No open socket:
    it would warn, and a warning fails the test.
    """
    async with trio.open_nursery() as nursery:
        listener = await transport.listen(parse_url(url), options=OPTIONS, nursery=nursery)
        client = await transport.connect(listener.addresses[0], options=OPTIONS, nursery=nursery)
        server = await listener.accept()
        await _handshakes(nursery, client, server)
        for connection in (client, server):
            await getattr(connection, way)()
        await listener.aclose()
