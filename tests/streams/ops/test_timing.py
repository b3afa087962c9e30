"""`debounce`, `throttle`, `timeout`, `delay`, `sample`:
they use the clock and do not relax demand.
"""

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
from tests.streams.ops._harness_actions import close_nursery, stop_nursery
from tests.streams.ops.harness import OperatorHarness, ScriptedError, clear_tracebacks

TIMED = [ops.debounce, ops.throttle, ops.timeout, ops.delay, ops.sample]
NEWEST = [ops.debounce, ops.sample]
"""They hold the newest element until it is due."""

WITH_TASK = [ops.debounce, ops.timeout, ops.delay, ops.sample]


@pytest.mark.parametrize("operator", TIMED)
@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), "1", True, None])
def test_a_time_is_a_finite_number_above_0(operator: Callable[[Any], Any], seconds: Any) -> None:
    """The error names the operator and says what a time is."""
    with pytest.raises(
        UsageError,
        match=operator.__name__
        + r"\(seconds\) is .*; it is a time in seconds, above 0, and finite",
    ):
        operator(seconds)


@pytest.mark.parametrize("operator", TIMED)
def test_the_repr_is_the_text_of_the_call(operator: Callable[[Any], Any]) -> None:
    """A repr shows what was written."""
    assert repr(operator(0.25)) == f"<operator {operator.__name__}(0.25)>"


@pytest.mark.parametrize("operator", TIMED)
async def test_nothing_is_requested_and_no_timer_runs_before_a_request(
    operator: Callable[[Any], Any], autojump_clock: trio.testing.MockClock
) -> None:
    """Without demand the operators request nothing, start no task, and never time out."""
    async with OperatorHarness() as harness:
        recorder = harness.run(operator(1))
        await trio.sleep(100)
        assert harness.upstreams[0].requests == []
        assert harness.scope.running == 0
        assert recorder.signals == []


@pytest.mark.parametrize("operator", TIMED)
@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_an_end_passes_through_without_demand(
    operator: Callable[[Any], Any], end: str
) -> None:
    """With no element held, completion and error need no request."""
    async with OperatorHarness() as harness:
        recorder = harness.run(operator(1))
        getattr(harness.upstreams[0], end)()
        assert recorder.kinds == [{"complete": "complete", "fail": "error"}[end]]


@pytest.mark.parametrize("operator", [ops.debounce, ops.timeout, ops.sample])
@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
async def test_the_timer_ends_with_the_stream(
    operator: Callable[[Any], Any], end: str, autojump_clock: trio.testing.MockClock
) -> None:
    """After each kind of end no task is left, and no signal follows."""
    async with OperatorHarness() as harness:
        recorder = harness.run(operator(5))
        recorder.request(3)
        harness.upstreams[0].emit()
        await harness.settle()
        assert harness.scope.running == 1
        getattr(recorder if end == "cancel" else harness.upstreams[0], end)()
        signals = list(recorder.signals)
        await trio.sleep(20)
        assert harness.scope.running == 0
        assert recorder.signals == signals


@pytest.mark.parametrize("operator", WITH_TASK)
async def test_a_cancelled_nursery_fails_the_stream(
    operator: Callable[[Any], Any], autojump_clock: trio.testing.MockClock
) -> None:
    """If the timer task is cancelled from outside, the subscriber gets PublisherStopped,
    and upstream is cancelled.
    """
    async with OperatorHarness() as harness:
        recorder = await stop_nursery(
            harness,
            operator(5),
            lambda recorder: (recorder.request(3), harness.upstreams[0].emit()),
        )
        assert isinstance(recorder.error, PublisherStopped)
        assert f"{operator.__name__}(5) was stopped" in str(recorder.error)
        assert harness.upstreams[0].cancelled


@pytest.mark.parametrize("operator", WITH_TASK)
async def test_a_closed_nursery_fails_the_stream(operator: Callable[[Any], Any]) -> None:
    """If no timer can be started, the stream fails and upstream is cancelled."""
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


@pytest.mark.parametrize("operator", WITH_TASK)
async def test_requests_and_elements_after_a_cancel_have_no_effect(
    operator: Callable[[Any], Any],
) -> None:
    """They start no timer, and a late element is not held (rules 2.8, 3.6)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(operator(5))
        stage: Any = harness.upstreams[0]._subscriber
        recorder.cancel()
        stage.request(1)
        assert harness.upstreams[0].requests == []
        assert harness.scope.running == 0
        if operator is not ops.timeout:
            stage.on_next(harness.token())
        await harness.settle()
        assert harness.held == 0


# --- debounce


async def test_debounce_passes_on_an_element_that_no_newer_one_follows(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Of three elements at intervals of 1 s only the last one goes on, 2 s after it arrived."""
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


