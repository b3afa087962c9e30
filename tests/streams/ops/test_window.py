"""`window`: when a window opens and completes, which elements it has,
and what an end does to it.
"""

from typing import Any

import pytest
import trio

from penstock.api import PublisherStopped, UsageError
from penstock.streams import collect, interval, ops, subscribe
from tests.streams.ops._harness_actions import close_nursery, stop_nursery
from tests.streams.ops._inner_streams import run_nested
from tests.streams.ops.harness import OperatorHarness, Recorder, ScriptedError, clear_tracebacks

KINDS = {"complete": "complete", "fail": "error"}


def _lists(windows: Any) -> Any:
    """Return a pipe with a list for each window."""
    return ops.pipe(
        windows,
        ops.flat_map(
            lambda part: ops.pipe(part, ops.reduce(lambda total, n: [*total, n], [])), concurrency=1
        ),
    )


# ---------------------------------------------------------------------------------------- by number


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("length", [0, 1, 6, 7])
async def test_the_windows_have_all_elements_in_order(count: int, length: int) -> None:
    """They are the parts that slicing gives."""
    expected = [list(range(length))[start : start + count] for start in range(0, length, count)]
    assert await collect(_lists(ops.pipe(range(length), ops.window(count)))) == expected


async def test_a_window_opens_with_its_first_element_and_completes_with_its_last() -> None:
    """Its elements can be read as they arrive."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.window(2), demand=2)
        main = harness.upstreams[0]
        assert main.requests == [4]
        assert recorder.streams == []
        main.emit()
        assert recorder.inner[0].signals == [("next", 1)]
        main.emit()
        assert recorder.inner[0].signals == [("next", 1), ("next", 2), ("complete",)]
        assert len(recorder.streams) == 1
        main.emit()
        assert recorder.inner[1].elements == [3]


async def test_elements_wait_in_a_window_for_its_demand() -> None:
    """A full window keeps its elements, and the next window opens."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.window(2), demand=2, inner_demand=0)
        harness.upstreams[0].emit(3)
        assert len(recorder.streams) == 2
        first, second = recorder.inner
        assert first.signals == []
        first.request(2)
        assert first.kinds == ["next", "next", "complete"]
        second.request(1)
        assert second.elements == [3]


async def test_a_window_can_be_subscribed_to_late() -> None:
    """It keeps its elements until then, also after the outer stream has completed."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.window(3), demand=1, subscribes=False)
        harness.upstreams[0].emit(2)
        harness.upstreams[0].complete()
        assert recorder.kinds == ["next", "complete"]
        late = recorder.subscribe(recorder.streams[0])
        assert late.signals == [("next", 1), ("next", 2), ("complete",)]


async def test_elements_of_a_cancelled_window_are_dropped() -> None:
    """They still count, so the next window begins where it would have begun."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.window(3), demand=2)
        main = harness.upstreams[0]
        main.emit()
        recorder.inner[0].cancel()
        main.emit(3)
        assert recorder.inner[0].elements == [1]
        assert recorder.inner[1].elements == [4]
        assert not main.over


@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_an_end_reaches_the_open_window_and_the_outer_stream(end: str) -> None:
    """Neither needs demand; an error is the same object."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.window(3), demand=1)
        harness.upstreams[0].emit()
        getattr(harness.upstreams[0], end)()
        assert recorder.kinds[-1] == recorder.inner[0].kinds[-1] == KINDS[end]
        assert recorder.error is recorder.inner[0].error


# ------------------------------------------------------------------------------------------- cancel


async def test_a_cancel_without_a_read_window_cancels_upstream() -> None:
    """A window that was not subscribed to is dropped, and its late subscriber gets an error."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.window(3), demand=1, subscribes=False)
        harness.upstreams[0].emit(2)
        recorder.cancel()
        assert harness.upstreams[0].cancelled
        assert harness.held == 0
        assert isinstance(recorder.subscribe(recorder.streams[0]).error, PublisherStopped)


async def test_after_a_cancel_the_open_window_goes_on_to_its_end() -> None:
    """Upstream is cancelled when the window is full."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.window(3), demand=2)
        main = harness.upstreams[0]
        main.emit(2)
        recorder.cancel()
        assert not main.cancelled
        main.emit()
        assert main.cancelled
        assert recorder.inner[0].kinds == ["next"] * 3 + ["complete"]


async def test_after_a_cancel_the_cancel_of_the_window_cancels_upstream() -> None:
    """Nothing is read any more."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.window(3), demand=1)
        harness.upstreams[0].emit()
        recorder.cancel()
        recorder.inner[0].cancel()
        assert harness.upstreams[0].cancelled


