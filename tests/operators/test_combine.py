"""`merge`, `zip`, `combine_latest`: which elements go on, in what order, and when that is all."""

from typing import Any

import pytest

from penstock import operators as ops
from penstock.core import Topic, empty, failed, single, subscribe
from penstock.operators._step import WINDOW
from tests.operators.harness import OperatorHarness, ScriptedError

# ---------------------------------------------------------------------------------------------------------------- merge


async def test_merge_passes_on_what_arrives_as_it_arrives() -> None:
    """While there is demand, the order is that of arrival."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.merge(harness.source()))
        main, other = harness.upstreams
        recorder.request(10)
        for upstream in (main, other, other, main):
            upstream.emit()
        assert recorder.elements == [1, 2, 3, 4]


async def test_merge_lets_those_that_wait_take_turns() -> None:
    """However much one source has brought, the next element is another one's."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.merge(harness.source("a"), harness.source("b")))
        main, a, b = harness.upstreams
        recorder.request(4)
        a.emit(4)  # goes on at once
        main.emit(3)
        b.emit(1)
        recorder.request(4)
        assert recorder.elements[4:] == [5, 8, 6, 7]


async def test_merge_renews_each_source_in_halves_of_the_window() -> None:
    """Asking costs something, so it is done for eight elements at a time; at the end of the demand for what is left."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.merge(harness.source()))
        recorder.request(30)
        main = harness.upstreams[0]
        main.emit(7)
        assert main.requests == [WINDOW]
        main.emit(1)
        assert main.requests == [WINDOW, 8]
        main.answer()
        assert recorder.received == 30
        assert main.requested == 30


async def test_merge_tells_every_source_of_demand_at_once() -> None:
    """A source that drops what nobody asked for must not be kept in the dark."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.merge(harness.source()))
        for _ in range(3):
            recorder.request(1)
        assert [upstream.requests for upstream in harness.upstreams] == [[1, 1, 1], [1, 1, 1]]


async def test_merge_completes_when_the_last_source_has_and_nothing_waits() -> None:
    """A source that completes takes nothing away from what it brought before."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.merge(harness.source()))
        main, other = harness.upstreams
        recorder.request(1)
        main.emit()
        other.emit()
        other.complete()
        main.complete()
        assert recorder.kinds == ["next"]
        recorder.request(1)
        assert recorder.signals == [("next", 1), ("next", 2), ("complete",)]


async def test_merge_gives_what_an_error_overtook_to_nobody() -> None:
    """No demand is needed to hear of an error, and nothing that waited comes after it."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.merge(harness.source()))
        stage: Any = recorder._subscription
        main, other = harness.upstreams
        recorder.request(1)
        main.emit()
        other.emit()
        assert len(stage._ready) == 1
        main.fail(boom := ScriptedError())
        assert recorder.signals == [("next", 1), ("error", boom)]
        assert other.cancelled
        assert harness.held == 0
        assert len(stage._ready) == 0


async def test_merge_of_topics_loses_nothing_while_there_is_demand() -> None:
    """Hot sources that are published to in one go are heard in order."""
    first, second = Topic[int](), Topic[int]()
    async with subscribe(ops.pipe(first, ops.merge(second)), demand=64) as stream:
        for n in range(20):
            await first.publish(n)
            await second.publish(100 + n)
        first.complete()
        second.complete()
        elements = [element async for element in stream]
    assert [n for n in elements if n < 100] == list(range(20))
    assert [n for n in elements if n >= 100] == list(range(100, 120))


# ------------------------------------------------------------------------------------------------------------------ zip


async def test_zip_pairs_by_position() -> None:
    """The first with the first, the second with the second; an element waits for its partners."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.zip(harness.source()))
        main, other = harness.upstreams
        recorder.request(5)
        main.emit(2)
        assert recorder.elements == []
        other.emit(2)
        assert recorder.elements == [(1, 3), (2, 4)]


async def test_zip_completes_without_demand_when_an_ended_source_has_nothing_left() -> None:
    """With the tuple that uses its last element; the others are cancelled, and asked for nothing more."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.zip(harness.source()))
        main, other = harness.upstreams
        recorder.request(2)
        main.emit(2)
        main.complete()
        assert recorder.kinds == []
        other.emit(2)
        assert recorder.kinds == ["next", "next", "complete"]
        assert other.cancelled
        assert other.requested == 2


async def test_zip_is_over_as_soon_as_one_source_is_empty() -> None:
    """There is nothing to pair with; a source that comes after it is not even begun."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.zip(empty(), harness.source("never")))
        assert recorder.kinds == ["complete"]
        assert [upstream.name for upstream in harness.upstreams] == ["main"]
        assert harness.upstreams[0].cancelled


async def test_zip_asks_nobody_for_an_element_without_a_partner() -> None:
    """Where a source has ended, the others are asked for as many elements as it has left, and then cancelled."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.zip(harness.source()))
        main, other = harness.upstreams
        recorder.request(100)
        other.emit(WINDOW)
        other.complete()
        main.emit(WINDOW)
        assert recorder.received == WINDOW
        assert recorder.kinds[-1] == "complete"
        assert main.requests == [WINDOW]


