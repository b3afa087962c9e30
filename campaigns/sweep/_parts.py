"""The parts that the sweep combines:
every source, every operator and every sink, watched by a census.

A part gets a `WatchedFactory`, which makes elements and generators. After the end of the stream
every element must be gone and every generator closed.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any, Final, TypeVar

import trio

import penstock
from penstock import ops
from penstock.api import PenstockError, Subscriber, Subscription
from penstock.core import Scope
from penstock.streams import Source
from penstock.streams.ops import Operator, OperatorBase
from penstock.testing import LeakCensus
from tests.streams.ops.promises import NoTaps

ELEMENTS: Final = 4

G = TypeVar("G")


class Element:
    """An element with a number that can be watched."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


class ScriptedError(Exception):
    """The error of a broken part."""


class WatchedFactory:
    """Makes elements and generators that the census watches."""

    def __init__(self, census: LeakCensus, nursery: trio.Nursery) -> None:
        self.census = census
        self.nursery = nursery
        """Owns tasks that outlive a stream. It is cancelled after the sink."""

    def element(self, number: int) -> Element:
        """Return a new element, which must be gone after the stream."""
        element = Element(number)
        self.census.watch(element, f"element {number}")
        return element

    def numbers(self) -> AsyncIterator[Element]:
        """Return a new async generator that waits between its elements and in its cleanup.
        Once begun, it must be closed.
        """
        return self._watched(self._numbers)

    def failing(self) -> AsyncIterator[Element]:
        """Return an async generator that fails after two elements."""
        return self._watched(self._failing)

    def with_nursery(self) -> AsyncIterator[Element]:
        """Return an async generator with a nursery around its elements:
        the most difficult one to clean up.
        """
        return self._watched(self._with_nursery)

    def plain(self) -> Iterator[Element]:
        """Return a plain generator."""
        return self._watched(self._plain)

    def _watched(self, function: Callable[[Callable[[], None]], G]) -> G:
        def on_begin() -> None:
            self.census.watch(made[0], f"generator {function.__name__}")

        made = [function(on_begin)]
        return made[0]

    async def _numbers(self, on_begin: Callable[[], None]) -> AsyncIterator[Element]:
        on_begin()
        try:
            for number in range(ELEMENTS):
                await trio.lowlevel.checkpoint()
                yield self.element(number)
        finally:
            await trio.lowlevel.cancel_shielded_checkpoint()

    async def _failing(self, on_begin: Callable[[], None]) -> AsyncIterator[Element]:
        on_begin()
        yield self.element(0)
        await trio.sleep(0.01)
        yield self.element(1)
        raise ScriptedError

    async def _with_nursery(self, on_begin: Callable[[], None]) -> AsyncIterator[Element]:
        on_begin()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            for number in range(2):
                yield self.element(number)
            nursery.cancel_scope.cancel()

    def _plain(self, on_begin: Callable[[], None]) -> Iterator[Element]:
        on_begin()
        for number in range(ELEMENTS):
            yield self.element(number)


class SynchronousPublisher(penstock.Publisher[Any]):
    """A publisher that signals inside `request`, which the rules allow."""

    def __init__(self, factory: WatchedFactory) -> None:
        self._factory = factory

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        subscriber.on_subscribe(_SynchronousSubscription(self._factory, subscriber))


class _SynchronousSubscription(Subscription):
    def __init__(self, factory: WatchedFactory, subscriber: Subscriber[Any]) -> None:
        self._factory = factory
        self._subscriber: Subscriber[Any] | None = subscriber
        self._remaining = ELEMENTS
        self._demand = 0
        self._is_answering = False

    def request(self, n: int, /) -> None:
        self._demand += n
        if self._is_answering:
            return
        self._is_answering = True
        while self._demand and self._remaining and self._subscriber is not None:
            self._demand -= 1
            self._remaining -= 1
            self._subscriber.on_next(self._factory.element(self._remaining))
        self._is_answering = False
        if not self._remaining and self._subscriber is not None:
            self._subscriber.on_complete()
            self._subscriber = None

    def cancel(self, /) -> None:
        self._subscriber = None


def topic(slow: penstock.SlowPolicy) -> Callable[[WatchedFactory, trio.Nursery], Source[Any]]:
    """Return a function that makes a topic and starts a task that publishes to it."""

    def make(factory: WatchedFactory, nursery: trio.Nursery) -> Source[Any]:
        made: penstock.Topic[Element] = penstock.Topic(slow=slow)
        nursery.start_soon(_publish, made, factory)
        return made

    return make


async def _publish(made: penstock.Topic[Element], factory: WatchedFactory) -> None:
    for number in range(ELEMENTS):
        await trio.sleep(0.01)
        await made.publish(factory.element(number))
    made.complete()


