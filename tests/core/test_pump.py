"""A pump pulls on demand, in bursts, from one task; closes there, within a deadline; and is silent once it was cancelled."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import UNBOUNDED, CleanupTimeout, PublisherStopped, UsageError
from penstock.core import _pump as module
from penstock.core import subscribe
from penstock.core._pump import BURST_SECONDS, FIRST_BURST, LONGEST_BURST, Pump, next_burst
from penstock.testing import run_virtual
from tests.core._foreign import Heard, boom
from tests.core._helpers import Token, ViolationSink, numbers, our_tasks, quiet, raised_by


class Pumped:
    """A pump in a nursery, with the listener below it and the hooks beside it."""

    def __init__(self, nursery: trio.Nursery, open_iterator, hooks=None, cleanup_timeout: float = 5.0, **options) -> None:
        self.told = ViolationSink(nursery, cleanup_timeout=cleanup_timeout)
        self.heard = Heard(**(hooks or {}))
        self.pump = Pump(open_iterator, self.heard, self.told.scope, label="numbers", **options)

    async def ask(self, n: int) -> None:
        self.pump.request(n)
        await quiet()

    @property
    def ends(self) -> list[str]:
        return [entry[0] for entry in self.heard.log if entry[0] != "on_next"]


class Clock:
    """Takes the place of `monotonic`: goes on when it is told to."""

    def __init__(self, monkeypatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(module, "monotonic", lambda: self.now)


class Steps(trio.abc.Instrument):
    """Writes down how many elements each step of a pump's task has signalled."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._before = 0
        self.counts: list[int] = []

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._before = len(self._heard.elements)

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task.name.startswith("penstock pump") and len(self._heard.elements) > self._before:
            self.counts.append(len(self._heard.elements) - self._before)


# --- demand


async def test_nothing_happens_without_demand(nursery) -> None:
    """A subscription that nobody pulls is an object, not a task: not even the generator is made."""
    pumped = Pumped(nursery, boom)
    await quiet()
    assert (pumped.heard.log, our_tasks()) == ([], [])


async def test_the_task_lives_from_the_first_pull_to_the_end(nursery) -> None:
    """And waits in between, without a turn of its own."""
    pumped = Pumped(nursery, lambda: numbers(3))
    await pumped.ask(2)
    assert our_tasks() == ["penstock pump of numbers"]
    await pumped.ask(2)
    assert (pumped.heard.elements, pumped.ends, our_tasks()) == ([0, 1, 2], ["on_complete"], [])


async def test_exactly_what_was_asked_for_is_pulled(nursery) -> None:
    """Rule 1.1 at its strictest: the generator itself is not asked for one more."""
    pulled: list[int] = []

    async def watched():
        for number in range(100):
            pulled.append(number)
            yield number

    pumped = Pumped(nursery, watched)
    for n in (1, 3, 7):
        await pumped.ask(n)
    assert (pumped.heard.elements, pulled) == (list(range(11)), list(range(11)))


async def test_requests_without_a_turn_between_them_add_up(nursery) -> None:
    """Rule 3.8: additive, before the task has begun and while it waits."""
    pumped = Pumped(nursery, numbers)
    for _ in range(2):
        pumped.pump.request(1)
        pumped.pump.request(2)
        await quiet()
    assert pumped.heard.elements == list(range(6))


async def test_a_request_inside_a_signal_neither_nests_nor_gets_lost(nursery) -> None:
    """Rules 3.2, 3.3: 2,000 elements, each asked for by the one before it, at one depth."""
    pumped = Pumped(nursery, lambda: numbers(2000), {"on_next": lambda _: pumped.pump.request(1)})
    await pumped.ask(1)
    assert len(pumped.heard.elements) == 2000
    assert (pumped.heard.deepest, pumped.ends) == (1, ["on_complete"])


