"""What every stage that holds elements has in common: one way out, taken by one at a time."""

from collections import deque
from typing import Any

import pytest

from penstock.api import UNBOUNDED
from penstock.operators._holding import HoldingStage
from penstock.operators._stage import Staged
from tests.operators.measure import Bench, Boom


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

    def _holds(self) -> bool:
        return bool(self.held)

    def _take(self) -> Any:
        return self.held.popleft() if self.held else None

    def _ask(self) -> None:
        self.asked_with.append(len(self.held))
        self._upstream.request(1)

    def _release(self) -> None:
        self.held.clear()


def shelf() -> tuple[Staged[Any, Any], list[Shelf]]:
    made: list[Shelf] = []

    def make(downstream: Any, _: Any) -> Shelf:
        made.append(Shelf(downstream))
        return made[0]

    return Staged("shelf", make), made


async def test_a_request_from_inside_a_signal_is_answered_after_it() -> None:
    """Nothing recurses: a subscriber that asks for one more in each on_next is never signalled inside it (rules 1.3, 3.3)."""
    async with Bench() as bench:
        operator, _ = shelf()
        recorder = bench.run(operator)
        recorder.request(1)
        bench.lines[0].emit()
        bench.lines[0].request(50)
        bench.lines[0].emit(50)
        recorder.on_element = lambda: recorder.request(1) if recorder.received < 51 else None
        recorder.request(1)
        assert recorder.elements == list(range(1, 52))
        assert recorder.deepest == 1


async def test_an_element_from_inside_a_signal_goes_on_after_it() -> None:
    """A source that is driven by its own subscriber (a topic, say) signals inside a signal; below, they follow each other."""
    async with Bench() as bench:
        operator, _ = shelf()
        recorder = bench.run(operator)
        line = bench.lines[0]
        line.request(10)
        recorder.request(9)
        recorder.on_element = lambda: line.emit() if recorder.received < 9 else None
        line.emit()
        assert recorder.elements == list(range(1, 10))
        assert recorder.deepest == 1


async def test_a_completion_from_inside_a_signal_comes_after_it_and_after_what_is_held() -> None:
    """The last element is not overtaken by the end."""
    async with Bench() as bench:
        operator, _ = shelf()
        recorder = bench.run(operator)
        line = bench.lines[0]
        line.request(3)
        recorder.request(5)

        def drive() -> None:
            if recorder.received == 1:
                line.emit(2)
                line.complete()

        recorder.on_element = drive
        line.emit()
        assert recorder.signals == [("next", 1), ("next", 2), ("next", 3), ("complete",)]


async def test_more_is_asked_only_when_all_that_may_go_on_has_gone_on() -> None:
    """What is held never exceeds its bound for a moment: asking comes last."""
    async with Bench() as bench:
        operator, made = shelf()
        recorder = bench.run(operator)
        line = bench.lines[0]
        line.request(5)
        line.emit(5)
        made[0].asked_with.clear()
        recorder.request(5)
        assert made[0].asked_with == [0]


async def test_completion_waits_for_what_is_held_and_for_no_demand_of_its_own() -> None:
    """With one element held the end waits for the request that frees it, and then for nothing more."""
    async with Bench() as bench:
        operator, _ = shelf()
        recorder = bench.run(operator)
        bench.lines[0].request(1)
        bench.lines[0].emit()
        bench.lines[0].complete()
        assert recorder.signals == []
        recorder.request(1)
        assert recorder.signals == [("next", 1), ("complete",)]


async def test_completion_with_nothing_held_passes_at_once_without_demand() -> None:
    """An end needs no request (rule 1.5)."""
    async with Bench() as bench:
        operator, _ = shelf()
        recorder = bench.run(operator)
        bench.lines[0].complete()
        assert recorder.signals == [("complete",)]


async def test_after_completion_upstream_is_left_alone() -> None:
    """What is requested or cancelled while held elements go out never reaches the source that has ended (rule 2.4)."""
    async with Bench() as bench:
        operator, made = shelf()
        recorder = bench.run(operator)
        bench.lines[0].request(3)
        bench.lines[0].emit(3)
        bench.lines[0].complete()
        made[0].asked_with.clear()
        recorder.request(1)
        recorder.cancel()
        assert made[0].asked_with == []
        assert bench.breaches == []


async def test_an_error_overtakes_what_is_held_and_drops_it() -> None:
    """An error passes at once, without demand (rule 4.2)."""
    async with Bench() as bench:
        operator, made = shelf()
        recorder = bench.run(operator)
        bench.lines[0].request(2)
        bench.lines[0].emit(2)
        error = Boom("now")
        bench.lines[0].fail(error)
        assert recorder.signals == [("error", error)]
        assert not made[0].held


@pytest.mark.parametrize("signal", ["on_complete", "request"])
async def test_after_a_cancel_nothing_is_done(signal: str) -> None:
    """A late completion and a late request find nothing to do (rules 2.8, 3.6)."""
    async with Bench() as bench:
        operator, made = shelf()
        recorder = bench.run(operator)
        recorder.cancel()
        if signal == "request":
            made[0].request(1)
        else:
            made[0].on_complete()
        assert recorder.signals == []
        assert bench.lines[0].requests == []
        assert made[0]._demand == 0


async def test_a_cancel_from_inside_a_signal_ends_it_there() -> None:
    """Of three that are held and asked for, the first one's receiver cancels: the others are dropped, and no more are asked for."""
    async with Bench() as bench:
        operator, made = shelf()
        recorder = bench.run(operator)
        bench.lines[0].request(3)
        bench.lines[0].emit(3)
        made[0].asked_with.clear()
        recorder.on_element = recorder.cancel
        recorder.request(3)
        assert recorder.elements == [1]
        assert made[0].asked_with == []
        assert bench.held == 0


async def test_demand_saturates() -> None:
    """Unbounded demand twice is unbounded demand (rule 3.17)."""
    async with Bench() as bench:
        operator, made = shelf()
        recorder = bench.run(operator)
        recorder.request(UNBOUNDED)
        recorder.request(UNBOUNDED)
        assert made[0]._demand == UNBOUNDED


async def test_a_neighbour_that_raises_does_not_block_the_way_out() -> None:
    """What a neighbour raises is its own affair: the next request still finds the way open."""
    async with Bench() as bench:
        operator, _ = shelf()
        recorder = bench.run(operator)
        bench.lines[0].request(2)
        bench.lines[0].emit(2)

        def refuse() -> None:
            raise Boom

        recorder.on_element = refuse
        with pytest.raises(Boom):
            recorder.request(1)
        recorder.on_element = None
        recorder.request(1)
        assert recorder.elements == [1, 2]
