"""Streams on asyncio: elements, batches, memory, demand, types, cancellation."""

import asyncio
from collections.abc import Iterator

import pytest

from penstock import aio
from penstock.api import (
    ConnectionLost,
    IllegalDemand,
    ProtocolError,
    StreamState,
    UsageError,
)
from penstock.spi import Reconnect
from tests.aio._run import connected, run
from tests.blocking._positioned import cutting_server
from tests.blocking._trio_server import Quote, Served, serving

SERVER_HELLO = bytes.fromhex("020000")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


def test_elements_arrive_in_order(served: Served) -> None:
    """Completion ends the loop, and the statistics have the counts."""

    async def read(peer: aio.Peer) -> None:
        async with peer.subscribe("numbers?count=1000", demand=16) as stream:
            assert [element async for element in stream] == [
                b"%d" % number for number in range(1000)
            ]
            now = stream.statistics()
        assert (now.state, now.taken, now.buffered) == (StreamState.COMPLETED, 1000, 0)

    connected(served, read)


def test_batches_are_the_same_elements(served: Served) -> None:
    """No batch is empty, and none is longer than the demand."""

    async def read(peer: aio.Peer) -> list[list[bytes]]:
        async with peer.subscribe("numbers?count=5000", demand=64) as stream:
            return [batch async for batch in stream.batches()]

    batches = connected(served, read)
    assert [element for batch in batches for element in batch] == [
        b"%d" % number for number in range(5000)
    ]
    assert 0 < min(map(len, batches)) <= max(map(len, batches)) <= 64


def test_demand_of_one_moves_one_element_at_a_time(served: Served) -> None:
    """The publisher is asked for the next element when the reader wants it."""

    async def read(peer: aio.Peer) -> None:
        async with peer.subscribe("forever", demand=1) as stream:
            number = 0
            async for element in stream:
                assert element == b"%d" % number
                number += 1
                assert stream.statistics().requested == number
                if number == 20:
                    break

    connected(served, read)


def test_a_stream_is_left_in_the_middle_and_read_on(served: Served) -> None:
    """A second loop, and then batches, go on behind the last element."""

    async def read(peer: aio.Peer) -> list[bytes]:
        got = []
        async with peer.subscribe("numbers?count=300", demand=32) as stream:
            for most in (5, 7):
                async for element in stream:
                    got.append(element)
                    if len(got) == most:
                        break
            async for batch in stream.batches():
                got += batch
        return got

    assert connected(served, read) == [b"%d" % number for number in range(300)]


def test_manual_demand_brings_what_was_asked_for(served: Served) -> None:
    """With demand=0 the program requests; a demand that is no number is refused at once."""

    async def read(peer: aio.Peer) -> None:
        async with peer.subscribe("numbers?count=5", demand=0) as stream:
            stream.request(2)
            assert [await anext(stream), await anext(stream)] == [b"0", b"1"]
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await anext(stream)
            assert stream.statistics().starved
            with pytest.raises(IllegalDemand):
                stream.request(0)
            stream.request(10)
            assert [element async for element in stream] == [b"2", b"3", b"4"]

    connected(served, read)


def test_packed_elements_come_as_elements_and_as_memory(served: Served) -> None:
    """The publisher has a fixed size; a stream without one has no memory."""

    async def read(peer: aio.Peer) -> None:
        async with peer.subscribe("packed?count=100") as stream:
            assert [element async for element in stream] == [
                b"%04d" % number for number in range(100)
            ]
            assert stream.element_size == 4
        async with peer.subscribe("packed?count=100", demand=40) as stream:
            assert b"".join([piece async for piece in stream.buffers()]) == b"".join(
                b"%04d" % number for number in range(100)
            )
        async with peer.subscribe("numbers") as stream:
            with pytest.raises(UsageError, match="no fixed size"):
                await anext(stream.buffers())

    connected(served, read)


def test_elements_have_the_type_that_was_asked_for(served: Served) -> None:
    """A dataclass is JSON; an element that does not decode ends its stream only."""

    async def read(peer: aio.Peer) -> None:
        async with peer.subscribe("quotes", type=Quote) as stream:
            assert [quote async for quote in stream] == [
                Quote("EURUSD", number) for number in range(3)
            ]
        async with peer.subscribe("failing", serializer="json") as stream:
            with pytest.raises(Exception, match=r"^element 0 \(3 bytes\)"):
                await anext(stream)
        assert await peer.request("echo") == b"nothing"

    connected(served, read)


