"""Each Stream over a real connection to a server of penstock:
elements, lists, memory, types, demand, and the end of the block.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import trio

import penstock
from penstock import aio, blocking
from penstock.api import StreamState, UsageError
from tests._real_time import HANGS_AFTER
from tests.aio._run import run as run_on_asyncio
from tests.contracts._trio_server import Quote, Served, serving
from tests.stream._shells import AwaitedBlock


class Client:
    """A client of one kind:
    it connects, runs a test with its peer, and reads streams in the way of all kinds.
    """

    name = "trio"
    served: Served
    """The server's record."""

    def run(self, url: str, body: Callable[["Client", Any], Awaitable[None]]) -> None:
        async def main() -> None:
            with trio.fail_after(HANGS_AFTER):
                async with penstock.connect(url) as peer:
                    await body(self, peer)

        trio.run(main)

    def stream(self, peer: Any, name: str, **options: Any) -> AbstractAsyncContextManager[Any]:
        """Return the block around a stream."""
        return peer.subscribe(name, **options)

    def elements(self, stream: Any) -> AsyncIterator[Any]:
        """Iterate over the elements."""
        return stream

    def batches(self, stream: Any) -> AsyncIterator[list[Any]]:
        """Iterate over lists of them."""
        return stream.batches()

    def buffers(self, stream: Any) -> AsyncIterator[bytes]:
        """Iterate over memory."""
        return stream.buffers()

    async def request(self, peer: Any, name: str) -> Any:
        """Ask for one value."""
        return await peer.request(name)


class AsyncioClient(Client):
    name = "aio"

    def run(self, url: str, body: Callable[[Client, Any], Awaitable[None]]) -> None:
        async def main() -> None:
            async with aio.connect(url) as peer:
                await body(self, peer)

        run_on_asyncio(main())


async def _awaited(iterable: Iterator[Any]) -> AsyncIterator[Any]:
    for each in iterable:
        yield each


class BlockingClient(Client):
    name = "blocking"

    def run(self, url: str, body: Callable[[Client, Any], Awaitable[None]]) -> None:
        with blocking.connect(url) as peer:
            coroutine: Any = body(self, peer)
            with pytest.raises(StopIteration):
                coroutine.send(None)

    def stream(self, peer: Any, name: str, **options: Any) -> AbstractAsyncContextManager[Any]:
        return AwaitedBlock(peer.subscribe(name, timeout=HANGS_AFTER, **options))

    def elements(self, stream: Any) -> AsyncIterator[Any]:
        return _awaited(iter(stream))

    def batches(self, stream: Any) -> AsyncIterator[list[Any]]:
        return _awaited(stream.batches())

    def buffers(self, stream: Any) -> AsyncIterator[bytes]:
        return _awaited(stream.buffers())

    async def request(self, peer: Any, name: str) -> Any:
        return peer.request(name, timeout=HANGS_AFTER)


CLIENTS = [Client(), AsyncioClient(), BlockingClient()]


def of_each_client(body: Callable[[Client, Any], Awaitable[None]]) -> Callable[..., None]:
    """Run a test with each client."""

    def test(client: Client, served: Served) -> None:
        client.served = served
        client.run(served.url, body)

    test.__name__, test.__doc__ = body.__name__, body.__doc__
    return pytest.mark.parametrize("client", CLIENTS, ids=lambda each: each.name)(test)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


@of_each_client
async def test_elements_arrive_in_order(client: Client, peer: Any) -> None:
    """Completion ends the loop, and the statistics have the counts."""
    async with client.stream(peer, "numbers?count=1000", demand=16) as stream:
        assert [element async for element in client.elements(stream)] == [
            b"%d" % number for number in range(1000)
        ]
        now = stream.statistics()
    assert (now.state, now.taken, now.buffered) == (StreamState.COMPLETED, 1000, 0)


@of_each_client
async def test_batches_are_the_same_elements(client: Client, peer: Any) -> None:
    """No batch is empty, and none is longer than the demand."""
    async with client.stream(peer, "numbers?count=5000", demand=64) as stream:
        batches = [batch async for batch in client.batches(stream)]
    assert [element for batch in batches for element in batch] == [
        b"%d" % number for number in range(5000)
    ]
    assert 0 < min(map(len, batches)) <= max(map(len, batches)) <= 64


