"""Type-checked, never run: streams in one process as a user writes them.
Element types follow the pipe.
"""

from collections.abc import AsyncIterator
from typing import assert_type

import trio

import penstock
from penstock import Source, Stream, ops
from penstock.api import StreamStatistics


async def numbers() -> AsyncIterator[int]:
    """An async generator function."""
    yield 1


async def lists() -> AsyncIterator[list[int]]:
    """An async generator function that yields many elements at once."""
    yield [1, 2]


def is_even(number: int) -> bool:
    """A plain function."""
    return number % 2 == 0


async def reading() -> None:
    """`subscribe` infers the element type of its source."""
    async with penstock.subscribe(numbers) as stream:
        assert_type(stream, Stream[int])
        async for number in stream:
            assert_type(number, int)
        async for batch in stream.batches():
            assert_type(batch, list[int])
        assert_type(stream.statistics(), StreamStatistics)
    async with penstock.subscribe(["a", "b"], demand=0) as letters:
        letters.request(1)
        assert_type(await anext(letters), str)
    async with penstock.subscribe(numbers()) as generated:
        assert_type(generated, Stream[int])


def piping() -> None:
    """Each operator turns a source of one type into a source of another."""
    assert_type(penstock.pipe(numbers), Source[int])
    assert_type(penstock.pipe(numbers, ops.map(str)), Source[str])
    assert_type(
        penstock.pipe(numbers, ops.filter(is_even), ops.map(str), ops.map(len)), Source[int]
    )


async def ending() -> None:
    """The results of the sinks have the element type of the pipe."""
    assert_type(await penstock.collect(numbers), list[int])
    assert_type(await penstock.first(numbers), int)
    assert_type(await penstock.first(numbers, default="none"), int | str)


async def beginning(
    channel: "trio.MemoryReceiveChannel[bytes]", publisher: penstock.Publisher[float]
) -> None:
    """Every source has the type of its elements."""
    assert_type(penstock.from_channel(channel), Source[bytes])
    assert_type(penstock.from_publisher(publisher), Source[float])
    assert_type(penstock.single("x"), Source[str])
    assert_type(penstock.interval(1.0), Source[int])
    assert_type(penstock.from_batches(lists), Source[int])
    assert_type(penstock.from_batches(penstock.generate(lists)), Source[int])
    assert_type(penstock.from_batches([["a"], ["b"]]), Source[str])
    async with trio.open_nursery() as nursery:
        assert_type(penstock.single("x").publisher(nursery), penstock.Publisher[str])


async def topics() -> None:
    """A topic accepts elements of its type only."""
    topic = penstock.Topic[int](slow=penstock.SlowPolicy.LATEST)
    await topic.publish(1)
    await topic.publish("one")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # expected error: not a number
    async with penstock.subscribe(topic) as stream:
        assert_type(stream, Stream[int])
