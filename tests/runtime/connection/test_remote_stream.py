"""Elements of fixed size as packed memory, and elements that are loaded when they are read."""

import gc
import weakref
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from penstock.api import Subscription, UsageError
from penstock.elements import JsonSerializer
from penstock.reader._stream_buffer import MOST_LOADED
from penstock.runtime import Service, connect, serve, subscribe
from penstock.runtime.connection._decoder import AwaitingSerializer
from penstock.runtime.connection._remote_stream import RemoteStream
from penstock.spi import Serializer
from tests.runtime._services import named, numbers_service


@dataclass
class Quote:
    symbol: str
    price: float


async def test_elements_of_fixed_size_can_be_read_as_memory(url: str) -> None:
    """Packed there, packed here, counted as elements; or read one by one."""
    service = Service()

    @service.publisher("ints", element_size=4)
    async def ints() -> AsyncIterator[bytes]:
        for number in range(0, 1000, 10):
            yield b"".join(each.to_bytes(4, "big") for each in range(number, number + 10))

    expected = b"".join(each.to_bytes(4, "big") for each in range(1000))
    async with serve(service, url) as server:
        async with subscribe(named(server.addresses[0], "ints"), demand=64) as stream:
            got = b""
            async for piece in stream.buffers():
                assert len(piece) <= 64 * 4
                got += piece
            assert got == expected
            assert stream.statistics().taken == 1000
        async with (
            connect(server.addresses[0]) as peer,
            peer.subscribe("ints", demand=7) as by_element,
        ):
            assert b"".join([each async for each in by_element]) == expected
            assert by_element.element_size == 4


async def test_buffers_of_a_stream_without_a_fixed_size_are_refused() -> None:
    """The ends of its elements would be lost."""
    async with (
        serve(numbers_service(), "memory://test") as server,
        connect(server.addresses[0]) as peer,
    ):
        async with peer.subscribe("endless") as stream:
            with pytest.raises(UsageError, match="no fixed size"):
                await anext(stream.buffers())


class Upstream(Subscription):
    def request(self, n: int, /) -> None: ...

    def cancel(self, /) -> None: ...


def late(serializer: Serializer, demand: int = 1024) -> tuple[RemoteStream[Any], Upstream]:
    """Return a stream that loads its elements when they are read, and its publisher."""
    stream, upstream = RemoteStream[Any](demand=demand), Upstream()
    awaiting = AwaitingSerializer(stream, serializer)
    awaiting.on_subscribe(upstream)
    assert awaiting.on_content(None, "") is stream
    return stream, upstream


async def test_a_stream_that_was_not_read_does_not_keep_its_connection() -> None:
    """It keeps the serializer that loads its elements, and nothing else."""
    stream, upstream = late(JsonSerializer())
    stream.on_next(b"1")
    stream.on_complete()
    gone = weakref.ref(upstream)
    del upstream
    assert gone() is None
    assert [element async for element in stream] == [1]


async def test_records_of_a_stream_do_not_start_the_collector() -> None:
    """While they were loaded when they arrived, it ran once for each list, and all objects of
    the process were looked at after 100,000.
    """
    serializer = JsonSerializer().for_type(Quote)
    stream, _ = late(serializer)
    elements = [serializer.dumps(Quote("a", 1.0))] * 512
    stream.on_next_many(elements)
    batches = stream.batches()
    await anext(batches)
    gc.collect()
    before = sum(each["collections"] for each in gc.get_stats())
    for _ in range(100):
        stream.on_next_many(elements)
        batch = await anext(batches)
        batch = await anext(batches)
        assert len(batch) == MOST_LOADED
    assert sum(each["collections"] for each in gc.get_stats()) - before <= 2
