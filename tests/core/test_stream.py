"""A stream is read by one task, by element or by batch.
It requests no more than its demand, and lets other tasks run.
"""

import gc
import weakref
from contextlib import nullcontext
from sys import getsizeof
from typing import Self

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import assert_checkpoints

from penstock.api import (
    UNBOUNDED,
    IllegalDemand,
    RuleViolation,
    StreamState,
    Subscriber,
    UsageError,
)
from penstock.core import DEFAULT_DEMAND, Stream
from penstock.core import _stream as module
from penstock.testing import ManualPublisher, run_virtual
from tests.core._foreign import CallRecorder, boom
from tests.core._helpers import Token, Unprintable, quiet, raised_by


class Clock:
    """Replaces the stream's clock; a test sets the time."""

    def __init__(self, monkeypatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(module, "_now", lambda: self.now)


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """Time stands still unless a test moves it."""
    return Clock(monkeypatch)


def opened(demand: int = DEFAULT_DEMAND) -> tuple[Stream[int], ManualPublisher]:
    stream: Stream[int] = Stream(demand=demand)
    publisher = ManualPublisher()
    publisher.subscribe(stream)
    return stream, publisher


class Passes(trio.abc.Instrument):
    """Counts the scheduler passes of a second task."""

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


# --- construction


@pytest.mark.parametrize(
    "wrong",
    [-1, True, False, 1.0, "1", None, -(10**5000)],
    ids=lambda each: repr(each) if each != -(10**5000) else "huge",
)
def test_a_demand_is_zero_or_more(wrong) -> None:
    """0 means manual demand, and a bool is a mistake. The message explains both."""
    with pytest.raises(UsageError) as caught:
        Stream(demand=wrong)
    assert str(caught.value).startswith("demand=")
    assert str(caught.value).endswith(
        "; give how many elements may be under way at a time (renewed as you take them), or 0 to "
        "call request() yourself"
    )


@pytest.mark.parametrize("demand", [1, 2, 256, UNBOUNDED, UNBOUNDED + 1, 2**70])
def test_automatic_demand_is_requested_at_once(demand: int) -> None:
    """All of it, and at most 2^63-1 (rule 3.17)."""
    _, publisher = opened(demand)
    assert publisher.subscription.requests == [min(demand, UNBOUNDED)]


def test_manual_demand_is_requested_by_the_program() -> None:
    """Nothing is requested at once. Demand from before on_subscribe is requested then."""
    stream: Stream[int] = Stream(demand=0)
    stream.request(2)
    stream.request(3)
    publisher = ManualPublisher()
    publisher.subscribe(stream)
    stream.request(4)
    assert publisher.subscription.requests == [5, 4]


def test_illegal_manual_demand_raises_to_the_caller() -> None:
    """The caller made the mistake, so the caller gets the error (rule 3.9)."""
    stream, publisher = opened(0)
    for wrong in (0, -1, True, 1.5, "1", None):
        with pytest.raises(IllegalDemand):
            stream.request(wrong)  # type: ignore[arg-type]  # a mistake on purpose
    stream.request(2**70)
    assert publisher.subscription.requests == [UNBOUNDED]


def test_a_request_on_automatic_demand_is_a_usage_error() -> None:
    """The program and the stream together would request too much."""
    stream, _ = opened(16)
    with pytest.raises(UsageError) as caught:
        stream.request(3)
    assert str(caught.value) == (
        "request(3) on a stream with demand=16, which renews it by itself. Open it with demand=0 "
        "to ask for each element yourself"
    )


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_a_request_after_the_end_does_nothing(end: str) -> None:
    """Rule 3.6; illegal demand still raises."""
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


# --- reading by element


async def test_elements_come_in_order_and_the_loop_ends_with_the_stream() -> None:
    """Completion ends the loop, and each later attempt to read."""
    stream, publisher = opened()
    publisher.emit(1, 2, 3)
    publisher.complete()
    assert [element async for element in stream] == [1, 2, 3]
    assert [element async for element in stream] == []
    publisher.check()


async def test_a_failure_is_raised_after_the_elements_that_came_before_it() -> None:
    """The same exception object is raised, once; after that the stream has just ended."""
    stream, publisher = opened()
    error = KeyError("failed")
    publisher.emit(1, 2)
    publisher.fail(error)
    assert [await anext(stream), await anext(stream)] == [1, 2]
    assert await raised_by(stream.__anext__) is error
    assert [element async for element in stream] == []


@pytest.mark.parametrize("error", [StopAsyncIteration(), StopIteration(5)], ids=repr)
async def test_a_stop_iteration_as_failure_is_raised_as_runtime_error(error: Exception) -> None:
    """PEP 479: a stream that failed must not look complete."""
    stream, publisher = opened()
    publisher.fail(error)
    reported = await raised_by(stream.__anext__)
    assert isinstance(reported, RuntimeError)
    assert str(reported) == f"the publisher failed with {type(error).__name__}"
    assert reported.__cause__ is error


async def test_a_waiting_reader_is_woken_by_each_signal(nursery) -> None:
    """An element wakes it, and so does each kind of end."""
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


async def test_a_reader_that_is_cancelled_while_it_waits_loses_nothing(
    nursery, autojump_clock
) -> None:
    """The next reader gets the elements that have arrived meanwhile."""
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


# --- reading by batch


async def test_a_batch_holds_all_elements_that_have_arrived() -> None:
    """It is never empty, and in order."""
    stream, publisher = opened()
    batches = stream.batches()
    publisher.emit(1, 2, 3)
    assert await anext(batches) == [1, 2, 3]
    publisher.emit(4)
    publisher.complete()
    assert [batch async for batch in batches] == [[4]]
    assert [batch async for batch in stream.batches()] == []


async def test_a_batch_continues_where_reading_by_element_stopped() -> None:
    """It holds the rest of the slice, and the elements that have arrived since."""
    stream, publisher = opened(8)
    publisher.emit(*range(8))
    assert await anext(stream) == 0  # a slice of 4 is being read, and 3 of it are left
    batches = stream.batches()
    assert await anext(batches) == [1, 2, 3, 4, 5, 6, 7]
    publisher.emit(8)
    assert await anext(stream) == 8


async def test_a_batch_whose_reader_is_cancelled_is_not_lost() -> None:
    """A cancelled read has taken neither the rest of a slice nor elements that had arrived."""
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
    """Elements that arrived before the end are read before the end is raised."""
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
    """For any mix of arrivals and of reads by element and by batch, every element is read once,
    in order.
    """

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
        # It never gets stuck: a reader that has read all elements and reads on has demand left.
        while stream.statistics().buffered:
            got.append(await anext(stream))
            look()
        await _peek(stream)
        look()
        assert publisher.outstanding > 0
        publisher.check()

    run_virtual(scenario)


@given(
    requests=st.lists(st.integers(min_value=1, max_value=20), max_size=10),
    reads=st.lists(READS, max_size=40),
)
def test_manual_demand_is_never_exceeded_and_never_renewed(
    requests: list[int], reads: list[str]
) -> None:
    """Exactly the requested elements arrive;
    then the statistics show that the stream is starved.
    """

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
    ("demand", "renewals"),
    [
        (1, [1] * 10),
        (2, [1] * 10),
        (3, [1] * 10),
        (8, [2] * 5),
        (9, [2] * 5),
        (20, [5, 5]),
        (22, [6]),
        (42, []),
    ],
)
async def test_a_reader_that_waits_renews_demand_in_quarters(
    clock, demand: int, renewals: list[int]
) -> None:
    """A request costs as much for one element as for a hundred, so it is made rarely,
    and before the rest is used up.
    """
    stream, publisher = opened(demand)
    for number in range(10):
        publisher.emit(number)
        assert await anext(stream) == number
        await _peek(stream)
    assert publisher.subscription.requests == [demand, *renewals]


