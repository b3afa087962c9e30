"""The parts that the sweep combines: every source, every operator, every sink, each leaving a trace with the census.

A part gets a `Yard`, which makes elements and generators that are watched: an element must be gone, and a generator closed, when the
stream is over, in whatever way it ended.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any, Final, TypeVar

import trio

import penstock
from penstock import ops
from penstock.api import PenstockError, Subscriber, Subscription
from penstock.core import Source
from penstock.operators import Operator
from penstock.testing import LeakCensus

COUNT: Final = 4

G = TypeVar("G")


class Element:
    """Something that can be watched, compared, and counted on."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


class Boom(Exception):
    """What a broken part raises."""


class Yard:
    """Makes what is watched."""

    def __init__(self, census: LeakCensus) -> None:
        self.census = census

    def element(self, number: int) -> Element:
        """Return a new element, which must be gone in the end."""
        element = Element(number)
        self.census.watch(element, f"element {number}")
        return element

    def numbers(self) -> AsyncIterator[Element]:
        """Return a new async generator that waits within and between its elements; once begun, it must be closed in the end."""
        return self._watched(self._numbers)

    def failing(self) -> AsyncIterator[Element]:
        """The same, failing after two elements."""
        return self._watched(self._failing)

    def nursing(self) -> AsyncIterator[Element]:
        """A generator with a nursery of its own around its elements: the dearest to clean up."""
        return self._watched(self._nursing)

    def plain(self) -> Iterator[Element]:
        """A plain generator."""
        return self._watched(self._plain)

    def _watched(self, function: Callable[[Callable[[], None]], G]) -> G:
        def begun() -> None:
            self.census.watch(made[0], f"generator {function.__name__}")

        made = [function(begun)]
        return made[0]

    async def _numbers(self, begun: Callable[[], None]) -> AsyncIterator[Element]:
        begun()
        try:
            for number in range(COUNT):
                await trio.lowlevel.checkpoint()
                yield self.element(number)
        finally:
            await trio.lowlevel.cancel_shielded_checkpoint()

    async def _failing(self, begun: Callable[[], None]) -> AsyncIterator[Element]:
        begun()
        yield self.element(0)
        await trio.sleep(0.01)
        yield self.element(1)
        raise Boom

    async def _nursing(self, begun: Callable[[], None]) -> AsyncIterator[Element]:
        begun()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            for number in range(2):
                yield self.element(number)
            nursery.cancel_scope.cancel()

    def _plain(self, begun: Callable[[], None]) -> Iterator[Element]:
        begun()
        for number in range(COUNT):
            yield self.element(number)


