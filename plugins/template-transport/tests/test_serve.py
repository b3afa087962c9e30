"""A service and its subscribers over the transport. Keep this file: it uses the URL of
conftest.py, and nothing of netstrings.
"""

import re
from collections.abc import AsyncIterator

import pytest
import trio

from penstock import ConnectionLost, Limits, Service, connect, serve
from penstock.spi import TransportOptions

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


@pytest.mark.parametrize("protocol", ["", "reactivesocket+"], ids=["rsio", "reactivesocket"])
async def test_a_subscriber_receives_every_element(url: str, protocol: str) -> None:
    """With a demand of 2, so that demand crosses the network many times;
    in RS.io and in ReactiveSocket.
    """
    async with (
        serve(service, url) as server,
        connect(f"{protocol}{server.addresses[0]}") as peer,
        peer.subscribe("numbers/100", serializer="json", demand=2) as stream,
    ):
        assert [number async for number in stream] == list(range(100))


async def test_an_element_larger_than_a_message_is_sent_in_parts(url: str) -> None:
    """`Limits.max_element` is larger than `TransportOptions.max_message`."""
    limits = Limits(max_element=4_000_000)
    assert limits.max_element > TransportOptions().within(limits).max_message
    async with (
        serve(service, url, limits=limits) as server,
        connect(server.addresses[0], limits=limits) as peer,
        peer.subscribe("blocks") as stream,
    ):
        assert [(block[0], len(block)) async for block in stream] == [
            (number, 3_000_000) for number in range(3)
        ]


async def test_one_connection_carries_several_streams(url: str) -> None:
    """At the same time."""
    async with serve(service, url) as server, connect(server.addresses[0]) as peer:
        received = {}

        async def receive(count: int) -> None:
            async with peer.subscribe(f"numbers/{count}", serializer="json") as stream:
                received[count] = [number async for number in stream]

        async with trio.open_nursery() as nursery:
            for count in range(10):
                nursery.start_soon(receive, count)
        assert received == {count: list(range(count)) for count in range(10)}


async def test_without_a_server_the_connection_is_lost(url: str) -> None:
    """The error names the address."""
    async with serve(service, url) as server:
        [address] = server.addresses
    with pytest.raises(ConnectionLost, match=re.escape(str(address))):
        async with connect(address):
            pass
