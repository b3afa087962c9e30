"""`batch`, and the three operators that relax demand: `buffer`, `drop`, `latest`."""

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from penstock import ops
from penstock.api import UNBOUNDED, PublisherStopped, UsageError
from tests.streams.ops._harness_actions import answer_at_once, close_nursery, stop_nursery
from tests.streams.ops.harness import OperatorHarness, ScriptedError, clear_tracebacks

# --- batch without a time


async def test_batch_passes_on_full_lists_and_a_shorter_last_one() -> None:
    """Seven elements in batches of three make two full lists and a list of one."""
    assert await penstock.collect(penstock.pipe(range(7), ops.batch(3))) == [
        [0, 1, 2],
        [3, 4, 5],
        [6],
    ]


async def test_batch_of_an_empty_source_gives_no_list() -> None:
    """An empty list is never passed on."""
    assert await penstock.collect(penstock.pipe([], ops.batch(3))) == []


@pytest.mark.parametrize(
    ("demand", "requested"), [(1, 5), (3, 15), (2**61, UNBOUNDED), (UNBOUNDED, UNBOUNDED)]
)
async def test_batch_requests_count_elements_per_list(demand: int, requested: int) -> None:
    """Demand is multiplied by `count` and saturates."""
    async with OperatorHarness() as harness:
        harness.run(ops.batch(5)).request(demand)
        assert harness.upstreams[0].requests == [requested]


async def test_batch_requests_nothing_without_demand_and_holds_less_than_a_list() -> None:
    """The elements of a list that is not full are held."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(4))
        assert harness.upstreams[0].requests == []
        recorder.request(2)
        harness.upstreams[0].emit(3)
        assert recorder.elements == []
        assert harness.held == 3
        harness.upstreams[0].emit()
        assert recorder.elements == [[1, 2, 3, 4]]
        assert harness.held == 0


@pytest.mark.parametrize("seconds", [None, 5.0])
async def test_batch_drops_a_short_list_on_an_error(seconds: float | None) -> None:
    """An error passes at once (rule 4.2)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(3, seconds))
        recorder.request(2)
        harness.upstreams[0].emit(2)
        stage = harness.upstreams[0]._subscriber
        error = ScriptedError("now")
        harness.upstreams[0].fail(error)
        assert recorder.signals == [("error", error)]
        assert stage is not None
        assert harness.held == 0


@pytest.mark.parametrize("seconds", [None, 5.0])
async def test_batch_drops_a_short_list_on_a_cancel(seconds: float | None) -> None:
    """The cancel goes upstream."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(3, seconds))
        recorder.request(2)
        harness.upstreams[0].emit(2)
        stage = harness.upstreams[0]._subscriber
        recorder.cancel()
        assert harness.upstreams[0].cancelled
        assert recorder.signals == []
        assert stage is not None
        assert harness.held == 0


@pytest.mark.parametrize("seconds", [None, 5.0])
async def test_batch_passes_a_short_list_on_at_completion(seconds: float | None) -> None:
    """The last list may be shorter than `count`."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(3, seconds))
        recorder.request(2)
        harness.upstreams[0].emit(4)
        harness.upstreams[0].complete()
        assert recorder.signals == [("next", [1, 2, 3]), ("next", [4]), ("complete",)]


