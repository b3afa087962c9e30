"""A stream is read by one task, by the element or by the batch; it asks for no more than its demand, and lets its neighbours live."""

import gc
import weakref
from contextlib import nullcontext
from typing import Self

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import assert_checkpoints

from penstock.api import UNBOUNDED, IllegalDemand, RuleViolation, Subscriber, UsageError
from penstock.core import DEFAULT_DEMAND, Stream, StreamState
from penstock.core import _stream as module
from penstock.testing import ManualPublisher, run_virtual
from tests.core._foreign import Calls, boom
from tests.core._helpers import Token, Unprintable, quiet, raised_by


class Clock:
    """Takes the place of the stream's clock: goes on when it is told to."""

    def __init__(self, monkeypatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(module, "_now", lambda: self.now)


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """Time stands still unless a test says otherwise."""
    return Clock(monkeypatch)


def opened(demand: int = DEFAULT_DEMAND) -> tuple[Stream[int], ManualPublisher]:
    stream: Stream[int] = Stream(demand=demand)
    publisher = ManualPublisher()
    publisher.subscribe(stream)
    return stream, publisher


class RoundRobin(trio.abc.Instrument):
    """Counts how often this task gave its neighbours a turn."""

    def __init__(self) -> None:
        self._task = trio.lowlevel.current_task()
        self.count = 0

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += task is self._task

    def __enter__(self) -> Self:
        trio.lowlevel.add_instrument(self)
        return self

    def __exit__(self, *_: object) -> None:
        trio.lowlevel.remove_instrument(self)


# --- making one


@pytest.mark.parametrize(
    "wrong", [-1, True, False, 1.0, "1", None, -(10**5000)], ids=lambda each: repr(each) if each != -(10**5000) else "huge"
)
def test_a_demand_is_zero_or_more(wrong) -> None:
    """Zero means manual; a truth value means a mistake; the message tells both meanings, whatever was given."""
    with pytest.raises(UsageError) as caught:
        Stream(demand=wrong)
    assert str(caught.value).startswith("demand=")
    assert str(caught.value).endswith(
        "; give how many elements may be under way at a time (renewed as you take them), or 0 to call request() yourself"
    )


@pytest.mark.parametrize("demand", [1, 2, 256, UNBOUNDED, UNBOUNDED + 1, 2**70])
def test_automatic_demand_is_asked_for_at_once(demand: int) -> None:
    """The whole of it, held at the top (rule 3.17)."""
    _, publisher = opened(demand)
    assert publisher.subscription.requests == [min(demand, UNBOUNDED)]


def test_manual_demand_is_asked_for_by_hand() -> None:
    """Nothing at once; what was asked for before there was a publisher, when there is one."""
    stream: Stream[int] = Stream(demand=0)
    stream.request(2)
    stream.request(3)
    publisher = ManualPublisher()
    publisher.subscribe(stream)
    stream.request(4)
    assert publisher.subscription.requests == [5, 4]


def test_manual_demand_is_checked_where_it_is_given() -> None:
    """It is the caller's mistake, and the caller hears of it (rule 3.9)."""
    stream, publisher = opened(0)
    for wrong in (0, -1, True, 1.5, "1", None):
        with pytest.raises(IllegalDemand):
            stream.request(wrong)  # type: ignore[arg-type]  # a mistake on purpose
    stream.request(2**70)
    assert publisher.subscription.requests == [UNBOUNDED]


def test_a_request_on_automatic_demand_is_a_usage_error() -> None:
    """Two who ask would ask for too much."""
    stream, _ = opened(16)
    with pytest.raises(UsageError) as caught:
        stream.request(3)
    assert str(caught.value) == (
        "request(3) on a stream with demand=16, which renews it by itself. Open it with demand=0 to ask for each element yourself"
    )


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_a_request_after_the_end_is_nothing(end: str) -> None:
    """Rule 3.6, on this side of the subscription; illegal demand is illegal all the same."""
    stream, publisher = opened(0)
    _end(stream, publisher, end)
    stream.request(1)
    with pytest.raises(IllegalDemand):
        stream.request(0)
    assert publisher.subscription.requests == []
    assert publisher.violations == []


def _end(stream: Stream[int], publisher: ManualPublisher, end: str) -> None:
    if end == "complete":
        publisher.complete()
    elif end == "fail":
        publisher.fail(KeyError("failed"))
    else:
        stream.cancel()


# --- reading by the element


async def test_elements_come_in_order_and_the_loop_ends_with_the_stream() -> None:
    """Completion ends the loop, and again however often it is asked."""
    stream, publisher = opened()
    publisher.emit(1, 2, 3)
    publisher.complete()
    assert [element async for element in stream] == [1, 2, 3]
    assert [element async for element in stream] == []
    publisher.check()


async def test_a_failure_is_raised_after_the_elements_that_came_before_it() -> None:
    """The very exception, once; then the stream is just over."""
    stream, publisher = opened()
    error = KeyError("failed")
    publisher.emit(1, 2)
    publisher.fail(error)
    assert [await anext(stream), await anext(stream)] == [1, 2]
    assert await raised_by(stream.__anext__) is error
    assert [element async for element in stream] == []


@pytest.mark.parametrize("error", [StopAsyncIteration(), StopIteration(5)], ids=repr)
async def test_a_failure_that_looks_like_an_end_does_not_pass_for_one(error: Exception) -> None:
    """PEP 479: a stream that failed must not look complete."""
    stream, publisher = opened()
    publisher.fail(error)
    told = await raised_by(stream.__anext__)
    assert isinstance(told, RuntimeError)
    assert str(told) == f"the publisher failed with {type(error).__name__}"
    assert told.__cause__ is error


async def test_a_reader_waits_for_what_is_to_come(nursery) -> None:
    """An element wakes it; so does each of the ends."""
    for end in ("emit", "complete", "fail", "cancel"):
        stream, publisher = opened()
        got: list[object] = []

        async def read(stream=stream, got=got) -> None:
            try:
                got.append(await anext(stream, "over"))
            except KeyError:
                got.append("failed")

        nursery.start_soon(read)
        await quiet()
        assert got == []
        if end == "emit":
            publisher.emit(7)
        else:
            _end(stream, publisher, end)
        await quiet()
        assert got == [{"emit": 7, "complete": "over", "fail": "failed", "cancel": "over"}[end]]


async def test_a_reader_that_is_cancelled_while_it_waits_loses_nothing(nursery, autojump_clock) -> None:
    """The next one gets what has come meanwhile."""
    stream, publisher = opened()
    with trio.move_on_after(1):
        await anext(stream)
    publisher.emit(1)
    assert await anext(stream) == 1
    with trio.CancelScope() as scope:
        scope.cancel()
        publisher.emit(2)
        await anext(stream)
    assert await anext(stream) == 2


# --- reading by the batch


async def test_a_batch_is_all_that_is_there() -> None:
    """Never empty, and in order."""
    stream, publisher = opened()
    batches = stream.batches()
    publisher.emit(1, 2, 3)
    assert await anext(batches) == [1, 2, 3]
    publisher.emit(4)
    publisher.complete()
    assert [batch async for batch in batches] == [[4]]
    assert [batch async for batch in stream.batches()] == []


async def test_a_batch_takes_over_where_the_elements_were_left() -> None:
    """The rest of the slice that was being read, then what has come since, in one list."""
    stream, publisher = opened(8)
    publisher.emit(*range(8))
    assert await anext(stream) == 0  # a slice of 4 is being read now, 3 left
    batches = stream.batches()
    assert await anext(batches) == [1, 2, 3, 4, 5, 6, 7]
    publisher.emit(8)
    assert await anext(stream) == 8


async def test_a_batch_whose_reader_is_cancelled_is_not_lost() -> None:
    """Neither the rest of a slice nor what arrived: a cancelled read has taken nothing."""
    for begun in (False, True):
        stream, publisher = opened(8)
        publisher.emit(*range(8))
        if begun:
            assert await anext(stream) == 0
        with trio.CancelScope() as scope:
            scope.cancel()
            await anext(stream.batches())
        assert scope.cancelled_caught
        assert await anext(stream.batches()) == list(range(begun, 8))


async def test_a_failure_comes_after_the_last_batch() -> None:
    """Elements that arrived before the end are read before the end is."""
    stream, publisher = opened()
    error = KeyError("failed")
    publisher.emit(1, 2)
    publisher.fail(error)
    batches = stream.batches()
    assert await anext(batches) == [1, 2]
    assert await raised_by(batches.__anext__) is error


# --- the bound


READS = st.sampled_from(["element", "batch"])
ARRIVALS = st.tuples(st.just("emit"), st.integers(min_value=1, max_value=60))


@settings(deadline=None)
@given(
    demand=st.integers(min_value=1, max_value=40),
    script=st.lists(ARRIVALS | st.tuples(READS, st.just(1)), max_size=60),
)
def test_buffered_and_outstanding_never_exceed_the_demand(demand: int, script) -> None:
    """For any mix of arrivals, elements and batches; and every element is read, once, in order."""

    async def scenario() -> None:
        stream, publisher = opened(demand)
        sent, got = 0, []

        def look() -> None:
            now = stream.statistics()
            assert now.buffered + now.outstanding <= demand
            assert now.requested == publisher.requested
            assert (now.received, now.taken, now.buffered) == (sent, len(got), sent - len(got))

        for act, count in script:
            if act == "emit":
                burst = min(count, publisher.outstanding)
                publisher.emit(*range(sent, sent + burst))
                sent += burst
            elif stream.statistics().buffered:
                got += [await anext(stream)] if act == "element" else await anext(stream.batches())
            look()
        assert got == list(range(len(got)))
        # It never gets stuck: whoever has read it all and comes back for more has demand left.
        while stream.statistics().buffered:
            got.append(await anext(stream))
            look()
        await _peek(stream)
        look()
        assert publisher.outstanding > 0
        publisher.check()

    run_virtual(scenario)


@given(requests=st.lists(st.integers(min_value=1, max_value=20), max_size=10), reads=st.lists(READS, max_size=40))
def test_manual_demand_is_never_exceeded_and_never_renewed(requests: list[int], reads: list[str]) -> None:
    """What was asked for by hand is what comes, to the element; then the stream says that it starves."""

    async def scenario() -> None:
        stream, publisher = opened(0)
        sent, got = 0, []
        for n in requests:
            stream.request(n)
            publisher.emit(*range(sent, sent + n))
            sent += n
            assert not stream.statistics().starved
        for read in reads:
            if stream.statistics().buffered:
                got += [await anext(stream)] if read == "element" else await anext(stream.batches())
        assert publisher.subscription.requests == requests
        now = stream.statistics()
        assert now.starved == (len(got) == sum(requests))
        assert (got, now.buffered) == (list(range(len(got))), sent - len(got))

    run_virtual(scenario)


@pytest.mark.parametrize(
    ("demand", "renewals"), [(1, [1] * 10), (2, [1] * 10), (3, [1] * 10), (8, [4, 4]), (9, [4, 4]), (20, [10]), (21, [10]), (22, [])]
)
async def test_demand_is_renewed_in_halves(clock, demand: int, renewals: list[int]) -> None:
    """Asking costs as much for one as for a hundred, so it is done rarely, and before the other half is used up."""
    stream, publisher = opened(demand)
    for number in range(10):
        publisher.emit(number)
        assert await anext(stream) == number
        await _peek(stream)
    assert publisher.subscription.requests == [demand, *renewals]


async def _peek(stream: Stream[int]) -> None:
    """Come back for more without waiting for it."""
    with trio.CancelScope() as scope:
        scope.cancel()
        await anext(stream)


async def test_an_element_is_paid_for_when_it_was_read_and_not_before(clock) -> None:
    """What is being worked on counts: with demand 1 the publisher makes the next one when the last one is done."""
    stream, publisher = opened(1)
    publisher.emit(7)
    assert await anext(stream) == 7
    assert publisher.outstanding == 0
    await _peek(stream)
    assert publisher.outstanding == 1


# --- fairness: when it checkpoints


async def test_an_empty_stream_checkpoints(autojump_clock) -> None:
    """It has to wait."""
    stream, publisher = opened()
    with assert_checkpoints(), trio.move_on_after(1):
        await anext(stream)
    with assert_checkpoints():
        publisher.emit(1)
        await anext(stream)
    publisher.complete()
    assert await anext(stream, None) is None
    for _ in range(2):
        with assert_checkpoints():
            assert await anext(stream, None) is None


@pytest.mark.parametrize("error", [None, ValueError("oh")])
async def test_an_end_that_came_with_the_last_slice_is_told_in_its_turn_and_once(clock, error: Exception | None) -> None:
    """Neither completion nor failure has a turn of its own there; asked again it has."""
    stream, publisher = opened(20)
    publisher.emit(1, 2)
    if error is None:
        publisher.complete()
    else:
        publisher.fail(error)
    with RoundRobin() as turns:
        assert [await anext(stream), await anext(stream)] == [1, 2]
        with nullcontext() if error is None else pytest.raises(ValueError, match="oh"):
            assert await anext(stream, None) is None
        assert turns.count == 1
        assert await anext(stream, None) is None
        assert turns.count == 2


async def test_an_end_after_five_milliseconds_gives_the_neighbours_a_turn(clock) -> None:
    """As an element would."""
    stream, publisher = opened(20)
    publisher.emit(1)
    publisher.complete()
    with RoundRobin() as turns:
        await anext(stream)
        clock.now += 0.005
        assert await anext(stream, None) is None
        assert turns.count == 2


async def test_within_a_slice_nobody_is_kept_waiting_for_nothing(clock) -> None:
    """The documented exception: one turn for a slice of half the demand, none within it."""
    stream, publisher = opened(20)
    publisher.emit(*range(20))
    with RoundRobin() as turns:
        seen = []
        for _ in range(20):
            await anext(stream)
            seen.append(turns.count)
    assert seen == [1] * 10 + [2] * 10


@pytest.mark.parametrize("pause", [0.0049, 0.005, 0.1])
async def test_after_five_milliseconds_the_neighbours_get_a_turn(clock, pause: float) -> None:
    """Where the reader's own work takes long, the slice is not read in one go."""
    stream, publisher = opened(20)
    publisher.emit(*range(10))
    with RoundRobin() as turns:
        for _ in range(10):
            await anext(stream)
            clock.now += pause
    assert turns.count == (10 if pause >= 0.005 else 5)


async def test_a_batch_checkpoints_once(clock) -> None:
    """Whether it was there already or not, and at the end."""
    stream, publisher = opened()
    batches = stream.batches()
    publisher.emit(1, 2)
    with RoundRobin() as turns:
        await anext(batches)
        assert turns.count == 1
        publisher.emit(3)
        await anext(stream)
        publisher.emit(4)
        await anext(batches)
        assert turns.count == 3
        publisher.complete()
        assert [batch async for batch in batches] == []
        assert turns.count == 4


async def test_an_always_full_stream_does_not_starve_its_neighbours(nursery, clock) -> None:
    """A publisher that fills the buffer inside `request`, and a reader that never works: neighbours get their turns."""
    stream: Stream[int] = Stream(demand=16)

    class Endless:
        def request(self, n: int, /) -> None:
            for number in range(n):
                stream.on_next(number)

        def cancel(self) -> None:
            stopped.append(True)

    stopped: list[bool] = []
    stream.on_subscribe(Endless())
    read = 0

    async def reader() -> None:
        nonlocal read
        async for _ in stream:
            read += 1

    nursery.start_soon(reader)
    for _ in range(20):
        await trio.lowlevel.checkpoint()
    assert 0 < read <= 21 * 8
    stream.cancel()
    assert stopped == [True]


# --- two readers


async def test_two_tasks_that_wait_are_told(nursery) -> None:
    """One subscription has one reader; the message says what to do instead."""
    stream, _ = opened()
    nursery.start_soon(stream.__anext__)
    await quiet()
    for read in (stream.__anext__, stream.batches().__anext__):
        error = await raised_by(read)
        assert isinstance(error, UsageError)
        assert str(error) == (
            "two tasks read this stream at once; one subscription has one reader. "
            "Subscribe twice, or hand on the elements through a memory channel"
        )
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize("kind", ["element", "batch"])
def test_a_reader_whose_element_was_taken_is_told_and_does_not_see_an_end(kind: str) -> None:
    """It was woken, and another task was quicker: a silent end of its loop would look like completion."""

    async def scenario() -> None:
        stream, publisher = opened()
        results: list[object] = []

        async def read() -> None:
            try:
                got = await anext(stream if kind == "element" else stream.batches(), None)
                results.append(f"an end, {stream.statistics().state.value}" if got is None else got)
            except UsageError:
                results.append("told")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await quiet()
            publisher.emit(1)  # wakes the first reader ...
            nursery.start_soon(read)  # ... beside a second one, which may find the element there before it
            await quiet()
            publisher.complete()
        results.remove(1 if kind == "element" else [1])
        assert results[0] in ("told", "an end, completed")
        seen.add(results[0])

    seen: set[object] = set()
    for seed in range(8):
        run_virtual(scenario, seed=seed)
    assert seen == {"told", "an end, completed"}


@pytest.mark.parametrize("seed", range(6))
def test_two_readers_of_one_slice_never_see_an_end_that_is_none(clock, seed: int) -> None:
    """Each gets elements or the error, whatever the order of their turns."""

    async def scenario() -> None:
        stream, publisher = opened(4)
        publisher.emit(1, 2)
        assert await anext(stream) == 1
        clock.now += 1  # a turn is due: both will check in before they take the 2
        results: list[object] = []

        async def read() -> None:
            try:
                results.append(await anext(stream))
            except UsageError:
                results.append("told")

        with trio.move_on_after(1):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(read)
                nursery.start_soon(read)
        assert 2 in results
        assert StopAsyncIteration not in [type(each) for each in results]

    run_virtual(scenario, seed=seed)


async def test_readers_may_take_turns(nursery) -> None:
    """One after the other is no two at once."""
    stream, publisher = opened()
    got: list[int] = []

    async def read() -> None:
        got.append(await anext(stream))

    for number in range(3):
        publisher.emit(number)
        async with trio.open_nursery() as one:
            one.start_soon(read)
    assert got == [0, 1, 2]


# --- cancelling


async def test_cancel_goes_up_once_and_drops_what_is_buffered() -> None:
    """Iteration ends at once; what was still to be read is gone (and nothing else comes, rule 2.8)."""
    stream, publisher = opened(8)
    publisher.emit(*range(8))
    assert await anext(stream) == 0
    stream.cancel()
    stream.cancel()
    publisher.misbehave("on_next", 99)
    publisher.misbehave("on_complete")
    assert [element async for element in stream] == []
    assert [batch async for batch in stream.batches()] == []
    assert publisher.subscription.cancels == 1
    assert stream.statistics().state is StreamState.CANCELLED


@pytest.mark.parametrize("kind", ["element", "batch"])
def test_cancel_from_another_task_ends_a_reader_in_the_middle_of_a_slice(clock, kind: str) -> None:
    """It had given its neighbours a turn, and one of them used it for this: the loop ends, with nothing made up."""

    async def scenario() -> None:
        stream, publisher = opened(8)
        publisher.emit(*range(8))
        assert await anext(stream) == 0
        clock.now += 1

        async def canceller() -> None:
            stream.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(canceller)
            got.append([element async for element in (stream if kind == "element" else stream.batches())])

    got: list[list[object]] = []
    for seed in range(8):
        run_virtual(scenario, seed=seed)
    assert [] in got
    assert {str(each) for each in got} <= {"[]", "[1, 2, 3]", "[[1, 2, 3, 4, 5, 6, 7]]"}


@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_cancel_after_the_end_drops_what_is_left_and_keeps_the_state(end: str) -> None:
    """Rule 2.4: no call goes up. What it ended with stays true; the failure that nobody read is dropped with the rest."""
    stream, publisher = opened()
    publisher.emit(1)
    _end(stream, publisher, end)
    stream.cancel()
    assert [element async for element in stream] == []
    assert publisher.subscription.cancels == 0
    assert stream.statistics().state is (StreamState.COMPLETED if end == "complete" else StreamState.FAILED)
    publisher.check()


async def test_cancel_before_there_is_a_publisher_refuses_it() -> None:
    """What comes late is not needed any more."""
    stream: Stream[int] = Stream()
    stream.cancel()
    late = Calls()
    stream.on_subscribe(late)
    assert late.log == [("cancel",)]


# --- the subscriber


def test_a_stream_is_a_subscriber() -> None:
    """Anybody's publisher may have it."""
    assert isinstance(Stream(), Subscriber)


def test_a_second_subscription_is_cancelled() -> None:
    """Rule 2.5, and the first goes on."""
    stream, publisher = opened()
    second = Calls()
    stream.on_subscribe(second)
    publisher.emit(1)
    assert second.log == [("cancel",)]
    assert stream.statistics().buffered == 1


@pytest.mark.parametrize("end", ["complete", "fail"])
def test_a_subscription_after_the_end_is_cancelled(end: str) -> None:
    """A stream is for one subscription."""
    stream, publisher = opened()
    _end(stream, publisher, end)
    second = Calls()
    stream.on_subscribe(second)
    assert second.log == [("cancel",)]


async def test_the_same_subscription_twice_fails_the_stream() -> None:
    """Rule 2.12: to cancel the second is to cancel the first, and a reader must not wait for ever."""
    stream: Stream[int] = Stream()
    calls = Calls()
    stream.on_subscribe(calls)
    stream.on_subscribe(calls)
    assert calls.log == [("request", DEFAULT_DEMAND), ("cancel",)]
    error = await raised_by(stream.__anext__)
    assert isinstance(error, RuleViolation)
    assert error.rule == "2.12"


@pytest.mark.parametrize("signal", ["on_subscribe", "on_next", "on_error"])
def test_none_is_a_type_error_for_the_publisher(signal: str) -> None:
    """Rule 2.13; the stream is as it was."""
    stream, _ = opened()
    with pytest.raises(TypeError, match=rf"^{signal}\(None\): .*\(rule 2\.13\)$"):
        getattr(stream, signal)(None)
    assert stream.statistics().state is StreamState.OPEN


@pytest.mark.parametrize(("wrong", "text"), [("boom", "'boom'"), (KeyError, "<class 'KeyError'>")])
def test_an_error_is_an_exception(wrong, text: str) -> None:
    """Neither its text nor its class."""
    with pytest.raises(TypeError) as caught:
        opened()[0].on_error(wrong)
    assert str(caught.value) == f"on_error({text}): an exception is needed (rule 2.13)"


def test_an_exception_that_cannot_be_printed_is_an_exception() -> None:
    """No message of ours is made of it."""
    stream, publisher = opened()
    publisher.misbehave("on_error", Unprintable())
    assert stream.statistics().state is StreamState.FAILED


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_after_the_end_signals_are_nothing(end: str) -> None:
    """The first end counts (rule 2.8)."""
    stream, publisher = opened()
    _end(stream, publisher, end)
    before = stream.statistics()
    publisher.misbehave("on_next", 1)
    publisher.misbehave("on_error", ValueError("late"))
    publisher.misbehave("on_complete")
    assert stream.statistics() == before


def test_after_the_end_the_subscription_is_not_touched() -> None:
    """Rules 2.3, 2.4: not in the signal, not later."""
    for end in ("complete", "fail"):
        stream, publisher = opened()
        publisher.emit(*range(200))
        _end(stream, publisher, end)
        stream.cancel()
        publisher.check()
        assert publisher.subscription.requests == [DEFAULT_DEMAND]


# --- what it tells


async def test_the_statistics_of_a_life(clock) -> None:
    """Asked for, arrived, taken, waiting, to come: at each step."""
    stream: Stream[int] = Stream(demand=0)

    def figures() -> tuple[object, ...]:
        now = stream.statistics()
        return now.state.value, now.requested, now.received, now.taken, now.buffered, now.outstanding, now.starved

    assert figures() == ("open", 0, 0, 0, 0, 0, True)
    publisher = ManualPublisher()
    publisher.subscribe(stream)
    assert figures() == ("open", 0, 0, 0, 0, 0, True)
    stream.request(5)
    assert figures() == ("open", 5, 0, 0, 0, 5, False)
    publisher.emit(1, 2, 3)
    assert figures() == ("open", 5, 3, 0, 3, 2, False)
    await anext(stream)
    assert figures() == ("open", 5, 3, 1, 2, 2, False)
    publisher.emit(4, 5)
    assert figures() == ("open", 5, 5, 1, 4, 0, False)
    for _ in range(4):
        await anext(stream)
    assert figures() == ("open", 5, 5, 5, 0, 0, True)
    stream.request(3)
    publisher.emit(6, 7)
    await anext(stream)
    stream.cancel()
    assert figures() == ("cancelled", 8, 7, 6, 0, 0, False)


@pytest.mark.parametrize("end", ["complete", "fail"])
def test_an_ended_stream_has_nothing_outstanding_and_does_not_starve(end: str) -> None:
    """What was asked for will not come any more."""
    stream, publisher = opened(0)
    stream.request(5)
    publisher.emit(1)
    _end(stream, publisher, end)
    now = stream.statistics()
    assert (now.requested, now.received, now.buffered, now.outstanding, now.starved) == (5, 1, 1, 0, False)


def test_automatic_demand_is_never_starved() -> None:
    """It asks by itself."""
    assert not Stream(demand=1).statistics().starved


async def test_a_stream_says_where_it_stands() -> None:
    """In one line, for a log."""
    stream, publisher = opened(0)
    assert repr(stream) == "<stream open: 0 taken, 0 buffered, 0 outstanding, starved>"
    stream.request(3)
    publisher.emit(1, 2)
    await anext(stream)
    assert repr(stream) == "<stream open: 1 taken, 1 buffered, 1 outstanding>"
    stream.cancel()
    assert repr(stream) == "<stream cancelled: 1 taken, 0 buffered, 0 outstanding>"


# --- references


@pytest.mark.parametrize("end", ["complete", "cancel"])
async def test_an_ended_stream_keeps_no_element_and_no_publisher(end: str) -> None:
    """It may be kept for its statistics."""
    stream: Stream[Token] = Stream(demand=8)
    publisher = ManualPublisher()
    publisher.subscribe(stream)
    refs = []
    for _ in range(8):
        token = Token()
        refs.append(weakref.ref(token))
        stream.on_next(token)
    if end == "complete":
        publisher.complete()
        assert len([None async for _ in stream]) == 8
    else:
        assert await anext(stream)
        stream.cancel()
    refs.append(weakref.ref(publisher.subscription))
    del publisher, token
    gc.collect()
    assert [ref() for ref in refs] == [None] * 9


async def test_a_failure_that_was_raised_is_not_kept() -> None:
    """Its traceback would keep whole frames."""

    class Failure(Exception):
        pass

    stream, publisher = opened()
    error = Failure()
    ref = weakref.ref(error)
    stream.on_error(error)
    assert await raised_by(stream.__anext__) is error
    del error, publisher
    gc.collect()
    assert ref() is None


def test_signals_never_raise_into_a_publisher_that_keeps_the_rules() -> None:
    """Whatever a subscription does in `request` and `cancel` is its own affair, and goes to the caller."""
    stream: Stream[int] = Stream(demand=0)
    stream.on_subscribe(Calls(request=boom))
    with pytest.raises(ValueError, match="boom"):
        stream.request(1)
    stream.on_next(1)
    stream.on_complete()
    assert stream.statistics().state is StreamState.COMPLETED