@pytest.mark.parametrize("requests", [[UNBOUNDED], [2**62, 2**62], [UNBOUNDED, UNBOUNDED], [1, UNBOUNDED]])
async def test_unbounded_demand_stays_unbounded(nursery, requests: list[int]) -> None:
    """Rule 3.17: it is reached by adding up, too, and no element takes anything from it."""
    pumped = Pumped(nursery, lambda: numbers(5000))
    for n in requests:
        pumped.pump.request(n)
    await quiet()
    assert (pumped.heard.elements, pumped.ends) == (list(range(5000)), ["on_complete"])


async def test_one_below_unbounded_is_counted(nursery) -> None:
    """2^63-2 is a number like any other."""
    pumped = Pumped(nursery, numbers, {"on_next": lambda n: pumped.pump.cancel() if n == 9 else None})
    pumped.pump.request(UNBOUNDED - 1)
    assert repr(pumped.pump) == f"<pump of numbers: live, demand {UNBOUNDED - 1}>"
    await quiet()
    assert pumped.heard.elements == list(range(10))


@given(st.lists(st.integers(min_value=1, max_value=100), max_size=8), st.integers(min_value=0, max_value=200), st.booleans())
def test_what_is_signalled_is_the_demand_or_all_there_is(requests: list[int], length: int, sized: bool) -> None:
    """For any demand in any portions: the elements in order, the end exactly when it is known."""

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            pumped = Pumped(nursery, lambda: numbers(length), length=length if sized and length else UNBOUNDED)
            asked = 0
            for n in requests:
                await pumped.ask(n)
                asked += n
                assert pumped.heard.elements == list(range(min(asked, length)))
                known = asked >= length if sized and length else asked > length
                assert pumped.ends == (["on_complete"] if known else [])
            pumped.pump.cancel()
            await quiet()
            assert (our_tasks(), pumped.told.failures) == ([], [])

    run_virtual(scenario)


# --- ends


async def test_a_known_length_completes_with_the_last_element(nursery) -> None:
    """Rule 1.5 at its earliest: no pull after the last, and the iterator is closed."""
    closed: list[str] = []

    async def watched():
        try:
            for number in range(10):
                yield number
        finally:
            closed.append("closed")

    pumped = Pumped(nursery, watched, length=3)
    await pumped.ask(3)
    assert (pumped.heard.elements, pumped.ends, closed) == ([0, 1, 2], ["on_complete"], ["closed"])


async def test_a_length_that_was_too_long_completes_with_the_iterator(nursery) -> None:
    """A list may shrink between the subscription and the pull."""
    pumped = Pumped(nursery, lambda: numbers(2), length=5)
    await pumped.ask(5)
    assert (pumped.heard.elements, pumped.ends) == ([0, 1], ["on_complete"])


async def test_a_factory_that_raises_fails_the_stream(nursery) -> None:
    """Rules 1.4, 3.16: request returns, the error follows."""
    pumped = Pumped(nursery, boom)
    pumped.pump.request(1)
    assert pumped.heard.log == []
    await quiet()
    assert (pumped.ends, type(pumped.heard.error), our_tasks()) == (["on_error"], ValueError, [])


async def test_a_factory_of_something_else_fails_the_stream(nursery) -> None:
    """What cannot be iterated over with `async for` is the factory's fault."""
    pumped = Pumped(nursery, lambda: 5)
    await pumped.ask(1)
    assert isinstance(pumped.heard.error, TypeError)


@pytest.mark.parametrize("k", [0, 1, 31, 32, 33, 100])
async def test_a_generator_that_raises_fails_the_stream_after_its_elements(nursery, k: int) -> None:
    """Rule 1.4: whatever came before is signalled, in order; the very exception follows."""
    error = KeyError("k-th")

    async def failing():
        for number in range(k):
            yield number
        raise error

    pumped = Pumped(nursery, failing)
    await pumped.ask(1000)
    assert pumped.heard.elements == list(range(k))
    assert pumped.heard.error is error
    assert (our_tasks(), pumped.told.failures) == ([], [])


