"""`batch`, and the three ways of relaxing demand: `buffer`, `drop`, `latest`."""

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
from tests.operators._harness_actions import answer_at_once, close_nursery, stop_nursery
from tests.operators.harness import OperatorHarness, ScriptedError, clear_tracebacks

# --- batch by count


async def test_batch_passes_on_full_lists_and_a_shorter_last_one() -> None:
    """Seven elements in threes are two full lists and one of one."""
    assert await penstock.collect(penstock.pipe(range(7), ops.batch(3))) == [[0, 1, 2], [3, 4, 5], [6]]


async def test_batch_of_nothing_is_nothing() -> None:
    """An empty source gives no empty list."""
    assert await penstock.collect(penstock.pipe([], ops.batch(3))) == []


@pytest.mark.parametrize(("demand", "requested"), [(1, 5), (3, 15), (2**61, UNBOUNDED), (UNBOUNDED, UNBOUNDED)])
async def test_batch_asks_for_count_elements_per_list(demand: int, requested: int) -> None:
    """Demand is multiplied, and held at its top."""
    async with OperatorHarness() as harness:
        harness.run(ops.batch(5)).request(demand)
        assert harness.upstreams[0].requests == [requested]


async def test_batch_asks_for_nothing_unasked_and_holds_less_than_a_list() -> None:
    """Before a request nothing is asked for; what waits is what a list lacks."""
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
async def test_batch_drops_the_rest_on_an_error_which_passes_at_once(seconds: float | None) -> None:
    """An error overtakes a list that is not full (rule 4.2)."""
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
async def test_batch_drops_the_rest_on_a_cancel(seconds: float | None) -> None:
    """A cancel goes up, and a list that is not full is dropped."""
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
async def test_batch_passes_on_the_rest_on_completion(seconds: float | None) -> None:
    """The last list is as long as it is."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(3, seconds))
        recorder.request(2)
        harness.upstreams[0].emit(4)
        harness.upstreams[0].complete()
        assert recorder.signals == [("next", [1, 2, 3]), ("next", [4]), ("complete",)]


@pytest.mark.parametrize("seconds", [None, 5.0])
async def test_batch_says_no_more_when_the_last_list_makes_its_receiver_cancel(seconds: float | None) -> None:
    """Between the rest and the completion the subscriber may cancel: then there is silence (rule 1.8)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(3, seconds))
        recorder.request(2)
        harness.upstreams[0].emit()
        recorder.on_element = recorder.cancel
        harness.upstreams[0].complete()
        assert recorder.signals == [("next", [1])]


@pytest.mark.parametrize("seconds", [None, 5.0])
@pytest.mark.parametrize("demand", [1, 2, UNBOUNDED])
async def test_batch_over_a_source_that_answers_at_once(seconds: float | None, demand: int) -> None:
    """A source that signals inside `request` gives the same lists, whatever is asked for at a time."""
    async with OperatorHarness() as harness:
        answer_at_once(harness)
        recorder = harness.run(ops.batch(3, seconds))
        if demand < UNBOUNDED:
            recorder.on_element = lambda: recorder.request(demand) if recorder.received < 10 else None
        recorder.request(demand)
        assert recorder.elements[:10] == [[n, n + 1, n + 2] for n in range(1, 31, 3)]


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "3", None])
async def test_batch_refuses_a_count_that_is_none(count: Any) -> None:
    """The message names the operator and what to give."""
    with pytest.raises(UsageError, match=r"batch\(.*\): give how many elements, an integer of at least 1"):
        ops.batch(count)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), "1", True])
async def test_batch_refuses_a_time_that_is_none(seconds: Any) -> None:
    """A time is a finite number above 0."""
    with pytest.raises(UsageError, match=r"batch\(seconds=…\) is .*; it is a time in seconds, above 0, and finite"):
        ops.batch(3, seconds)


@settings(deadline=None)
@given(length=st.integers(0, 40), count=st.integers(1, 12), demand=st.integers(1, 9))
def test_batch_is_slicing(length: int, count: int, demand: int) -> None:
    """For every length, count and demand the lists are the slices of the source."""

    async def main() -> None:
        async with penstock.subscribe(penstock.pipe(range(length), ops.batch(count)), demand=demand) as stream:
            lists = [part async for part in stream]
        assert lists == [list(range(length))[at : at + count] for at in range(0, length, count)]

    trio.run(main)


# --- batch by time


async def test_a_short_list_goes_on_so_long_after_its_first_element(autojump_clock: trio.testing.MockClock) -> None:
    """The time runs from the first element of the list, not from the last one, nor from the list before."""
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


