"""Tests for netstrings alone. Write a file of this kind for your transport: a hostile peer sends
its bytes past the transport.
"""

import pytest
import trio
from penstock_template_transport import NetstringTransport
from trio.testing import wait_all_tasks_blocked

from penstock import Service, connect, from_iterable, serve
from penstock.api import LimitExceeded
from penstock.spi import Connection, TransportOptions, open_tcp, parse_url

TRANSPORT = NetstringTransport()
URL = "netstring://127.0.0.1:0"
OPTIONS = TransportOptions(max_message=100)


async def _server_and_stream(nursery: trio.Nursery) -> tuple[Connection, trio.SocketStream]:
    """Return the server's side of a connection, and the plain TCP stream to it."""
    listener = await TRANSPORT.listen(parse_url(URL), options=OPTIONS, nursery=nursery)
    stream, _ = await open_tcp(listener.addresses[0], OPTIONS)
    server = await listener.accept()
    await listener.aclose()
    return server, stream


async def test_the_facts_and_the_peer_are_those_of_tcp(nursery: trio.Nursery) -> None:
    """A listener at port 0 reports the port that the system chose."""
    listener = await TRANSPORT.listen(parse_url(URL), options=OPTIONS, nursery=nursery)
    assert listener.addresses[0].port
    client = await TRANSPORT.connect(listener.addresses[0], options=OPTIONS, nursery=nursery)
    server = await listener.accept()
    assert client.framed is server.framed is TRANSPORT.framed is True
    assert client.facts.half_close
    assert server.facts.half_close
    assert client.peer.host == server.peer.host == "127.0.0.1"
    assert server.peer.address == f"127.0.0.1:{server.peer.port}"
    for each in (client, server, listener):
        await each.aclose()


async def test_a_message_is_written_as_a_netstring(nursery: trio.Nursery) -> None:
    """With its length in decimal digits."""
    server, stream = await _server_and_stream(nursery)
    await server.send(b"hello")
    await server.send(b"")
    await server.aclose()
    received = b""
    while data := await stream.receive_some():
        received += data
    assert received == b"5:hello,0:,"
    await stream.aclose()


async def test_a_cancelled_receive_keeps_a_part_of_a_message(nursery: trio.Nursery) -> None:
    """The next call completes the message."""
    server, stream = await _server_and_stream(nursery)
    await stream.send_all(b"5:he")
    async with trio.open_nursery() as receiving:
        receiving.start_soon(server.receive)
        await wait_all_tasks_blocked(0.01)
        receiving.cancel_scope.cancel()
    await stream.send_all(b"llo,")
    assert await server.receive() == b"hello"
    await stream.aclose()
    await server.aclose()


@pytest.mark.parametrize(
    "data", [b"x", b":", b"-1:,", b"1234567890:", b"3:abcd", b"\x00"], ids=repr
)
async def test_bytes_that_are_not_a_netstring_break_the_connection(
    nursery: trio.Nursery, data: bytes
) -> None:
    """With BrokenResourceError, as for any broken stream."""
    server, stream = await _server_and_stream(nursery)
    await stream.send_all(data)
    with pytest.raises(trio.BrokenResourceError, match="not a netstring"):
        await server.receive()
    await stream.aclose()
    await server.aclose()


@pytest.mark.parametrize("data", [b"5", b"5:", b"5:hello"], ids=repr)
async def test_an_end_inside_a_message_breaks_the_connection(
    nursery: trio.Nursery, data: bytes
) -> None:
    """It is not mistaken for an orderly end."""
    server, stream = await _server_and_stream(nursery)
    await stream.send_all(data)
    await stream.aclose()
    with pytest.raises(trio.BrokenResourceError, match="inside a message"):
        await server.receive()
    await server.aclose()


async def test_a_long_message_is_refused_by_its_length_alone(nursery: trio.Nursery) -> None:
    """Before its bytes have arrived: they are never buffered."""
    server, stream = await _server_and_stream(nursery)
    await stream.send_all(b"101:")
    with pytest.raises(LimitExceeded, match="a message of 101 bytes arrived; 100 are allowed"):
        await server.receive()
    await stream.aclose()
    await server.aclose()


async def test_netstrings_may_be_cut_at_any_byte(nursery: trio.Nursery) -> None:
    """TCP does not keep the boundaries of writes."""
    server, stream = await _server_and_stream(nursery)
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


async def test_a_client_that_sends_rubbish_ends_its_own_connection_only() -> None:
    """Another subscriber is not affected."""
    service = Service()
    service.publish("letters", from_iterable([b"a", b"b"]))
    async with serve(service, URL) as server, connect(server.addresses[0]) as peer:
        stream, _ = await open_tcp(parse_url(server.addresses[0]), TransportOptions())
        await stream.send_all(b"rubbish")
        while await stream.receive_some():
            pass  # the server may send its goodbye before it closes the connection
        await stream.aclose()
        async with peer.subscribe("letters") as letters:
            assert [letter async for letter in letters] == [b"a", b"b"]