@pytest.mark.parametrize("seconds", [None, 5.0])
async def test_a_cancel_inside_the_last_on_next_of_batch_suppresses_completion(
    seconds: float | None,
) -> None:
    """No signal follows the cancel (rule 1.8)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(3, seconds))
        recorder.request(2)
        harness.upstreams[0].emit()
        recorder.on_element = recorder.cancel
        harness.upstreams[0].complete()
        assert recorder.signals == [("next", [1])]


@pytest.mark.parametrize("seconds", [None, 5.0])
@pytest.mark.parametrize("demand", [1, 2, UNBOUNDED])
async def test_batch_of_a_synchronous_source(seconds: float | None, demand: int) -> None:
    """A source that signals inside `request` gives the same lists,
    for every size of the requests.
    """
    async with OperatorHarness() as harness:
        answer_at_once(harness)
        recorder = harness.run(ops.batch(3, seconds))
        if demand < UNBOUNDED:
            recorder.on_element = lambda: (
                recorder.request(demand) if recorder.received < 10 else None
            )
        recorder.request(demand)
        assert recorder.elements[:10] == [[n, n + 1, n + 2] for n in range(1, 31, 3)]


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "3", None])
async def test_batch_refuses_a_wrong_count(count: Any) -> None:
    """The error names the operator and says what to give."""
    with pytest.raises(
        UsageError, match=r"^batch: count=.*; give how many elements, an integer of at least 1"
    ):
        ops.batch(count)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), "1", True])
async def test_batch_refuses_a_wrong_time(seconds: Any) -> None:
    """A time is a finite number above 0."""
    with pytest.raises(
        UsageError, match=r"batch\(seconds=…\) is .*; it is a time in seconds, above 0, and finite"
    ):
        ops.batch(3, seconds)


@settings(deadline=None)
@given(length=st.integers(0, 40), count=st.integers(1, 12), demand=st.integers(1, 9))
def test_batch_slices_the_source(length: int, count: int, demand: int) -> None:
    """For every length, count and demand the lists are the slices of the source."""

    async def main() -> None:
        async with penstock.subscribe(
            penstock.pipe(range(length), ops.batch(count)), demand=demand
        ) as stream:
            lists = [part async for part in stream]
        assert lists == [list(range(length))[at : at + count] for at in range(0, length, count)]

    trio.run(main)


# --- batch with a time


async def test_a_short_list_goes_on_when_its_time_is_over(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The time begins with the first element of the list, not with the last one
    or with the list before.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(5, 2))
        recorder.request(3)
        await trio.sleep(10)
        harness.upstreams[0].emit()
        await trio.sleep(1)
        harness.upstreams[0].emit()
        await trio.sleep(0.75)
        assert recorder.elements == []
        await trio.sleep(0.25)
        await harness.settle()
        assert recorder.elements == [[1, 2]]


async def test_a_full_list_goes_on_at_once_and_the_next_one_has_its_own_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The time of the next list begins with its own first element."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(2, 4))
        recorder.request(3)
        harness.upstreams[0].emit()
        await trio.sleep(3)
        harness.upstreams[0].emit()
        assert recorder.elements == [[1, 2]]
        harness.upstreams[0].emit()
        await trio.sleep(3)
        assert recorder.elements == [[1, 2]]
        await trio.sleep(1)
        await harness.settle()
        assert recorder.elements == [[1, 2], [3]]


async def test_an_empty_list_never_goes_on(autojump_clock: trio.testing.MockClock) -> None:
    """Without elements no list is passed on, even after a long time."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(2, 1))
        recorder.request(5)
        harness.upstreams[0].emit()
        await trio.sleep(100)
        assert recorder.elements == [[1]]


async def test_a_short_list_without_demand_goes_on_with_the_next_request(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Elements under way after a short list arrive without demand and wait. If their time is
    over, the next request gets them at once.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(3, 1))
        recorder.request(1)
        harness.upstreams[0].emit()
        await trio.sleep(2)
        harness.upstreams[0].emit(2)
        await trio.sleep(2)
        assert recorder.elements == [[1]]
        recorder.request(1)
        assert recorder.elements == [[1], [2, 3]]