def test_two_readers_of_one_stream_are_refused(served: Served) -> None:
    """The second one gets UsageError, and the first one goes on. A stream is opened once."""

    async def read(peer: aio.Peer) -> None:
        async with peer.subscribe("silent") as stream:
            assert await anext(stream) == b"first"
            first = asyncio.ensure_future(anext(stream))  # type: ignore[arg-type]  # a coroutine
            await asyncio.sleep(0)
            with pytest.raises(UsageError, match="two tasks"):
                await anext(stream)
            stream.cancel()
            with pytest.raises(StopAsyncIteration):
                await first
            with pytest.raises(UsageError, match="opened before"):
                await stream.__aenter__()

    connected(served, read)


def test_a_cancelled_reader_loses_nothing(served: Served) -> None:
    """A task that is cancelled while it waits has taken nothing;
    the next reader gets every element.
    """

    async def read(peer: aio.Peer) -> list[bytes]:
        got: list[bytes] = []
        async with peer.subscribe("numbers?count=200", demand=2) as stream:
            while True:
                reader = asyncio.ensure_future(anext(stream))  # type: ignore[arg-type]  # a coroutine
                await asyncio.sleep(0)
                if not reader.done():
                    reader.cancel()
                try:
                    got.append(await reader)
                except asyncio.CancelledError:
                    await asyncio.sleep(0)
                except StopAsyncIteration:
                    return got

    assert connected(served, read) == [b"%d" % number for number in range(200)]


def test_leaving_a_stream_stops_its_publisher(served: Served) -> None:
    """Also if the body raises."""

    async def read(peer: aio.Peer) -> None:
        served.stopped.clear()
        with pytest.raises(ZeroDivisionError):
            async with peer.subscribe("forever") as stream:
                _ = 1 / len((await anext(stream))[1:])
        while "forever" not in served.stopped:
            await asyncio.sleep(0.01)

    connected(served, read)


def test_a_stream_goes_on_at_its_position() -> None:
    """Over three connections no element is missing, and none comes twice."""

    async def main(url: str) -> list[tuple[bytes, int | None]]:
        async with aio.connect(url, reconnect=Reconnect(first=0.001, most=0.001)) as peer:
            async with peer.subscribe("ticks", stop="latest", demand=8) as stream:
                assert stream.position is None
                return [(element, stream.position) async for element in stream]

    with cutting_server() as (url, names):
        seen = run(main(url))
    assert seen == [(b"%02d" % number, number + 1) for number in range(7, 17)]
    assert names == [b"ticks?stop=latest", b"ticks?start=11&stop=17", b"ticks?start=15&stop=17"]


def test_a_stream_without_a_policy_ends_and_has_its_position() -> None:
    """The program subscribes again with it."""

    async def main(url: str) -> None:
        async with aio.connect(url) as peer, peer.subscribe("ticks", start=9) as stream:
            with pytest.raises(ConnectionLost):
                _ = [element async for element in stream]
            assert stream.position == 13

    with cutting_server() as (url, _):
        run(main(url))


def test_a_gap_is_never_silent() -> None:
    """A publisher that goes on in another place fails the stream."""

    async def main(url: str) -> None:
        async with (
            aio.connect(url, reconnect=Reconnect(first=0.001, most=0.001)) as peer,
            peer.subscribe("ticks") as stream,
        ):
            with pytest.raises(ProtocolError, match="position 12, and 11 was asked for"):
                _ = [element async for element in stream]

    with cutting_server(jump=1) as (url, _):
        run(main(url))


def test_leaving_ends_a_stream_that_waits_to_go_on() -> None:
    """Its task does not wait for a connection that never comes."""

    async def read(stream: aio.Stream[bytes]) -> None:
        async with stream:
            with pytest.raises(ConnectionLost, match="this side closed"):
                _ = [element async for element in stream]

    async def main(url: str) -> None:
        async with aio.connect(
            url, reconnect=Reconnect(first=60.0, most=60.0, chance=lambda: 1.0)
        ) as peer:
            task = asyncio.create_task(read(peer.subscribe("ticks")))
            while peer.is_connected:
                await asyncio.sleep(0.01)
        await task

    with cutting_server() as (url, _):
        run(main(url))
