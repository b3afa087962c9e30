"""A pump pulls on demand, in bursts, from one task. It closes the iterator there, within a
deadline, and signals nothing after a cancel.
"""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import UNBOUNDED, PublisherStopped, UsageError
from penstock.core import _pump
from penstock.core._pump import FIRST_BURST, LONGEST_BURST, Pump
from penstock.streams import subscribe
from penstock.testing import run_virtual
from tests.core._foreign import Recorder, boom
from tests.core._helpers import Reports, Token, numbers, our_tasks, quiet, raised_by


class PumpHarness:
    """A pump in a nursery, the subscriber below it, and the reports of its scope."""

    def __init__(
        self,
        nursery: trio.Nursery,
        open_iterator,
        hooks=None,
        cleanup_timeout: float = 5.0,
        **options,
    ) -> None:
        self.reports = Reports(nursery, cleanup_timeout=cleanup_timeout)
        self.recorder = Recorder(**(hooks or {}))
        self.pump = Pump(
            open_iterator, self.recorder, self.reports.scope, label="numbers", **options
        )

    async def ask(self, n: int) -> None:
        self.pump.request(n)
        await quiet()

    @property
    def ends(self) -> list[str]:
        return [entry[0] for entry in self.recorder.log if entry[0] != "on_next"]


