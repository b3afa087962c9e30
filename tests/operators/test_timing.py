"""`debounce`, `throttle`, `timeout`: operators that look at the clock, and never relax demand."""

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from penstock import ops
from penstock.api import UNBOUNDED, PublisherStopped, StreamTimeout, UsageError
from tests.operators._harness_actions import close_nursery, stop_nursery
from tests.operators.harness import OperatorHarness, ScriptedError, clear_tracebacks

TIMED = [ops.debounce, ops.throttle, ops.timeout]


@pytest.mark.parametrize("operator", TIMED)
@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), "1", True, None])
def test_a_time_is_a_finite_number_above_0(operator: Callable[[Any], Any], seconds: Any) -> None:
    """The message names the operator and says what a time is."""
    with pytest.raises(UsageError, match=operator.__name__ + r"\(seconds\) is .*; it is a time in seconds, above 0, and finite"):
        operator(seconds)


@pytest.mark.parametrize("operator", TIMED)
def test_each_operator_says_what_it_is(operator: Callable[[Any], Any]) -> None:
    """The repr is what was written, for whoever looks at a pipe."""
    assert repr(operator(0.25)) == f"<operator {operator.__name__}(0.25)>"


@pytest.mark.parametrize("operator", TIMED)
async def test_nothing_is_asked_and_nothing_runs_before_a_request(
    operator: Callable[[Any], Any], autojump_clock: trio.testing.MockClock
) -> None:
    """Subscribed to and left alone they ask for nothing, start no task, and no time runs."""
    async with OperatorHarness() as harness:
        recorder = harness.run(operator(1))
        await trio.sleep(100)
        assert harness.upstreams[0].requests == []
        assert harness.scope.running == 0
        assert recorder.signals == []


@pytest.mark.parametrize("operator", TIMED)
@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_the_end_passes_through_without_demand(operator: Callable[[Any], Any], end: str) -> None:
    """With nothing held an end needs no request, and an error never does."""
    async with OperatorHarness() as harness:
        recorder = harness.run(operator(1))
        getattr(harness.upstreams[0], end)()
        assert recorder.kinds == [{"complete": "complete", "fail": "error"}[end]]