async def test_a_reader_with_elements_at_hand_renews_demand_in_halves(clock) -> None:
    """And what is left of it, with a quarter or more, before it waits: else the publisher would
    have nothing to do meanwhile.
    """
    stream, publisher = opened(8)
    for number in range(7):
        publisher.emit(number)
    for number in range(7):
        assert await anext(stream) == number
        assert publisher.subscription.requests == [8] if number < 4 else [8, 4]
    await _peek(stream)
    assert publisher.subscription.requests == [8, 4, 3]


async def _peek(stream: Stream[int]) -> None:
    """Try to read, without waiting for an element."""
    with trio.CancelScope() as scope:
        scope.cancel()
        await anext(stream)


async def test_an_element_is_requested_anew_when_it_has_been_handled(clock) -> None:
    """With demand 1 the publisher makes the next element only
    when the reader is done with the last one.
    """
    stream, publisher = opened(1)
    publisher.emit(7)
    assert await anext(stream) == 7
    assert publisher.outstanding == 0
    await _peek(stream)
    assert publisher.outstanding == 1


# --- fairness: when it checkpoints


async def test_an_empty_stream_checkpoints(autojump_clock) -> None:
    """A read of it must wait."""
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
async def test_an_end_within_the_last_turn_is_raised_once_without_a_checkpoint(
    clock, error: Exception | None
) -> None:
    """Neither completion nor failure costs a scheduler pass there; the next read checkpoints."""
    stream, publisher = opened(20)
    publisher.emit(1, 2)
    if error is None:
        publisher.complete()
    else:
        publisher.fail(error)
    with Passes() as turns:
        assert [await anext(stream), await anext(stream)] == [1, 2]
        with nullcontext() if error is None else pytest.raises(ValueError, match="oh"):
            assert await anext(stream, None) is None
        assert turns.count == 1
        assert await anext(stream, None) is None
        assert turns.count == 2