class Loud(penstock.Publisher[Any]):
    """Somebody's publisher: signals inside `request`, as it may."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        subscriber.on_subscribe(_LoudSubscription(self._yard, subscriber))


class _LoudSubscription(Subscription):
    def __init__(self, yard: Yard, subscriber: Subscriber[Any]) -> None:
        self._yard = yard
        self._subscriber: Subscriber[Any] | None = subscriber
        self._left = COUNT
        self._demand = 0
        self._busy = False

    def request(self, n: int, /) -> None:
        self._demand += n
        if self._busy:
            return
        self._busy = True
        while self._demand and self._left and self._subscriber is not None:
            self._demand -= 1
            self._left -= 1
            self._subscriber.on_next(self._yard.element(self._left))
        self._busy = False
        if not self._left and self._subscriber is not None:
            self._subscriber.on_complete()
            self._subscriber = None

    def cancel(self, /) -> None:
        self._subscriber = None


def topic(slow: penstock.SlowPolicy) -> Callable[[Yard, trio.Nursery], Source[Any]]:
    """Return what makes a topic with somebody who publishes to it."""

    def make(yard: Yard, nursery: trio.Nursery) -> Source[Any]:
        made: penstock.Topic[Element] = penstock.Topic(slow=slow)
        nursery.start_soon(_publish, made, yard)
        return made

    return make


async def _publish(made: penstock.Topic[Element], yard: Yard) -> None:
    for number in range(COUNT):
        await trio.sleep(0.01)
        await made.publish(yard.element(number))
    made.complete()


def _from_channel(yard: Yard, nursery: trio.Nursery) -> Source[Any]:
    send, receive = trio.open_memory_channel[Element](1)
    nursery.start_soon(_send, send, yard)
    return penstock.from_channel(receive)


async def _send(channel: "trio.MemorySendChannel[Element]", yard: Yard) -> None:
    async with channel:
        for number in range(COUNT):
            with suppress(trio.BrokenResourceError):
                await channel.send(yard.element(number))


SOURCES: Final[dict[str, Callable[[Yard, trio.Nursery], Any]]] = {
    "async generator function": lambda yard, nursery: penstock.generate(yard.numbers),
    "async generator": lambda yard, nursery: yard.numbers(),
    "failing generator": lambda yard, nursery: penstock.generate(yard.failing),
    "generator with a nursery": lambda yard, nursery: penstock.generate(yard.nursing),
    "plain generator": lambda yard, nursery: penstock.from_iterable(yard.plain()),
    "sequence": lambda yard, nursery: [yard.element(number) for number in range(COUNT)],
    "memory channel": _from_channel,
    "empty": lambda yard, nursery: penstock.empty(),
    "failed": lambda yard, nursery: penstock.failed(Boom()),
    "single": lambda yard, nursery: penstock.single(yard.element(0)),
    "interval": lambda yard, nursery: penstock.pipe(penstock.interval(0.01), ops.map(yard.element), ops.take(3)),
    "timer": lambda yard, nursery: penstock.pipe(penstock.timer(0.01), ops.map(yard.element)),
    "foreign publisher": lambda yard, nursery: penstock.from_publisher(Loud(yard)),
    **{f"topic, {slow.value}": topic(slow) for slow in penstock.SlowPolicy},
}


async def _slowly(element: Any) -> Any:
    await trio.sleep(0.001)
    return element


async def _slow_yes(element: Any) -> bool:
    await trio.lowlevel.checkpoint()
    return True


def _resumed(yard: Yard) -> Operator[Any, Any]:
    return ops.on_error_resume(penstock.generate(yard.numbers))


OPERATORS: Final[dict[str, Callable[[Yard], Operator[Any, Any]]]] = {
    "map": lambda yard: ops.map(lambda element: element),
    "map, async": lambda yard: ops.map(_slowly),
    "filter": lambda yard: ops.filter(lambda element: element.number % 2 == 0),
    "filter, async": lambda yard: ops.filter(_slow_yes),
    "tap": lambda yard: ops.tap(lambda element: None),
    "tap, async": lambda yard: ops.tap(_slowly),
    "scan": lambda yard: ops.scan(lambda total, element: element, object()),
    "take": lambda yard: ops.take(2),
    "skip": lambda yard: ops.skip(1),
    "take_while": lambda yard: ops.take_while(lambda element: element.number < 2),
    "first": lambda yard: ops.first(),
    "first, async": lambda yard: ops.first(_slow_yes),
    "distinct_until_changed": lambda yard: ops.distinct_until_changed(lambda element: element.number // 2),
    "flat_map": lambda yard: ops.flat_map(lambda element: penstock.generate(yard.numbers), concurrency=2),
    "merge": lambda yard: ops.merge(penstock.generate(yard.numbers)),
    "concat": lambda yard: ops.concat(penstock.generate(yard.numbers)),
    "zip": lambda yard: ops.zip(penstock.generate(yard.numbers)),
    "combine_latest": lambda yard: ops.combine_latest(penstock.generate(yard.numbers)),
    "batch": lambda yard: ops.batch(2),
    "batch, timed": lambda yard: ops.batch(3, 0.005),
    "buffer": lambda yard: ops.buffer(2),
    "drop": lambda yard: ops.drop(),
    "latest": lambda yard: ops.latest(),
    "debounce": lambda yard: ops.debounce(0.005),
    "throttle": lambda yard: ops.throttle(0.005),
    "timeout": lambda yard: ops.timeout(0.005),
    "retry": lambda yard: ops.retry(2, backoff=0.01),
    "on_error_resume": _resumed,
}


async def _read(stream_of: Any, yard: Yard, **options: Any) -> None:
    async with penstock.subscribe(stream_of, **options) as stream:
        yard.census.watch(stream, "the stream")
        async for _ in stream:
            await trio.sleep(0.002)


async def _read_batches(stream_of: Any, yard: Yard) -> None:
    async with penstock.subscribe(stream_of, demand=2) as stream:
        yard.census.watch(stream, "the stream")
        async for _ in stream.batches():
            await trio.lowlevel.checkpoint()


async def _ask(stream_of: Any, yard: Yard) -> None:
    async with penstock.subscribe(stream_of, demand=0) as stream:
        yard.census.watch(stream, "the stream")
        stream.request(2)
        await anext(stream, None)


async def _leave_early(stream_of: Any, yard: Yard) -> None:
    async with penstock.subscribe(stream_of, demand=1) as stream:
        yard.census.watch(stream, "the stream")
        async for _ in stream:
            break


async def _callback(stream_of: Any, yard: Yard) -> None:
    done = trio.Event()
    async with trio.open_nursery() as nursery:
        subscriber = penstock.CallbackSubscriber(lambda element: None, error=lambda error: done.set(), complete=done.set, demand=2)
        yard.census.watch(subscriber, "the callback subscriber")
        penstock.as_source(stream_of).publisher(nursery).subscribe(subscriber)
        del subscriber
        await done.wait()
        nursery.cancel_scope.cancel()


async def _to_channel(stream_of: Any, yard: Yard) -> None:
    send, receive = trio.open_memory_channel[Any](1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_drain, receive)
        await penstock.to_channel(stream_of, send)


async def _drain(channel: "trio.MemoryReceiveChannel[Any]") -> None:
    async for _ in channel:
        await trio.lowlevel.checkpoint()


async def _collect(stream_of: Any, yard: Yard) -> None:
    await penstock.collect(stream_of)


async def _first(stream_of: Any, yard: Yard) -> None:
    await penstock.first(stream_of, default=None)


async def _for_each(stream_of: Any, yard: Yard) -> None:
    await penstock.for_each(stream_of, _slowly, demand=3)


SINKS: Final[dict[str, Callable[[Any, Yard], Awaitable[None]]]] = {
    "async for": _read,
    "batches": _read_batches,
    "manual demand": _ask,
    "left early": _leave_early,
    "callback": _callback,
    "to_channel": _to_channel,
    "collect": _collect,
    "first": _first,
    "for_each": _for_each,
}

EXPECTED: Final = (Boom, PenstockError)
"""How a scenario may end besides well: what its parts raise on purpose."""
