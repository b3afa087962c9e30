"""`repeat`: when a run begins, with which demand, and which signals end the repetition."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from penstock.api import PublisherStopped, UsageError
from penstock.streams import collect, empty, generate, ops
from tests.streams.ops._harness_actions import close_nursery, stop_nursery
from tests.streams.ops.harness import OperatorHarness, ScriptedError, clear_tracebacks


async def _two() -> AsyncIterator[int]:
    yield 1
    yield 2


@pytest.mark.parametrize("count", [1, 2, 50])
@pytest.mark.parametrize("source", [[1, 2], generate(_two), lambda: iter([1, 2])])
async def test_repeat_runs_the_source_count_times(source: Any, count: int) -> None:
    """Every run has all elements of the source."""
    assert await collect(ops.pipe(source, ops.repeat(count))) == [1, 2] * count


async def test_repeat_without_a_count_has_no_end() -> None:
    """The subscriber ends it."""
    assert await collect(ops.pipe([1, 2], ops.repeat(None), ops.take(1001))) == [1, 2] * 500 + [1]


async def test_an_empty_source_can_be_repeated_ten_thousand_times() -> None:
    """Each run is attached by its own task, so the stack does not grow."""
    assert await collect(ops.pipe(empty(), ops.repeat(10_000))) == []


async def test_an_endless_repetition_of_an_empty_source_can_be_cancelled(
    autojump_clock: Any,
) -> None:
    """Each run costs a scheduler pass, so other tasks run and a cancel has an effect."""
    async with OperatorHarness() as harness:
        recorder = harness.recorder
        ops.repeat(None).attach(empty(), recorder, harness.scope)
        recorder.request(1)
        for _ in range(100):
            await trio.lowlevel.checkpoint()
        recorder.cancel()
        await harness.settle()
        assert recorder.signals == []


async def test_demand_that_a_run_left_goes_to_the_next() -> None:
    """Requests between two runs are added to it, and later requests go up unchanged."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.repeat(3))
        recorder.request(5)
        harness.upstreams[0].emit(2)
        harness.upstreams[0].complete()
        recorder.request(1)
        assert harness.upstreams[0].requests == [5]
        await harness.settle()
        assert harness.upstreams[1].requests == [4]
        recorder.request(2)
        assert harness.upstreams[1].requests == [4, 2]


async def test_a_run_begins_when_elements_are_requested() -> None:
    """If a run used all demand, the next one waits for a request, and begins once."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.repeat(3))
        recorder.request(1)
        harness.upstreams[0].emit()
        harness.upstreams[0].complete()
        await harness.settle()
        assert len(harness.upstreams) == 1
        recorder.request(1)
        recorder.request(1)
        await harness.settle()
        assert [upstream.requests for upstream in harness.upstreams] == [[1], [2]]


async def test_the_completion_of_the_last_run_needs_no_demand() -> None:
    """It passes at once, in the signal of the source."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.repeat(1))
        harness.upstreams[0].complete()
        assert recorder.kinds == ["complete"]


async def test_a_pause_separates_two_runs(autojump_clock: Any) -> None:
    """A run begins `pause` seconds after the completion of the one before."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.repeat(2, pause=5))
        recorder.request(1)
        harness.upstreams[0].complete()
        await trio.sleep(4.5)
        assert len(harness.upstreams) == 1
        await trio.sleep(1)
        assert len(harness.upstreams) == 2


async def test_a_cancel_ends_the_pause(autojump_clock: Any) -> None:
    """No run begins after it, and no task is left."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.repeat(2, pause=5))
        recorder.request(1)
        harness.upstreams[0].complete()
        await harness.settle()
        assert harness.scope.running == 1
        recorder.cancel()
        await harness.settle()
        assert harness.scope.running == 0
        await trio.sleep(10)
        assert len(harness.upstreams) == 1


async def test_a_request_after_a_cancel_begins_no_run() -> None:
    """Requests after the end have no effect (rule 3.6)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.repeat(2))
        stage: Any = harness.upstreams[0]._subscriber
        harness.upstreams[0].complete()
        recorder.cancel()
        stage.request(1)
        await harness.settle()
        assert len(harness.upstreams) == 1


async def test_an_error_ends_the_repetition() -> None:
    """It passes at once, also from a later run."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.repeat(3))
        recorder.request(1)
        harness.upstreams[0].complete()
        await harness.settle()
        harness.upstreams[1].fail(error := ScriptedError())
        assert recorder.signals == [("error", error)]
        await harness.settle()
        assert len(harness.upstreams) == 2


async def test_a_cancelled_nursery_fails_the_stream(autojump_clock: Any) -> None:
    """If the nursery is cancelled during a pause, the subscriber gets PublisherStopped."""
    async with OperatorHarness() as harness:
        recorder = await stop_nursery(
            harness,
            ops.repeat(2, pause=5),
            lambda recorder: (recorder.request(1), harness.upstreams[0].complete()),
        )
        assert isinstance(recorder.error, PublisherStopped)
        assert "repeat(2) was stopped" in str(recorder.error)


async def test_a_closed_nursery_fails_the_stream() -> None:
    """If no task can attach the next run, the stream fails."""
    async with OperatorHarness() as harness:
        await close_nursery(harness)
        recorder = harness.run(ops.repeat(2))
        recorder.request(1)
        harness.upstreams[0].complete()
        assert isinstance(recorder.error, UsageError)
        assert "has closed" in str(recorder.error)
        clear_tracebacks(recorder.error)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2"])
def test_a_count_is_an_integer_of_at_least_1(count: Any) -> None:
    """The error says what to give."""
    with pytest.raises(UsageError, match=r"repeat\(.*\): give how many times in all"):
        ops.repeat(count)


def test_a_pause_is_a_time() -> None:
    """The error names the argument; 0 is allowed."""
    with pytest.raises(
        UsageError, match=r"repeat\(pause=…\) is -1; it is a time in seconds, 0 or more"
    ):
        ops.repeat(2, pause=-1)
    assert repr(ops.repeat(2, pause=0)) == "<operator repeat(2)>"