async def test_a_request_does_not_shorten_the_time_of_a_list(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A list that is not full waits for its time, even with demand."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(3, 2))
        recorder.request(1)
        harness.upstreams[0].emit()
        await trio.sleep(3)
        harness.upstreams[0].emit()
        await trio.sleep(1)
        recorder.request(1)
        assert recorder.elements == [[1]]
        await trio.sleep(1)
        await harness.settle()
        assert recorder.elements == [[1], [2]]


async def test_timed_batch_requests_at_most_two_lists(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Upstream is asked for at most 2·count elements,
    and after a short list only for the missing ones.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(10, 1))
        recorder.request(1)
        assert harness.upstreams[0].requests == [10]
        recorder.request(UNBOUNDED)
        assert harness.upstreams[0].requests == [10, 10]
        harness.upstreams[0].emit(4)
        await trio.sleep(1)
        await harness.settle()
        assert recorder.elements == [[1, 2, 3, 4]]
        assert harness.upstreams[0].requests == [10, 10, 4]


async def test_timed_batch_holds_at_most_two_lists(autojump_clock: trio.testing.MockClock) -> None:
    """Short lists use up demand, and yet the elements under way stay within 2·count."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(10, 1))
        recorder.request(50)
        for _ in range(50):
            harness.upstreams[0].emit()
            await trio.sleep(1)
            await harness.settle()
        assert recorder.received == 50
        harness.upstreams[0].answer()
        assert harness.held == 18
        assert harness.upstreams[0].outstanding == 0
        recorder.request(2)
        assert [len(part) for part in recorder.elements[50:]] == [10]
        await trio.sleep(1)
        await harness.settle()
        assert [len(part) for part in recorder.elements[50:]] == [10, 8]


async def test_timed_batch_passes_on_held_lists_before_it_completes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """After the completion of the source, lists go on when they are requested, without their
    time. The completion comes last.
    """
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(3, 1))
        recorder.request(2)
        for _ in range(2):
            harness.upstreams[0].emit()
            await trio.sleep(1)
            await harness.settle()
        harness.upstreams[0].emit(4)
        harness.upstreams[0].complete()
        assert recorder.kinds == ["next", "next"]
        recorder.request(1)
        assert recorder.elements[2:] == [[3, 4, 5]]
        recorder.request(1)
        assert recorder.signals[3:] == [("next", [6]), ("complete",)]


async def test_a_cancelled_nursery_fails_timed_batch(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """If the timer is cancelled from outside, the subscriber gets PublisherStopped,
    and upstream is cancelled.
    """
    async with OperatorHarness() as harness:
        recorder = await stop_nursery(
            harness,
            ops.batch(3, 5),
            lambda recorder: (recorder.request(1), harness.upstreams[0].emit()),
        )
        assert isinstance(recorder.error, PublisherStopped)
        assert "batch(3, seconds=5) was stopped" in str(recorder.error)
        assert harness.upstreams[0].cancelled


async def test_a_closed_nursery_fails_timed_batch() -> None:
    """If no timer can be started, the stream fails:
    otherwise a short list could be held without limit.
    """
    async with OperatorHarness() as harness:
        await close_nursery(harness)
        recorder = harness.run(ops.batch(3, 5))
        recorder.request(1)
        harness.upstreams[0].emit()
        assert isinstance(recorder.error, UsageError)
        assert harness.upstreams[0].cancelled
        clear_tracebacks(recorder.error)


async def test_timed_batch_of_1_starts_no_timer() -> None:
    """Lists of one element are always full."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(1, 5))
        recorder.request(3)
        harness.upstreams[0].emit(3)
        assert recorder.elements == [[1], [2], [3]]
        assert harness.scope.running == 0


async def test_timed_batch_drops_full_lists_on_a_cancel(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A full list without demand is dropped too."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(2, 1))
        recorder.request(2)
        for _ in range(2):
            harness.upstreams[0].emit()
            await trio.sleep(1)
            await harness.settle()
        harness.upstreams[0].emit(2)
        stage = harness.upstreams[0]._subscriber
        assert harness.held == 2
        recorder.cancel()
        assert stage is not None
        assert harness.held == 0


async def test_timed_batch_ignores_elements_after_a_cancel() -> None:
    """An element that arrives late, against the rules, is not held (rule 2.8)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(2, 5))
        recorder.request(1)
        stage = harness.upstreams[0]._subscriber
        assert stage is not None
        recorder.cancel()
        stage.on_next(harness.token())
        assert harness.held == 0


@settings(deadline=None, max_examples=60)
@given(
    pauses=st.lists(st.sampled_from([0.0, 0.5, 1.5, 4.0]), max_size=25),
    count=st.integers(1, 5),
    demand=st.integers(1, 4),
)
def test_timed_batch_follows_its_model(pauses: list[float], count: int, demand: int) -> None:
    """For every sequence of pauses, the lists are those of a plain loop over (time, element)."""

    async def source() -> Any:
        for number, pause in enumerate(pauses):
            await trio.sleep(pause)
            yield number

    async def main() -> None:
        async with penstock.subscribe(
            penstock.pipe(source, ops.batch(count, 2.25)), demand=demand
        ) as stream:
            assert [part async for part in stream] == expected_lists(pauses, count, 2.25)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def expected_lists(pauses: list[float], count: int, seconds: float) -> list[list[int]]:
    """The model: a list ends when it is full, or when the next element comes after its time."""
    now, due, lists = 0.0, -1.0, []
    for number, pause in enumerate(pauses):
        now += pause
        if not lists or len(lists[-1]) == count or now > due:
            lists.append([])
            due = now + seconds
        lists[-1].append(number)
    return lists


# --- buffer


async def test_buffer_requests_its_size_before_any_demand() -> None:
    """At on_subscribe it requests its size, and then each downstream demand."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.buffer(4))
        assert harness.upstreams[0].requests == [4]
        recorder.request(3)
        assert harness.upstreams[0].requests == [4, 3]


async def test_buffer_holds_up_to_its_size_and_loses_no_element() -> None:
    """Elements without demand are held, up to the size, and passed on in order."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.buffer(4))
        harness.upstreams[0].answer()
        assert harness.held == 4
        recorder.request(2)
        assert recorder.elements == [1, 2]
        harness.upstreams[0].answer()
        assert harness.held == 4
        recorder.request(5)
        harness.upstreams[0].answer()
        assert recorder.elements == [1, 2, 3, 4, 5, 6, 7]
        assert harness.peak == 4


async def test_buffer_adds_demand_inside_on_subscribe_to_its_first_request() -> None:
    """A request inside on_subscribe goes upstream together with the size."""
    async with OperatorHarness() as harness:
        subscribe = harness.recorder.on_subscribe
        harness.recorder.on_subscribe = lambda subscription: (
            subscribe(subscription),
            harness.recorder.request(3),
        )  # type: ignore[method-assign, assignment, func-returns-value]  # another behaviour for this recorder only
        harness.run(ops.buffer(4))
        assert harness.upstreams[0].requests == [7]


@pytest.mark.parametrize("make", [lambda: ops.buffer(4), ops.drop, ops.latest])
async def test_a_cancel_inside_on_subscribe_prevents_requests(make: Callable[[], Any]) -> None:
    """A subscriber that cancels at once causes no work."""
    async with OperatorHarness() as harness:
        subscribe = harness.recorder.on_subscribe
        harness.recorder.on_subscribe = lambda subscription: (
            subscribe(subscription),
            harness.recorder.cancel(),
        )  # type: ignore[method-assign, assignment, func-returns-value]  # another behaviour for this recorder only
        harness.run(make())
        assert harness.upstreams[0].requests == []
        assert harness.upstreams[0].cancelled


async def test_buffer_keeps_its_bound_over_a_synchronous_source() -> None:
    """With 100 elements requested inside on_next, and a source that signals inside `request`,
    at most 4 are held.
    """
    async with OperatorHarness() as harness:
        answer_at_once(harness)
        recorder = harness.run(ops.buffer(4))
        recorder.on_element = lambda: recorder.request(100) if recorder.received == 1 else None
        recorder.request(1)
        assert recorder.elements == list(range(1, 102))
        assert harness.peak == 4
        assert recorder.deepest == 1


async def test_buffer_holds_no_element_while_demand_is_left() -> None:
    """With demand left an element passes straight through."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.buffer(4))
        recorder.request(10)
        harness.upstreams[0].emit(6)
        assert recorder.received == 6
        assert harness.peak == 0


async def test_buffer_passes_on_held_elements_before_it_completes() -> None:
    """The completion comes last."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.buffer(4))
        harness.upstreams[0].emit(2)
        harness.upstreams[0].complete()
        recorder.request(1)
        assert recorder.signals == [("next", 1)]
        recorder.request(1)
        assert recorder.signals == [("next", 1), ("next", 2), ("complete",)]


@pytest.mark.parametrize("make", [lambda: ops.buffer(4), ops.latest])
async def test_an_error_drops_held_elements(make: Callable[[], Any]) -> None:
    """An error passes at once (rule 4.2)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make())
        harness.upstreams[0].emit(2)
        error = ScriptedError("now")
        harness.upstreams[0].fail(error)
        assert recorder.signals == [("error", error)]
        assert harness.held == 0


@pytest.mark.parametrize("make", [lambda: ops.buffer(4), ops.drop, ops.latest])
async def test_a_cancel_drops_held_elements_and_goes_upstream(make: Callable[[], Any]) -> None:
    """An element that arrives late, against the rules, is not held either (rule 2.8)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make())
        harness.upstreams[0].emit(2)
        stage = harness.upstreams[0]._subscriber
        assert stage is not None
        recorder.cancel()
        stage.on_next(harness.token())
        assert harness.upstreams[0].cancelled
        assert harness.held == 0
        assert recorder.signals == []


@pytest.mark.parametrize("size", [0, -3, 2.0, False, None])
async def test_buffer_refuses_a_wrong_size(size: Any) -> None:
    """The error names the operator and says what to give."""
    with pytest.raises(
        UsageError, match=r"^buffer: size=.*; give how many elements, an integer of at least 1"
    ):
        ops.buffer(size)


@settings(deadline=None)
@given(
    size=st.integers(1, 6),
    steps=st.lists(
        st.one_of(st.tuples(st.just("request"), st.integers(1, 5)), st.just(("emit", 1))),
        max_size=60,
    ),
)
def test_buffer_follows_its_model(size: int, steps: list[tuple[str, int]]) -> None:
    """For every order of requests and elements: requested elements that arrived have gone on,
    and the others, at most `size`, are held.
    """

    async def main() -> None:
        async with OperatorHarness() as harness:
            recorder = harness.run(ops.buffer(size))
            upstream, requested, emitted = harness.upstreams[0], 0, 0
            for step, number in steps:
                if step == "request":
                    requested += number
                    recorder.request(number)
                elif upstream.outstanding:
                    emitted += 1
                    upstream.emit()
                assert upstream.requested == size + requested
                assert recorder.elements == list(range(1, min(requested, emitted) + 1))
                assert harness.held == max(0, emitted - requested) <= size

    trio.run(main)


# --- drop and latest


@pytest.mark.parametrize("make", [ops.drop, ops.latest])
async def test_drop_and_latest_request_everything_at_once(make: Callable[[], Any]) -> None:
    """Upstream demand is unbounded from on_subscribe on, independent of downstream requests."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make())
        assert harness.upstreams[0].requests == [UNBOUNDED]
        recorder.request(3)
        assert harness.upstreams[0].requests == [UNBOUNDED]


async def test_drop_leaves_out_elements_without_demand() -> None:
    """Of five elements the second and third have demand.
    The others go to on_drop, and none is held.
    """
    dropped: list[int] = []
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.drop(on_drop=lambda token: dropped.append(token.number)))
        harness.upstreams[0].emit()
        recorder.request(2)
        harness.upstreams[0].emit(4)
        assert recorder.elements == [2, 3]
        assert dropped == [1, 4, 5]
        assert harness.peak == 0


