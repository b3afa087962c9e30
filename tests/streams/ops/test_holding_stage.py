"""`HoldingStage`: held elements go on one at a time, in one place."""

from collections import deque
from typing import Any

import pytest

from penstock.api import UNBOUNDED
from penstock.streams.ops._holding_stage import HoldingStage
from penstock.streams.ops._stage import StageOperator
from tests.streams.ops.harness import OperatorHarness, ScriptedError


class OneAtATime(HoldingStage[Any, Any]):
    """Holds all elements, requests one at a time,
    and records how many elements it held at each request.
    """

    __slots__ = ("held", "held_at_request")

    def __init__(self, downstream: Any) -> None:
        super().__init__(downstream)
        self.held: deque[Any] = deque()
        self.held_at_request: list[int] = []

    def on_next(self, element: Any, /) -> None:
        self.held.append(element)
        self._pass_on()

    def _has_held(self) -> bool:
        return bool(self.held)

    def _next_due(self) -> Any:
        return self.held.popleft() if self.held else None

    def _request_upstream(self) -> None:
        self.held_at_request.append(len(self.held))
        self._upstream.request(1)

    def _release(self) -> None:
        self.held.clear()


def one_at_a_time() -> tuple[StageOperator, list[OneAtATime]]:
    made: list[OneAtATime] = []

    def make(downstream: Any, _: Any) -> OneAtATime:
        made.append(OneAtATime(downstream))
        return made[0]

    return StageOperator("one_at_a_time", make), made


async def test_a_request_inside_on_next_is_answered_after_it() -> None:
    """A subscriber that requests one more in each on_next is never signalled inside it (rules
    1.3, 3.3).
    """
    async with OperatorHarness() as harness:
        operator, _ = one_at_a_time()
        recorder = harness.run(operator)
        recorder.request(1)
        harness.upstreams[0].emit()
        harness.upstreams[0].request(50)
        harness.upstreams[0].emit(50)
        recorder.on_element = lambda: recorder.request(1) if recorder.received < 51 else None
        recorder.request(1)
        assert recorder.elements == list(range(1, 52))
        assert recorder.deepest == 1


async def test_an_element_inside_on_next_goes_on_after_it() -> None:
    """If the subscriber makes the source signal, as with a topic,
    downstream signals stay serial.
    """
    async with OperatorHarness() as harness:
        operator, _ = one_at_a_time()
        recorder = harness.run(operator)
        upstream = harness.upstreams[0]
        upstream.request(10)
        recorder.request(9)
        recorder.on_element = lambda: upstream.emit() if recorder.received < 9 else None
        upstream.emit()
        assert recorder.elements == list(range(1, 10))
        assert recorder.deepest == 1


async def test_completion_inside_on_next_comes_after_held_elements() -> None:
    """The completion does not overtake the last element."""
    async with OperatorHarness() as harness:
        operator, _ = one_at_a_time()
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


async def test_upstream_is_requested_after_held_elements_have_gone_on() -> None:
    """Otherwise the stage could hold more than its bound for the length of a call."""
    async with OperatorHarness() as harness:
        operator, made = one_at_a_time()
        recorder = harness.run(operator)
        upstream = harness.upstreams[0]
        upstream.request(5)
        upstream.emit(5)
        made[0].held_at_request.clear()
        recorder.request(5)
        assert made[0].held_at_request == [0]


async def test_completion_waits_for_held_elements_and_needs_no_demand() -> None:
    """The completion follows the last held element without a further request."""
    async with OperatorHarness() as harness:
        operator, _ = one_at_a_time()
        recorder = harness.run(operator)
        harness.upstreams[0].request(1)
        harness.upstreams[0].emit()
        harness.upstreams[0].complete()
        assert recorder.signals == []
        recorder.request(1)
        assert recorder.signals == [("next", 1), ("complete",)]


async def test_completion_without_held_elements_passes_at_once() -> None:
    """An end needs no request (rule 1.5)."""
    async with OperatorHarness() as harness:
        operator, _ = one_at_a_time()
        recorder = harness.run(operator)
        harness.upstreams[0].complete()
        assert recorder.signals == [("complete",)]


async def test_upstream_is_not_called_after_its_completion() -> None:
    """Requests and cancels that come while held elements go on do not reach the ended source
    (rule 2.4).
    """
    async with OperatorHarness() as harness:
        operator, made = one_at_a_time()
        recorder = harness.run(operator)
        harness.upstreams[0].request(3)
        harness.upstreams[0].emit(3)
        harness.upstreams[0].complete()
        made[0].held_at_request.clear()
        recorder.request(1)
        recorder.cancel()
        assert made[0].held_at_request == []
        assert harness.breaches == []


async def test_an_error_drops_held_elements() -> None:
    """An error passes at once, without demand (rule 4.2)."""
    async with OperatorHarness() as harness:
        operator, made = one_at_a_time()
        recorder = harness.run(operator)
        harness.upstreams[0].request(2)
        harness.upstreams[0].emit(2)
        error = ScriptedError("now")
        harness.upstreams[0].fail(error)
        assert recorder.signals == [("error", error)]
        assert not made[0].held


@pytest.mark.parametrize("signal", ["on_complete", "request"])
async def test_signals_and_requests_after_a_cancel_have_no_effect(signal: str) -> None:
    """A late completion and a late request change nothing (rules 2.8, 3.6)."""
    async with OperatorHarness() as harness:
        operator, made = one_at_a_time()
        recorder = harness.run(operator)
        recorder.cancel()
        if signal == "request":
            made[0].request(1)
        else:
            made[0].on_complete()
        assert recorder.signals == []
        assert harness.upstreams[0].requests == []
        assert made[0]._demand == 0


async def test_a_cancel_inside_on_next_drops_held_elements() -> None:
    """If the subscriber cancels at the first of three requested elements, the other two are
    dropped and no more are requested.
    """
    async with OperatorHarness() as harness:
        operator, made = one_at_a_time()
        recorder = harness.run(operator)
        harness.upstreams[0].request(3)
        harness.upstreams[0].emit(3)
        made[0].held_at_request.clear()
        recorder.on_element = recorder.cancel
        recorder.request(3)
        assert recorder.elements == [1]
        assert made[0].held_at_request == []
        assert harness.held == 0


async def test_unbounded_demand_twice_is_unbounded() -> None:
    """Demand saturates (rule 3.17)."""
    async with OperatorHarness() as harness:
        operator, made = one_at_a_time()
        recorder = harness.run(operator)
        recorder.request(UNBOUNDED)
        recorder.request(UNBOUNDED)
        assert made[0]._demand == UNBOUNDED


async def test_a_subscriber_that_raises_does_not_block_later_elements() -> None:
    """The error goes to the caller, and the next request still passes the next element on."""
    async with OperatorHarness() as harness:
        operator, _ = one_at_a_time()
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