@pytest.mark.parametrize("k", [0, 1, 31, 32, 33, 100])
async def test_none_is_refused_with_its_position(nursery, k: int) -> None:
    """Rule 2.13: None is no element; the message says where it was, over all bursts and requests."""

    async def holey():
        for number in range(k):
            yield number
        yield None

    pumped = Pumped(nursery, holey)
    for _ in range(10):
        await pumped.ask(11)
    assert pumped.heard.elements == list(range(k))
    assert isinstance(pumped.heard.error, UsageError)
    assert str(pumped.heard.error) == (
        f"numbers yielded None at position {k} (counted from 0); None is never an element (rule 2.13). "
        "Leave it out, or map it to a value of its own"
    )


@pytest.mark.parametrize("given_already", [False, True])
async def test_a_closed_nursery_is_an_error_and_the_generator_stays_unstarted(given_already: bool) -> None:
    """Rule 3.16: request returns normally; cancelling does nothing there either."""
    async with trio.open_nursery() as closed:
        asked = Pumped(closed, numbers, given=given_already)
        idle = Pumped(closed, numbers, given=given_already)
    asked.pump.request(1)
    assert "the nursery that this publisher was bound to has closed" in str(asked.heard.error)
    idle.pump.cancel()
    idle.pump.request(1)
    assert (idle.heard.log, our_tasks()) == ([], [])


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("place", ["the factory", "the generator"])
async def test_an_interrupt_goes_to_the_nursery_and_the_subscriber_hears_of_it(interrupt: type[BaseException], place: str) -> None:
    """A subscriber that lives in another nursery must not wait for ever."""

    def interrupted():
        raise interrupt

    async def generator():
        yield 1
        interrupted()

    pumps: list[Pumped] = []

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            pumps.append(Pumped(nursery, interrupted if place == "the factory" else generator))
            await pumps[0].ask(5)

    group = await raised_by(scenario)
    assert isinstance(group, BaseExceptionGroup)
    assert [type(each) for each in group.exceptions] == [interrupt]
    assert isinstance(pumps[0].heard.error, PublisherStopped)


# --- cancelling


async def test_cancelled_before_the_first_request_nothing_is_ever_made(nursery) -> None:
    """And what the factory holds on to is let go of at once (rule 3.13)."""
    token = Token()
    ref = weakref.ref(token)

    def factory(held=token):
        raise AssertionError("nobody asked")

    pumped = Pumped(nursery, factory)
    del factory, token
    pumped.pump.cancel()
    pumped.pump.cancel()
    pumped.pump.request(1)
    gc.collect()
    assert (ref(), pumped.heard.log, our_tasks()) == (None, [], [])


async def test_cancelled_before_the_first_turn_the_factory_is_not_called(nursery) -> None:
    """The task was started and has not run: the user's code need not run any more."""
    pumped = Pumped(nursery, boom)
    pumped.pump.request(1)
    pumped.pump.cancel()
    await quiet()
    assert (pumped.heard.log, pumped.told.failures, our_tasks()) == ([], [], [])


@pytest.mark.parametrize("turns", range(1, 12))
async def test_cancelled_at_any_turn_there_is_silence(nursery, turns: int) -> None:
    """Rules 1.8, 3.12, and what a pipe takes for granted: not one signal after `cancel()` has returned."""

    async def steady():
        number = 0
        while True:
            await trio.lowlevel.checkpoint()
            yield number
            number += 1

    pumped = Pumped(nursery, steady)
    pumped.pump.request(UNBOUNDED)
    for _ in range(turns):
        await trio.lowlevel.checkpoint()
    seen = list(pumped.heard.log)
    pumped.pump.cancel()
    await quiet()
    assert (pumped.heard.log, pumped.told.failures, our_tasks()) == (seen, [], [])


async def test_an_element_that_was_ready_when_it_was_cancelled_is_not_signalled(nursery) -> None:
    """The generator has been woken with its element when somebody cancels: too late for trio to cancel it, not for us."""
    send, receive = trio.open_memory_channel[int](0)

    async def relay():
        yield await receive.receive()

    pumped = Pumped(nursery, relay)
    await pumped.ask(1)
    send.send_nowait(7)  # the pump's task is runnable now, with the 7
    pumped.pump.cancel()
    await quiet()
    assert (pumped.heard.log, our_tasks()) == ([], [])


