"""`ReattachingStage`: demand and signals of several sources in a row.
The tests of `retry` and `repeat` cover its use.
"""

from typing import Any

from penstock.api import UNBOUNDED
from penstock.streams.ops._resubscribe import ReattachingStage
from penstock.streams.ops._stage import StageOperator
from tests.streams.ops.harness import OperatorHarness, ScriptedError


class Attaches(ReattachingStage[Any]):
    """Lets a test attach the next source."""

    __slots__ = ()

    def attach_next(self, source: Any) -> None:
        self._attach(source)


def attaching() -> tuple[StageOperator, list[Attaches]]:
    """Return an operator, and the list of the stages that it has made."""
    made: list[Attaches] = []

    def make(downstream: Any, scope: Any) -> Attaches:
        made.append(Attaches(downstream, scope, "attaching"))
        return made[0]

    return StageOperator("attaching", make), made


async def test_the_next_source_gets_the_demand_that_is_left_in_one_request() -> None:
    """Five requested, two arrived: three are requested from the next source."""
    async with OperatorHarness() as harness:
        operator, made = attaching()
        recorder = harness.run(operator)
        recorder.request(2)
        recorder.request(3)
        harness.upstreams[0].emit(2)
        harness.upstreams[0].cancel()
        made[0].attach_next(harness.source())
        assert harness.upstreams[1].requests == [3]


async def test_unbounded_demand_reaches_the_next_source() -> None:
    """It is reduced by the elements that arrived, and stays practically unbounded."""
    async with OperatorHarness() as harness:
        operator, made = attaching()
        harness.run(operator).request(UNBOUNDED)
        harness.upstreams[0].emit(2)
        harness.upstreams[0].cancel()
        made[0].attach_next(harness.source())
        assert harness.upstreams[1].requests == [UNBOUNDED - 2]


async def test_a_source_that_is_attached_after_the_end_is_cancelled() -> None:
    """Its subscription is cancelled inside on_subscribe (rule 2.6)."""
    async with OperatorHarness() as harness:
        operator, made = attaching()
        recorder = harness.run(operator)
        recorder.cancel()
        made[0].attach_next(harness.source())
        assert harness.upstreams[1].cancelled
        assert harness.upstreams[1].requests == []


async def test_a_source_whose_attach_raises_fails_the_stream() -> None:
    """The subscriber gets the error; a task has no caller for it."""
    error = ScriptedError("attach")

    def refuse(_: Any) -> None:
        raise error

    async with OperatorHarness() as harness:
        operator, made = attaching()
        recorder = harness.run(operator)
        harness.upstreams[0].cancel()
        made[0]._upstream = type(
            "Ended", (), {"cancel": lambda self: None, "request": lambda self, n: None}
        )()
        made[0].attach_next(harness.source("raising", refuse))
        assert recorder.error is error
        error.__traceback__ = None