async def test_a_full_list_does_not_wait_and_the_next_one_has_its_own_time(autojump_clock: trio.testing.MockClock) -> None:
    """A full list goes at once, and takes its time with it: the next list begins at its own first element."""
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
    """However long nothing comes, there is nothing to pass on."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(2, 1))
        recorder.request(5)
        harness.upstreams[0].emit()
        await trio.sleep(100)
        assert recorder.elements == [[1]]


async def test_a_short_list_that_nobody_asked_for_goes_on_when_it_is_asked_for(autojump_clock: trio.testing.MockClock) -> None:
    """What a short list left under way arrives without demand: it waits, and goes at once when its time is over already."""
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


async def test_a_list_that_is_asked_for_before_its_time_waits_for_it(autojump_clock: trio.testing.MockClock) -> None:
    """A request does not shorten the time of a list that is not full."""
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


async def test_timed_batch_asks_for_two_lists_at_a_time_and_counts_what_is_under_way(autojump_clock: trio.testing.MockClock) -> None:
    """Whatever is asked for, upstream is asked for 2·count at most; after a short list only for what is missing."""
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
    """However many short lists used up demand, what was left under way never grows past 2·count."""
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


async def test_timed_batch_gives_what_it_holds_before_it_completes(autojump_clock: trio.testing.MockClock) -> None:
    """After the source's end, lists go on as they are asked for, without waiting for their time; then completion."""
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


async def test_timed_batch_ends_with_the_nursery_that_runs_its_timer(autojump_clock: trio.testing.MockClock) -> None:
    """A nursery that is cancelled while a list fills ends the stream with PublisherStopped, and cancels upstream."""
    async with OperatorHarness() as harness:
        recorder = await stop_nursery(harness, ops.batch(3, 5), lambda recorder: (recorder.request(1), harness.upstreams[0].emit()))
        assert isinstance(recorder.error, PublisherStopped)
        assert "batch(3, seconds=5) was stopped" in str(recorder.error)
        assert harness.upstreams[0].cancelled


async def test_timed_batch_in_a_nursery_that_has_closed_fails() -> None:
    """Where no timer can be started the stream fails rather than hold a list for ever."""
    async with OperatorHarness() as harness:
        await close_nursery(harness)
        recorder = harness.run(ops.batch(3, 5))
        recorder.request(1)
        harness.upstreams[0].emit()
        assert isinstance(recorder.error, UsageError)
        assert harness.upstreams[0].cancelled
        clear_tracebacks(recorder.error)


async def test_timed_batch_starts_no_timer_where_none_is_needed() -> None:
    """Lists of one are always full."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.batch(1, 5))
        recorder.request(3)
        harness.upstreams[0].emit(3)
        assert recorder.elements == [[1], [2], [3]]
        assert harness.scope.running == 0


async def test_timed_batch_drops_full_lists_too_on_a_cancel(autojump_clock: trio.testing.MockClock) -> None:
    """A full list that was not asked for yet is no exception."""
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


async def test_timed_batch_ignores_what_comes_after_a_cancel() -> None:
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
def test_timed_batch_is_what_a_reader_with_a_watch_would_do(pauses: list[float], count: int, demand: int) -> None:
    """For every rhythm of the source, the lists are those of a plain loop over (time, element)."""

    async def source() -> Any:
        for number, pause in enumerate(pauses):
            await trio.sleep(pause)
            yield number

    async def main() -> None:
        async with penstock.subscribe(penstock.pipe(source, ops.batch(count, 2.25)), demand=demand) as stream:
            assert [part async for part in stream] == lists_by_watch(pauses, count, 2.25)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def lists_by_watch(pauses: list[float], count: int, seconds: float) -> list[list[int]]:
    """The model: a list is closed when it is full, or when the next element comes after its time."""
    now, due, lists = 0.0, -1.0, []
    for number, pause in enumerate(pauses):
        now += pause
        if not lists or len(lists[-1]) == count or now > due:
            lists.append([])
            due = now + seconds
        lists[-1].append(number)
    return lists


# --- buffer


async def test_buffer_asks_ahead_before_anybody_asks() -> None:
    """Subscribed to, it asks for its size at once; each demand from below is added to that."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.buffer(4))
        assert harness.upstreams[0].requests == [4]
        recorder.request(3)
        assert harness.upstreams[0].requests == [4, 3]


async def test_buffer_holds_its_size_and_loses_nothing() -> None:
    """What arrives unasked is held, up to the size, and passed on in order."""
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