async def test_a_pull_that_comes_back_with_nonsense_after_the_cancel_is_no_error(nursery) -> None:
    """Nobody listens, so nobody has to be told that it was None."""
    send, receive = trio.open_memory_channel[None](0)

    async def relay():
        yield await receive.receive()

    pumped = Pumped(nursery, relay)
    await pumped.ask(1)
    send.send_nowait(None)
    pumped.pump.cancel()
    await quiet()
    assert (pumped.heard.log, pumped.told.failures) == ([], [])


@pytest.mark.parametrize("k", [1, 31, 32, 33, 64])
async def test_cancelled_inside_a_signal_the_generator_is_not_pulled_again(nursery, k: int) -> None:
    """Rule 3.5 with effect at once: not even in the middle of a burst, nor at its end."""
    pulled: list[int] = []

    async def watched():
        for number in range(1, 1000):
            pulled.append(number)
            yield number

    pumped = Pumped(nursery, watched, {"on_next": lambda n: pumped.pump.cancel() if n == k else None})
    await pumped.ask(1000)
    assert (len(pumped.heard.elements), len(pulled), our_tasks()) == (k, k, [])


async def test_a_cancel_from_inside_the_generator_ends_what_it_waits_for(nursery) -> None:
    """A generator may feed its own consumer's decision: it must not wait on for ever for somebody who has gone."""
    seen: list[str] = []

    async def self_defeating():
        yield 1
        pumped.pump.cancel()
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            seen.append("cancelled")
            raise

    pumped = Pumped(nursery, self_defeating)
    await pumped.ask(5)
    assert (pumped.heard.log, seen, our_tasks()) == ([("on_next", 1)], ["cancelled"], [])


async def test_a_request_just_before_the_cancel_wakes_nobody(nursery) -> None:
    """The task was woken for demand that is gone when it runs."""
    pumped = Pumped(nursery, numbers)
    await pumped.ask(1)
    pumped.pump.request(5)
    pumped.pump.cancel()
    await quiet()
    assert (pumped.heard.elements, our_tasks()) == ([0], [])


async def test_a_scope_that_is_cancelled_tells_a_subscriber_that_still_listens(nursery) -> None:
    """Whoever stops the scope and forgets the subscription: it hears that its publisher was stopped, and not that it completed."""
    resting = Pumped(nursery, numbers, length=2)
    await resting.ask(1)
    resting.told.scope.cancel()
    at_work = Pumped(nursery, _sleeper)
    await at_work.ask(1)
    at_work.told.scope.cancel()
    in_signal = Pumped(nursery, numbers, {"on_next": lambda _: in_signal.told.scope.cancel()}, length=2)
    await in_signal.ask(2)
    for pumped in (resting, at_work, in_signal):
        assert isinstance(pumped.heard.error, PublisherStopped)
    assert (in_signal.heard.elements, our_tasks()) == ([0], [])


async def _sleeper():
    await trio.sleep_forever()
    yield 1


# --- one task pulls and closes


@pytest.mark.parametrize("leave", ["at rest", "at work", "in a signal", "at the end", "by failing"])
async def test_a_generator_runs_in_one_task_from_its_first_line_to_its_last(nursery, leave: str) -> None:
    """Pulling or closing it from another task would break its cancel scopes without a word."""
    where: list[trio.lowlevel.Task] = []

    async def watched():
        where.append(trio.lowlevel.current_task())
        try:
            for number in range(3):
                yield number
                where.append(trio.lowlevel.current_task())
            if leave == "at work":
                await trio.sleep_forever()
            if leave == "by failing":
                raise ValueError("boom")
        finally:
            where.append(trio.lowlevel.current_task())

    hooks = {"on_next": lambda n: pumped.pump.cancel() if leave == "in a signal" and n == 1 else None}
    pumped = Pumped(nursery, watched, hooks)
    await pumped.ask(2 if leave == "at rest" else 10)
    pumped.pump.cancel()
    await quiet()
    assert len(where) >= 3
    assert {task.name for task in where} == {"penstock pump of numbers"}
    assert len(set(where)) == 1
    assert our_tasks() == []