async def test_an_end_after_five_milliseconds_checkpoints(clock) -> None:
    """As an element would."""
    stream, publisher = opened(20)
    publisher.emit(1)
    publisher.complete()
    with Passes() as turns:
        await anext(stream)
        clock.now += 0.005
        assert await anext(stream, None) is None
        assert turns.count == 2


async def test_reading_within_a_slice_does_not_checkpoint(clock) -> None:
    """There is one checkpoint for a slice of half the demand."""
    stream, publisher = opened(20)
    publisher.emit(*range(20))
    with Passes() as turns:
        seen = []
        for _ in range(20):
            await anext(stream)
            seen.append(turns.count)
    assert seen == [1] * 10 + [2] * 10


@pytest.mark.parametrize("pause", [0.0049, 0.005, 0.1])
async def test_reading_checkpoints_after_five_milliseconds(clock, pause: float) -> None:
    """If the reader's own work takes long, the slice is not read in one turn."""
    stream, publisher = opened(20)
    publisher.emit(*range(10))
    with Passes() as turns:
        for _ in range(10):
            await anext(stream)
            clock.now += pause
    assert turns.count == (10 if pause >= 0.005 else 5)


async def test_a_batch_checkpoints_once(clock) -> None:
    """Whether its elements had arrived already or not, and at the end."""
    stream, publisher = opened()
    batches = stream.batches()
    publisher.emit(1, 2)
    with Passes() as turns:
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


async def test_an_always_full_stream_does_not_starve_other_tasks(nursery, clock) -> None:
    """The publisher fills the buffer inside `request` and the reader does no work,
    and other tasks still run.
    """
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


async def test_a_second_waiting_reader_gets_a_usage_error(nursery) -> None:
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
def test_a_reader_whose_element_was_taken_gets_a_usage_error(kind: str) -> None:
    """It was woken, and another task read first.
    If its loop ended silently, that would look like completion.
    """

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
            publisher.emit(1)  # wakes the first reader,
            nursery.start_soon(read)  # beside a second one, which may read the element first
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
def test_two_readers_of_one_slice_never_see_a_false_end(clock, seed: int) -> None:
    """Each gets elements or the error, in every order of their turns."""

    async def scenario() -> None:
        stream, publisher = opened(4)
        publisher.emit(1, 2)
        assert await anext(stream) == 1
        clock.now += 1  # the turn is over: both will checkpoint before they take the 2
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


async def test_readers_may_read_one_after_the_other(nursery) -> None:
    """Two readers are a mistake only at the same time."""
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


async def test_cancel_goes_up_once_and_drops_buffered_elements() -> None:
    """Iteration ends at once, and later elements are dropped (rule 2.8)."""
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
    """The reader gave other tasks a turn, and one of them cancelled: the loop ends."""

    async def scenario() -> None:
        stream, publisher = opened(8)
        publisher.emit(*range(8))
        assert await anext(stream) == 0
        clock.now += 1

        async def canceller() -> None:
            stream.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(canceller)
            got.append(
                [element async for element in (stream if kind == "element" else stream.batches())]
            )

    got: list[list[object]] = []
    for seed in range(8):
        run_virtual(scenario, seed=seed)
    assert [] in got
    assert {str(each) for each in got} <= {"[]", "[1, 2, 3]", "[[1, 2, 3, 4, 5, 6, 7]]"}


