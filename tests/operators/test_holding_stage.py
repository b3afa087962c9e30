"""What every stage that holds elements has in common: one way out, taken by one at a time."""

from collections import deque
from typing import Any

import pytest

from penstock.api import UNBOUNDED
from penstock.operators._holding_stage import HoldingStage
from penstock.operators._stage import StageOperator
from tests.operators.harness import OperatorHarness, ScriptedError


class Shelf(HoldingStage[Any, Any]):
    """Holds all, asks for one at a time, and writes down how much it held when it asked."""

    __slots__ = ("asked_with", "held")

    def __init__(self, downstream: Any) -> None:
        super().__init__(downstream)
        self.held: deque[Any] = deque()
        self.asked_with: list[int] = []

    def on_next(self, element: Any, /) -> None:
        self.held.append(element)
        self._pass_on()

    def _has_held(self) -> bool:
        return bool(self.held)

    def _next_due(self) -> Any:
        return self.held.popleft() if self.held else None

    def _request_upstream(self) -> None:
        self.asked_with.append(len(self.held))
        self._upstream.request(1)

    def _release(self) -> None:
        self.held.clear()


def shelf() -> tuple[StageOperator[Any, Any], list[Shelf]]:
    made: list[Shelf] = []

    def make(downstream: Any, _: Any) -> Shelf:
        made.append(Shelf(downstream))
        return made[0]

    return StageOperator("shelf", make), made


async def test_a_request_from_inside_a_signal_is_answered_after_it() -> None:
    """Nothing recurses: a subscriber that asks for one more in each on_next is never signalled inside it (rules 1.3, 3.3)."""
    async with OperatorHarness() as harness:
        operator, _ = shelf()
        recorder = harness.run(operator)
        recorder.request(1)
        harness.upstreams[0].emit()
        harness.upstreams[0].request(50)
        harness.upstreams[0].emit(50)
        recorder.on_element = lambda: recorder.request(1) if recorder.received < 51 else None
        recorder.request(1)
        assert recorder.elements == list(range(1, 52))
        assert recorder.deepest == 1


async def test_an_element_from_inside_a_signal_goes_on_after_it() -> None:
    """A source that is driven by its own subscriber (a topic, say) signals inside a signal; below, they follow each other."""
    async with OperatorHarness() as harness:
        operator, _ = shelf()
        recorder = harness.run(operator)
        upstream = harness.upstreams[0]
        upstream.request(10)
        recorder.request(9)
        recorder.on_element = lambda: upstream.emit() if recorder.received < 9 else None
        upstream.emit()
        assert recorder.elements == list(range(1, 10))
        assert recorder.deepest == 1


async def test_a_completion_from_inside_a_signal_comes_after_it_and_after_what_is_held() -> None:
    """The last element is not overtaken by the end."""
    async with OperatorHarness() as harness:
        operator, _ = shelf()
        recorder = harness.run(operator)
        upstream = harness.upstreams[0]
        upstream.request(3)
        recorder.request(5)

        def drive() -> None:
            if recorder.received == 1:
                upstream.emit(2)
                upstream.complete()

        recorder.on_element = drive
        upstream.emit()
        assert recorder.signals == [("next", 1), ("next", 2), ("next", 3), ("complete",)]


async def test_more_is_asked_only_when_all_that_may_go_on_has_gone_on() -> None:
    """What is held never exceeds its bound for a moment: asking comes last."""
    async with OperatorHarness() as harness:
        operator, made = shelf()
        recorder = harness.run(operator)
        upstream = harness.upstreams[0]
        upstream.request(5)
        upstream.emit(5)
        made[0].asked_with.clear()
        recorder.request(5)
        assert made[0].asked_with == [0]


async def test_completion_waits_for_what_is_held_and_for_no_demand_of_its_own() -> None:
    """With one element held the end waits for the request that frees it, and then for nothing more."""
    async with OperatorHarness() as harness:
        operator, _ = shelf()
        recorder = harness.run(operator)
        harness.upstreams[0].request(1)
        harness.upstreams[0].emit()
        harness.upstreams[0].complete()
        assert recorder.signals == []
        recorder.request(1)
        assert recorder.signals == [("next", 1), ("complete",)]


async def test_completion_with_nothing_held_passes_at_once_without_demand() -> None:
    """An end needs no request (rule 1.5)."""
    async with OperatorHarness() as harness:
        operator, _ = shelf()
        recorder = harness.run(operator)
        harness.upstreams[0].complete()
        assert recorder.signals == [("complete",)]


async def test_after_completion_upstream_is_left_alone() -> None:
    """What is requested or cancelled while held elements go out never reaches the source that has ended (rule 2.4)."""
    async with OperatorHarness() as harness:
        operator, made = shelf()
        recorder = harness.run(operator)
        harness.upstreams[0].request(3)
        harness.upstreams[0].emit(3)
        harness.upstreams[0].complete()
        made[0].asked_with.clear()
        recorder.request(1)
        recorder.cancel()
        assert made[0].asked_with == []
        assert harness.breaches == []


async def test_an_error_overtakes_what_is_held_and_drops_it() -> None:
    """An error passes at once, without demand (rule 4.2)."""
    async with OperatorHarness() as harness:
        operator, made = shelf()
        recorder = harness.run(operator)
        harness.upstreams[0].request(2)
        harness.upstreams[0].emit(2)
        error = ScriptedError("now")
        harness.upstreams[0].fail(error)
        assert recorder.signals == [("error", error)]
        assert not made[0].held


@pytest.mark.parametrize("signal", ["on_complete", "request"])
async def test_after_a_cancel_nothing_is_done(signal: str) -> None:
    """A late completion and a late request find nothing to do (rules 2.8, 3.6)."""
    async with OperatorHarness() as harness:
        operator, made = shelf()
        recorder = harness.run(operator)
        recorder.cancel()
        if signal == "request":
            made[0].request(1)
        else:
            made[0].on_complete()
        assert recorder.signals == []
        assert harness.upstreams[0].requests == []
        assert made[0]._demand == 0


async def test_a_cancel_from_inside_a_signal_ends_it_there() -> None:
    """Of three that are held and asked for, the first one's receiver cancels: the others are dropped, and no more are asked for."""
    async with OperatorHarness() as harness:
        operator, made = shelf()
        recorder = harness.run(operator)
        harness.upstreams[0].request(3)
        harness.upstreams[0].emit(3)
        made[0].asked_with.clear()
        recorder.on_element = recorder.cancel
        recorder.request(3)
        assert recorder.elements == [1]
        assert made[0].asked_with == []
        assert harness.held == 0


async def test_demand_saturates() -> None:
    """Unbounded demand twice is unbounded demand (rule 3.17)."""
    async with OperatorHarness() as harness:
        operator, made = shelf()
        recorder = harness.run(operator)
        recorder.request(UNBOUNDED)
        recorder.request(UNBOUNDED)
        assert made[0]._demand == UNBOUNDED


async def test_a_neighbour_that_raises_does_not_block_the_way_out() -> None:
    """What a neighbour raises is its own affair: the next request still finds the way open."""
    async with OperatorHarness() as harness:
        operator, _ = shelf()
        recorder = harness.run(operator)
        harness.upstreams[0].request(2)
        harness.upstreams[0].emit(2)

        def refuse() -> None:
            raise ScriptedError

        recorder.on_element = refuse
        with pytest.raises(ScriptedError):
            recorder.request(1)
        recorder.on_element = None
        recorder.request(1)
        assert recorder.elements == [1, 2]
