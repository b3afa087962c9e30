"""The promises of every transport, and of framed ones, checked with ``netstring://``. Copy this file, and change TRANSPORT and URL."""

from dataclasses import replace

import pytest
import trio
from penstock_template_transport import NetstringTransport
from trio.testing import assert_checkpoints, wait_all_tasks_blocked

from penstock.api import ConnectionLost, LimitExceeded, UsageError
from penstock.plugins import Connection, Listener, TransportOptions, open_tcp, parse_url

TRANSPORT = NetstringTransport()
URL = "netstring://127.0.0.1:0"
OPTIONS = TransportOptions(max_message=100)


async def _listen(nursery: trio.Nursery, options: TransportOptions = OPTIONS) -> Listener:
    return await TRANSPORT.listen(parse_url(URL), options=options, nursery=nursery)


async def _connect(listener: Listener, nursery: trio.Nursery, options: TransportOptions = OPTIONS) -> Connection:
    return await TRANSPORT.connect(listener.addresses[0], options=options, nursery=nursery)


async def _both_sides(nursery: trio.Nursery, options: TransportOptions = OPTIONS) -> tuple[Connection, Connection]:
    listener = await _listen(nursery, options)
    client = await _connect(listener, nursery, options)
    server = await listener.accept()
    await listener.aclose()
    async with trio.open_nursery() as handshakes:  # at the same time: a handshake may wait for the other side
        handshakes.start_soon(client.handshake, nursery)
        handshakes.start_soon(server.handshake, nursery)
    return client, server


async def _close(*connections: Connection) -> None:
    for connection in connections:
        await connection.abort()


# --- connecting and listening


async def test_both_sides_have_the_facts_and_the_peer(nursery: trio.Nursery) -> None:
    """They are complete after the handshake."""
    client, server = await _both_sides(nursery)
    assert client.framed is server.framed is TRANSPORT.framed
    assert client.facts.local
    assert server.facts.local
    assert client.peer.host == server.peer.host == "127.0.0.1"
    assert server.peer.address == f"127.0.0.1:{server.peer.port}"
    await _close(client, server)


async def test_a_listener_reports_its_real_address(nursery: trio.Nursery) -> None:
    """Without a publisher's name, and with the port that the system chose."""
    listener = await TRANSPORT.listen(parse_url(f"{URL}/name"), options=OPTIONS, nursery=nursery)
    [address] = listener.addresses
    assert address.publisher is None
    assert address.port
    await listener.aclose()


async def test_connecting_without_a_server_is_a_lost_connection(nursery: trio.Nursery) -> None:
    """With the address in the message."""
    listener = await _listen(nursery)
    await listener.aclose()
    with pytest.raises(ConnectionLost, match=str(listener.addresses[0])):
        await _connect(listener, nursery)


async def test_a_wrong_url_is_a_usage_error(nursery: trio.Nursery) -> None:
    """For a client and for a listener."""
    with pytest.raises(UsageError):
        await TRANSPORT.connect(parse_url("netstring:x"), options=OPTIONS, nursery=nursery)
    with pytest.raises(UsageError):
        await TRANSPORT.listen(parse_url("netstring:x"), options=OPTIONS, nursery=nursery)


async def test_a_cancelled_accept_has_accepted_no_connection(nursery: trio.Nursery) -> None:
    """The next `accept` returns the client."""
    listener = await _listen(nursery)
    async with trio.open_nursery() as accepting:
        accepting.start_soon(listener.accept)
        await wait_all_tasks_blocked()
        accepting.cancel_scope.cancel()
    client = await _connect(listener, nursery)
    server = await listener.accept()
    await _close(client, server)
    await listener.aclose()


async def test_a_client_that_disconnects_at_once_does_not_disturb_the_listener(nursery: trio.Nursery) -> None:
    """It is not returned, and the next client is served."""
    listener = await _listen(nursery)
    await (await _connect(listener, nursery)).abort()
    client = await _connect(listener, nursery)
    server = await listener.accept()
    await client.send(b"hello")
    assert await server.receive() == b"hello"
    await _close(client, server)
    await listener.aclose()


async def test_a_closed_listener_raises_closed_resource_error(nursery: trio.Nursery) -> None:
    """Both for a waiting `accept` and for a later one. It may be closed again."""
    listener = await _listen(nursery)
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


async def test_accepted_connections_outlive_their_listener(nursery: trio.Nursery) -> None:
    """`_both_sides` has closed it."""
    client, server = await _both_sides(nursery)
    await server.send(b"hello")
    assert await client.receive() == b"hello"
    await _close(client, server)


# --- messages


async def test_messages_stay_whole_in_both_directions(nursery: trio.Nursery) -> None:
    """Two messages are not joined, and an empty one is not the end. Every type of `Bytes` can be sent."""
    client, server = await _both_sides(nursery)
    for sender, receiver in ((client, server), (server, client)):
        for message in (b"one", bytearray(b""), memoryview(b"three"), b"x" * 100):
            with assert_checkpoints():
                await sender.send(message)
        with assert_checkpoints():
            assert await receiver.receive() == b"one"
        with assert_checkpoints():  # also for messages that have arrived together with the first one
            assert await receiver.receive() == b""
        assert await receiver.receive() == b"three"
        assert await receiver.receive() == b"x" * 100
    await _close(client, server)