def _from_channel(factory: WatchedFactory, nursery: trio.Nursery) -> Source[Any]:
    send, receive = trio.open_memory_channel[Element](1)
    nursery.start_soon(_send, send, factory)
    return penstock.from_channel(receive)


async def _send(channel: "trio.MemorySendChannel[Element]", factory: WatchedFactory) -> None:
    async with channel:
        for number in range(ELEMENTS):
            with suppress(trio.BrokenResourceError):
                await channel.send(factory.element(number))


SOURCES: Final[dict[str, Callable[[WatchedFactory, trio.Nursery], Any]]] = {
    "async generator function": lambda factory, nursery: penstock.generate(factory.numbers),
    "async generator": lambda factory, nursery: factory.numbers(),
    "failing generator": lambda factory, nursery: penstock.generate(factory.failing),
    "generator with a nursery": lambda factory, nursery: penstock.generate(factory.with_nursery),
    "plain generator": lambda factory, nursery: penstock.from_iterable(factory.plain()),
    "sequence": lambda factory, nursery: [factory.element(number) for number in range(ELEMENTS)],
    "memory channel": _from_channel,
    "batches": lambda factory, nursery: penstock.from_batches(
        [[factory.element(0)], [factory.element(1), factory.element(2)]]
    ),
    "empty": lambda factory, nursery: penstock.empty(),
    "failed": lambda factory, nursery: penstock.failed(ScriptedError()),
    "single": lambda factory, nursery: penstock.single(factory.element(0)),
    "interval": lambda factory, nursery: penstock.pipe(
        penstock.interval(0.01), ops.map(factory.element), ops.take(3)
    ),
    "timer": lambda factory, nursery: penstock.pipe(penstock.timer(0.01), ops.map(factory.element)),
    "foreign publisher": lambda factory, nursery: penstock.from_publisher(
        SynchronousPublisher(factory)
    ),
    **{f"topic, {slow.value}": topic(slow) for slow in penstock.SlowPolicy},
}


async def _slowly(element: Any) -> Any:
    await trio.sleep(0.001)
    return element


async def _slowly_latest(total: Any, element: Any) -> Any:
    await trio.sleep(0.001)
    return element


async def _slowly_parity(element: Any) -> int:
    await trio.sleep(0.001)
    return int(element.number % 2)


async def _slow_true(element: Any) -> bool:
    await trio.lowlevel.checkpoint()
    return True


def _slowly_numbers(factory: WatchedFactory) -> Callable[[Any], Awaitable[Source[Any]]]:
    async def numbers(element: Any) -> Source[Any]:
        await trio.sleep(0.001)
        return penstock.generate(factory.numbers)

    return numbers


def _resuming(factory: WatchedFactory) -> Operator[Any, Any]:
    return ops.on_error_resume(penstock.generate(factory.numbers))


class _InARow(OperatorBase[Any, Any]):
    """Two operators as one."""

    __slots__ = ("_first", "_second")

    def __init__(self, first: Operator[Any, Any], second: Operator[Any, Any]) -> None:
        self._first = first
        self._second = second

    def attach(self, source: Source[Any], subscriber: Subscriber[Any], scope: Scope) -> None:
        penstock.pipe(source, self._first, self._second).attach(subscriber, scope)


