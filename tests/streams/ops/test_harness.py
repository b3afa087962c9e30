"""`OperatorHarness`: it reports each fault that it promises to report."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.api import Subscriber, Subscription
from penstock.streams.ops import Operator
from penstock.streams.ops._stage import Stage, StageOperator
from tests.streams.ops.harness import OperatorHarness, count_tokens, numbers


def _sabotage(stage: Callable[[Subscriber[Any]], Stage[Any, Any]]) -> Operator[Any, Any]:
    return StageOperator("sabotage", lambda downstream, scope: stage(downstream))


async def _run_in_harness(drive: Callable[[OperatorHarness], object]) -> None:
    async with OperatorHarness() as harness:
        drive(harness)


class _KeepingStage(Stage[Any, Any]):
    """Keeps the last element after the end."""

    __slots__ = ("_last",)

    def on_next(self, element: Any, /) -> None:
        self._last = element
        super().on_next(element)


class _DoublingStage(Stage[Any, Any]):
    """Passes each element on twice."""

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        super().on_next(element)


class _NotCancellingStage(Stage[Any, Any]):
    """Does not cancel upstream."""

    def cancel(self, /) -> None:
        self._mark_over()


class _CallingAfterTheEndStage(Stage[Any, Any]):
    """After completion calls its subscription, and signals downstream again."""

    def on_complete(self, /) -> None:
        upstream, downstream = self._upstream, self._downstream
        super().on_complete()
        upstream.request(1)
        upstream.cancel()
        downstream.on_complete()


class _NotSubscribingStage(Stage[Any, Any]):
    """Does not signal on_subscribe."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription


async def test_an_element_kept_after_the_end_is_reported() -> None:
    """A reference to an element that outlives the stream fails the harness."""

    def drive(harness: OperatorHarness) -> None:
        harness.run(_sabotage(_KeepingStage)).request(1)
        harness.upstreams[0].emit()

    with pytest.raises(AssertionError, match="an element outlives its stream"):
        await _run_in_harness(drive)


async def test_an_element_beyond_demand_is_reported() -> None:
    """Rule 1.1 is checked at each element."""

    def drive(harness: OperatorHarness) -> None:
        harness.run(_sabotage(_DoublingStage)).request(1)
        harness.upstreams[0].emit()

    with pytest.raises(AssertionError, match="element 2 of 1 requested"):
        await _run_in_harness(drive)


async def test_a_source_left_live_is_reported() -> None:
    """A stage that ends without cancelling upstream fails the harness."""
    with pytest.raises(AssertionError, match="neither ended nor been cancelled"):
        await _run_in_harness(lambda harness: harness.run(_sabotage(_NotCancellingStage)))


async def test_calls_and_signals_after_the_end_are_reported() -> None:
    """An ended subscription must not be called, and an ended subscriber must not be signalled."""

    def drive(harness: OperatorHarness) -> None:
        harness.run(_sabotage(_CallingAfterTheEndStage))
        harness.upstreams[0].complete()

    with pytest.raises(AssertionError) as caught:
        await _run_in_harness(drive)
    for words in (
        "request(1) on a dead subscription",
        "cancel() on a dead subscription",
        "on_complete after the end",
    ):
        assert words in str(caught.value)


async def test_a_missing_on_subscribe_is_reported() -> None:
    """Rule 1.9: the first signal is on_subscribe."""
    async with OperatorHarness() as harness:
        harness.run(_sabotage(_NotSubscribingStage))
        harness.upstreams[0].complete()
        assert harness.breaches.pop() == "on_complete before on_subscribe (rule 1.9)"


async def test_a_task_left_running_is_reported() -> None:
    """Every task of the scope must end with the stream."""

    def drive(harness: OperatorHarness) -> None:
        harness.run(_sabotage(Stage))
        harness.scope.spawn(harness.wait_unblocked, name="left over")

    with pytest.raises(AssertionError, match="a task outlives its stream"):
        await _run_in_harness(drive)


async def test_elements_in_on_next_do_not_count_as_held() -> None:
    """Tokens count as held while the operator refers to them, also in lists and tuples."""
    async with OperatorHarness() as harness:
        kept = [harness.token(), harness.token()]
        assert harness.held == 2
        assert count_tokens([kept[0], (kept[1],)]) == 2
        assert numbers([kept[0], (kept[1],)]) == [1, (2,)]
        kept.clear()
        assert harness.held == 0
        harness.run(_sabotage(Stage)).request(1)
        harness.recorder.on_element = harness.measure_held
        harness.upstreams[0].emit()
        assert harness.peak == 0


async def test_a_source_cannot_emit_beyond_demand() -> None:
    """The harness obeys rule 1.1 itself: an element without demand is a mistake of the test."""
    async with OperatorHarness() as harness:
        harness.run(_sabotage(Stage))
        with pytest.raises(AssertionError, match="has no demand for another element"):
            harness.upstreams[0].emit()