@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_after_a_cancel_the_open_window_gets_the_end(end: str) -> None:
    """The outer stream gets no signal."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.window(3), demand=1)
        harness.upstreams[0].emit()
        recorder.cancel()
        getattr(harness.upstreams[0], end)()
        assert recorder.inner[0].kinds == ["next", KINDS[end]]
        assert recorder.kinds == ["next"]


async def test_take_gives_whole_windows() -> None:
    """`take` cancels the windows with the first one, which is still open."""
    assert await collect(_lists(ops.pipe(range(100), ops.window(4), ops.take(1)))) == [[0, 1, 2, 3]]


async def test_a_subscriber_that_cancels_both_inside_on_next_ends_everything() -> None:
    """The last element of the window is the one during which both are cancelled."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.window(2), demand=1)
        main = harness.upstreams[0]
        main.emit()

        def leave() -> None:
            recorder.cancel()
            recorder.inner[0].cancel()

        recorder.inner[0].on_element = leave
        main.emit()
        assert main.cancelled
        assert recorder.inner[0].kinds == ["next", "next"]


# ------------------------------------------------------------------------------------------ by time


async def test_a_window_completes_when_its_time_is_over(autojump_clock: Any) -> None:
    """The time begins with its first element. A silent time opens no window."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.window(100, 2), demand=5)
        main = harness.upstreams[0]
        await trio.sleep(10)
        main.emit()
        await trio.sleep(1.5)
        main.emit()
        assert recorder.inner[0].kinds == ["next", "next"]
        await trio.sleep(1)
        assert recorder.inner[0].kinds == ["next", "next", "complete"]
        await trio.sleep(10)
        assert len(recorder.streams) == 1
        main.emit()
        assert recorder.inner[1].elements == [3]


async def test_a_full_window_leaves_its_deadline_behind(autojump_clock: Any) -> None:
    """The next window has its own time."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.window(2, 2), demand=5)
        main = harness.upstreams[0]
        main.emit(2)
        await trio.sleep(1)
        main.emit()
        await trio.sleep(1.5)
        assert recorder.inner[1].kinds == ["next"]
        await trio.sleep(1)
        assert recorder.inner[1].kinds == ["next", "complete"]


async def test_elements_without_demand_for_a_window_wait(autojump_clock: Any) -> None:
    """A window that its time has ended uses up demand. The elements under way are held, and go
    into the next window together.
    """
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.window(3, 2), demand=1)
        main = harness.upstreams[0]
        main.emit()
        await trio.sleep(3)
        main.emit(2)
        assert len(recorder.streams) == 1
        assert harness.held == 2
        recorder.request(1)
        assert recorder.inner[1].elements == [2, 3]
        main.emit()
        assert recorder.inner[1].kinds == ["next"] * 3 + ["complete"]


@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_held_elements_at_an_end(end: str, autojump_clock: Any) -> None:
    """At a completion they go on as a short window, once requested. An error drops them."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.window(3, 2), demand=1)
        main = harness.upstreams[0]
        main.emit()
        await trio.sleep(3)
        main.emit(2)
        getattr(main, end)()
        recorder.request(1)
        if end == "complete":
            assert recorder.inner[1].kinds == ["next", "next", "complete"]
        assert recorder.kinds == (
            ["next", "next", "complete"] if end == "complete" else ["next", "error"]
        )


async def test_no_more_than_two_windows_are_requested_at_a_time(autojump_clock: Any) -> None:
    """The open one and the next one. So at most twice the number of elements is held."""
    async with OperatorHarness() as harness:
        run_nested(harness, ops.window(3, 2), demand=100, inner_demand=0)
        main = harness.upstreams[0]
        assert main.outstanding == 3
        main.emit()
        assert main.outstanding == 2 + 3
        await trio.sleep(3)
        assert main.outstanding == 5


async def test_after_a_cancel_the_time_still_ends_the_open_window(autojump_clock: Any) -> None:
    """Then upstream is cancelled, and no task is left."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.window(3, 2), demand=1)
        harness.upstreams[0].emit()
        recorder.cancel()
        await trio.sleep(3)
        assert recorder.inner[0].kinds == ["next", "complete"]
        assert harness.upstreams[0].cancelled
        await harness.settle()
        assert harness.scope.running == 0