async def test_after_send_eof_the_other_direction_still_works(nursery: trio.Nursery) -> None:
    """`receive` returns None, again and again."""
    client, server = await _both_sides(nursery)
    assert client.facts.half_close
    await client.send(b"last")
    await client.send_eof()
    assert [await server.receive() for _ in range(3)] == [b"last", None, None]
    await server.send(b"answer")
    assert await client.receive() == b"answer"
    await _close(client, server)


async def test_a_message_above_max_message_is_refused(nursery: trio.Nursery) -> None:
    """The option of the receiving side counts, and the connection can still be closed."""
    listener = await _listen(nursery)
    client = await _connect(listener, nursery, replace(OPTIONS, max_message=1000))
    server = await listener.accept()
    await client.send(bytes(101))
    with pytest.raises(LimitExceeded, match="a message of 101 bytes arrived; 100 are allowed") as caught:
        await server.receive()
    assert (caught.value.limit, caught.value.value) == ("max_message", 100)
    await server.aclose()
    await client.aclose()
    await listener.aclose()


async def test_a_cancelled_receive_loses_no_bytes(nursery: trio.Nursery) -> None:
    """A message that has arrived in part is completed by the next call."""
    listener = await _listen(nursery)
    stream, _ = await open_tcp(listener.addresses[0], OPTIONS)
    server = await listener.accept()
    await stream.send_all(b"5:he")
    async with trio.open_nursery() as receiving:
        receiving.start_soon(server.receive)
        await wait_all_tasks_blocked(0.01)
        receiving.cancel_scope.cancel()
    await stream.send_all(b"llo,")
    assert await server.receive() == b"hello"
    await stream.aclose()
    await server.aclose()
    await listener.aclose()


async def test_sending_waits_for_a_peer_that_does_not_read(nursery: trio.Nursery) -> None:
    """It waits when the buffers of the system are full. Closing does not wait longer than `close_timeout`."""
    client, server = await _both_sides(nursery, replace(OPTIONS, max_message=1 << 20, close_timeout=0.1))
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


# --- the end


@pytest.mark.parametrize("way", ["aclose", "abort"])
async def test_a_connection_can_be_closed_again(nursery: trio.Nursery, way: str) -> None:
    """In either way, and after the peer has closed. Afterwards `send` and `receive` raise."""
    client, server = await _both_sides(nursery)
    for connection in (client, server):
        await getattr(connection, way)()
        await connection.aclose()
        await connection.abort()
        with pytest.raises(trio.ClosedResourceError):
            await connection.send(b"x")
        with pytest.raises(trio.ClosedResourceError):
            await connection.receive()


async def test_a_cancelled_aclose_closes_nevertheless(nursery: trio.Nursery) -> None:
    """The peer sees the end of the connection."""
    client, server = await _both_sides(nursery)
    with trio.CancelScope() as scope:
        scope.cancel()
        await client.aclose()
    assert await server.receive() is None
    await server.aclose()


# --- a hostile peer: these tests send bytes past the transport


@pytest.mark.parametrize("data", [b"x", b":", b"-1:,", b"1234567890:", b"3:abcd", b"\x00"], ids=repr)
async def test_bytes_that_are_not_a_netstring_break_the_connection(nursery: trio.Nursery, data: bytes) -> None:
    """With BrokenResourceError, as for any broken stream."""
    listener = await _listen(nursery)
    stream, _ = await open_tcp(listener.addresses[0], OPTIONS)
    server = await listener.accept()
    await stream.send_all(data)
    with pytest.raises(trio.BrokenResourceError, match="not a netstring"):
        await server.receive()
    await stream.aclose()
    await server.aclose()
    await listener.aclose()


@pytest.mark.parametrize("data", [b"5", b"5:", b"5:hello"], ids=repr)
async def test_an_end_inside_a_message_breaks_the_connection(nursery: trio.Nursery, data: bytes) -> None:
    """It is not mistaken for an orderly end."""
    listener = await _listen(nursery)
    stream, _ = await open_tcp(listener.addresses[0], OPTIONS)
    server = await listener.accept()
    await stream.send_all(data)
    await stream.aclose()
    with pytest.raises(trio.BrokenResourceError, match="inside a message"):
        await server.receive()
    await server.aclose()
    await listener.aclose()


async def test_a_long_message_is_refused_by_its_length_alone(nursery: trio.Nursery) -> None:
    """Before its bytes have arrived: they are never buffered."""
    listener = await _listen(nursery)
    stream, _ = await open_tcp(listener.addresses[0], OPTIONS)
    server = await listener.accept()
    await stream.send_all(b"101:")
    with pytest.raises(LimitExceeded):
        await server.receive()
    await stream.aclose()
    await server.aclose()
    await listener.aclose()


async def test_netstrings_may_be_cut_at_any_byte(nursery: trio.Nursery) -> None:
    """TCP does not keep the boundaries of writes."""
    listener = await _listen(nursery)
    stream, _ = await open_tcp(listener.addresses[0], OPTIONS)
    server = await listener.accept()
    data = b"5:hello,0:,3:abc,"
    for cut in range(1, len(data)):
        messages: list[object] = []

        async def receive(messages: list[object] = messages) -> None:
            messages.extend([await server.receive() for _ in range(3)])

        async with trio.open_nursery() as receiving:
            receiving.start_soon(receive)
            await stream.send_all(data[:cut])
            await wait_all_tasks_blocked(0.001)
            await stream.send_all(data[cut:])
        assert messages == [b"hello", b"", b"abc"]
    await stream.aclose()
    await server.aclose()
    await listener.aclose()