async def test_drop_does_not_report_elements_after_the_end() -> None:
    """An element that arrives late, against the rules, does not count as dropped (rule 2.8)."""
    dropped: list[Any] = []
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.drop(on_drop=dropped.append))
        stage = harness.upstreams[0]._subscriber
        assert stage is not None
        recorder.cancel()
        stage.on_next(harness.token())
        assert dropped == []


async def test_unbounded_demand_of_drop_is_never_used_up() -> None:
    """A second unbounded request leaves the demand unbounded."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.drop())
        recorder.request(UNBOUNDED)
        recorder.request(UNBOUNDED)
        harness.upstreams[0].emit(20)
        assert recorder.received == 20


async def test_latest_keeps_the_newest_element() -> None:
    """Without demand only the newest element is held; on_drop gets the replaced ones."""
    replaced: list[int] = []
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.latest(on_drop=lambda token: replaced.append(token.number)))
        harness.upstreams[0].emit(3)
        assert harness.held == 1
        recorder.request(2)
        assert recorder.elements == [3]
        harness.upstreams[0].emit(3)
        assert recorder.elements == [3, 4]
        recorder.request(1)
        assert recorder.elements == [3, 4, 6]
        assert replaced == [1, 2, 5]
        assert harness.peak == 1


async def test_latest_passes_on_its_element_before_it_completes() -> None:
    """The newest element can still be requested after the completion of the source."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.latest())
        harness.upstreams[0].emit(2)
        harness.upstreams[0].complete()
        assert recorder.signals == []
        recorder.request(1)
        assert recorder.signals == [("next", 2), ("complete",)]


