"""A stage passes everything on, ends once, and forgets both neighbours when it has."""

import gc
import weakref
from typing import Any

from penstock.api import PublisherStopped
from penstock.operators._stage import CANCELLED_SUBSCRIBER, ENDED_UPSTREAM, Stage, StageOperator, stopped_error
from tests.operators.harness import OperatorHarness, Recorder, ScriptedError, Upstream


class _Watched(Stage[Any, Any]):
    """Counts how often it was told to release what it holds."""

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
    """Nothing is wrapped on the way."""
    async with OperatorHarness() as harness:
        _, upstream, recorder = _run(harness)
        upstream.fail(boom := ScriptedError())
        assert recorder.signals == [("error", boom)]


async def test_the_end_releases_once_in_whatever_way_it_comes() -> None:
    """After one end no other follows, from either side or from the stage itself."""
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


async def test_finishing_and_failing_in_the_middle_cancel_upstream() -> None:
    """A stage that ends the stream by itself wants nothing more from above."""
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


async def test_neither_neighbour_is_held_after_the_end() -> None:
    """A stage that somebody still refers to keeps nobody else alive."""
    for end in ("complete", "fail", "cancel"):
        async with OperatorHarness() as harness:
            stage, upstream, recorder = _run(harness)
            getattr(recorder if end == "cancel" else upstream, end)()
            assert stage._downstream is CANCELLED_SUBSCRIBER
            assert stage._upstream is ENDED_UPSTREAM


def test_what_nobody_listens_to_goes_nowhere() -> None:
    """The subscriber that stands in for one that has gone takes every signal and keeps none."""

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


def test_an_operator_names_itself() -> None:
    """Its repr is what a person wrote."""
    assert repr(StageOperator("take(3)", lambda downstream, scope: Stage(downstream))) == "<operator take(3)>"


def test_a_stopped_stream_says_what_stopped_it() -> None:
    """The error tells who must act, and what to try."""
    error = stopped_error("map(fetch)")
    assert isinstance(error, PublisherStopped)
    assert str(error) == (
        "map(fetch) was stopped: the nursery that ran it was cancelled. "
        "Keep the nursery open until the subscribers are done, or cancel the subscription first"
    )