# --- bursts


@given(st.integers(min_value=1, max_value=LONGEST_BURST), st.floats(min_value=0, max_value=10, allow_nan=False))
def test_a_burst_is_followed_by_one_that_fits_the_time(burst: int, seconds: float) -> None:
    """Longer after a quick one, shorter after a slow one, within its bounds always."""
    following = next_burst(burst, seconds)
    assert 1 <= following <= LONGEST_BURST
    if seconds > BURST_SECONDS:
        assert following <= max(1, burst // 2)
    elif seconds < BURST_SECONDS / 4:
        assert following >= min(burst * 2, LONGEST_BURST)
    else:
        assert following == burst


@pytest.mark.parametrize(
    ("burst", "seconds", "expected"),
    [(32, 0, 64), (32, 0.00125, 32), (32, 0.005, 32), (32, 0.0051, 8), (1, 9, 1), (3, 9, 1), (1024, 0, 1024), (600, 0, 1024)],
)
def test_the_bounds_between_long_and_short_bursts(burst: int, seconds: float, expected: int) -> None:
    """5 ms are just good enough, a quarter of that is just not quick enough."""
    assert next_burst(burst, seconds) == expected


async def test_quick_elements_come_in_ever_longer_bursts(nursery, monkeypatch) -> None:
    """Checkpoints get rare where they can afford to: 32, 64, … up to 1,024 elements between two turns of the neighbours."""
    Clock(monkeypatch)
    pumped = Pumped(nursery, lambda: numbers(5000))
    steps = Steps(pumped.heard)
    trio.lowlevel.add_instrument(steps)
    await pumped.ask(UNBOUNDED)
    trio.lowlevel.remove_instrument(steps)
    assert steps.counts == [32, 64, 128, 256, 512, 1024, 1024, 1024, 936]


async def test_slow_elements_come_in_bursts_of_five_milliseconds(nursery, monkeypatch) -> None:
    """An element that takes 3 ms: after a first burst of 32 the neighbours get a turn after every second at most, soon after each."""
    clock = Clock(monkeypatch)

    def slow(_: int) -> None:
        clock.now += 0.003

    pumped = Pumped(nursery, lambda: numbers(60), {"on_next": slow})
    steps = Steps(pumped.heard)
    trio.lowlevel.add_instrument(steps)
    await pumped.ask(UNBOUNDED)
    trio.lowlevel.remove_instrument(steps)
    assert steps.counts[:3] == [FIRST_BURST, 8, 2]
    assert set(steps.counts[3:]) <= {1, 2}


async def test_a_burst_never_exceeds_the_demand_or_the_length(nursery, monkeypatch) -> None:
    """However long it might be for its time."""
    Clock(monkeypatch)
    pumped = Pumped(nursery, numbers, length=50)
    steps = Steps(pumped.heard)
    trio.lowlevel.add_instrument(steps)
    for n in (32, 5, 100):
        await pumped.ask(n)
    trio.lowlevel.remove_instrument(steps)
    assert steps.counts == [32, 5, 13]


async def test_a_neighbour_gets_its_turns_beside_a_generator_that_never_waits(nursery) -> None:
    """An endless generator with endless demand: the neighbour counts to ten all the same."""
    pumped = Pumped(nursery, numbers)
    pumped.pump.request(UNBOUNDED)
    for _ in range(10):
        await trio.lowlevel.checkpoint()
    pumped.pump.cancel()
    assert 0 < len(pumped.heard.elements) <= 11 * LONGEST_BURST


# --- closing


class Cleanup:
    """A generator function whose cleanup does as it was told, and counts."""

    def __init__(self, work=None, *, before=None) -> None:
        self._work = work
        self._before = before
        self.done = 0
        self.begun = 0

    async def __call__(self):
        try:
            while True:
                yield 1
                if self._before is not None:
                    await self._before()
        finally:
            self.begun += 1
            if self._work is not None:
                await self._work()
            self.done += 1


async def test_cleanup_at_rest_may_wait_within_its_deadline(nursery, autojump_clock) -> None:
    """A generator that rests at a yield says goodbye in peace: nothing in it is cancelled."""
    cleanup = Cleanup(partial(trio.sleep, 4.9))
    pumped = Pumped(nursery, cleanup)
    await pumped.ask(1)
    pumped.pump.cancel()
    await trio.sleep(4.8)
    assert (cleanup.begun, cleanup.done, our_tasks()) == (1, 0, ["penstock pump of numbers"])
    await trio.sleep(0.2)
    assert (cleanup.done, our_tasks(), pumped.told.failures) == (1, [], [])


@pytest.mark.parametrize("how", ["the subscriber cancels", "inside a signal", "the scope", "the nursery"])
async def test_cleanup_that_hangs_is_cut_short_and_told(autojump_clock, how: str) -> None:
    """The deadline holds however the stream was left; the message says what to change."""
    cleanup = Cleanup(trio.sleep_forever)
    hooks = {"on_next": lambda _: pumped.pump.cancel()} if how == "inside a signal" else {}
    async with trio.open_nursery() as nursery:
        pumped = Pumped(nursery, cleanup, hooks, cleanup_timeout=3)
        await pumped.ask(1)
        started = trio.current_time()
        if how == "the nursery":
            nursery.cancel_scope.cancel()
        elif how == "the scope":
            pumped.told.scope.cancel()
        else:
            pumped.pump.cancel()
    assert trio.current_time() - started == 3
    (failure,) = pumped.told.failures
    assert isinstance(failure, CleanupTimeout)
    assert str(failure) == (
        "the cleanup of numbers did not end within 3 s and was cut short. Make its `finally` shorter, or give `cleanup_timeout=` more"
    )
    assert (cleanup.begun, cleanup.done) == (1, 0)


async def test_cleanup_in_a_shield_is_waited_for_and_counts_as_done(nursery, autojump_clock) -> None:
    """Past its deadline, too: nobody may reach behind a shield, and what was not cut short has not failed."""

    async def shielded() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(20)

    cleanup = Cleanup(shielded)
    pumped = Pumped(nursery, cleanup, cleanup_timeout=3)
    await pumped.ask(1)
    pumped.pump.cancel()
    await trio.sleep(19)
    assert (cleanup.begun, cleanup.done) == (1, 0)
    await trio.sleep(2)
    assert (cleanup.done, pumped.told.failures) == (1, [])


async def test_stopping_again_does_not_cut_the_cleanup_short(nursery, autojump_clock) -> None:
    """Leaving a block cancels the stream and then the scope: the second must not take the time that the first has given."""
    cleanup = Cleanup(partial(trio.sleep, 2))
    pumped = Pumped(nursery, cleanup)
    await pumped.ask(1)
    pumped.pump.cancel()
    await quiet()
    pumped.told.scope.cancel()
    pumped.told.scope.cancel()
    await trio.sleep(3)
    assert (cleanup.done, pumped.told.failures) == (1, [])


async def test_at_the_natural_end_of_a_sized_stream_cleanup_has_its_time_too(nursery, autojump_clock) -> None:
    """The subscriber has its on_complete; the generator is closed behind it."""
    cleanup = Cleanup(partial(trio.sleep, 2))
    pumped = Pumped(nursery, cleanup, length=1)
    await pumped.ask(1)
    assert pumped.ends == ["on_complete"]
    pumped.told.scope.cancel()
    await trio.sleep(3)
    assert (cleanup.done, pumped.told.failures, our_tasks()) == (1, [], [])


async def test_a_generator_that_waits_is_cancelled_there_as_trio_cancels(nursery, autojump_clock) -> None:
    """What it awaits raises Cancelled, and so does its cleanup, unless it shields itself."""
    unshielded = Cleanup(partial(trio.sleep, 1), before=trio.sleep_forever)

    async def shielded() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)

    protected = Cleanup(shielded, before=trio.sleep_forever)
    for cleanup in (unshielded, protected):
        pumped = Pumped(nursery, cleanup)
        await pumped.ask(2)
        pumped.pump.cancel()
        await trio.sleep(2)
        assert (pumped.told.failures, our_tasks()) == ([], [])
    assert (unshielded.begun, unshielded.done) == (1, 0)
    assert (protected.begun, protected.done) == (1, 1)