@of_each_client
async def test_demand_of_one_moves_one_element_at_a_time(client: Client, peer: Any) -> None:
    """The publisher is asked for the next element when the reader wants it."""
    async with client.stream(peer, "forever", demand=1) as stream:
        number = 0
        async for element in client.elements(stream):
            assert element == b"%d" % number
            number += 1
            assert stream.statistics().requested == number
            if number == 20:
                break


@of_each_client
async def test_a_stream_is_left_in_the_middle_and_read_on(client: Client, peer: Any) -> None:
    """A second loop, and then batches, go on after the last element;
    nothing is lost between them.
    """
    got = []
    async with client.stream(peer, "numbers?count=300", demand=32) as stream:
        for most in (5, 7):
            async for element in client.elements(stream):
                got.append(element)
                if len(got) == most:
                    break
        async for batch in client.batches(stream):
            got += batch
    assert got == [b"%d" % number for number in range(300)]


@of_each_client
async def test_manual_demand_brings_what_was_asked_for(client: Client, peer: Any) -> None:
    """With demand=0 the program requests, and the publisher sends no more."""
    async with client.stream(peer, "numbers?count=5", demand=0) as stream:
        stream.request(2)
        got = []
        async for element in client.elements(stream):
            got.append(element)
            if len(got) == 2:
                assert stream.statistics().starved
                stream.request(10)
    assert got == [b"0", b"1", b"2", b"3", b"4"]


@of_each_client
async def test_packed_elements_come_as_elements_and_as_memory(client: Client, peer: Any) -> None:
    """The publisher has a fixed size; a stream without one has no memory."""
    async with client.stream(peer, "packed?count=100") as stream:
        assert [element async for element in client.elements(stream)] == [
            b"%04d" % number for number in range(100)
        ]
        assert stream.element_size == 4
    async with client.stream(peer, "packed?count=100", demand=40) as stream:
        pieces = [piece async for piece in client.buffers(stream)]
        assert b"".join(pieces) == b"".join(b"%04d" % number for number in range(100))
        assert max(map(len, pieces)) <= 40 * 4
        assert stream.statistics().taken == 100
    async with client.stream(peer, "numbers") as stream:
        with pytest.raises(UsageError, match="no fixed size"):
            await anext(client.buffers(stream))


@of_each_client
async def test_elements_have_the_type_that_was_asked_for(client: Client, peer: Any) -> None:
    """A dataclass is JSON; an element that does not decode ends its stream only."""
    async with client.stream(peer, "quotes", type=Quote) as stream:
        assert [quote async for quote in client.elements(stream)] == [
            Quote("EURUSD", number) for number in range(3)
        ]
    async with client.stream(peer, "numbers?count=3", type=str) as stream:
        assert [text async for text in client.elements(stream)] == ["0", "1", "2"]
    async with client.stream(peer, "failing", serializer="json") as stream:
        with pytest.raises(Exception, match=r"^element 0 \(3 bytes\)"):
            await anext(client.elements(stream))
    assert await client.request(peer, "echo") == b"nothing"


@of_each_client
async def test_large_elements_keep_within_the_window(client: Client, peer: Any) -> None:
    """Elements of 1 MiB arrive in parts,
    and no more of them are under way than fit into the window.
    """
    async with client.stream(peer, "numbers?count=6&size=1048576", window_bytes=2 << 20) as stream:
        async for element in client.elements(stream):
            assert len(element) == 1 << 20
            assert stream.statistics().outstanding <= 4


@of_each_client
async def test_leaving_a_stream_stops_its_publisher(client: Client, peer: Any) -> None:
    """The body may leave it by raising."""
    client.served.stopped.clear()
    with pytest.raises(ZeroDivisionError):
        async with client.stream(peer, "forever") as stream:
            _ = 1 / len((await anext(client.elements(stream)))[1:])
    while "forever" not in client.served.stopped:
        await client.request(peer, "echo")
