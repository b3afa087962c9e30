"""The bench itself: each thing that it promises to notice is done once on purpose."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.api import Subscriber, Subscription
from penstock.operators._stage import Operator, Stage, StageOperator
from tests.operators.harness import OperatorHarness, count_tokens, numbers


def _operator(stage: Callable[[Subscriber[Any]], Stage[Any, Any]]) -> Operator[Any, Any]:
    return StageOperator("sabotage", lambda downstream, scope: stage(downstream))


async def _on_a_bench(drive: Callable[[OperatorHarness], object]) -> None:
    async with OperatorHarness() as harness:
        drive(harness)


class _Hoarder(Stage[Any, Any]):
    """Keeps the last element after the end."""

    __slots__ = ("_last",)

    def on_next(self, element: Any, /) -> None:
        self._last = element
        super().on_next(element)


class _Generous(Stage[Any, Any]):
    """Passes each element on twice."""

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        super().on_next(element)


class _Deaf(Stage[Any, Any]):
    """Does not pass on cancellation."""

    def cancel(self, /) -> None:
        self._mark_over()


class _Restless(Stage[Any, Any]):
    """Asks for more when the end has come, in the one direction, and signals after it, in the other."""

    def on_complete(self, /) -> None:
        upstream, downstream = self._upstream, self._downstream
        super().on_complete()
        upstream.request(1)
        upstream.cancel()
        downstream.on_complete()


class _Silent(Stage[Any, Any]):
    """Forgets to signal on_subscribe."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription


async def test_a_kept_element_is_noticed() -> None:
    """Memory that outlives the stream fails the bench."""

    def drive(harness: OperatorHarness) -> None:
        harness.run(_operator(_Hoarder)).request(1)
        harness.upstreams[0].emit()

    with pytest.raises(AssertionError, match="an element outlives its stream"):
        await _on_a_bench(drive)


async def test_an_element_too_many_is_noticed() -> None:
    """Rule 1.1 is counted at each element."""

    def drive(harness: OperatorHarness) -> None:
        harness.run(_operator(_Generous)).request(1)
        harness.upstreams[0].emit()

    with pytest.raises(AssertionError, match="element 2 of 1 requested"):
        await _on_a_bench(drive)


async def test_a_source_that_is_not_cancelled_is_noticed() -> None:
    """Whoever leaves without a word upstream fails the bench."""
    with pytest.raises(AssertionError, match="neither cancelled nor at its end"):
        await _on_a_bench(lambda harness: harness.run(_operator(_Deaf)))


async def test_calls_and_signals_after_the_end_are_noticed() -> None:
    """A dead subscription is left alone, and so is a subscriber whose stream has ended."""

    def drive(harness: OperatorHarness) -> None:
        harness.run(_operator(_Restless))
        harness.upstreams[0].complete()

    with pytest.raises(AssertionError) as caught:
        await _on_a_bench(drive)
    for words in ("request(1) on a dead subscription", "cancel() on a dead subscription", "on_complete after the end"):
        assert words in str(caught.value)


async def test_a_missing_on_subscribe_is_noticed() -> None:
    """Rule 1.9: the first signal is on_subscribe."""
    async with OperatorHarness() as harness:
        harness.run(_operator(_Silent))
        harness.upstreams[0].complete()
        assert harness.breaches.pop() == "on_complete before on_subscribe (rule 1.9)"


async def test_a_task_that_is_left_over_is_noticed() -> None:
    """Whatever was spawned has ended when the stream has."""

    def drive(harness: OperatorHarness) -> None:
        harness.run(_operator(Stage))
        harness.scope.spawn(harness.wait_unblocked, name="left over")

    with pytest.raises(AssertionError, match="a task outlives its stream"):
        await _on_a_bench(drive)


async def test_what_is_held_is_counted_without_what_the_subscriber_has_in_its_hands() -> None:
    """Tokens count while the operator keeps them, in lists and tuples too."""
    async with OperatorHarness() as harness:
        kept = [harness.token(), harness.token()]
        assert harness.held == 2
        assert count_tokens([kept[0], (kept[1],)]) == 2
        assert numbers([kept[0], (kept[1],)]) == [1, (2,)]
        kept.clear()
        assert harness.held == 0
        harness.run(_operator(Stage)).request(1)
        harness.recorder.on_element = harness.measure_held
        harness.upstreams[0].emit()
        assert harness.peak == 0


async def test_a_scripted_source_answers_only_what_was_asked_for() -> None:
    """The bench keeps the rules itself: an element that nobody asked for is a mistake of the test."""
    async with OperatorHarness() as harness:
        harness.run(_operator(Stage))
        with pytest.raises(AssertionError, match="was not asked for another element"):
            harness.upstreams[0].emit()