async def _fail() -> None:
    raise KeyError("cleanup")


@pytest.mark.parametrize("before", [None, trio.sleep_forever], ids=["at rest", "at work"])
async def test_cleanup_that_raises_is_told_to_the_scope(nursery, before) -> None:
    """Nobody listens any more, and it is not lost: at rest as well as where it was cancelled at work."""
    pumped = Pumped(nursery, Cleanup(_fail, before=before))
    await pumped.ask(2 if before else 1)
    pumped.pump.cancel()
    await quiet()
    assert [repr(failure) for failure in pumped.told.failures] == ["KeyError('cleanup')"]
    assert our_tasks() == []


async def test_cleanup_that_fails_because_its_time_is_up_tells_what_it_says(nursery, autojump_clock) -> None:
    """It answered the deadline with an exception of its own."""

    async def touchy() -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise OSError("goodbye failed") from None

    pumped = Pumped(nursery, Cleanup(touchy))
    await pumped.ask(1)
    pumped.pump.cancel()
    await trio.sleep(10)
    assert [repr(failure) for failure in pumped.told.failures] == ["OSError('goodbye failed')"]


async def test_a_generator_that_yields_in_its_cleanup_is_told_of(nursery) -> None:
    """Python says it better than we could."""

    async def undying():
        try:
            yield 1
        finally:
            yield 2

    pumped = Pumped(nursery, undying)
    await pumped.ask(1)
    pumped.pump.cancel()
    await quiet()
    assert [repr(failure) for failure in pumped.told.failures] == ["RuntimeError('async generator ignored GeneratorExit')"]
    assert (pumped.heard.elements, our_tasks()) == ([1], [])


