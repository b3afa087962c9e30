"""`merge`, `zip`, `combine_latest`, `with_latest_from`:
which elements go on, their order, and the completion.
"""

from typing import Any

import pytest

from penstock.api import UNBOUNDED
from penstock.streams import Topic, empty, failed, ops, single, subscribe
from penstock.streams.ops._step import WINDOW
from tests.streams.ops.harness import OperatorHarness, ScriptedError

# -------------------------------------------------------------------------------------------- merge


async def test_merge_passes_elements_on_in_order_of_arrival() -> None:
    """With demand left, each element goes on at once."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.merge(harness.source()))
        main, other = harness.upstreams
        recorder.request(10)
        for upstream in (main, other, other, main):
            upstream.emit()
        assert recorder.elements == [1, 2, 3, 4]


async def test_waiting_sources_of_merge_take_turns() -> None:
    """A source with three waiting elements does not delay the element of another source."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.merge(harness.source("a"), harness.source("b")))
        main, a, b = harness.upstreams
        recorder.request(4)
        a.emit(4)  # goes on at once and uses up the demand
        main.emit(3)
        b.emit(1)
        recorder.request(4)
        assert recorder.elements[4:] == [5, 8, 6, 7]


async def test_merge_refills_each_source_in_halves_of_the_window() -> None:
    """A source gets one request for eight elements,
    and at the end of the demand one for the rest.
    """
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


async def test_merge_passes_demand_to_every_source_at_once() -> None:
    """A hot source drops elements without demand, so a request must not be delayed."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.merge(harness.source()))
        for _ in range(3):
            recorder.request(1)
        assert [upstream.requests for upstream in harness.upstreams] == [[1, 1, 1], [1, 1, 1]]


async def test_merge_completes_after_the_last_source_and_the_last_element() -> None:
    """Waiting elements of a completed source are still passed on."""
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


async def test_an_error_drops_the_waiting_elements_of_merge() -> None:
    """An error passes without demand, and no waiting element follows it."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.merge(harness.source()))
        stage: Any = recorder._subscription
        main, other = harness.upstreams
        recorder.request(1)
        main.emit()
        other.emit()
        assert len(stage._ready) == 1
        main.fail(error := ScriptedError())
        assert recorder.signals == [("next", 1), ("error", error)]
        assert other.cancelled
        assert harness.held == 0
        assert len(stage._ready) == 0


async def test_merge_of_topics_loses_no_element_with_demand() -> None:
    """Elements of two hot sources arrive completely and in order."""
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


# ---------------------------------------------------------------------------------------------- zip


async def test_zip_pairs_elements_by_position() -> None:
    """The first element goes with the first, the second with the second.
    An element waits for its partners.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.zip(harness.source()))
        main, other = harness.upstreams
        recorder.request(5)
        main.emit(2)
        assert recorder.elements == []
        other.emit(2)
        assert recorder.elements == [(1, 3), (2, 4)]


async def test_zip_completes_with_the_last_element_of_an_ended_source() -> None:
    """The tuple with that element also completes the stream, without demand. The other source is
    cancelled, without a further request.
    """
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


async def test_zip_completes_as_soon_as_one_source_is_empty() -> None:
    """An empty source makes tuples impossible. Sources after it are not subscribed to."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.zip(empty(), harness.source("never")))
        assert recorder.kinds == ["complete"]
        assert [upstream.name for upstream in harness.upstreams] == ["main"]
        assert harness.upstreams[0].cancelled


async def test_zip_requests_no_element_without_a_partner() -> None:
    """After the end of one source, the others are asked for as many elements as that source has
    waiting, and then cancelled.
    """
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


async def test_zip_gives_the_rows_of_the_builtin_zip() -> None:
    """It gives the same rows as Python's zip, for sources of several kinds."""
    piped = ops.pipe([1, 2, 3], ops.zip(iter("abc"), lambda: iter([1.0, 2.0])))
    async with subscribe(piped) as stream:
        assert [row async for row in stream] == [(1, "a", 1.0), (2, "b", 2.0)]


async def test_zip_fails_at_the_first_error_of_a_source() -> None:
    """Waiting elements are dropped."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.zip(harness.source()))
        main, other = harness.upstreams
        recorder.request(2)
        main.emit(2)
        other.fail(error := ScriptedError())
        assert recorder.signals == [("error", error)]
        assert main.cancelled


# ----------------------------------------------------------------------------------- combine_latest


async def test_combine_latest_makes_a_tuple_for_each_element_after_the_first_tuple() -> None:
    """Before the first tuple a newer element of a source replaces its older one."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.combine_latest(harness.source()))
        main, other = harness.upstreams
        recorder.request(10)
        main.emit(2)
        other.emit()
        main.emit()
        other.emit(2)
        assert recorder.elements == [(2, 3), (4, 3), (4, 5), (4, 6)]


async def test_combine_latest_holds_elements_without_demand_in_order_of_arrival() -> None:
    """After the first tuple no element is dropped: each makes its tuple when it is requested."""
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