@pytest.mark.parametrize("operator", [ops.debounce, ops.timeout])
@pytest.mark.parametrize("way", ["complete", "fail", "cancel"])
async def test_the_timer_is_gone_when_the_stream_is_over(
    operator: Callable[[Any], Any], way: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Whichever way it ends while the time runs: no task is left, and nothing is signalled later."""
    async with OperatorHarness() as harness:
        recorder = harness.run(operator(5))
        recorder.request(3)
        harness.upstreams[0].emit()
        await harness.settle()
        assert harness.scope.running == 1
        getattr(recorder if way == "cancel" else harness.upstreams[0], way)()
        said = list(recorder.signals)
        await trio.sleep(20)
        assert harness.scope.running == 0
        assert recorder.signals == said


@pytest.mark.parametrize("operator", [ops.debounce, ops.timeout])
async def test_a_nursery_that_is_cancelled_ends_the_stream(operator: Callable[[Any], Any], autojump_clock: trio.testing.MockClock) -> None:
    """A stream whose clock was stopped from outside fails with PublisherStopped, and upstream is cancelled."""
    async with OperatorHarness() as harness:
        recorder = await stop_nursery(harness, operator(5), lambda recorder: (recorder.request(3), harness.upstreams[0].emit()))
        assert isinstance(recorder.error, PublisherStopped)
        assert f"{operator.__name__}(5) was stopped" in str(recorder.error)
        assert harness.upstreams[0].cancelled


@pytest.mark.parametrize("operator", [ops.debounce, ops.timeout])
async def test_in_a_nursery_that_has_closed_the_stream_fails(operator: Callable[[Any], Any]) -> None:
    """Where no timer can be started the stream says so, and asks for nothing more."""
    async with OperatorHarness() as harness:
        await close_nursery(harness)
        recorder = harness.run(operator(5))
        recorder.request(1)
        if not recorder.over:
            harness.upstreams[0].emit()
        assert isinstance(recorder.error, UsageError)
        assert "has closed" in str(recorder.error)
        assert harness.upstreams[0].cancelled
        clear_tracebacks(recorder.error)


@pytest.mark.parametrize("operator", [ops.debounce, ops.timeout])
async def test_a_request_after_a_cancel_is_nothing(operator: Callable[[Any], Any]) -> None:
    """No request and no element that come late start a timer or are held (rules 2.8, 3.6)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(operator(5))
        stage: Any = harness.upstreams[0]._subscriber
        recorder.cancel()
        stage.request(1)
        assert harness.upstreams[0].requests == []
        assert harness.scope.running == 0
        if operator is ops.debounce:
            stage.on_next(harness.token())
        await harness.settle()
        assert harness.held == 0


# --- debounce


async def test_debounce_passes_on_what_nothing_newer_follows(autojump_clock: trio.testing.MockClock) -> None:
    """Of three elements a second apart only the last goes on, two seconds after it came."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.debounce(2))
        recorder.request(5)
        for _ in range(3):
            harness.upstreams[0].emit()
            await trio.sleep(1)
        assert recorder.elements == []
        await trio.sleep(0.5)
        assert recorder.elements == []
        await trio.sleep(1)
        assert recorder.elements == [3]
        await trio.sleep(50)
        assert recorder.elements == [3]


async def test_debounce_asks_for_one_at_a_time(autojump_clock: trio.testing.MockClock) -> None:
    """One element is under way while demand is left; when it is used up, the one under way is the last that was asked for."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.debounce(2))
        recorder.request(1)
        recorder.request(1)
        assert harness.upstreams[0].requests == [1]
        harness.upstreams[0].emit(2)
        assert harness.upstreams[0].requests == [1, 1, 1]
        await trio.sleep(3)
        harness.upstreams[0].emit()
        await trio.sleep(3)
        assert recorder.elements == [2, 3]
        assert harness.upstreams[0].requests == [1, 1, 1, 1]
        harness.upstreams[0].emit()
        await trio.sleep(3)
        assert recorder.elements == [2, 3]
        assert harness.upstreams[0].outstanding == 0
        assert harness.held == 1


async def test_debounce_starts_no_timer_before_there_is_something_to_time(autojump_clock: trio.testing.MockClock) -> None:
    """Asked, and with nothing in its hands, it has no task; nothing rings while it waits for the first element."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.debounce(2))
        recorder.request(1)
        assert harness.scope.running == 0
        await trio.sleep(3)
        harness.upstreams[0].emit()
        await trio.sleep(1)
        assert recorder.elements == []


async def test_what_waits_without_demand_begins_its_time_with_the_request(autojump_clock: trio.testing.MockClock) -> None:
    """An element that came when nothing was asked for may be old: a newer one gets its time to arrive first."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.debounce(2))
        recorder.request(1)
        harness.upstreams[0].emit()
        await trio.sleep(3)
        harness.upstreams[0].emit()
        await trio.sleep(100)
        recorder.request(1)
        await trio.sleep(1)
        harness.upstreams[0].emit()
        await trio.sleep(1.5)
        assert recorder.elements == [1]
        await trio.sleep(1)
        assert recorder.elements == [1, 3]


async def test_debounce_passes_on_what_waits_on_completion(autojump_clock: trio.testing.MockClock) -> None:
    """The end is as good as silence: the element goes on at once, then completion."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.debounce(2))
        recorder.request(1)
        harness.upstreams[0].emit(2)
        harness.upstreams[0].complete()
        assert recorder.signals == [("next", 2), ("complete",)]


async def test_debounce_completes_after_what_waits_has_been_asked_for(autojump_clock: trio.testing.MockClock) -> None:
    """Without demand the last element waits for it, and the end waits too."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.debounce(2))
        recorder.request(1)
        harness.upstreams[0].emit()
        await trio.sleep(3)
        harness.upstreams[0].emit()
        harness.upstreams[0].complete()
        await trio.sleep(10)
        assert recorder.signals == [("next", 1)]
        recorder.request(1)
        assert recorder.signals == [("next", 1), ("next", 2), ("complete",)]


async def test_debounce_drops_what_waits_on_an_error(autojump_clock: trio.testing.MockClock) -> None:
    """An error passes at once (rule 4.2)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.debounce(2))
        recorder.request(3)
        harness.upstreams[0].emit()
        stage = harness.upstreams[0]._subscriber
        error = ScriptedError("now")
        harness.upstreams[0].fail(error)
        assert stage is not None
        assert harness.held == 0
        await trio.sleep(10)
        assert recorder.signals == [("error", error)]


async def test_debounce_of_a_source_that_answers_at_once_is_its_last_element() -> None:
    """Everything that comes in one go is one event: its last element."""
    assert await penstock.collect(penstock.pipe(range(100), ops.debounce(1))) == [99]


@settings(deadline=None, max_examples=60)
@given(pauses=st.lists(st.sampled_from([0.0, 0.5, 1.5, 4.0]), max_size=25))
def test_debounce_is_what_a_reader_with_a_watch_would_do(pauses: list[float]) -> None:
    """For every rhythm of the source: those elements go on that are the last, or followed by a pause that is long enough."""

    async def source() -> Any:
        for number, pause in enumerate(pauses):
            await trio.sleep(pause)
            yield number

    async def main() -> None:
        wanted = [number for number in range(len(pauses)) if number == len(pauses) - 1 or pauses[number + 1] > 1]
        assert await penstock.collect(penstock.pipe(source, ops.debounce(1))) == wanted

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


# --- throttle


async def test_throttle_passes_on_the_first_and_leaves_out_the_rest_of_the_interval(autojump_clock: trio.testing.MockClock) -> None:
    """The first goes at once; those that come before two seconds have passed are left out; the next one goes at once again."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.throttle(2))
        recorder.request(5)
        harness.upstreams[0].emit(2)
        await trio.sleep(1.5)
        harness.upstreams[0].emit()
        assert recorder.elements == [1]
        await trio.sleep(0.5)
        harness.upstreams[0].emit(2)
        assert recorder.elements == [1, 4]


async def test_throttle_passes_nothing_on_late(autojump_clock: trio.testing.MockClock) -> None:
    """What was left out stays out, however long it is quiet after it, and at the end too."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.throttle(2))
        recorder.request(5)
        harness.upstreams[0].emit(3)
        await trio.sleep(100)
        harness.upstreams[0].complete()
        assert recorder.signals == [("next", 1), ("complete",)]


async def test_throttle_asks_for_one_more_for_each_that_it_leaves_out(autojump_clock: trio.testing.MockClock) -> None:
    """Demand passes through, and what was left out is made good; nothing is held."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.throttle(2))
        recorder.request(3)
        assert harness.upstreams[0].requests == [3]
        harness.upstreams[0].emit(3)
        assert harness.upstreams[0].requests == [3, 1, 1]
        assert harness.peak == 0


async def test_throttle_needs_no_task(autojump_clock: trio.testing.MockClock) -> None:
    """Whether an element goes on is known when it comes: there is nothing to wait for."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.throttle(2))
        recorder.request(3)
        harness.upstreams[0].emit(2)
        assert harness.scope.running == 0


@pytest.mark.parametrize("way", ["fail", "cancel"])
async def test_throttle_ends_as_its_neighbours_do(way: str) -> None:
    """An error goes down and a cancel goes up, at once."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.throttle(2))
        recorder.request(3)
        harness.upstreams[0].emit(2)
        getattr(recorder if way == "cancel" else harness.upstreams[0], way)()
        assert recorder.kinds == (["next"] if way == "cancel" else ["next", "error"])
        assert harness.upstreams[0].over


# --- timeout


async def test_timeout_fails_when_nothing_comes_in_time(autojump_clock: trio.testing.MockClock) -> None:
    """Asked and not answered for two seconds, it fails with the whole story, and upstream is cancelled."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.timeout(2))
        recorder.request(1)
        await trio.sleep(1.5)
        assert recorder.signals == []
        await trio.sleep(1)
        assert isinstance(recorder.error, StreamTimeout)
        assert isinstance(recorder.error, TimeoutError)
        assert "nothing came within 2 s of asking" in str(recorder.error)
        assert harness.upstreams[0].cancelled


async def test_each_element_begins_the_time_anew(autojump_clock: trio.testing.MockClock) -> None:
    """A source that signals every 1.5 seconds never exceeds 2; when it stops, 2 seconds after the last it has."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.timeout(2))
        recorder.request(UNBOUNDED)
        for _ in range(5):
            await trio.sleep(1.5)
            harness.upstreams[0].emit()
        await trio.sleep(1.5)
        assert recorder.error is None
        await trio.sleep(1)
        assert isinstance(recorder.error, StreamTimeout)
        assert recorder.received == 5


async def test_no_time_runs_while_nothing_is_asked_for(autojump_clock: trio.testing.MockClock) -> None:
    """A subscriber that takes its time is not the source's fault: the clock stands still until it asks again."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.timeout(2))
        recorder.request(2)
        harness.upstreams[0].emit(2)
        await trio.sleep(100)
        assert recorder.error is None
        recorder.request(1)
        await trio.sleep(1.5)
        assert recorder.error is None
        await trio.sleep(1)
        assert isinstance(recorder.error, StreamTimeout)


async def test_another_request_does_not_begin_the_time_anew(autojump_clock: trio.testing.MockClock) -> None:
    """Asking again and again does not keep a silent source alive."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.timeout(2))
        for _ in range(2):
            recorder.request(1)
            await trio.sleep(1)
        await trio.sleep(0.5)
        assert isinstance(recorder.error, StreamTimeout)


async def test_timeout_passes_demand_through_and_holds_nothing(autojump_clock: trio.testing.MockClock) -> None:
    """One for one."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.timeout(2))
        recorder.request(3)
        recorder.request(2)
        harness.upstreams[0].emit(4)
        assert harness.upstreams[0].requests == [3, 2]
        assert recorder.elements == [1, 2, 3, 4]
        assert harness.peak == 0


async def test_timeout_of_a_source_that_answers_at_once(autojump_clock: trio.testing.MockClock) -> None:
    """A source that has answered before `request` returns has left no time running."""
    async with OperatorHarness() as harness:
        harness.answers_in_request = True
        recorder = harness.run(ops.timeout(2))
        recorder.request(5)
        await trio.sleep(10)
        assert recorder.elements == [1, 2, 3, 4, 5]
        assert recorder.error is None


async def test_an_element_in_time_wins_over_a_timer_that_was_due(mock_clock: trio.testing.MockClock) -> None:
    """The element is here before the timer's task has had its turn: it counts."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.timeout(2))
        recorder.request(2)
        await harness.settle()
        mock_clock.jump(2)
        harness.upstreams[0].emit()
        await harness.settle()
        assert recorder.error is None
        mock_clock.jump(2)
        await harness.settle()
        assert isinstance(recorder.error, StreamTimeout)


async def test_timeout_closes_a_generator_that_hangs(autojump_clock: trio.testing.MockClock) -> None:
    """From end to end: the error is raised from the loop, and the generator behind it has been closed."""
    closed: list[bool] = []

    async def hangs() -> Any:
        try:
            yield 1
            await trio.sleep_forever()
        finally:
            closed.append(True)

    seen: list[int] = []
    source = penstock.pipe(hangs, ops.timeout(3))
    with pytest.raises(StreamTimeout):
        await penstock.for_each(source, seen.append)
    assert seen == [1]
    assert closed == [True]