async def test_a_generator_that_survives_its_cancellation_signals_nothing_more(nursery) -> None:
    """It swallowed Cancelled and goes on: what it yields is for nobody, and it is closed."""
    seen: list[str] = []

    async def stubborn():
        try:
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                seen.append("swallowed")
            yield 1
        finally:
            seen.append("closed")

    pumped = Pumped(nursery, stubborn)
    await pumped.ask(1)
    pumped.pump.cancel()
    await quiet()
    assert (pumped.heard.log, seen, our_tasks()) == ([], ["swallowed", "closed"], [])


async def test_a_generator_that_ends_when_it_is_cancelled_does_not_complete(nursery) -> None:
    """It swallowed Cancelled and returned: rule 1.8, no signal after cancel."""

    async def quitter():
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            return
        yield 1

    pumped = Pumped(nursery, quitter)
    await pumped.ask(1)
    pumped.pump.cancel()
    await quiet()
    assert (pumped.heard.log, pumped.told.failures, our_tasks()) == ([], [], [])


class Handmade:
    """An async iterator that is no generator; closing it counts."""

    def __init__(self, work=None, wait=None) -> None:
        self._work = work
        self._wait = wait
        self.closed = 0

    def __aiter__(self):
        return self

    async def __anext__(self) -> int:
        if self._wait is not None:
            await self._wait()
        return 1

    async def aclose(self) -> None:
        self.closed += 1
        if self._work is not None:
            await self._work()