@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_cancel_after_the_end_drops_elements_and_keeps_the_state(end: str) -> None:
    """Rule 2.4: no call goes up. The state stays what it was, and a failure
    that was not read is dropped.
    """
    stream, publisher = opened()
    publisher.emit(1)
    _end(stream, publisher, end)
    stream.cancel()
    assert [element async for element in stream] == []
    assert publisher.subscription.cancels == 0
    assert stream.statistics().state is (
        StreamState.COMPLETED if end == "complete" else StreamState.FAILED
    )
    publisher.check()


async def test_cancel_before_on_subscribe_refuses_the_subscription() -> None:
    """A subscription that comes later is cancelled."""
    stream: Stream[int] = Stream()
    stream.cancel()
    late = CallRecorder()
    stream.on_subscribe(late)
    assert late.log == [("cancel",)]


# --- the subscriber


def test_a_stream_is_a_subscriber() -> None:
    """It has the methods of the interface, for any publisher."""
    assert isinstance(Stream(), Subscriber)


def test_a_second_subscription_is_cancelled() -> None:
    """Rule 2.5; the first one goes on."""
    stream, publisher = opened()
    second = CallRecorder()
    stream.on_subscribe(second)
    publisher.emit(1)
    assert second.log == [("cancel",)]
    assert stream.statistics().buffered == 1


@pytest.mark.parametrize("end", ["complete", "fail"])
def test_a_subscription_after_the_end_is_cancelled(end: str) -> None:
    """A stream is for one subscription."""
    stream, publisher = opened()
    _end(stream, publisher, end)
    second = CallRecorder()
    stream.on_subscribe(second)
    assert second.log == [("cancel",)]


async def test_the_same_subscription_twice_fails_the_stream() -> None:
    """Rule 2.12: cancelling the second cancels the first, and a reader must not wait forever."""
    stream: Stream[int] = Stream()
    calls = CallRecorder()
    stream.on_subscribe(calls)
    stream.on_subscribe(calls)
    assert calls.log == [("request", DEFAULT_DEMAND), ("cancel",)]
    error = await raised_by(stream.__anext__)
    assert isinstance(error, RuleViolation)
    assert error.rule == "2.12"


@pytest.mark.parametrize("signal", ["on_subscribe", "on_next", "on_error"])
def test_none_is_a_type_error_for_the_publisher(signal: str) -> None:
    """Rule 2.13; the stream stays as it was."""
    stream, _ = opened()
    with pytest.raises(TypeError, match=rf"^{signal}\(None\): .*\(rule 2\.13\)$"):
        getattr(stream, signal)(None)
    assert stream.statistics().state is StreamState.OPEN


@pytest.mark.parametrize(("wrong", "text"), [("boom", "'boom'"), (KeyError, "<class 'KeyError'>")])
def test_an_error_is_an_exception(wrong, text: str) -> None:
    """A text or an exception class is refused."""
    with pytest.raises(TypeError) as caught:
        opened()[0].on_error(wrong)
    assert str(caught.value) == f"on_error({text}): an exception is needed (rule 2.13)"


def test_an_exception_that_cannot_be_printed_is_an_exception() -> None:
    """No message is made of it, so its repr is not called."""
    stream, publisher = opened()
    publisher.misbehave("on_error", Unprintable())
    assert stream.statistics().state is StreamState.FAILED


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_signals_after_the_end_do_nothing(end: str) -> None:
    """The first end counts (rule 2.8)."""
    stream, publisher = opened()
    _end(stream, publisher, end)
    before = stream.statistics()
    publisher.misbehave("on_next", 1)
    publisher.misbehave("on_error", ValueError("late"))
    publisher.misbehave("on_complete")
    assert stream.statistics() == before


def test_no_method_of_the_subscription_is_called_after_the_end() -> None:
    """Rules 2.3, 2.4: neither inside the signal nor later."""
    for end in ("complete", "fail"):
        stream, publisher = opened()
        publisher.emit(*range(200))
        _end(stream, publisher, end)
        stream.cancel()
        publisher.check()
        assert publisher.subscription.requests == [DEFAULT_DEMAND]


# --- statistics and repr


async def test_held_is_the_bytes_that_wait_to_be_read() -> None:
    """Also those of a slice that was read in part, which goes on afterwards;
    an object counts with its own size.
    """
    stream: Stream[object] = Stream(demand=4)
    publisher = ManualPublisher()
    publisher.subscribe(stream)
    assert stream.held() == 0
    publisher.emit(b"aa", b"bbb", "cccc", (1, 2))
    tail = getsizeof((1, 2))
    assert stream.held() == 9 + tail
    assert await anext(stream) == b"aa"
    assert stream.held() == 7 + tail
    assert [await anext(stream) for _ in range(3)] == [b"bbb", "cccc", (1, 2)]
    assert stream.held() == 0


