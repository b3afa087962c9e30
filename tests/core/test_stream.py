"""A stream is read by one task, by element or by batch.
It requests no more than its demand, and lets other tasks run.
"""

from contextlib import nullcontext
from sys import getsizeof
from typing import Self

import pytest
import trio
from trio.testing import assert_checkpoints

from penstock.api import (
    StreamState,
    Subscriber,
    UsageError,
)
from penstock.core import Stream
from penstock.core import _stream as module
from penstock.reader import DEFAULT_DEMAND, _stream_buffer
from penstock.testing import ManualPublisher, run_virtual
from tests.core._foreign import CallRecorder, boom
from tests.core._helpers import quiet, raised_by


class Clock:
    """Replaces the stream's clock; a test sets the time."""

    def __init__(self, monkeypatch) -> None:
        self.now = 100.0
        for each in (module, _stream_buffer):
            monkeypatch.setattr(each, "_now", lambda: self.now)


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


def test_manual_demand_is_requested_by_the_program() -> None:
    """Nothing is requested at once. Demand from before on_subscribe is requested then."""
    stream: Stream[int] = Stream(demand=0)
    stream.request(2)
    stream.request(3)
    publisher = ManualPublisher()
    publisher.subscribe(stream)
    stream.request(4)
    assert publisher.subscription.requests == [5, 4]


# --- reading by element


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


async def test_a_cancelled_reader_is_not_told_of_the_failure(clock) -> None:
    """A scope that is cancelled ends the connection of a stream as well. The reader gets trio's
    exception, which leaves that scope silently, and the failure waits for the next read.
    """
    stream, publisher = opened(20)
    publisher.emit(1)
    publisher.fail(ValueError("the connection was closed"))
    with trio.CancelScope() as scope:
        await anext(stream)
        scope.cancel()
        await anext(stream)
    assert scope.cancelled_caught
    with pytest.raises(ValueError, match="the connection was closed"):
        await anext(stream)


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
    monkeypatch.setattr(_stream_buffer, "copy", refuse)
    assert stream.held() == 0
    publisher.emit(1, 2)
    assert [await anext(stream), await anext(stream)] == [1, 2]
    assert stream.held() == 0
    publisher.emit(3)
    with pytest.raises(AssertionError, match="copied"):
        stream.held()


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
    a stream whose program gives the demand has no window.
    """
    stream: Stream[bytes] = Stream(demand=4)
    window = stream.count_bytes(1000, 100)
    assert window is not None
    window.received += 250
    assert stream.statistics().received_bytes == 250
    assert Stream(demand=0).statistics().received_bytes is None


# --- references


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