@pytest.mark.parametrize("leave", ["at rest", "at work", "in a signal"])
async def test_an_iterator_by_hand_is_closed_too(nursery, leave: str) -> None:
    """Whatever has an aclose is closed, once."""
    handmade = Handmade(wait=trio.sleep_forever if leave == "at work" else None)
    hooks = {"on_next": lambda _: pumped.pump.cancel()} if leave == "in a signal" else {}
    pumped = Pumped(nursery, lambda: handmade, hooks)
    await pumped.ask(1)
    pumped.pump.cancel()
    await quiet()
    assert (handmade.closed, pumped.told.failures, our_tasks()) == (1, [], [])


async def test_a_borrowed_iterator_is_left_open(nursery) -> None:
    """An open socket, say: its owner closes it."""
    handmade = Handmade()
    pumped = Pumped(nursery, lambda: handmade, borrowed=True)
    await pumped.ask(1)
    pumped.pump.cancel()
    await quiet()
    assert (handmade.closed, our_tasks()) == (0, [])


async def test_an_iterator_without_aclose_needs_no_closing(nursery) -> None:
    """An async iterator need not have one."""
    send, receive = trio.open_memory_channel[int](5)
    pumped = Pumped(nursery, type("Bare", (), {"__aiter__": lambda self: self, "__anext__": lambda self: receive.receive()}))
    send.send_nowait(3)
    await pumped.ask(2)
    pumped.pump.cancel()
    await quiet()
    assert (pumped.heard.elements, pumped.told.failures, our_tasks()) == ([3], [], [])
    send.close()
    receive.close()


async def test_what_was_given_is_closed_though_nobody_pulled_it(nursery) -> None:
    """A generator that somebody made, and had begun to read, is closed in a task, because closing may wait."""
    cleanup = Cleanup(trio.lowlevel.checkpoint)
    generator = cleanup()
    await anext(generator)
    pumped = Pumped(nursery, lambda: generator, given=True)
    pumped.pump.cancel()
    assert our_tasks() == ["penstock cleanup of numbers"]
    pumped.told.scope.cancel()
    await quiet()
    assert (cleanup.done, our_tasks(), pumped.told.failures) == (1, [], [])


async def test_the_pump_lets_go_of_everything_at_the_end(nursery) -> None:
    """Somebody may keep the subscription; it keeps neither the generator nor the subscriber nor the last element."""
    token = Token()
    refs = [weakref.ref(token)]

    async def one(element):
        yield element

    generator = one(token)
    refs.append(weakref.ref(generator))
    heard = Heard()
    refs.append(weakref.ref(heard))
    told = ViolationSink(nursery)
    pump = Pump(lambda it=generator: it, heard, told.scope, label="one")
    del generator, token
    pump.request(5)
    await quiet()
    assert [entry[0] for entry in heard.log] == ["on_next", "on_complete"]
    del heard
    gc.collect()
    assert [ref() for ref in refs] == [None, None, None]
    assert repr(pump) == "<pump of one: over, demand 0>"


async def test_a_pump_says_what_state_it_is_in(nursery) -> None:
    """Idle, live with its demand, over."""
    pumped = Pumped(nursery, numbers)
    assert repr(pumped.pump) == "<pump of numbers: idle, demand 0>"
    pumped.pump.request(3)
    assert repr(pumped.pump) == "<pump of numbers: live, demand 3>"
    pumped.pump.cancel()
    assert repr(pumped.pump) == "<pump of numbers: over, demand 0>"


async def test_a_request_from_a_foreign_thread_is_an_error_that_breaks_nothing() -> None:
    """Other threads come in through trio.from_thread; one that does not is told so, and the stream goes on."""
    async with subscribe(numbers, demand=0) as stream:
        stream.request(1)
        one = await anext(stream)
        await trio.testing.wait_all_tasks_blocked()
        with ThreadPoolExecutor(max_workers=1) as stranger:  # a thread of its own: trio's are used again, and one may still know of a run
            asked = stranger.submit(stream.request, 1)
        with pytest.raises(RuntimeError, match="async context"):
            asked.result()
        stream.request(1)
        two, three = await anext(stream), await anext(stream)
    assert one < two < three
