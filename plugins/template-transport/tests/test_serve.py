"""A service and its subscribers over ``netstring://``."""

from collections.abc import AsyncIterator

import pytest
import trio

from penstock import ConnectionLost, Limits, Service, connect, serve, subscribe
from penstock.plugins import TransportOptions, open_tcp, parse_url

service = Service()


@service.publisher("numbers/{count}", serializer="json")
async def numbers(count: int) -> AsyncIterator[int]:
    for number in range(count):
        yield number


@service.publisher("blocks")
async def blocks() -> AsyncIterator[bytes]:
    """Elements that are larger than one message may be."""
    for number in range(3):
        yield bytes([number]) * 3_000_000


async def test_a_subscriber_receives_every_element() -> None:
    """With a demand of 2, so that demand crosses the network many times; in RS.io and in ReactiveSocket."""
    async with serve(service, "netstring://127.0.0.1:0") as server:
        [address] = server.addresses
        for protocol in ("", "reactivesocket+"):
            async with subscribe(f"{protocol}{address}/numbers/100", serializer="json", demand=2) as stream:
                assert [number async for number in stream] == list(range(100))


async def test_an_element_larger_than_a_message_is_sent_in_parts() -> None:
    """`Limits.max_element` is larger than `TransportOptions.max_message`."""
    limits = Limits(max_element=4_000_000)
    assert limits.max_element > TransportOptions().within(limits).max_message
    async with (
        serve(service, "netstring://127.0.0.1:0", limits=limits) as server,
        subscribe(f"{server.addresses[0]}/blocks", limits=limits) as stream,
    ):
        assert [(block[0], len(block)) async for block in stream] == [(number, 3_000_000) for number in range(3)]


async def test_one_connection_carries_several_streams() -> None:
    """At the same time."""
    async with serve(service, "netstring://127.0.0.1:0") as server, connect(server.addresses[0]) as peer:
        received = {}

        async def receive(count: int) -> None:
            async with peer.subscribe(f"numbers/{count}", serializer="json") as stream:
                received[count] = [number async for number in stream]

        async with trio.open_nursery() as nursery:
            for count in range(10):
                nursery.start_soon(receive, count)
        assert received == {count: list(range(count)) for count in range(10)}


async def test_a_client_that_sends_rubbish_ends_its_own_connection_only() -> None:
    """Another subscriber is not affected."""
    async with serve(service, "netstring://127.0.0.1:0") as server, connect(server.addresses[0]) as peer:
        stream, _ = await open_tcp(parse_url(server.addresses[0]), TransportOptions())
        await stream.send_all(b"rubbish")
        while await stream.receive_some():
            pass  # the server may send its goodbye before it closes the connection
        await stream.aclose()
        async with peer.subscribe("numbers/3", serializer="json") as numbers:
            assert [number async for number in numbers] == [0, 1, 2]


async def test_without_a_server_the_connection_is_lost() -> None:
    """The error names the address."""
    async with serve(service, "netstring://127.0.0.1:0") as server:
        [address] = server.addresses
    with pytest.raises(ConnectionLost, match=address):
        async with connect(address):
            pass