async def test_zip_of_several_sources_is_what_zip_is() -> None:
    """The same rows as Python's, with sources of every kind."""
    piped = ops.pipe([1, 2, 3], ops.zip(iter("abc"), lambda: iter([1.0, 2.0])))
    async with subscribe(piped) as stream:
        assert [row async for row in stream] == [(1, "a", 1.0), (2, "b", 2.0)]


async def test_zip_fails_with_the_first_source_that_does() -> None:
    """Rows that could have been completed later are not."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.zip(harness.source()))
        main, other = harness.upstreams
        recorder.request(2)
        main.emit(2)
        other.fail(boom := ScriptedError())
        assert recorder.signals == [("error", boom)]
        assert main.cancelled


# ------------------------------------------------------------------------------------------------------- combine_latest


async def test_combine_latest_makes_a_tuple_for_each_element_once_all_have_begun() -> None:
    """Before that, a newer element replaces the older one of the same source."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.combine_latest(harness.source()))
        main, other = harness.upstreams
        recorder.request(10)
        main.emit(2)
        other.emit()
        main.emit()
        other.emit(2)
        assert recorder.elements == [(2, 3), (4, 3), (4, 5), (4, 6)]


async def test_combine_latest_holds_what_arrives_without_demand_in_order_of_arrival() -> None:
    """Nothing is dropped once all have begun: each element makes its tuple when it is asked for."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.combine_latest(harness.source()))
        main, other = harness.upstreams
        recorder.request(3)
        for upstream in (main, other, main, other, other, main):
            upstream.emit()
        assert recorder.elements == [(1, 2), (3, 2), (3, 4)]
        assert harness.held == 2 + 2
        recorder.request(1)
        assert recorder.elements[3:] == [(3, 5)]
        recorder.request(1)
        assert recorder.elements[4:] == [(6, 5)]


async def test_combine_latest_holds_the_first_tuple_until_it_is_asked_for() -> None:
    """Whichever element completes the first tuple waits for demand like any other."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.combine_latest(harness.source("a"), harness.source("b")))
        main, a, b = harness.upstreams
        recorder.request(1)
        for upstream in (main, a, b):
            upstream.emit()
        assert recorder.elements == [(1, 2, 3)]
        main.emit()
        a.emit()
        assert recorder.elements == [(1, 2, 3)]
        recorder.request(2)
        assert recorder.elements[1:] == [(4, 2, 3), (4, 5, 3)]


async def test_combine_latest_goes_on_with_the_last_element_of_a_source_that_has_completed() -> None:
    """It completes with the last source."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.combine_latest(harness.source()))
        main, other = harness.upstreams
        recorder.request(5)
        main.emit()
        main.complete()
        other.emit(2)
        assert recorder.elements == [(1, 2), (1, 3)]
        other.complete()
        assert recorder.kinds[-1] == "complete"


async def test_combine_latest_is_over_when_a_source_ends_without_an_element() -> None:
    """No tuple can ever be made: the others are cancelled, and no demand is needed."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.combine_latest(harness.source()))
        main, other = harness.upstreams
        recorder.request(5)
        main.emit(3)
        other.complete()
        assert recorder.kinds == ["complete"]
        assert main.cancelled


async def test_combine_latest_completes_after_what_waits() -> None:
    """A source's completion does not overtake its elements."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.combine_latest(harness.source()))
        main, other = harness.upstreams
        recorder.request(1)
        main.emit()
        other.emit()
        main.emit()
        main.complete()
        other.complete()
        assert recorder.kinds == ["next"]
        recorder.request(1)
        assert recorder.signals == [("next", (1, 2)), ("next", (3, 2)), ("complete",)]


async def test_combine_latest_of_a_source_and_itself_does_not_lock_up() -> None:
    """Two branches of one topic, of which one speaks seldom: until it does, the other must not stand in the way of `publish`."""
    topic = Topic[int]()
    seldom = ops.pipe(topic, ops.filter(lambda n: n >= 100))
    async with subscribe(ops.pipe(topic, ops.combine_latest(seldom)), demand=4) as stream:
        for n in range(101):
            await topic.publish(n)
        assert await anext(stream) == (100, 100)


async def test_combine_latest_fails_with_the_first_source_that_does() -> None:
    """An error overtakes tuples that wait."""
    async with subscribe(ops.pipe(single(1), ops.combine_latest(single(2), failed(boom := ScriptedError())))) as stream:
        with pytest.raises(ScriptedError) as caught:
            await anext(stream)
    assert caught.value is boom
