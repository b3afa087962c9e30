"""`take_until`: when it ends, what it asks of both sources, and a `stop` that has its element at
hand, over all kinds of sources.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import trio

from penstock.api import UNBOUNDED, Publisher, UsageError
from penstock.core import Scope, log_violation
from penstock.streams import (
    Source,
    Streamable,
    Topic,
    as_source,
    collect,
    empty,
    from_channel,
    from_iterable,
    generate,
    interval,
    ops,
    single,
    subscribe,
    timer,
)
from penstock.testing import ManualSubscriber
from tests.streams.ops.harness import OperatorHarness, ScriptedError


async def test_take_until_completes_at_the_first_element_of_stop() -> None:
    """Both sources are cancelled, and the completion needs no demand."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.take_until(harness.source("stop")))
        stop, main = harness.upstreams
        recorder.request(3)
        main.emit(2)
        stop.emit()
        assert recorder.signals == [("next", 1), ("next", 2), ("complete",)]
        assert main.cancelled
        assert stop.cancelled


async def test_take_until_requests_one_element_of_stop_at_once() -> None:
    """Demand for the source passes through, also unbounded demand."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.take_until(harness.source("stop")))
        stop, main = harness.upstreams
        assert (main.requests, stop.requests) == ([], [1])
        recorder.request(3)
        recorder.request(UNBOUNDED)
        recorder.request(1)
        assert sum(main.requests) == UNBOUNDED
        assert stop.requests == [1]
        main.emit(2)
        recorder.request(5)
        assert main.outstanding == UNBOUNDED


async def test_take_until_gives_nothing_if_stop_has_an_element_at_once() -> None:
    """`stop` is asked first, so the source is not subscribed to."""
    async with OperatorHarness() as harness:
        harness.answers_in_request = True
        recorder = harness.recorder
        recorder.on_element = None
        harness.run(ops.take_until(harness.source("stop")))
        assert recorder.signals == [("complete",)]
        assert len(harness.upstreams) == 1


async def test_take_until_goes_on_if_stop_completes_without_an_element() -> None:
    """Then the stream ends with the source."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.take_until(harness.source("stop")))
        stop, main = harness.upstreams
        stop.complete()
        recorder.request(3)
        main.emit(2)
        main.complete()
        assert recorder.signals == [("next", 1), ("next", 2), ("complete",)]


@pytest.mark.parametrize("failing", [0, 1])
async def test_an_error_of_the_source_or_of_stop_ends_take_until(failing: int) -> None:
    """The other one is cancelled."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.take_until(harness.source("stop")))
        harness.upstreams[1 - failing].fail(error := ScriptedError())
        assert recorder.signals == [("error", error)]
        assert harness.upstreams[failing].cancelled


@pytest.mark.parametrize("end", ["emit", "fail"])
async def test_an_end_by_stop_inside_on_next_is_signalled_after_it(end: str) -> None:
    """The source is cancelled at once.
    The end follows the element during which it was caused (rule 1.3).
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.take_until(harness.source("stop")))
        stop, main = harness.upstreams

        def cause_end() -> None:
            getattr(stop, end)()
            assert main.cancelled
            assert recorder.kinds == ["next"]

        recorder.on_element = cause_end
        recorder.request(3)
        main.emit(2)
        assert recorder.kinds == ["next", "complete" if end == "emit" else "error"]


