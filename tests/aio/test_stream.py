"""Streams on asyncio: elements, batches, memory, demand, types, cancellation."""

import asyncio
from collections.abc import Iterator

import pytest

from penstock import aio
from penstock.api import (
    ConnectionLost,
    UsageError,
)
from penstock.spi import Reconnect
from tests.aio._run import connected, run
from tests.contracts._positioned import cutting_server
from tests.contracts._trio_server import Served, serving


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


def test_a_stream_that_is_not_open_is_not_read(served: Served) -> None:
    """The error says where to read it; the connection goes on."""

    async def read(peer: aio.Peer) -> None:
        with pytest.raises(UsageError, match="inside of its block"):
            await anext(peer.subscribe("numbers"))
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