OPERATORS: Final[dict[str, Callable[[WatchedFactory], Operator[Any, Any]]]] = {
    "map": lambda factory: ops.map(lambda element: element),
    "map, async": lambda factory: ops.map(_slowly),
    "filter": lambda factory: ops.filter(lambda element: element.number % 2 == 0),
    "filter, async": lambda factory: ops.filter(_slow_true),
    "tap": lambda factory: ops.tap(lambda element: None),
    "tap, async": lambda factory: ops.tap(_slowly),
    "record": lambda factory: ops.record(NoTaps(), "x"),
    "scan": lambda factory: ops.scan(lambda total, element: element, object()),
    "pairwise": lambda factory: ops.pairwise(),
    "reduce": lambda factory: ops.reduce(lambda total, element: element, object()),
    "reduce, async": lambda factory: ops.reduce(_slowly_latest, object()),
    "take": lambda factory: ops.take(2),
    "skip": lambda factory: ops.skip(1),
    "take_while": lambda factory: ops.take_while(lambda element: element.number < 2),
    "first": lambda factory: ops.first(),
    "first, async": lambda factory: ops.first(_slow_true),
    "distinct_until_changed": lambda factory: ops.distinct_until_changed(
        lambda element: element.number // 2
    ),
    "flat_map": lambda factory: ops.flat_map(
        lambda element: penstock.generate(factory.numbers), concurrency=2
    ),
    "switch_map": lambda factory: ops.switch_map(
        lambda element: penstock.generate(factory.numbers)
    ),
    "switch_map, async": lambda factory: ops.switch_map(_slowly_numbers(factory)),
    "with_latest_from": lambda factory: ops.with_latest_from(penstock.generate(factory.numbers)),
    "take_until": lambda factory: ops.take_until(
        penstock.pipe(penstock.timer(0.004), ops.map(factory.element))
    ),
    "share": lambda factory: ops.share(factory.nursery),
    "share, latest": lambda factory: ops.share(factory.nursery, slow=penstock.SlowPolicy.LATEST),
    "window": lambda factory: ops.window(2),
    "window, read": lambda factory: _InARow(ops.window(2, 0.003), ops.flat_map(lambda part: part)),
    "group_by": lambda factory: ops.group_by(lambda element: element.number % 2),
    "group_by, read": lambda factory: _InARow(
        ops.group_by(_slowly_parity), ops.flat_map(lambda group: group)
    ),
    "merge": lambda factory: ops.merge(penstock.generate(factory.numbers)),
    "concat": lambda factory: ops.concat(penstock.generate(factory.numbers)),
    "start_with": lambda factory: ops.start_with(object()),
    "zip": lambda factory: ops.zip(penstock.generate(factory.numbers)),
    "combine_latest": lambda factory: ops.combine_latest(penstock.generate(factory.numbers)),
    "batch": lambda factory: ops.batch(2),
    "batch, timed": lambda factory: ops.batch(3, 0.005),
    "buffer": lambda factory: ops.buffer(2),
    "drop": lambda factory: ops.drop(),
    "latest": lambda factory: ops.latest(),
    "debounce": lambda factory: ops.debounce(0.005),
    "throttle": lambda factory: ops.throttle(0.005),
    "timeout": lambda factory: ops.timeout(0.005),
    "delay": lambda factory: ops.delay(0.003, size=2),
    "sample": lambda factory: ops.sample(0.003),
    "repeat": lambda factory: ops.repeat(2, pause=0.001),
    "retry": lambda factory: ops.retry(2, backoff=0.01),
    "on_error_resume": _resuming,
}


async def _read(source: Any, factory: WatchedFactory, **options: Any) -> None:
    async with penstock.subscribe(source, **options) as stream:
        factory.census.watch(stream, "the stream")
        async for _ in stream:
            await trio.sleep(0.002)


async def _read_batches(source: Any, factory: WatchedFactory) -> None:
    async with penstock.subscribe(source, demand=2) as stream:
        factory.census.watch(stream, "the stream")
        async for _ in stream.batches():
            await trio.lowlevel.checkpoint()


async def _request_manually(source: Any, factory: WatchedFactory) -> None:
    async with penstock.subscribe(source, demand=0) as stream:
        factory.census.watch(stream, "the stream")
        stream.request(2)
        await anext(stream, None)


async def _leave_early(source: Any, factory: WatchedFactory) -> None:
    async with penstock.subscribe(source, demand=1) as stream:
        factory.census.watch(stream, "the stream")
        async for _ in stream:
            break


async def _callback(source: Any, factory: WatchedFactory) -> None:
    done = trio.Event()
    async with trio.open_nursery() as nursery:
        subscriber = penstock.CallbackSubscriber(
            lambda element: None, error=lambda error: done.set(), complete=done.set, demand=2
        )
        factory.census.watch(subscriber, "the callback subscriber")
        penstock.as_source(source).publisher(nursery).subscribe(subscriber)
        del subscriber
        await done.wait()
        nursery.cancel_scope.cancel()


async def _to_channel(source: Any, factory: WatchedFactory) -> None:
    send, receive = trio.open_memory_channel[Any](1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_drain, receive)
        await penstock.to_channel(source, send)


async def _drain(channel: "trio.MemoryReceiveChannel[Any]") -> None:
    async for _ in channel:
        await trio.lowlevel.checkpoint()


async def _collect(source: Any, factory: WatchedFactory) -> None:
    await penstock.collect(source)


async def _first(source: Any, factory: WatchedFactory) -> None:
    await penstock.first(source, default=None)


async def _for_each(source: Any, factory: WatchedFactory) -> None:
    await penstock.for_each(source, _slowly, demand=3)


SINKS: Final[dict[str, Callable[[Any, WatchedFactory], Awaitable[None]]]] = {
    "async for": _read,
    "batches": _read_batches,
    "manual demand": _request_manually,
    "left early": _leave_early,
    "callback": _callback,
    "to_channel": _to_channel,
    "collect": _collect,
    "first": _first,
    "for_each": _for_each,
}

EXPECTED: Final = (ScriptedError, PenstockError)
"""Errors that the parts raise on purpose."""