async def test_a_stream_without_waiting_elements_is_asked_cheaply(monkeypatch) -> None:
    """A connection asks all of its streams at once. Copies of empty iterators held the loop for
    0.35 s with a hundred thousand streams.
    """

    def refuse(_: object) -> None:
        raise AssertionError("an iterator was copied")

    stream, publisher = opened()
    monkeypatch.setattr(module, "copy", refuse)
    assert stream.held() == 0
    publisher.emit(1, 2)
    assert [await anext(stream), await anext(stream)] == [1, 2]
    assert stream.held() == 0
    publisher.emit(3)
    with pytest.raises(AssertionError, match="copied"):
        stream.held()


async def test_statistics_at_each_step(clock) -> None:
    """Requested, received, taken, buffered and outstanding, from the first request to the end."""
    stream: Stream[int] = Stream(demand=0)

    def figures() -> tuple[object, ...]:
        now = stream.statistics()
        return (
            now.state.value,
            now.requested,
            now.received,
            now.taken,
            now.buffered,
            now.outstanding,
            now.starved,
        )

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


@pytest.mark.parametrize("kind", ["by element", "by batch"])
async def test_statistics_tell_the_age_and_the_time_since_elements_were_taken(
    clock, kind: str
) -> None:
    """The age begins with the stream.
    The other time begins when the reader gets elements, and not when it asks.
    """
    stream, publisher = opened(4)
    clock.now += 1
    assert (stream.statistics().age, stream.statistics().since_taken) == (1, None)
    publisher.emit(1, 2)
    clock.now += 1
    if kind == "by element":
        assert await anext(stream) == 1
    else:
        assert await anext(stream.batches()) == [1, 2]
    clock.now += 3
    assert (stream.statistics().age, stream.statistics().since_taken) == (5, pytest.approx(3))
    assert stream.statistics().received_bytes is None


def test_streams_that_begin_together_share_their_time(clock) -> None:
    """An idle stream must stay small. The age is exact to ten milliseconds."""
    first: Stream[int] = Stream()
    clock.now += 0.009
    second: Stream[int] = Stream()
    clock.now += 0.009
    third: Stream[int] = Stream()
    assert first._began_at is second._began_at
    assert [each.statistics().age for each in (first, second, third)] == pytest.approx(
        [0.018, 0.018, 0]
    )
    clock.now -= 50  # the clock of another run
    assert Stream().statistics().age == 0


def test_statistics_have_the_bytes_of_a_stream_that_counts_them() -> None:
    """A source that counts bytes adds them to the window;
    a stream whose program gives the demand has none.
    """
    stream: Stream[bytes] = Stream(demand=4)
    window = stream.count_bytes(1000, 100)
    assert window is not None
    window.received += 250
    assert stream.statistics().received_bytes == 250
    assert Stream(demand=0).statistics().received_bytes is None


@pytest.mark.parametrize("end", ["complete", "fail"])
def test_an_ended_stream_has_nothing_outstanding_and_is_not_starved(end: str) -> None:
    """Requested elements will not come any more."""
    stream, publisher = opened(0)
    stream.request(5)
    publisher.emit(1)
    _end(stream, publisher, end)
    now = stream.statistics()
    assert (now.requested, now.received, now.buffered, now.outstanding, now.starved) == (
        5,
        1,
        1,
        0,
        False,
    )


def test_automatic_demand_is_never_starved() -> None:
    """The stream requests by itself."""
    assert not Stream(demand=1).statistics().starved


async def test_the_repr_shows_state_and_counts() -> None:
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
    """A program may keep it for its statistics."""
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
    """Its traceback would keep whole frames alive."""

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


def test_only_the_subscriptions_own_errors_leave_a_signal() -> None:
    """An exception that `request` or `cancel` of the subscription raises goes to the caller of
    that method.
    """
    stream: Stream[int] = Stream(demand=0)
    stream.on_subscribe(CallRecorder(request=boom))
    with pytest.raises(ValueError, match="boom"):
        stream.request(1)
    stream.on_next(1)
    stream.on_complete()
    assert stream.statistics().state is StreamState.COMPLETED