@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_drop_passes_an_end_straight_through(end: str) -> None:
    """It holds no element that an end would have to wait for."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.drop())
        harness.upstreams[0].emit()
        getattr(harness.upstreams[0], end)()
        assert recorder.kinds == [{"complete": "complete", "fail": "error"}[end]]


@pytest.mark.parametrize("make", [ops.drop, ops.latest])
async def test_drop_and_latest_read_a_synchronous_source_to_its_end(
    make: Callable[..., Any],
) -> None:
    """A source that signals inside `request` gives all its elements during on_subscribe."""
    async with OperatorHarness() as harness:
        answer_at_once(harness)
        dropped: list[Any] = []
        harness.run(make(on_drop=lambda token: dropped.append(token.number)))
        assert harness.upstreams[0].sent == 300
        assert len(dropped) == 300 - harness.held


@pytest.mark.parametrize("make", [ops.drop, ops.latest])
async def test_an_on_drop_that_raises_ends_the_stream(make: Callable[..., Any]) -> None:
    """An error of on_drop becomes the error of the stream, upstream is cancelled,
    and no element is held.
    """
    error = ScriptedError("in on_drop")

    def refuse(_: Any) -> None:
        raise error

    async with OperatorHarness() as harness:
        recorder = harness.run(make(on_drop=refuse))
        harness.upstreams[0].emit(3)
        clear_tracebacks(error)
        assert recorder.signals == [("error", error)]
        assert harness.upstreams[0].cancelled
        assert harness.held == 0


@pytest.mark.parametrize("make", [ops.drop, ops.latest])
async def test_an_on_drop_that_returns_a_coroutine_ends_the_stream(
    make: Callable[..., Any],
) -> None:
    """The coroutine is closed, and the error names the mistake."""

    async def log(_: Any) -> None: ...

    async with OperatorHarness() as harness:
        recorder = harness.run(make(on_drop=lambda token: log(token.number)))
        harness.upstreams[0].emit(3)
        assert isinstance(recorder.error, UsageError)
        assert "so it is async" in str(recorder.error)


@pytest.mark.parametrize("make", [ops.drop, ops.latest])
async def test_on_drop_may_cancel_the_stream(make: Callable[..., Any]) -> None:
    """The function may cancel the stream that calls it."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make(on_drop=lambda _: recorder.cancel()))
        harness.upstreams[0].emit(3)
        assert recorder.signals == []
        assert harness.held == 0