class Clock:
    """Replaces `monotonic`; a test sets the time."""

    def __init__(self, monkeypatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(_pump, "monotonic", lambda: self.now)


class Steps(trio.abc.Instrument):
    """Records how many elements each step of a pump's task has signalled."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._before = 0
        self.counts: list[int] = []

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._before = len(self._recorder.elements)

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task.name.startswith("penstock pump") and len(self._recorder.elements) > self._before:
            self.counts.append(len(self._recorder.elements) - self._before)


# --- demand


async def test_nothing_happens_without_demand(nursery) -> None:
    """A subscription without demand is an object, not a task; the generator is not even made."""
    harness = PumpHarness(nursery, boom)
    await quiet()
    assert (harness.recorder.log, our_tasks()) == ([], [])


async def test_the_task_lives_from_the_first_pull_to_the_end(nursery) -> None:
    """The task starts with the first request, gets no turn while it waits for demand,
    and ends with the stream.
    """
    harness = PumpHarness(nursery, lambda: numbers(3))
    await harness.ask(2)
    assert our_tasks() == ["penstock pump of numbers"]
    await harness.ask(2)
    assert (harness.recorder.elements, harness.ends, our_tasks()) == (
        [0, 1, 2],
        ["on_complete"],
        [],
    )


async def test_pump_pulls_exactly_the_requested_elements(nursery) -> None:
    """Rule 1.1: the generator is not pulled even once more than was requested."""
    pulled: list[int] = []

    async def watched():
        for number in range(100):
            pulled.append(number)
            yield number

    harness = PumpHarness(nursery, watched)
    for n in (1, 3, 7):
        await harness.ask(n)
    assert (harness.recorder.elements, pulled) == (list(range(11)), list(range(11)))


async def test_requests_without_a_scheduler_pass_between_them_add_up(nursery) -> None:
    """Rule 3.8: demand is additive, before the task runs and while it waits."""
    harness = PumpHarness(nursery, numbers)
    for _ in range(2):
        harness.pump.request(1)
        harness.pump.request(2)
        await quiet()
    assert harness.recorder.elements == list(range(6))


async def test_a_request_inside_a_signal_neither_nests_nor_gets_lost(nursery) -> None:
    """Rules 3.2, 3.3: 2,000 elements, each requested inside the one before it,
    are signalled at one stack depth.
    """
    harness = PumpHarness(
        nursery, lambda: numbers(2000), {"on_next": lambda _: harness.pump.request(1)}
    )
    await harness.ask(1)
    assert len(harness.recorder.elements) == 2000
    assert (harness.recorder.deepest, harness.ends) == (1, ["on_complete"])


@pytest.mark.parametrize(
    "requests", [[UNBOUNDED], [2**62, 2**62], [UNBOUNDED, UNBOUNDED], [1, UNBOUNDED]]
)
async def test_unbounded_demand_stays_unbounded(nursery, requests: list[int]) -> None:
    """Rule 3.17: 2^63-1 can also be reached by adding up, and elements do not reduce it."""
    harness = PumpHarness(nursery, lambda: numbers(5000))
    for n in requests:
        harness.pump.request(n)
    await quiet()
    assert (harness.recorder.elements, harness.ends) == (list(range(5000)), ["on_complete"])


async def test_one_below_unbounded_is_counted(nursery) -> None:
    """A demand of 2^63-2 is reduced by elements like any other number."""
    harness = PumpHarness(
        nursery, numbers, {"on_next": lambda n: harness.pump.cancel() if n == 9 else None}
    )
    harness.pump.request(UNBOUNDED - 1)
    assert repr(harness.pump) == f"<pump of numbers: live, demand {UNBOUNDED - 1}>"
    await quiet()
    assert harness.recorder.elements == list(range(10))


@given(
    st.lists(st.integers(min_value=1, max_value=100), max_size=8),
    st.integers(min_value=0, max_value=200),
    st.booleans(),
)
def test_signalled_elements_are_the_smaller_of_demand_and_length(
    requests: list[int], length: int, sized: bool
) -> None:
    """For any demand in any portions, elements come in order, and the end comes exactly
    when it is known.
    """

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            harness = PumpHarness(
                nursery, lambda: numbers(length), length=length if sized and length else UNBOUNDED
            )
            asked = 0
            for n in requests:
                await harness.ask(n)
                asked += n
                assert harness.recorder.elements == list(range(min(asked, length)))
                known = asked >= length if sized and length else asked > length
                assert harness.ends == (["on_complete"] if known else [])
            harness.pump.cancel()
            await quiet()
            assert (our_tasks(), harness.reports.failures) == ([], [])

    run_virtual(scenario)


# --- ends


async def test_a_known_length_completes_with_the_last_element(nursery) -> None:
    """Rule 1.5: after the last element it is not pulled again, and the iterator is closed."""
    closed: list[str] = []

    async def watched():
        try:
            for number in range(10):
                yield number
        finally:
            closed.append("closed")

    harness = PumpHarness(nursery, watched, length=3)
    await harness.ask(3)
    assert (harness.recorder.elements, harness.ends, closed) == (
        [0, 1, 2],
        ["on_complete"],
        ["closed"],
    )


async def test_a_length_that_was_too_long_completes_with_the_iterator(nursery) -> None:
    """A list may shrink between the subscription and the pull."""
    harness = PumpHarness(nursery, lambda: numbers(2), length=5)
    await harness.ask(5)
    assert (harness.recorder.elements, harness.ends) == ([0, 1], ["on_complete"])


async def test_a_factory_that_raises_fails_the_stream(nursery) -> None:
    """Rules 1.4, 3.16: request returns normally, and the error is signalled."""
    harness = PumpHarness(nursery, boom)
    harness.pump.request(1)
    assert harness.recorder.log == []
    await quiet()
    assert (harness.ends, type(harness.recorder.error), our_tasks()) == (
        ["on_error"],
        ValueError,
        [],
    )


async def test_a_factory_that_returns_no_async_iterator_fails_the_stream(nursery) -> None:
    """The stream fails with the TypeError that Python raises for it."""
    harness = PumpHarness(nursery, lambda: 5)
    await harness.ask(1)
    assert isinstance(harness.recorder.error, TypeError)


@pytest.mark.parametrize("k", [0, 1, 31, 32, 33, 100])
async def test_a_generator_that_raises_fails_the_stream_after_its_elements(nursery, k: int) -> None:
    """Rule 1.4: earlier elements are signalled in order, then the same exception object."""
    error = KeyError("k-th")

    async def failing():
        for number in range(k):
            yield number
        raise error

    harness = PumpHarness(nursery, failing)
    await harness.ask(1000)
    assert harness.recorder.elements == list(range(k))
    assert harness.recorder.error is error
    assert (our_tasks(), harness.reports.failures) == ([], [])


@pytest.mark.parametrize("k", [0, 1, 31, 32, 33, 100])
async def test_none_is_refused_with_its_position(nursery, k: int) -> None:
    """Rule 2.13: None is never an element.
    The message gives its position, counted over all bursts and requests.
    """

    async def with_none():
        for number in range(k):
            yield number
        yield None

    harness = PumpHarness(nursery, with_none)
    for _ in range(10):
        await harness.ask(11)
    assert harness.recorder.elements == list(range(k))
    assert isinstance(harness.recorder.error, UsageError)
    assert str(harness.recorder.error) == (
        f"numbers yielded None at position {k} (counted from 0); None is never an element (rule "
        "2.13). Leave it out, or map it to a value of its own"
    )


@pytest.mark.parametrize("given_already", [False, True])
async def test_a_closed_nursery_is_an_error_and_the_generator_stays_unstarted(
    given_already: bool,
) -> None:
    """Rule 3.16: request returns normally, and a cancel does nothing."""
    async with trio.open_nursery() as closed:
        asked = PumpHarness(closed, numbers, given=given_already)
        idle = PumpHarness(closed, numbers, given=given_already)
    asked.pump.request(1)
    assert "the nursery that this publisher was bound to has closed" in str(asked.recorder.error)
    idle.pump.cancel()
    idle.pump.request(1)
    assert (idle.recorder.log, our_tasks()) == ([], [])


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("place", ["the factory", "the generator"])
async def test_an_interrupt_is_raised_in_the_nursery_and_signalled_as_error(
    interrupt: type[BaseException], place: str
) -> None:
    """A subscriber in another nursery must not wait forever."""

    def interrupted():
        raise interrupt

    async def generator():
        yield 1
        interrupted()

    pumps: list[PumpHarness] = []

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            pumps.append(PumpHarness(nursery, interrupted if place == "the factory" else generator))
            await pumps[0].ask(5)

    group = await raised_by(scenario)
    assert isinstance(group, BaseExceptionGroup)
    assert [type(each) for each in group.exceptions] == [interrupt]
    assert isinstance(pumps[0].recorder.error, PublisherStopped)


# --- cancelling


async def test_cancel_before_the_first_request_makes_no_iterator(nursery) -> None:
    """The pump also forgets the factory at once (rule 3.13)."""
    token = Token()
    ref = weakref.ref(token)

    def factory(held=token):
        raise AssertionError("there was no request")

    harness = PumpHarness(nursery, factory)
    del factory, token
    harness.pump.cancel()
    harness.pump.cancel()
    harness.pump.request(1)
    gc.collect()
    assert (ref(), harness.recorder.log, our_tasks()) == (None, [], [])


async def test_cancel_before_the_tasks_first_step_does_not_call_the_factory(nursery) -> None:
    """The task was started and has not run yet, so the user's code need not run at all."""
    harness = PumpHarness(nursery, boom)
    harness.pump.request(1)
    harness.pump.cancel()
    await quiet()
    assert (harness.recorder.log, harness.reports.failures, our_tasks()) == ([], [], [])


@pytest.mark.parametrize("turns", range(1, 12))
async def test_no_signal_follows_a_cancel_at_any_step(nursery, turns: int) -> None:
    """Rules 1.8, 3.12, and the promise inside a pipe: no signal after `cancel()` has returned."""

    async def steady():
        number = 0
        while True:
            await trio.lowlevel.checkpoint()
            yield number
            number += 1

    harness = PumpHarness(nursery, steady)
    harness.pump.request(UNBOUNDED)
    for _ in range(turns):
        await trio.lowlevel.checkpoint()
    seen = list(harness.recorder.log)
    harness.pump.cancel()
    await quiet()
    assert (harness.recorder.log, harness.reports.failures, our_tasks()) == (seen, [], [])


async def test_an_element_that_is_ready_at_the_cancel_is_not_signalled(nursery) -> None:
    """The generator has already been woken with its element. trio cannot cancel it any more, but
    the pump drops the element.
    """
    send, receive = trio.open_memory_channel[int](0)

    async def relay():
        yield await receive.receive()

    harness = PumpHarness(nursery, relay)
    await harness.ask(1)
    send.send_nowait(7)  # the pump's task is runnable now, and will get the 7
    harness.pump.cancel()
    await quiet()
    assert (harness.recorder.log, our_tasks()) == ([], [])


async def test_none_after_the_cancel_is_not_an_error(nursery) -> None:
    """The element is dropped, so its value does not matter."""
    send, receive = trio.open_memory_channel[None](0)

    async def relay():
        yield await receive.receive()

    harness = PumpHarness(nursery, relay)
    await harness.ask(1)
    send.send_nowait(None)
    harness.pump.cancel()
    await quiet()
    assert (harness.recorder.log, harness.reports.failures) == ([], [])


@pytest.mark.parametrize("k", [1, 31, 32, 33, 64])
async def test_cancel_inside_a_signal_stops_pulling_at_once(nursery, k: int) -> None:
    """Rule 3.5: the generator is not pulled again, whether in the middle of a burst
    or at its end.
    """
    pulled: list[int] = []

    async def watched():
        for number in range(1, 1000):
            pulled.append(number)
            yield number

    harness = PumpHarness(
        nursery, watched, {"on_next": lambda n: harness.pump.cancel() if n == k else None}
    )
    await harness.ask(1000)
    assert (len(harness.recorder.elements), len(pulled), our_tasks()) == (k, k, [])


async def test_cancel_from_inside_the_generator_cancels_its_wait(nursery) -> None:
    """A generator may cause its own consumer's cancel, and must not wait forever afterwards."""
    seen: list[str] = []

    async def cancels_itself():
        yield 1
        harness.pump.cancel()
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            seen.append("cancelled")
            raise

    harness = PumpHarness(nursery, cancels_itself)
    await harness.ask(5)
    assert (harness.recorder.log, seen, our_tasks()) == ([("on_next", 1)], ["cancelled"], [])


async def test_a_request_just_before_the_cancel_signals_nothing(nursery) -> None:
    """The task was woken for demand that is gone when it runs."""
    harness = PumpHarness(nursery, numbers)
    await harness.ask(1)
    harness.pump.request(5)
    harness.pump.cancel()
    await quiet()
    assert (harness.recorder.elements, our_tasks()) == ([0], [])


async def test_a_cancelled_scope_signals_an_error_to_a_live_subscriber(nursery) -> None:
    """If the scope is stopped but not the subscription, the subscriber gets PublisherStopped,
    and not completion.
    """
    suspended = PumpHarness(nursery, numbers, length=2)
    await suspended.ask(1)
    suspended.reports.scope.cancel()
    while_waiting = PumpHarness(nursery, _sleeper)
    await while_waiting.ask(1)
    while_waiting.reports.scope.cancel()
    in_signal = PumpHarness(
        nursery, numbers, {"on_next": lambda _: in_signal.reports.scope.cancel()}, length=2
    )
    await in_signal.ask(2)
    for harness in (suspended, while_waiting, in_signal):
        assert isinstance(harness.recorder.error, PublisherStopped)
    assert (in_signal.recorder.elements, our_tasks()) == ([0], [])


async def _sleeper():
    await trio.sleep_forever()
    yield 1


# --- one task pulls and closes


@pytest.mark.parametrize(
    "leave", ["suspended", "waiting", "in a signal", "at the end", "by failing"]
)
async def test_a_generator_runs_in_one_task_from_its_first_line_to_its_last(
    nursery, leave: str
) -> None:
    """Pulling or closing it from another task would corrupt its cancel scopes silently."""
    where: list[trio.lowlevel.Task] = []

    async def watched():
        where.append(trio.lowlevel.current_task())
        try:
            for number in range(3):
                yield number
                where.append(trio.lowlevel.current_task())
            if leave == "waiting":
                await trio.sleep_forever()
            if leave == "by failing":
                raise ValueError("boom")
        finally:
            where.append(trio.lowlevel.current_task())

    hooks = {
        "on_next": lambda n: harness.pump.cancel() if leave == "in a signal" and n == 1 else None
    }
    harness = PumpHarness(nursery, watched, hooks)
    await harness.ask(2 if leave == "suspended" else 10)
    harness.pump.cancel()
    await quiet()
    assert len(where) >= 3
    assert {task.name for task in where} == {"penstock pump of numbers"}
    assert len(set(where)) == 1
    assert our_tasks() == []


# --- bursts


async def test_bursts_of_quick_elements_get_longer(nursery, monkeypatch) -> None:
    """Bursts grow to 32, 64, … up to 1,024 elements between two checkpoints."""
    Clock(monkeypatch)
    harness = PumpHarness(nursery, lambda: numbers(5000))
    steps = Steps(harness.recorder)
    trio.lowlevel.add_instrument(steps)
    await harness.ask(UNBOUNDED)
    trio.lowlevel.remove_instrument(steps)
    assert steps.counts == [32, 64, 128, 256, 512, 1024, 1024, 1024, 936]


async def test_bursts_of_slow_elements_take_about_five_milliseconds(nursery, monkeypatch) -> None:
    """With 3 ms for an element, other tasks get a turn after each second element at most, once
    the first burst of 32 is over.
    """
    clock = Clock(monkeypatch)

    def slow(_: int) -> None:
        clock.now += 0.003

    harness = PumpHarness(nursery, lambda: numbers(60), {"on_next": slow})
    steps = Steps(harness.recorder)
    trio.lowlevel.add_instrument(steps)
    await harness.ask(UNBOUNDED)
    trio.lowlevel.remove_instrument(steps)
    assert steps.counts[:3] == [FIRST_BURST, 8, 2]
    assert set(steps.counts[3:]) <= {1, 2}


async def test_a_burst_never_exceeds_the_demand_or_the_length(nursery, monkeypatch) -> None:
    """A burst is never longer than the demand or the rest of the stream, even if time allows it."""
    Clock(monkeypatch)
    harness = PumpHarness(nursery, numbers, length=50)
    steps = Steps(harness.recorder)
    trio.lowlevel.add_instrument(steps)
    for n in (32, 5, 100):
        await harness.ask(n)
    trio.lowlevel.remove_instrument(steps)
    assert steps.counts == [32, 5, 13]


async def test_another_task_runs_beside_a_generator_that_never_waits(nursery) -> None:
    """With an endless generator and unbounded demand, another task still counts to ten."""
    harness = PumpHarness(nursery, numbers)
    harness.pump.request(UNBOUNDED)
    for _ in range(10):
        await trio.lowlevel.checkpoint()
    harness.pump.cancel()
    assert 0 < len(harness.recorder.elements) <= 11 * LONGEST_BURST


async def test_an_ended_pump_keeps_no_references(nursery) -> None:
    """A program may keep the subscription;
    that keeps neither the generator nor the subscriber nor the last element.
    """
    token = Token()
    refs = [weakref.ref(token)]

    async def one(element):
        yield element

    generator = one(token)
    refs.append(weakref.ref(generator))
    recorder = Recorder()
    refs.append(weakref.ref(recorder))
    reports = Reports(nursery)
    pump = Pump(lambda it=generator: it, recorder, reports.scope, label="one")
    del generator, token
    pump.request(5)
    await quiet()
    assert [entry[0] for entry in recorder.log] == ["on_next", "on_complete"]
    del recorder
    gc.collect()
    assert [ref() for ref in refs] == [None, None, None]
    assert repr(pump) == "<pump of one: over, demand 0>"


async def test_the_repr_shows_state_and_demand(nursery) -> None:
    """The states are idle, live and over."""
    harness = PumpHarness(nursery, numbers)
    assert repr(harness.pump) == "<pump of numbers: idle, demand 0>"
    harness.pump.request(3)
    assert repr(harness.pump) == "<pump of numbers: live, demand 3>"
    harness.pump.cancel()
    assert repr(harness.pump) == "<pump of numbers: over, demand 0>"


async def test_a_request_from_a_foreign_thread_raises_and_breaks_nothing() -> None:
    """Other threads must use trio.from_thread. A direct call raises, and the stream goes on."""
    async with subscribe(numbers, demand=0) as stream:
        stream.request(1)
        one = await anext(stream)
        await trio.testing.wait_all_tasks_blocked()
        # Not a thread of trio's pool, which may still know a run.
        with ThreadPoolExecutor(max_workers=1) as foreign_thread:
            asked = foreign_thread.submit(stream.request, 1)
        with pytest.raises(RuntimeError, match="async context"):
            asked.result()
        stream.request(1)
        two, three = await anext(stream), await anext(stream)
    assert one < two < three
