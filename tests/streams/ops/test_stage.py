"""`Stage`: passes everything on, ends once, and drops the references to both neighbours at the
end.
"""

import gc
import weakref
from typing import Any

from penstock.api import PublisherStopped
from penstock.streams.ops._stage import (
    CANCELLED_SUBSCRIBER,
    ENDED_UPSTREAM,
    Stage,
    StageOperator,
    stopped_error,
)
from tests.streams.ops.harness import OperatorHarness, Recorder, ScriptedError, Upstream


class _Watched(Stage[Any, Any]):
    """Counts the calls of `_release`."""

    __slots__ = ("released",)

    def __init__(self, downstream: Any) -> None:
        super().__init__(downstream)
        self.released = 0

    def _release(self) -> None:
        self.released += 1


def _run(harness: OperatorHarness) -> tuple[_Watched, Upstream, Recorder]:
    stages: list[_Watched] = []

    def make(downstream: Any, scope: Any) -> _Watched:
        stages.append(_Watched(downstream))
        return stages[0]

    recorder = harness.run(StageOperator("watched", make))
    return stages[0], harness.upstreams[0], recorder


async def test_signals_and_demand_pass_straight_through() -> None:
    """A plain stage is transparent in both directions."""
    async with OperatorHarness() as harness:
        _, upstream, recorder = _run(harness)
        recorder.request(2)
        recorder.request(3)
        upstream.emit(2)
        upstream.complete()
        assert upstream.requests == [2, 3]
        assert recorder.signals == [("next", 1), ("next", 2), ("complete",)]


async def test_an_error_passes_as_the_same_object() -> None:
    """A stage does not wrap errors."""
    async with OperatorHarness() as harness:
        _, upstream, recorder = _run(harness)
        upstream.fail(error := ScriptedError())
        assert recorder.signals == [("error", error)]


async def test_a_stage_is_released_once_at_its_end() -> None:
    """After the first end, no other end has an effect:
    from upstream, from downstream, or from the stage itself.
    """
    for end in ("on_complete", "cancel", "_complete"):
        async with OperatorHarness() as harness:
            stage, upstream, recorder = _run(harness)
            if end == "cancel":
                recorder.cancel()
            elif end == "on_complete":
                upstream.complete()
            else:
                stage._complete()
            kinds = list(recorder.kinds)
            stage.cancel()
            stage.on_complete()
            stage.on_error(ScriptedError())
            stage._complete()
            stage._fail(ScriptedError())
            stage.on_next(1)
            stage.request(1)
            assert stage.released == 1
            assert recorder.kinds == kinds
            assert repr(stage) == "<stage Watched: over>"


async def test_a_stage_that_ends_the_stream_cancels_upstream() -> None:
    """`_complete` and `_fail` cancel upstream and signal downstream."""
    for fail in (False, True):
        async with OperatorHarness() as harness:
            stage, upstream, recorder = _run(harness)
            assert repr(stage) == "<stage Watched: live>"
            if fail:
                stage._fail(ScriptedError())
            else:
                stage._complete()
            assert upstream.cancelled
            assert recorder.kinds == ["error" if fail else "complete"]


async def test_neighbours_are_not_referenced_after_the_end() -> None:
    """After each kind of end the stage refers to neither its subscriber nor its subscription."""
    for end in ("complete", "fail", "cancel"):
        async with OperatorHarness() as harness:
            stage, upstream, recorder = _run(harness)
            getattr(recorder if end == "cancel" else upstream, end)()
            assert stage._downstream is CANCELLED_SUBSCRIBER
            assert stage._upstream is ENDED_UPSTREAM


def test_the_cancelled_subscriber_ignores_signals() -> None:
    """It takes every signal and keeps no element."""

    class Element:
        pass

    element = Element()
    CANCELLED_SUBSCRIBER.on_subscribe(ENDED_UPSTREAM)
    CANCELLED_SUBSCRIBER.on_next(element)
    CANCELLED_SUBSCRIBER.on_error(ScriptedError())
    CANCELLED_SUBSCRIBER.on_complete()
    kept = weakref.ref(element)
    del element
    gc.collect()
    assert kept() is None


def test_the_repr_of_an_operator_is_its_name() -> None:
    """The repr is the text of the call."""
    assert (
        repr(StageOperator("take(3)", lambda downstream, scope: Stage(downstream)))
        == "<operator take(3)>"
    )


def test_stopped_error_says_what_was_cancelled() -> None:
    """The error says who must act and what to try."""
    error = stopped_error("map(fetch)")
    assert isinstance(error, PublisherStopped)
    assert str(error) == (
        "map(fetch) was stopped: the nursery that ran it was cancelled. "
        "Keep the nursery open until the subscribers are done, or cancel the subscription first"
    )