async def test_buffer_asks_once_when_it_is_asked_while_it_is_subscribed_to() -> None:
    """A request from inside on_subscribe goes up together with the size."""
    async with OperatorHarness() as harness:
        subscribe = harness.recorder.on_subscribe
        harness.recorder.on_subscribe = lambda subscription: (subscribe(subscription), harness.recorder.request(3))  # type: ignore[method-assign, assignment, func-returns-value]  # the recorder does more
        harness.run(ops.buffer(4))
        assert harness.upstreams[0].requests == [7]


@pytest.mark.parametrize("make", [lambda: ops.buffer(4), ops.drop, ops.latest])
async def test_a_cancel_from_inside_on_subscribe_asks_for_nothing(make: Callable[[], Any]) -> None:
    """Who cancels at once makes nobody work."""
    async with OperatorHarness() as harness:
        subscribe = harness.recorder.on_subscribe
        harness.recorder.on_subscribe = lambda subscription: (subscribe(subscription), harness.recorder.cancel())  # type: ignore[method-assign, assignment, func-returns-value]  # the recorder does more
        harness.run(make())
        assert harness.upstreams[0].requests == []
        assert harness.upstreams[0].cancelled


async def test_buffer_keeps_its_bound_over_a_source_that_answers_at_once() -> None:
    """A subscriber that asks for a hundred from inside on_next, and a source that gives them inside `request`: still 4 are held."""
    async with OperatorHarness() as harness:
        answer_at_once(harness)
        recorder = harness.run(ops.buffer(4))
        recorder.on_element = lambda: recorder.request(100) if recorder.received == 1 else None
        recorder.request(1)
        assert recorder.elements == list(range(1, 102))
        assert harness.peak == 4
        assert recorder.deepest == 1


async def test_buffer_passes_through_while_demand_is_left() -> None:
    """With demand left an element is not held at all."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.buffer(4))
        recorder.request(10)
        harness.upstreams[0].emit(6)
        assert recorder.received == 6
        assert harness.peak == 0


async def test_buffer_gives_what_it_holds_before_it_completes() -> None:
    """The end comes last."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.buffer(4))
        harness.upstreams[0].emit(2)
        harness.upstreams[0].complete()
        recorder.request(1)
        assert recorder.signals == [("next", 1)]
        recorder.request(1)
        assert recorder.signals == [("next", 1), ("next", 2), ("complete",)]


@pytest.mark.parametrize("make", [lambda: ops.buffer(4), ops.latest])
async def test_an_error_overtakes_what_is_held(make: Callable[[], Any]) -> None:
    """An error passes at once, and what is held is dropped (rule 4.2)."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make())
        harness.upstreams[0].emit(2)
        error = ScriptedError("now")
        harness.upstreams[0].fail(error)
        assert recorder.signals == [("error", error)]
        assert harness.held == 0


@pytest.mark.parametrize("make", [lambda: ops.buffer(4), ops.drop, ops.latest])
async def test_a_cancel_drops_what_is_held_and_goes_up(make: Callable[[], Any]) -> None:
    """Nothing is kept, and what arrives late, against the rules, is not kept either (rule 2.8)."""
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
async def test_buffer_refuses_a_size_that_is_none(size: Any) -> None:
    """The message names the operator and what to give."""
    with pytest.raises(UsageError, match=r"buffer\(.*\): give how many elements, an integer of at least 1"):
        ops.buffer(size)


@settings(deadline=None)
@given(size=st.integers(1, 6), steps=st.lists(st.one_of(st.tuples(st.just("ask"), st.integers(1, 5)), st.just(("give", 1))), max_size=60))
def test_buffer_is_a_queue_between_two_counters(size: int, steps: list[tuple[str, int]]) -> None:
    """For every order of asking and giving: what came and was asked for has gone on; the rest, `size` at most, is held."""

    async def main() -> None:
        async with OperatorHarness() as harness:
            recorder = harness.run(ops.buffer(size))
            upstream, asked, given_ = harness.upstreams[0], 0, 0
            for step, number in steps:
                if step == "ask":
                    asked += number
                    recorder.request(number)
                elif upstream.outstanding:
                    given_ += 1
                    upstream.emit()
                assert upstream.requested == size + asked
                assert recorder.elements == list(range(1, min(asked, given_) + 1))
                assert harness.held == max(0, given_ - asked) <= size

    trio.run(main)


# --- drop and latest


@pytest.mark.parametrize("make", [ops.drop, ops.latest])
async def test_they_ask_for_everything_at_once(make: Callable[[], Any]) -> None:
    """Upstream demand is unbounded from the beginning, whoever asks below."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make())
        assert harness.upstreams[0].requests == [UNBOUNDED]
        recorder.request(3)
        assert harness.upstreams[0].requests == [UNBOUNDED]