async def test_a_cancelled_nursery_fails_the_window_and_the_outer_stream(
    autojump_clock: Any,
) -> None:
    """Both get PublisherStopped, and upstream is cancelled."""
    async with OperatorHarness() as harness:
        inner: list[Recorder] = []

        def begin(recorder: Recorder) -> None:
            recorder.request(1)
            harness.upstreams[0].emit()

        recorder = await stop_nursery(harness, _watched(ops.window(3, 2), inner, harness), begin)
        assert isinstance(recorder.error, PublisherStopped)
        assert inner[0].error is recorder.error
        assert "window(3, seconds=2) was stopped" in str(recorder.error)


class _Watched(ops.OperatorBase[Any, Any]):
    """An operator of streams, whose streams are subscribed to when they are passed on."""

    def __init__(self, operator: Any, inner: list[Recorder], harness: OperatorHarness) -> None:
        self._operator = operator
        self._inner = inner
        self._harness = harness

    def attach(self, source: Any, subscriber: Any, scope: Any) -> None:
        def subscribe_to(stream: Any) -> None:
            recorder = Recorder(self._harness)
            self._inner.append(recorder)
            stream.attach(recorder, scope)

        ops.pipe(source, self._operator, ops.tap(subscribe_to)).attach(subscriber, scope)


def _watched(operator: Any, inner: list[Recorder], harness: OperatorHarness) -> Any:
    return _Watched(operator, inner, harness)


async def test_a_cancelled_nursery_fails_a_window_that_outlives_the_outer_stream(
    autojump_clock: Any,
) -> None:
    """The window gets the error, and upstream is cancelled."""
    async with OperatorHarness() as harness:
        inner: list[Recorder] = []

        def begin(recorder: Recorder) -> None:
            recorder.request(1)
            harness.upstreams[0].emit()
            recorder.cancel()

        recorder = await stop_nursery(harness, _watched(ops.window(3, 2), inner, harness), begin)
        assert isinstance(inner[0].error, PublisherStopped)
        assert recorder.kinds == ["next"]
        assert harness.upstreams[0].cancelled


async def test_a_closed_nursery_fails_the_stream() -> None:
    """If no timer can be started, the stream fails when its first window would open."""
    async with OperatorHarness() as harness:
        await close_nursery(harness)
        recorder = harness.run(ops.window(3, 2))
        recorder.request(1)
        harness.upstreams[0].emit()
        assert isinstance(recorder.error, UsageError)
        assert recorder.kinds == ["error"]
        assert harness.upstreams[0].cancelled
        clear_tracebacks(recorder.error)


async def test_windows_of_a_second(autojump_clock: Any) -> None:
    """A stream of one element every 0.3 s, in windows of one second that begin with an element."""
    ticks = ops.pipe(interval(0.3), ops.take(8))
    assert await collect(_lists(ops.pipe(ticks, ops.window(100, 1)))) == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
    ]


async def test_windows_can_be_read_in_nested_blocks() -> None:
    """The usual way without operators:
    a block for the outer stream, and one for each window in it.
    """
    seen = []
    async with subscribe(ops.pipe(range(5), ops.window(2)), demand=1) as windows:
        async for each in windows:
            async with subscribe(each) as part:
                seen.append([number async for number in part])
    assert seen == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize("count", [0, -1, 1.5, True, None])
def test_a_count_is_an_integer_of_at_least_1(count: Any) -> None:
    """The error names the operator."""
    with pytest.raises(
        UsageError, match=r"^window: count=.*; give how many elements, an integer of at least 1"
    ):
        ops.window(count)


def test_a_time_is_above_0() -> None:
    """The error names the argument."""
    with pytest.raises(
        UsageError, match=r"window\(seconds=…\) is 0; it is a time in seconds, above 0"
    ):
        ops.window(1, 0)


async def test_an_error_of_a_window_is_the_same_object() -> None:
    """Both streams of a failed source have one cause."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.window(3), demand=1)
        harness.upstreams[0].emit()
        harness.upstreams[0].fail(error := ScriptedError())
        assert recorder.inner[0].error is recorder.error is error