async def an_async_function(_: Any) -> None: ...


@pytest.mark.parametrize("name", ["drop", "latest"])
@pytest.mark.parametrize("on_drop", ["text", 3, an_async_function])
async def test_on_drop_must_be_a_plain_function(name: str, on_drop: Any) -> None:
    """The error says why an async function is not accepted."""
    with pytest.raises(
        UsageError,
        match=name + r"\(on_drop=.*\): give a plain function of one element.*nothing would bound",
    ):
        getattr(ops, name)(on_drop=on_drop)


async def test_the_repr_is_the_text_of_the_call() -> None:
    """A repr shows what was written."""
    shown = [
        repr(operator)
        for operator in (ops.batch(3), ops.batch(3, 0.5), ops.buffer(2), ops.drop(), ops.latest())
    ]
    assert shown == [
        "<operator batch(3)>",
        "<operator batch(3, seconds=0.5)>",
        "<operator buffer(2)>",
        "<operator drop()>",
        "<operator latest()>",
    ]


# --- the operators that relax demand, read through a stream


async def read_every_tenth(
    source: penstock.Streamable[int], topic: penstock.Topic[int], read: Callable[..., Any]
) -> list[tuple[int, int]]:
    """Read ten elements, one every 160 ms, while `topic` publishes one every 10 ms. Return each
    with the newest number at that time.
    """
    seen: list[tuple[int, int]] = []
    async with trio.open_nursery() as nursery, penstock.subscribe(source) as stream:

        async def publish() -> None:
            for number in range(1_000):
                await topic.publish(number)
                await trio.sleep(0.01)

        nursery.start_soon(publish)
        await trio.sleep(0.005)  # the first element is published before the first read
        while len(seen) < 10:
            seen.append((await read(stream), topic.statistics().published - 1))
            await trio.sleep(0.16)
        nursery.cancel_scope.cancel()
    return seen