async def test_drop_leaves_out_what_nobody_asked_for() -> None:
    """Of five elements, the second and third find a demand; the others are told to on_drop and forgotten."""
    dropped: list[int] = []
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.drop(on_drop=lambda token: dropped.append(token.number)))
        harness.upstreams[0].emit()
        recorder.request(2)
        harness.upstreams[0].emit(4)
        assert recorder.elements == [2, 3]
        assert dropped == [1, 4, 5]
        assert harness.peak == 0


async def test_drop_says_nothing_of_what_comes_after_the_end() -> None:
    """What arrives late, against the rules, is not counted as dropped (rule 2.8)."""
    dropped: list[Any] = []
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.drop(on_drop=dropped.append))
        stage = harness.upstreams[0]._subscriber
        assert stage is not None
        recorder.cancel()
        stage.on_next(harness.token())
        assert dropped == []


async def test_drop_counts_demand_without_bound() -> None:
    """Unbounded demand is never used up."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.drop())
        recorder.request(UNBOUNDED)
        recorder.request(UNBOUNDED)
        harness.upstreams[0].emit(20)
        assert recorder.received == 20


async def test_latest_keeps_the_newest() -> None:
    """Of what arrives unasked only the newest waits; on_drop is told of those that were replaced."""
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


async def test_latest_gives_what_it_holds_before_it_completes() -> None:
    """The newest element is still to be had after the end, then completion."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.latest())
        harness.upstreams[0].emit(2)
        harness.upstreams[0].complete()
        assert recorder.signals == []
        recorder.request(1)
        assert recorder.signals == [("next", 2), ("complete",)]


@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_drop_lets_the_end_pass_straight_through(end: str) -> None:
    """There is nothing that it would have to wait for."""
    async with OperatorHarness() as harness:
        recorder = harness.run(ops.drop())
        harness.upstreams[0].emit()
        getattr(harness.upstreams[0], end)()
        assert recorder.kinds == [{"complete": "complete", "fail": "error"}[end]]


@pytest.mark.parametrize("make", [ops.drop, ops.latest])
async def test_they_run_a_source_that_answers_at_once_to_its_end(make: Callable[..., Any]) -> None:
    """A source that gives all inside `request` is emptied; what was asked for in on_subscribe arrives."""
    async with OperatorHarness() as harness:
        answer_at_once(harness)
        dropped: list[Any] = []
        harness.run(make(on_drop=lambda token: dropped.append(token.number)))
        assert harness.upstreams[0].sent == 300
        assert len(dropped) == 300 - harness.held


@pytest.mark.parametrize("make", [ops.drop, ops.latest])
async def test_what_on_drop_raises_ends_the_stream(make: Callable[..., Any]) -> None:
    """A fault of the user's function is the stream's error, upstream is cancelled, and nothing is held."""
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
async def test_an_on_drop_that_is_async_in_disguise_ends_the_stream(make: Callable[..., Any]) -> None:
    """A coroutine that nobody would await is closed and named."""

    async def log(_: Any) -> None: ...

    async with OperatorHarness() as harness:
        recorder = harness.run(make(on_drop=lambda token: log(token.number)))
        harness.upstreams[0].emit(3)
        assert isinstance(recorder.error, UsageError)
        assert "so it is async" in str(recorder.error)


@pytest.mark.parametrize("make", [ops.drop, ops.latest])
async def test_on_drop_may_cancel_the_stream(make: Callable[..., Any]) -> None:
    """The function may cancel the very stream that calls it."""
    async with OperatorHarness() as harness:
        recorder = harness.run(make(on_drop=lambda _: recorder.cancel()))
        harness.upstreams[0].emit(3)
        assert recorder.signals == []
        assert harness.held == 0


async def an_async_function(_: Any) -> None: ...


@pytest.mark.parametrize("name", ["drop", "latest"])
@pytest.mark.parametrize("on_drop", ["loudly", 3, an_async_function])
async def test_on_drop_must_be_a_plain_function(name: str, on_drop: Any) -> None:
    """What is dropped cannot wait, and the message says so."""
    with pytest.raises(UsageError, match=name + r"\(on_drop=.*\): give a plain function of one element.*no bound"):
        getattr(ops, name)(on_drop=on_drop)


async def test_each_operator_says_what_it_is() -> None:
    """The repr is what was written, for whoever looks at a pipe."""
    shown = [repr(operator) for operator in (ops.batch(3), ops.batch(3, 0.5), ops.buffer(2), ops.drop(), ops.latest())]
    assert shown == [
        "<operator batch(3)>",
        "<operator batch(3, seconds=0.5)>",
        "<operator buffer(2)>",
        "<operator drop()>",
        "<operator latest()>",
    ]