@pytest.mark.parametrize("operator", NEWEST)
async def test_one_element_is_requested_at_a_time(
    operator: Callable[[Any], Any], autojump_clock: trio.testing.MockClock
) -> None:
    """One element is outstanding while demand is left.
    When demand is used up, no further one is requested.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(operator(2))
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


async def test_debounce_starts_no_timer_without_an_element(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """With demand and no element it has no task."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.debounce(2))
        recorder.request(1)
        assert harness.scope.running == 0
        await trio.sleep(3)
        harness.upstreams[0].emit()
        await trio.sleep(1)
        assert recorder.elements == []


async def test_an_element_without_demand_is_timed_from_the_next_request(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It may be old by then, so a newer element gets the whole time to arrive."""
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


async def test_debounce_passes_the_waiting_element_on_at_completion(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """No newer element can follow, so it goes on at once, and then the completion."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.debounce(2))
        recorder.request(1)
        harness.upstreams[0].emit(2)
        harness.upstreams[0].complete()
        assert recorder.signals == [("next", 2), ("complete",)]


@pytest.mark.parametrize("operator", NEWEST)
async def test_the_completion_comes_after_the_waiting_element(
    operator: Callable[[Any], Any], autojump_clock: trio.testing.MockClock
) -> None:
    """Without demand the last element waits, and the completion waits with it."""
    async with OperatorHarness() as harness:
        recorder = harness.run(operator(2))
        recorder.request(1)
        harness.upstreams[0].emit()
        await trio.sleep(3)
        harness.upstreams[0].emit()
        harness.upstreams[0].complete()
        await trio.sleep(10)
        assert recorder.signals == [("next", 1)]
        recorder.request(1)
        assert recorder.signals == [("next", 1), ("next", 2), ("complete",)]


@pytest.mark.parametrize("operator", NEWEST)
async def test_an_error_drops_the_waiting_element(
    operator: Callable[[Any], Any], autojump_clock: trio.testing.MockClock
) -> None:
    """An error passes at once (rule 4.2)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(operator(2))
        recorder.request(3)
        harness.upstreams[0].emit()
        harness.upstreams[0].fail(error := ScriptedError("now"))
        assert harness.held == 0
        await trio.sleep(10)
        assert recorder.signals == [("error", error)]


async def test_debounce_of_a_synchronous_source_gives_its_last_element() -> None:
    """All elements arrive at the same time, so only the last one goes on."""
    assert await penstock.collect(penstock.pipe(range(100), ops.debounce(1))) == [99]


@settings(deadline=None, max_examples=60)
@given(pauses=st.lists(st.sampled_from([0.0, 0.5, 1.5, 4.0]), max_size=25))
def test_debounce_follows_its_model(pauses: list[float]) -> None:
    """For every sequence of pauses:
    an element goes on if it is the last, or if a pause longer than the time follows it.
    """

    async def source() -> Any:
        for number, pause in enumerate(pauses):
            await trio.sleep(pause)
            yield number

    async def main() -> None:
        expected = [
            number
            for number in range(len(pauses))
            if number == len(pauses) - 1 or pauses[number + 1] > 1
        ]
        assert await penstock.collect(penstock.pipe(source, ops.debounce(1))) == expected

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


# --- throttle


async def test_throttle_leaves_out_elements_within_the_interval(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The first element goes on at once, those within 2 s are left out,
    and the next one goes on at once.
    """
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


async def test_throttle_passes_no_element_on_late(autojump_clock: trio.testing.MockClock) -> None:
    """An element left out stays out, after a long silence and at the completion too."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.throttle(2))
        recorder.request(5)
        harness.upstreams[0].emit(3)
        await trio.sleep(100)
        harness.upstreams[0].complete()
        assert recorder.signals == [("next", 1), ("complete",)]


async def test_throttle_requests_again_what_it_leaves_out(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Demand passes through, each element left out is requested again, and none is held."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.throttle(2))
        recorder.request(3)
        assert harness.upstreams[0].requests == [3]
        harness.upstreams[0].emit(3)
        assert harness.upstreams[0].requests == [3, 1, 1]
        assert harness.peak == 0


async def test_throttle_needs_no_task(autojump_clock: trio.testing.MockClock) -> None:
    """The clock is read when an element arrives."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.throttle(2))
        recorder.request(3)
        harness.upstreams[0].emit(2)
        assert harness.scope.running == 0


@pytest.mark.parametrize("end", ["fail", "cancel"])
async def test_throttle_passes_errors_and_cancels_on_at_once(end: str) -> None:
    """An error goes downstream, and a cancel goes upstream."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.throttle(2))
        recorder.request(3)
        harness.upstreams[0].emit(2)
        getattr(recorder if end == "cancel" else harness.upstreams[0], end)()
        assert recorder.kinds == (["next"] if end == "cancel" else ["next", "error"])
        assert harness.upstreams[0].over


# --- timeout


async def test_timeout_fails_without_a_signal_in_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """After 2 s without an answer to a request the stream fails with a hint,
    and upstream is cancelled.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.timeout(2))
        recorder.request(1)
        await trio.sleep(1.5)
        assert recorder.signals == []
        await trio.sleep(1)
        assert isinstance(recorder.error, StreamTimeout)
        assert isinstance(recorder.error, TimeoutError)
        assert "no signal arrived within 2 s of a request" in str(recorder.error)
        assert harness.upstreams[0].cancelled


