"""The readers of all connections share one budget of decoding for each pass of the run loop."""

from collections.abc import Callable
from typing import Any

import pytest
import trio

from penstock.runtime.connection import _decoding_turns
from penstock.runtime.connection._decoding_turns import (
    END_SECONDS,
    LARGEST_GROUP,
    STOPS_PER_TURN,
    STREAM_END_SECONDS,
    WOKEN_SECONDS,
    DecodingTurns,
    decoding_turns,
)

TURN = 0.005


class Clock(trio.abc.Instrument):
    """A clock that only decoding moves, and the seconds of decoding in each pass of the run
    loop.
    """

    def __init__(self) -> None:
        self.now = 100.0
        self.passes: list[float] = [0.0]

    def decode(self, seconds: float) -> None:
        self.now += seconds
        self.passes[-1] += seconds

    def before_io_wait(self, timeout: float) -> None:
        self.passes.append(0.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(_decoding_turns, "monotonic", lambda: clock.now)
    return clock


async def read(
    turns: DecodingTurns,
    clock: Clock,
    helpings: int,
    seconds: float,
    log: Callable[[], Any] = lambda: None,
) -> None:
    """Do what a reader does with a chunk: `helpings` of messages, each of which takes `seconds`."""
    if not turns.begin(TURN):
        await turns.wait(TURN)
    for left in reversed(range(helpings)):
        log()
        clock.decode(seconds)
        if left and turns.is_over:
            await turns.wait(TURN)


async def test_a_hundred_readers_share_the_budget_of_a_pass(clock: Clock) -> None:
    """No pass decodes for longer than one turn and one helping, and no reader is forgotten."""
    turns = decoding_turns()
    trio.lowlevel.add_instrument(clock)
    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(read, turns, clock, 20, 0.0004)
    trio.lowlevel.remove_instrument(clock)
    assert sum(clock.passes) == pytest.approx(100 * 20 * 0.0004)
    assert max(clock.passes) <= TURN + 0.0004


async def test_a_small_message_waits_for_one_helping_of_each_other_reader(clock: Clock) -> None:
    """Readers with large chunks come after it after one helping, although their chunks are not
    decoded yet.
    """
    turns, order = decoding_turns(), list[int]()
    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(
                read, turns, clock, 50, 0.002, lambda number=number: order.append(number)
            )
        await trio.lowlevel.checkpoint()
        nursery.start_soon(read, turns, clock, 1, 0.0001, lambda: order.append(-1))
    before = order[: order.index(-1)]
    assert max(before.count(number) for number in range(10)) <= 10
    assert order.count(3) == 50


async def test_many_small_chunks_take_few_passes(clock: Clock) -> None:
    """The groups grow while the budget is not used up: 1,000 readers need no 1,000 passes."""
    turns = decoding_turns()
    assert turns.begin(TURN)
    clock.decode(TURN)  # the budget of this pass is spent
    trio.lowlevel.add_instrument(clock)
    async with trio.open_nursery() as nursery:
        for _ in range(1000):
            nursery.start_soon(read, turns, clock, 1, 1e-6)
    trio.lowlevel.remove_instrument(clock)
    assert len(clock.passes) < 1000 / LARGEST_GROUP + 10


async def test_a_budget_counts_for_another_turn_after_its_end(clock: Clock) -> None:
    """Whether or not it was used up: a reader that comes within that time waits, and one that
    comes later opens the next one.
    """
    turns = decoding_turns()
    assert turns.begin(TURN)
    clock.decode(TURN / 2)
    assert turns.begin(TURN)
    clock.now += TURN
    assert not turns.begin(TURN)
    clock.now += TURN / 2
    assert turns.begin(TURN)


async def test_a_reader_that_comes_in_the_pass_of_a_group_has_no_budget_of_its_own(
    clock: Clock,
) -> None:
    """It waits if the group has not begun yet: those readers have waited longer."""
    turns, seen = decoding_turns(), list[bool]()

    class Newcomer(trio.abc.Instrument):
        def after_io_wait(self, timeout: float) -> None:
            seen.append(turns.begin(TURN))

    trio.lowlevel.add_instrument(newcomer := Newcomer())
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(turns.wait, TURN)
    trio.lowlevel.remove_instrument(newcomer)
    # Before the readers asked; when the first of them was woken, and when the two others were.
    assert seen[:3] == [True, False, False]
    assert turns.begin(TURN)


@pytest.mark.parametrize("other", [0.0, 0.0003, 0.001, 0.002, 0.004])
async def test_the_calls_of_readers_do_not_make_room_for_other_readers(
    clock: Clock, other: float
) -> None:
    """Each reader decodes one helping, and a call runs for `other` seconds after it. Budgets
    were opened one after the other here.
    """
    turns = decoding_turns()
    trio.lowlevel.add_instrument(clock)

    async def read_once() -> None:
        if not turns.begin(TURN):
            await turns.wait(TURN)
        clock.decode(0.0007)
        clock.now += other  # the clock is not looked at after it

    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(read_once)
    trio.lowlevel.remove_instrument(clock)
    assert sum(clock.passes) == pytest.approx(100 * 0.0007)
    assert max(clock.passes) <= TURN + 0.0007


@pytest.mark.parametrize("cancelled", range(4))
async def test_a_cancelled_reader_does_not_stop_the_others(clock: Clock, cancelled: int) -> None:
    """Neither the reader that leads a group nor one that waits in the queue."""
    turns, ended = decoding_turns(), list[int]()
    scopes = [trio.CancelScope() for _ in range(4)]

    async def run(number: int) -> None:
        with scopes[number]:
            await turns.wait(TURN)
            clock.decode(2 * TURN)
            await turns.wait(TURN)
        ended.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(4):
            nursery.start_soon(run, number)
        await trio.lowlevel.checkpoint()
        scopes[cancelled].cancel()
    assert sorted(ended) == [0, 1, 2, 3]
    assert not turns.waiting
    assert turns._woken == 0


async def test_one_run_of_trio_has_one_budget() -> None:
    """Connections of different servers and clients share it."""
    assert decoding_turns() is decoding_turns()


async def test_turns_that_are_too_short_for_any_work_still_decode(clock: Clock) -> None:
    """The first reader of a group may decode, however short a turn is."""
    turns = decoding_turns()
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(turns.wait, 1e-30)
    assert not turns.waiting


async def test_many_connections_end_in_turns(clock: Clock) -> None:
    """About 15 in each pass, because an end costs `END_SECONDS` in the passes after it;
    and the first one does not wait.
    """
    turns, ends = decoding_turns(), [0]
    await turns.begin_end(TURN)

    class Passes(trio.abc.Instrument):
        def before_io_wait(self, timeout: float) -> None:
            ends.append(0)

    async def end() -> None:
        await turns.begin_end(TURN)
        ends[-1] += 1

    passes = Passes()
    trio.lowlevel.add_instrument(passes)
    async with trio.open_nursery() as nursery:
        for _ in range(500):
            nursery.start_soon(end)
    trio.lowlevel.remove_instrument(passes)
    assert sum(ends) == 500
    assert max(ends) <= TURN / END_SECONDS + 1
    assert len(ends) < 80


async def test_decoding_goes_on_while_connections_end(clock: Clock) -> None:
    """A reader with a chunk waits behind the ends before it, and no longer."""
    turns, order = decoding_turns(), list[str]()

    async def end() -> None:
        await turns.begin_end(TURN)
        order.append("end")

    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(end)
        await trio.lowlevel.checkpoint()
        nursery.start_soon(read, turns, clock, 1, 0.0001, lambda: order.append("decoded"))
        await trio.lowlevel.checkpoint()
        for _ in range(100):
            nursery.start_soon(end)
    assert order.index("decoded") <= 140
    assert order.count("end") == 200


async def test_an_end_with_many_streams_uses_up_the_turn(clock: Clock) -> None:
    """Ending a thousand streams takes as long as a turn, so one such connection ends in a pass."""
    turns, ends = decoding_turns(), list[int]()

    class Passes(trio.abc.Instrument):
        def before_io_wait(self, timeout: float) -> None:
            ends.append(0)

    async def end() -> None:
        await turns.begin_end(TURN, round(2 * TURN / STREAM_END_SECONDS))
        ends[-1] += 1

    passes = Passes()
    trio.lowlevel.add_instrument(passes)
    ends.append(0)
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(end)
    trio.lowlevel.remove_instrument(passes)
    assert (sum(ends), max(ends)) == (20, 1)


async def test_publishers_are_stopped_in_turns_with_those_of_others(clock: Clock) -> None:
    """Each connection cancels a helping, and then waits after the others. The cost of a helping in
    the pass after it counts.
    """
    turns, order, stopped = decoding_turns(), list[int](), [0]

    class Passes(trio.abc.Instrument):
        def before_io_wait(self, timeout: float) -> None:
            stopped.append(0)

    async def stop(number: int) -> None:
        def one() -> None:
            stopped[-1] += 1
            if order[-1:] != [number]:
                order.append(number)

        await turns.stop_in_turns([one] * (8 * STOPS_PER_TURN), TURN)

    passes = Passes()
    trio.lowlevel.add_instrument(passes)
    async with trio.open_nursery() as nursery:
        for number in range(40):
            nursery.start_soon(stop, number)
    trio.lowlevel.remove_instrument(passes)
    assert sum(stopped) == 40 * 8 * STOPS_PER_TURN
    assert max(stopped) <= TURN / WOKEN_SECONDS + STOPS_PER_TURN
    assert len(order) > 40