async def test_take_until_stops_a_source_that_answers_inside_request() -> None:
    """An element of `stop` inside on_next ends the loop of such a source.
    Requests from inside on_next do not recurse.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.take_until(harness.source("stop")))
        stop, main = harness.upstreams
        harness.on_request = lambda upstream: upstream.answer_in_request(300)  # type: ignore[method-assign]  # from here on

        def stop_at_third() -> None:
            recorder.request(1)
            if recorder.received == 3:
                stop.emit()

        recorder.on_element = stop_at_third
        recorder.request(2)
        assert recorder.kinds == ["next", "next", "next", "complete"]
        assert main.cancelled
        assert recorder.deepest == 1


# --------------------------------------------------------------------------- a stop that is at hand


async def now() -> AsyncIterator[str]:
    yield "now"


def plain_now() -> Iterator[str]:
    yield "now"


async def waits() -> AsyncIterator[str]:
    await trio.sleep(1)
    yield "later"


async def later(element: Any) -> Any:
    return element


def retained() -> Topic[str]:
    topic = Topic[str](retain=1)
    topic._retained.append("now")  # publish() is async, and the rows are made outside of a run
    return topic


def channel() -> Source[str]:
    send, receive = trio.open_memory_channel[str](1)
    send.send_nowait("now")
    return from_channel(receive)


def deep() -> Source[str]:
    """A stop behind eight tasks, each of which begins the next one."""
    source: Source[Any] = as_source(["now"])
    for _ in range(4):
        source = source.map(later).flat_map(lambda element: [element])
    return source


AT_HAND: dict[str, Callable[[trio.Nursery], Streamable[Any]]] = {
    "single": lambda _: single("now"),
    "list": lambda _: ["now"],
    "iterator": lambda _: iter(["now"]),
    "generator function": lambda _: plain_now,
    "async generator": lambda _: now(),
    "async generator function": lambda _: now,
    "generate": lambda _: generate(now),
    "channel": lambda _: channel(),
    "topic": lambda _: retained(),
    "timer of no time": lambda _: timer(0),
    "publisher": lambda nursery: from_iterable(["now"]).publisher(nursery),
    "publisher of a pipe": lambda nursery: as_source(now).map(later).publisher(nursery),
    "pipe": lambda _: as_source(["now"]).map(str.upper),
    "pipe with an async function": lambda _: as_source(["now"]).map(later),
    "deep pipe": lambda _: deep(),
    "share": lambda nursery: as_source(["now"]).share(nursery),
    "merge": lambda _: as_source(Topic[str]()).merge(["now"]),
    "start_with": lambda _: as_source(Topic[str]()).start_with("now"),
    "window": lambda _: as_source(["now"]).window(1),
}
NOT_AT_HAND: dict[str, Streamable[Any]] = {
    "empty": empty(),
    "empty list": [],
    "generator that waits": waits,
    "topic": Topic[str](),
    "timer": timer(1),
    "interval": interval(1),
    "empty pipe": as_source([]).map(later),
}
SOURCES: dict[str, Callable[[trio.Nursery], Streamable[Any]]] = {
    "single": lambda _: single(1),
    "list": lambda _: [1, 2, 3],
    "generator function": lambda _: plain_now,
    "async generator function": lambda _: now,
    "channel": lambda _: channel(),
    "topic": lambda _: retained(),
    "publisher": lambda nursery: from_iterable([1, 2]).publisher(nursery),
    "async function": lambda _: as_source([1, 2]).map(later),
}


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("make_stop", AT_HAND.values(), ids=AT_HAND)
async def test_a_stop_that_is_at_hand_lets_no_element_through(
    make_stop: Callable[[trio.Nursery], Streamable[Any]],
    make: Callable[[trio.Nursery], Streamable[Any]],
) -> None:
    """With every kind of stop and of source, in each order in which trio may run their tasks."""
    async with trio.open_nursery() as nursery:
        for _ in range(4):  # trio shuffles the tasks of a scheduler pass
            assert await collect(as_source(make(nursery)).take_until(make_stop(nursery))) == []
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("stop", NOT_AT_HAND.values(), ids=NOT_AT_HAND)
async def test_a_stop_that_is_not_at_hand_lets_the_first_element_through(
    stop: Streamable[Any], make: Callable[[trio.Nursery], Streamable[Any]], autojump_clock: Any
) -> None:
    """Also one that completes without an element."""
    async with trio.open_nursery() as nursery:
        async with subscribe(as_source(make(nursery)).take_until(stop), demand=1) as stream:
            assert await anext(stream) is not None
        nursery.cancel_scope.cancel()


async def test_a_cancel_during_the_head_start_ends_its_task() -> None:
    """The source was never asked."""
    probe = ManualSubscriber()
    async with OperatorHarness() as harness:
        harness.recorder.over = True
        harness.source("main").take_until(waits).attach(probe, harness.scope)
        probe.request(1)
        probe.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert harness.scope.running == 0
        assert harness.upstreams[0].requests == []


async def test_the_end_of_the_source_needs_no_head_start() -> None:
    """It passes straight through, as an error of the source does."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.take_until(waits))
        harness.upstreams[0].complete()
        assert recorder.signals == [("complete",)]


async def test_other_streams_that_begin_tasks_all_the_time_do_not_prolong_the_head_start_without_end() -> (
    None
):
    """They share a scope, for example inside flat_map."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.take_until(waits))
        recorder.request(1)
        passes = 0
        while not harness.upstreams[0].requests:
            harness.scope.begun += 1
            passes += 1
            await trio.lowlevel.checkpoint()
        assert 32 < passes < 100
        harness.upstreams[0].emit()
        assert recorder.elements == [1]
        recorder.cancel()


async def test_a_stop_in_a_nursery_that_has_closed_fails_the_stream() -> None:
    """The task of the head start cannot start there either."""
    probe: ManualSubscriber = ManualSubscriber()
    async with trio.open_nursery() as nursery:
        scope = Scope(nursery, on_violation=log_violation)
    foreign: Publisher[int] = Topic[int]()

    class Foreign(Publisher[int]):
        def subscribe(self, subscriber: Any, /) -> None:
            foreign.subscribe(subscriber)

    as_source([1]).take_until(Foreign()).attach(probe, scope)
    assert isinstance(probe.error, UsageError)
    assert "cannot start: the nursery that this publisher was bound to has closed" in str(
        probe.error
    )