async def one_element(stream: penstock.Stream[int]) -> int:
    """Read by element."""
    return await anext(stream)


async def one_batch(stream: penstock.Stream[int]) -> int:
    """Read by batch, and return the last element of it."""
    return (await anext(stream.batches()))[-1]


BEHIND = {
    "alone": (ops.latest(),),
    "map": (ops.latest(), ops.map(lambda number: number)),
    "distinct": (ops.latest(), ops.distinct_until_changed()),
    "merge": (ops.latest(), ops.merge([])),
    "retry": (ops.latest(), ops.retry(2)),
}


@pytest.mark.parametrize("read", [one_element, one_batch])
@pytest.mark.parametrize("operators", BEHIND.values(), ids=BEHIND)
async def test_a_slow_reader_gets_the_newest_element_behind_latest(
    autojump_clock: trio.testing.MockClock, operators: Any, read: Any
) -> None:
    """At the default demand, from the first read on.
    The stream's own buffer holds no older element.
    """
    topic = penstock.Topic[int]()
    seen = await read_every_tenth(penstock.pipe(topic, *operators), topic, read)
    assert [number for number, _ in seen] == [newest for _, newest in seen]
    assert seen[-1][0] >= 129


@pytest.mark.parametrize("read", [one_element, one_batch])
async def test_a_slow_reader_gets_the_newest_element_of_a_topic_that_keeps_the_latest(
    autojump_clock: trio.testing.MockClock, read: Any
) -> None:
    """`SlowPolicy.LATEST` promises the same as `latest`."""
    topic = penstock.Topic[int](slow=penstock.SlowPolicy.LATEST)
    seen = await read_every_tenth(topic, topic, read)
    assert [number for number, _ in seen] == [newest for _, newest in seen]


@pytest.mark.parametrize("read", [one_element, one_batch])
async def test_a_slow_reader_gets_an_element_that_came_after_it_asked_behind_drop(
    autojump_clock: trio.testing.MockClock, read: Any
) -> None:
    """`drop` keeps nothing. So the element is the first that is published after the reader
    asked, which is the newest then.
    """
    topic = penstock.Topic[int]()
    seen = await read_every_tenth(penstock.pipe(topic, ops.drop()), topic, read)
    assert [number for number, _ in seen] == [newest for _, newest in seen]


async def test_a_reader_that_comes_late_gets_the_newest_element_behind_latest() -> None:
    """130 elements are published before the first read; the first read gets the last of them."""
    topic = penstock.Topic[int]()
    async with penstock.subscribe(penstock.pipe(topic, ops.latest())) as stream:
        for number in range(130):
            await topic.publish(number)
        assert await anext(stream) == 129


async def test_a_demand_that_is_given_holds_older_elements_behind_latest() -> None:
    """The program asked for a buffer of that length, and gets it."""
    topic = penstock.Topic[int]()
    async with penstock.subscribe(penstock.pipe(topic, ops.latest()), demand=4) as stream:
        for number in range(130):
            await topic.publish(number)
        assert [await anext(stream) for _ in range(5)] == [0, 1, 2, 3, 129]


PREFETCH = {
    "latest": (0, (ops.latest(),)),
    "drop": (0, (ops.drop(),)),
    "debounce": (1, (ops.debounce(1.0),)),
    "sample": (1, (ops.sample(1.0),)),
    "behind an operator": (0, (ops.latest(), ops.take(3))),
    "joined": (0, (ops.merge(penstock.pipe([1], ops.latest())),)),
    "buffer": (256, (ops.latest(), ops.buffer(2))),
    "others": (256, (ops.map(str), ops.zip([1]), ops.flat_map(list))),
}


@pytest.mark.parametrize(("prefetch", "operators"), PREFETCH.values(), ids=PREFETCH)
def test_each_operator_says_how_much_to_prefetch(prefetch: int, operators: Any) -> None:
    """An operator passes on the prefetch of its source, or has its own. `buffer` begins anew:
    a buffer is what it is for.
    """
    assert penstock.pipe(range(3), *operators).prefetch == prefetch