async def test_combine_latest_holds_an_element_that_has_no_demand() -> None:
    """An element of any source waits for demand."""
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


async def test_combine_latest_keeps_the_last_element_of_a_completed_source() -> None:
    """The stream completes with the last source."""
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


async def test_combine_latest_completes_if_a_source_ends_without_an_element() -> None:
    """No tuple is possible any more, so the other sources are cancelled. This needs no demand."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.combine_latest(harness.source()))
        main, other = harness.upstreams
        recorder.request(5)
        main.emit(3)
        other.complete()
        assert recorder.kinds == ["complete"]
        assert main.cancelled


async def test_combine_latest_completes_after_waiting_elements() -> None:
    """The completion of a source does not overtake its elements."""
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


async def test_combine_latest_of_two_branches_of_one_topic_does_not_deadlock() -> None:
    """While one branch has not given its first element, the other one must not block `publish`."""
    topic = Topic[int]()
    seldom = ops.pipe(topic, ops.filter(lambda n: n >= 100))
    async with subscribe(ops.pipe(topic, ops.combine_latest(seldom)), demand=4) as stream:
        for n in range(101):
            await topic.publish(n)
        assert await anext(stream) == (100, 100)


async def test_combine_latest_fails_at_the_first_error_of_a_source() -> None:
    """An error does not wait for tuples."""
    async with subscribe(
        ops.pipe(single(1), ops.combine_latest(single(2), failed(error := ScriptedError())))
    ) as stream:
        with pytest.raises(ScriptedError) as caught:
            await anext(stream)
    assert caught.value is error


# --------------------------------------------------------------------------------- with_latest_from


async def test_with_latest_from_joins_each_element_with_the_latest_of_the_others() -> None:
    """Elements of the others make no tuple of their own."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.with_latest_from(harness.source("a"), harness.source("b")))
        main, a, b = harness.upstreams
        recorder.request(10)
        a.emit()
        b.emit()
        main.emit()
        a.emit(2)
        main.emit(2)
        assert recorder.elements == [(3, 1, 2), (6, 5, 2), (7, 5, 2)]


async def test_with_latest_from_requests_from_the_source_when_each_other_has_an_element() -> None:
    """So no element of the source is left out."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.with_latest_from(harness.source("a"), harness.source("b")))
        main, a, b = harness.upstreams
        assert [upstream.requests for upstream in harness.upstreams] == [[], [], []]
        recorder.request(3)
        recorder.request(2)
        assert [upstream.requests for upstream in harness.upstreams] == [[], [16], [16]]
        a.emit()
        assert main.requests == []
        b.emit()
        assert main.requests == [5]
        recorder.request(4)
        assert main.requests == [5, 4]


async def test_the_other_sources_of_with_latest_from_run_at_their_own_pace() -> None:
    """They get more demand when half of it is used, also
    when downstream has requested nothing more.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.with_latest_from(harness.source("a")))
        main, a = harness.upstreams
        recorder.request(1)
        a.emit(7)
        assert a.requests == [16]
        a.emit(1)
        assert a.requests == [16, 8]
        main.emit()
        a.emit(16)
        assert a.requests == [16, 8, 8, 8]
        assert recorder.elements == [(9, 8)]
        assert harness.held == 1


async def test_with_latest_from_keeps_the_last_element_of_an_ended_source() -> None:
    """An ended other source gives its last element to every tuple.
    The stream ends with the source.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.with_latest_from(harness.source("a")))
        main, a = harness.upstreams
        recorder.request(10)
        a.emit()
        a.complete()
        main.emit(2)
        main.complete()
        assert recorder.signals == [("next", (2, 1)), ("next", (3, 1)), ("complete",)]


async def test_with_latest_from_completes_if_no_tuple_is_possible() -> None:
    """If another source completes without an element, the stream completes,
    and the source is cancelled.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.with_latest_from(harness.source("a"), harness.source("b")))
        main, a, b = harness.upstreams
        recorder.request(10)
        a.emit()
        b.complete()
        assert recorder.kinds == ["complete"]
        assert main.cancelled
        assert a.cancelled


@pytest.mark.parametrize("failing", [0, 1])
async def test_an_error_of_any_source_ends_with_latest_from(failing: int) -> None:
    """The other source is cancelled."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.with_latest_from(harness.source("a")))
        recorder.request(10)
        harness.upstreams[1].emit()
        harness.upstreams[failing].fail(error := ScriptedError())
        assert recorder.signals == [("error", error)]
        assert harness.upstreams[1 - failing].cancelled


async def test_with_latest_from_over_sources_that_answer_inside_request() -> None:
    """The other source runs to its end first, so every tuple has its last element.
    Nothing recurses.
    """
    async with OperatorHarness() as harness:
        harness.answers_in_request, harness.source_length = True, 40
        recorder = harness.run(ops.with_latest_from(harness.source("a")))
        recorder.request(UNBOUNDED)
        assert recorder.elements == [(number, 40) for number in range(41, 81)]
        assert recorder.kinds[-1] == "complete"
        assert recorder.deepest == 1