async def test_each_element_restarts_the_timeout(autojump_clock: trio.testing.MockClock) -> None:
    """A source that signals every 1.5 s is within 2 s.
    The stream fails 2 s after the last element.
    """
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


async def test_timeout_does_not_run_without_demand(autojump_clock: trio.testing.MockClock) -> None:
    """A slow subscriber is not the fault of the source,
    so the clock stops until the next request.
    """
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


async def test_another_request_does_not_restart_the_timeout(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Repeated requests do not keep a silent source alive."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.timeout(2))
        for _ in range(2):
            recorder.request(1)
            await trio.sleep(1)
        await trio.sleep(0.5)
        assert isinstance(recorder.error, StreamTimeout)


async def test_timeout_passes_demand_through_and_holds_no_element(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Each request goes upstream unchanged."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.timeout(2))
        recorder.request(3)
        recorder.request(2)
        harness.upstreams[0].emit(4)
        assert harness.upstreams[0].requests == [3, 2]
        assert recorder.elements == [1, 2, 3, 4]
        assert harness.peak == 0


async def test_timeout_of_a_synchronous_source(autojump_clock: trio.testing.MockClock) -> None:
    """A source that answers inside `request` leaves no timer running."""
    async with OperatorHarness() as harness:
        harness.answers_in_request = True
        recorder = harness.run(ops.timeout(2))
        recorder.request(5)
        await trio.sleep(10)
        assert recorder.elements == [1, 2, 3, 4, 5]
        assert recorder.error is None


async def test_an_element_before_the_timer_task_runs_prevents_the_timeout(
    mock_clock: trio.testing.MockClock,
) -> None:
    """If the deadline has passed and the element arrives before the timer task runs,
    the element counts.
    """
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


async def test_timeout_closes_a_hanging_generator(autojump_clock: trio.testing.MockClock) -> None:
    """The error is raised from the loop, and the generator of the source has been closed."""
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


@pytest.mark.parametrize(
    "operator", [ops.debounce(0.1), ops.sample(0.1)], ids=["debounce", "sample"]
)
async def test_a_slow_reader_gets_no_old_element_from_the_stream(
    autojump_clock: trio.testing.MockClock, operator: Any
) -> None:
    """The stream holds at most one element that was due:
    while the reader works, the next one is not requested.
    """
    topic = penstock.Topic[int](slow=penstock.SlowPolicy.LATEST)
    async with (
        penstock.subscribe(penstock.pipe(topic, operator)) as stream,
        trio.open_nursery() as nursery,
    ):

        async def publish() -> None:
            for number in range(100):
                await topic.publish(number)
                await trio.sleep(0.2)

        nursery.start_soon(publish)
        assert await anext(stream) == 0
        await trio.sleep(10)
        assert await anext(stream) > 45
        nursery.cancel_scope.cancel()


# --- delay


async def test_delay_passes_each_element_on_after_the_same_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Elements at 0, 1 and 1 s arrive at 2, 3 and 3 s."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.delay(2))
        recorder.request(5)
        harness.upstreams[0].emit()
        await trio.sleep(1)
        harness.upstreams[0].emit(2)
        await trio.sleep(0.5)
        assert recorder.elements == []
        await trio.sleep(1)
        assert recorder.elements == [1]
        await trio.sleep(1)
        assert recorder.elements == [1, 2, 3]


async def test_delay_completes_after_its_elements(autojump_clock: trio.testing.MockClock) -> None:
    """A completion does not shorten the time of the held elements.
    With none held, it passes at once.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.delay(2))
        recorder.request(5)
        harness.upstreams[0].emit()
        await trio.sleep(1)
        harness.upstreams[0].emit()
        harness.upstreams[0].complete()
        await trio.sleep(1.5)
        assert recorder.signals == [("next", 1)]
        await trio.sleep(1)
        assert recorder.signals == [("next", 1), ("next", 2), ("complete",)]


@pytest.mark.parametrize("end", ["fail", "cancel"])
async def test_delay_drops_its_elements_at_an_error_or_a_cancel(
    end: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Neither waits (rule 4.2), and the timer ends with the stream."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.delay(2))
        recorder.request(5)
        harness.upstreams[0].emit(2)
        getattr(recorder if end == "cancel" else harness.upstreams[0], end)()
        assert harness.held == 0
        assert recorder.kinds == ([] if end == "cancel" else ["error"])
        await trio.sleep(10)
        assert harness.scope.running == 0
        assert len(recorder.signals) < 2


async def test_delay_requests_no_more_than_its_size(autojump_clock: trio.testing.MockClock) -> None:
    """Outstanding and held elements together are at most `size`. Half of it is requested at a
    time when elements have gone on.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.delay(2, size=4))
        recorder.request(100)
        assert harness.upstreams[0].requests == [4]
        harness.upstreams[0].emit()
        await trio.sleep(1)
        harness.upstreams[0].emit(3)
        await trio.sleep(1.5)
        assert harness.upstreams[0].requests == [4]
        await trio.sleep(1)
        assert recorder.elements == [1, 2, 3, 4]
        assert harness.upstreams[0].requests == [4, 4]
        assert harness.peak == 4


async def test_delay_passes_single_requests_on_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Demand below `size` does not wait for more of it."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.delay(2, size=8))
        for _ in range(3):
            recorder.request(1)
        assert harness.upstreams[0].requests == [1, 1, 1]


@pytest.mark.parametrize("size", [0, -1, 1.5, True, None])
def test_delay_needs_a_bound(size: Any) -> None:
    """The error names the argument."""
    with pytest.raises(UsageError, match=r"delay\(size=.*\): give how many elements it may hold"):
        ops.delay(1, size=size)


@settings(deadline=None, max_examples=60)
@given(
    pauses=st.lists(st.sampled_from([0.0, 0.25, 1.0, 4.0]), max_size=25),
    size=st.sampled_from([1, 2, 3, 256]),
)
def test_delay_follows_its_model(pauses: list[float], size: int) -> None:
    """For every sequence of pauses: every element, in order, at least 1 s after it was made, and
    exactly 1 s if `size` has room.
    """
    made: list[float] = []
    seen: list[float] = []

    async def source() -> Any:
        for number, pause in enumerate(pauses):
            await trio.sleep(pause)
            made.append(trio.current_time())
            yield number

    async def main() -> None:
        delayed = penstock.pipe(
            source, ops.delay(1, size=size), ops.tap(lambda _: seen.append(trio.current_time()))
        )
        assert await penstock.collect(delayed) == list(range(len(pauses)))
        waits = [round(late - early, 6) for early, late in zip(made, seen, strict=True)]
        assert waits == [1] * len(pauses)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


# --- sample


async def test_sample_passes_on_the_newest_element_of_each_period(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Only the last element within 2 s goes on, at the end of the 2 s. A period without an element
    passes on none.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.sample(2))
        recorder.request(5)
        harness.upstreams[0].emit()
        await trio.sleep(1)
        harness.upstreams[0].emit(2)
        assert recorder.elements == []
        await trio.sleep(1.5)
        assert recorder.elements == [3]
        await trio.sleep(2)
        assert recorder.elements == [3]
        harness.upstreams[0].emit()
        await trio.sleep(1)
        assert recorder.elements == [3]
        await trio.sleep(1)
        assert recorder.elements == [3, 4]


async def test_an_element_of_sample_without_demand_waits_for_a_period_after_the_next_request(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The clock stands still without demand.
    In the new period a newer element replaces the old one.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.sample(2))
        recorder.request(1)
        harness.upstreams[0].emit()
        await trio.sleep(3)
        harness.upstreams[0].emit()
        await trio.sleep(100)
        recorder.request(1)
        await trio.sleep(1)
        harness.upstreams[0].emit()
        assert recorder.elements == [1]
        await trio.sleep(1.5)
        assert recorder.elements == [1, 3]


@settings(deadline=None, max_examples=60)
@given(pauses=st.lists(st.sampled_from([0.0173, 0.2611, 1.0371, 4.0193]), max_size=25))
def test_sample_follows_its_model(pauses: list[float]) -> None:
    """For every sequence of pauses:
    an element goes on if it is the last one of all or of its second.
    """
    times = [sum(pauses[: number + 1]) for number in range(len(pauses))]

    async def source() -> Any:
        for number, pause in enumerate(pauses):
            await trio.sleep(pause)
            yield number

    async def main() -> None:
        last_of_second = {int(time): number for number, time in enumerate(times)}
        assert await penstock.collect(penstock.pipe(source, ops.sample(1))) == list(
            last_of_second.values()
        )

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
