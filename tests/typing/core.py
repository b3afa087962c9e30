"""Type-checked, never run: the types that mypy and pyright infer for every kind of source, every
sink and every operator call.
"""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Iterator
from typing import Any, assert_type

import trio

import penstock
from penstock import Source, Stream, Topic
from penstock.streams import TopicStatistics, as_source, generate


class Reading:
    """An element class of the user."""


class Sensor:
    """An async iterable without a base class."""

    def __aiter__(self) -> AsyncIterator[Reading]:
        """Iterate."""
        return readings()


class Feed:
    """A publisher without a base class."""

    def subscribe(self, subscriber: penstock.Subscriber[Reading], /) -> None:
        """Begin."""


async def readings() -> AsyncGenerator[Reading, None]:
    """An async generator function."""
    yield Reading()


def plain_generator() -> Iterator[int]:
    """A generator function."""
    yield 1


def list_function() -> list[str]:
    """A function that returns an iterable."""
    return ["a"]


def sensor() -> AsyncIterable[Reading]:
    """A function that returns an async iterable."""
    return Sensor()


async def async_function(number: int) -> int:
    """A coroutine function: it returns one value and is not a stream."""
    return number


async def streamable(
    letters: tuple[str, ...],
    channel: "trio.MemoryReceiveChannel[bytes]",
    topic: Topic[float],
    source: Source[Reading],
) -> None:
    """`subscribe` infers the element type from each kind of source."""
    async with (
        penstock.subscribe([1, 2]) as of_list,
        penstock.subscribe(letters) as of_tuple,
        penstock.subscribe({"a": 1}) as of_dict,
        penstock.subscribe(range(3)) as of_range,
        penstock.subscribe(iter([1.5])) as of_iterator,
        penstock.subscribe(plain_generator()) as of_generator,
    ):
        assert_type(of_list, Stream[int])
        assert_type(of_tuple, Stream[str])
        assert_type(of_dict, Stream[str])
        assert_type(of_range, Stream[int])
        assert_type(of_iterator, Stream[float])
        assert_type(of_generator, Stream[int])
    async with (
        penstock.subscribe(plain_generator) as of_function,
        penstock.subscribe(list_function) as of_list_function,
        penstock.subscribe(readings) as of_async_function,
        penstock.subscribe(sensor) as of_iterable_function,
        penstock.subscribe(Sensor) as of_class,
    ):
        assert_type(of_function, Stream[int])
        assert_type(of_list_function, Stream[str])
        assert_type(of_async_function, Stream[Reading])
        assert_type(of_iterable_function, Stream[Reading])
        assert_type(of_class, Stream[Reading])
    async with (
        penstock.subscribe(readings()) as of_async_generator,
        penstock.subscribe(Sensor()) as of_async_iterable,
        penstock.subscribe(channel) as of_channel,
        penstock.subscribe(Feed()) as of_publisher,
        penstock.subscribe(topic) as of_topic,
        penstock.subscribe(source) as of_source,
    ):
        assert_type(of_async_generator, Stream[Reading])
        assert_type(of_async_iterable, Stream[Reading])
        assert_type(of_channel, Stream[bytes])
        assert_type(of_publisher, Stream[Reading])
        assert_type(of_topic, Stream[float])
        assert_type(of_source, Stream[Reading])


async def refused() -> None:
    """An object that cannot be streamed is a type error, and at run time a UsageError."""
    penstock.subscribe(5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]  # expected error: not streamable
    penstock.subscribe(None)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]  # expected error: the same
    penstock.subscribe([1], demand="all")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]  # expected error: not a number


async def reading(stream: Stream[Reading]) -> None:
    """Elements, batches, demand, cancel and statistics."""
    async for element in stream:
        assert_type(element, Reading)
    assert_type([batch async for batch in stream.batches()], list[list[Reading]])
    assert_type(await anext(stream, None), Reading | None)
    assert_type(stream.request(3), None)
    assert_type(stream.cancel(), None)
    assert_type(stream.statistics().buffered, int)
    assert_type(stream.statistics().state, penstock.StreamState)


def beginning(channel: "trio.MemoryReceiveChannel[bytes]") -> None:
    """The functions that return a source."""
    assert_type(as_source([1]), Source[int])
    assert_type(penstock.from_iterable({"a"}), Source[str])
    assert_type(penstock.from_async_iterable(Sensor()), Source[Reading])
    assert_type(penstock.from_channel(channel), Source[bytes])
    assert_type(penstock.from_publisher(Feed()), Source[Reading])
    assert_type(generate(plain_generator), Source[int])
    assert_type(generate(range, 3), Source[int])
    assert_type(penstock.timer(1), Source[int])
    assert_type(penstock.interval(1, delay=0), Source[int])
    # Source[Any], so that they fit everywhere: no element comes from them.
    assert_type(penstock.empty(), Source[Any])
    assert_type(penstock.failed(ValueError()), Source[Any])
    penstock.failed(ValueError)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # expected error: a class, not an exception


async def ending(send: "trio.MemorySendChannel[int]", names: Source[str]) -> None:
    """The sinks: their results and their arguments."""
    assert_type(await penstock.collect(readings), list[Reading])
    assert_type(await penstock.collect([1], limit=None, demand=2), list[int])
    assert_type(await penstock.first(readings), Reading)
    assert_type(await penstock.first(names, default=None), str | None)
    assert_type(await penstock.first([1], default="none"), int | str)
    assert_type(await penstock.for_each(names, print), int)
    assert_type(await penstock.for_each([1], async_function), int)
    assert_type(await penstock.to_channel([1], send), int)
    await penstock.to_channel(names, send)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # expected error: str into int


def calling() -> None:
    """The element type of a callback subscriber is the argument type of its function."""

    def take(element: Reading) -> None: ...

    subscriber = penstock.CallbackSubscriber(take, complete=lambda: None, error=print)
    assert_type(subscriber, penstock.CallbackSubscriber[Reading])
    Feed().subscribe(subscriber)
    typed: penstock.Subscriber[Reading] = subscriber
    mistyped: penstock.Subscriber[int] = subscriber  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]  # expected error
    typed.on_complete()
    mistyped.on_complete()


async def multicasting(nursery: trio.Nursery) -> None:
    """A topic is a source and a publisher of its type. `publisher` of a source keeps the type."""
    topic = Topic[int](slow=penstock.SlowPolicy.DROP_OLDEST, buffer=3, retain=1)
    source: Source[int] = topic
    publisher: penstock.Publisher[int] = topic
    waiting: Awaitable[None] = topic.publish(1)
    await waiting
    assert_type(topic.statistics(), TopicStatistics)
    assert_type(source.publisher(nursery, cleanup_timeout=1), penstock.Publisher[int])
    publisher.subscribe(Stream[int]())
    topic.fail(ValueError())
    topic.fail("why")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # expected error: not an exception
    Topic[int](slow="wait")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # expected error: not a SlowPolicy
