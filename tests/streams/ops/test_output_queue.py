"""`OutputQueue`: demand, waiting elements and the end of one subscriber. `share`, `window` and
`group_by` are tested with it too.
"""

from typing import Any

import pytest

from penstock.api import UNBOUNDED, SlowSubscriber
from penstock.streams import SlowPolicy
from penstock.streams.ops._output_queue import End, OutputQueue, Overflow, QueueOwner
from tests.streams.ops.harness import OperatorHarness, Recorder, ScriptedError


class Owner(QueueOwner):
    """Records what a queue tells it."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def on_queue_demand(self, queue: OutputQueue[Any]) -> None:
        self.told.append(f"demand {queue.demand}")

    def on_queue_closed(self, queue: OutputQueue[Any]) -> None:
        self.told.append("closed")


class Bench:
    """A queue with its owner and its subscriber."""

    def __init__(self, slow: SlowPolicy = SlowPolicy.WAIT, buffer: int = 2) -> None:
        self.owner = Owner()
        self.queue: OutputQueue[Any] = OutputQueue(self.owner, Overflow(slow, buffer))
        self.harness = OperatorHarness()
        self.recorder = Recorder(self.harness)

    def start(self, *, demand: int = 0) -> Recorder:
        self.queue.start(self.recorder)
        if demand:
            self.recorder.request(demand)
        return self.recorder

    def push(self, *elements: Any) -> None:
        for element in elements:
            self.queue.push(element)


async def test_elements_are_signalled_as_requested() -> None:
    """Elements wait for demand, in order, and none is signalled without it."""
    bench = Bench()
    bench.push(1)
    recorder = bench.start()
    bench.push(2)
    assert recorder.elements == []
    recorder.request(3)
    assert recorder.elements == [1, 2]
    bench.push(3, 4)
    assert recorder.elements == [1, 2, 3]
    assert bench.harness.breaches == []


async def test_the_room_is_the_demand_and_the_free_places() -> None:
    """It shrinks with each element that waits, and grows with each request."""
    bench = Bench(buffer=2)
    bench.start()
    assert bench.queue.room == 2
    bench.push(1)
    assert bench.queue.room == 1
    bench.recorder.request(4)
    assert bench.queue.room == 5


async def test_the_owner_is_told_of_demand_after_the_waiting_elements() -> None:
    """The demand that it sees is what is left."""
    bench = Bench()
    bench.push(1, 2)
    bench.start(demand=3)
    assert bench.owner.told == ["demand 1"]


async def test_a_request_inside_on_next_does_not_nest() -> None:
    """The loop further up the stack serves it (rule 3.3)."""
    bench = Bench(buffer=50)
    bench.push(*range(50))
    bench.recorder.on_element = lambda: bench.recorder.request(1)
    bench.start(demand=1)
    assert bench.recorder.elements == list(range(50))
    assert bench.recorder.deepest == 1


async def test_an_element_pushed_inside_on_next_waits_for_its_end() -> None:
    """Signals are serial (rule 1.3)."""
    bench = Bench()
    recorder = bench.start(demand=5)

    def push_more() -> None:
        recorder.on_element = None
        bench.push(2, 3)
        assert recorder.elements == [1]

    recorder.on_element = push_more
    bench.push(1)
    assert recorder.elements == [1, 2, 3]
    assert recorder.deepest == 1


async def test_unbounded_demand_is_not_used_up() -> None:
    """2^63-1 stays what it is (rule 3.17)."""
    bench = Bench()
    bench.start(demand=UNBOUNDED)
    bench.push(*range(10))
    assert bench.queue.demand == UNBOUNDED


@pytest.mark.parametrize(
    ("slow", "kept"),
    [
        (SlowPolicy.WAIT, [1, 2, 3, 4]),
        (SlowPolicy.DROP_OLDEST, [3, 4]),
        (SlowPolicy.DROP_NEWEST, [1, 2]),
        (SlowPolicy.FAIL, []),
    ],
)
async def test_each_policy_keeps_the_right_elements(slow: SlowPolicy, kept: list[int]) -> None:
    """Four elements arrive and two have room. With WAIT the owner sees to it that this does not
    happen, and nothing is dropped.
    """
    bench = Bench(slow, 2)
    recorder = bench.start()
    bench.push(1, 2, 3, 4)
    recorder.request(10)
    assert recorder.elements == kept


async def test_latest_keeps_the_newest_element() -> None:
    """Its buffer is one element."""
    bench = Bench(SlowPolicy.LATEST, 1)
    bench.push(1, 2, 3)
    bench.start(demand=5)
    assert bench.recorder.elements == [3]


async def test_fail_ends_a_subscriber_that_lags_too_far() -> None:
    """The error has the bound, and the owner is told."""
    bench = Bench(SlowPolicy.FAIL, 2)
    recorder = bench.start()
    bench.push(1, 2, 3, 4)
    assert isinstance(recorder.error, SlowSubscriber)
    assert recorder.error.limit == "buffer"
    assert recorder.error.value == 2
    assert bench.owner.told == ["closed"]


async def test_a_completion_waits_for_elements_and_an_error_does_not() -> None:
    """Errors overtake (rule 4.2)."""
    for error, expected in (
        (None, ["next", "next", "complete"]),
        (ScriptedError(), ["next", "error"]),
    ):
        bench = Bench()
        recorder = bench.start(demand=1)
        bench.push(1, 2)
        bench.queue.end(End(error))
        recorder.request(1)
        assert recorder.kinds == expected
        assert bench.owner.told[-1] == "closed"


async def test_an_end_before_the_subscriber_reaches_it_after_the_elements() -> None:
    """The queue keeps both until there is a subscriber."""
    bench = Bench()
    bench.push(1)
    bench.queue.end(End(None))
    assert not bench.queue.is_closed
    bench.start(demand=1)
    assert bench.recorder.signals == [("next", 1), ("complete",)]
    assert bench.queue.is_closed


@pytest.mark.parametrize("error", [None, ScriptedError()])
async def test_an_end_inside_on_next_follows_it(error: Any) -> None:
    """It is signalled when on_next has returned (rule 1.3)."""
    bench = Bench()
    recorder = bench.start(demand=5)

    def end() -> None:
        bench.queue.end(End(error))
        assert recorder.kinds == ["next"]

    recorder.on_element = end
    bench.push(1, 2)
    assert recorder.kinds == ["next", "complete" if error is None else "error"]


async def test_a_cancel_drops_the_waiting_elements() -> None:
    """No signal follows, and the owner is told once."""
    bench = Bench()
    recorder = bench.start()
    bench.push(1, 2)
    recorder.cancel()
    recorder.cancel()
    bench.queue.request(1)
    bench.push(3)
    bench.queue.end(End(None))
    assert recorder.signals == []
    assert bench.owner.told == ["closed"]


async def test_a_cancel_inside_on_next_stops_the_loop() -> None:
    """The elements that wait are dropped."""
    bench = Bench()
    bench.push(1, 2)
    bench.recorder.on_element = bench.recorder.cancel
    bench.start(demand=5)
    assert bench.recorder.elements == [1]
