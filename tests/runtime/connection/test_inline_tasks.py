"""Who reads a connection: one at a time, who begins what that asks for himself, and lets another one read where it has to wait."""

import gc
import weakref
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context
from typing import Any, TypeAlias

import pytest
import trio
import trio.testing

from penstock.runtime.connection._inline_tasks import HELPER, READER, InlineTaskRunner, _continue_coroutine

LAST = 99
"""The number of the last piece of work, where there are many."""

WHO: ContextVar[str] = ContextVar("WHO", default="nobody")

Order: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class Ship:
    """A runner, with what it hears and does written down."""

    def __init__(self, *, turn: float = 1.0) -> None:
        self.runner = InlineTaskRunner(self.hear, lambda: self.log.append("settled"), turn=turn)
        self.say, self._heard = trio.open_memory_channel[list[Order]](10)
        self.log: list[str] = []
        self.tasks: list[trio.lowlevel.Task] = []

    async def hear(self) -> bool:
        """Take orders: pieces of work, each by its name."""
        try:
            orders = await self._heard.receive()
        except trio.EndOfChannel:
            return False
        self.runner.is_running_inline = True
        for order in orders:
            self.runner.start_soon(order, name=order.__name__)
        self.runner.is_running_inline = False
        self.log.append("heard")
        return True

    def note(self, what: str) -> None:
        """Write down what happens, and in which task."""
        self.log.append(what)
        self.tasks.append(trio.lowlevel.current_task())


@pytest.fixture
def ship() -> Ship:
    return Ship()


async def test_what_does_not_wait_runs_in_the_task_that_has_heard_of_it(ship: Ship) -> None:
    """In order, after all was heard, and before anything is heard again: no task is made for it."""

    async def first() -> None:
        ship.note("first")

    async def second() -> None:
        ship.note("second")

    async with trio.open_nursery() as nursery:
        ship.runner.start(nursery)
        await ship.say.send([first, second])
        await ship.say.send([second])
        ship.say.close()
    assert ship.log == ["settled", "heard", "first", "second", "settled", "heard", "second", "settled"]
    assert [task.name for task in ship.tasks] == [READER] * 3
    assert len(set(ship.tasks)) == 1


async def test_who_has_to_wait_keeps_the_task_and_another_one_reads_on(ship: Ship) -> None:
    """Under its own name; what else was due is begun by the other one, who then hears what comes next."""
    gate = trio.Event()

    async def waits() -> None:
        ship.note("waits")
        await gate.wait()
        ship.note("has waited")

    async def quick() -> None:
        ship.note("quick")

    async with trio.open_nursery() as nursery:
        ship.runner.start(nursery)
        await ship.say.send([waits, quick])
        await ship.say.send([quick])
        await trio.testing.wait_all_tasks_blocked()
        assert [what for what in ship.log if what not in {"heard", "settled"}] == ["waits", "quick", "quick"]
        gate.set()
        await trio.testing.wait_all_tasks_blocked()
        before, _, reader, after = ship.tasks
        assert before is after
        assert before is not reader
        assert (before.name, reader.name) == ("waits", READER)
        ship.say.close()


async def test_many_that_have_to_wait_begin_in_order_and_within_a_few_passes_of_the_scheduler(ship: Ship) -> None:
    """A neighbour may take long for each pass: the hundredth of those who arrived together does not wait for a hundred of them."""
    gate, passes = trio.Event(), 0

    async def neighbour() -> None:
        nonlocal passes
        while not gate.is_set():
            passes += 1
            await trio.lowlevel.checkpoint()

    def work(number: int) -> Order:
        async def waits() -> None:
            ship.note(f"{number}")
            if number == LAST:
                gate.set()
            await gate.wait()

        return waits

    async with trio.open_nursery() as nursery:
        ship.runner.start(nursery)
        await ship.say.send([work(number) for number in range(LAST + 1)])
        ship.say.close()
        nursery.start_soon(neighbour)
    assert [entry for entry in ship.log if entry.isdigit()] == [f"{number}" for number in range(LAST + 1)]
    assert len(set(ship.tasks)) == LAST + 1
    assert {task.name for task in ship.tasks} == {"waits"}
    assert passes < 12


async def test_who_was_to_help_and_finds_nothing_left_goes(ship: Ship) -> None:
    """Those who were started because others had to wait do nothing where what is left does not: it is done by then, or by them."""

    async def waits() -> None:
        ship.note("waits")
        await trio.lowlevel.checkpoint()

    async def quick() -> None:
        ship.note("quick")

    orders = [*[waits] * 5, *[quick] * 60]
    async with trio.open_nursery() as nursery:
        ship.runner.start(nursery)
        await ship.say.send(orders)
        await ship.say.send([quick])
        ship.say.close()
    assert [entry for entry in ship.log if entry in ("waits", "quick")] == ["waits"] * 5 + ["quick"] * 61


async def test_where_few_have_to_wait_nobody_is_started_to_help(ship: Ship) -> None:
    """A task for work that does not wait costs more than that work: those who did not wait since count against those who did before."""
    helpers = 0

    class Counts(trio.abc.Instrument):
        def task_spawned(self, task: trio.lowlevel.Task) -> None:
            nonlocal helpers
            helpers += task.name == HELPER

    async def waits() -> None:
        await trio.lowlevel.checkpoint()

    async def quick() -> None:
        ship.note("quick")

    instrument = Counts()
    trio.lowlevel.add_instrument(instrument)
    try:
        async with trio.open_nursery() as nursery:
            ship.runner.start(nursery)
            await ship.say.send([waits] * 20)
            await trio.testing.wait_all_tasks_blocked()
            before = helpers
            await ship.say.send([*[quick] * 8, *[waits, *[quick] * 8] * 4])
            ship.say.close()
    finally:
        trio.lowlevel.remove_instrument(instrument)
    assert before > 0
    assert helpers == before


async def test_what_was_said_goes_out_before_anybody_waits(ship: Ship) -> None:
    """Work that waits may have answered already: it is not held back until the next one leads."""

    async def waits() -> None:
        ship.note("waits")
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        ship.runner.start(nursery)
        await ship.say.send([waits])
        await trio.testing.wait_all_tasks_blocked()
        assert ship.log == ["settled", "heard", "waits", "settled", "settled"]  # who waits, and who leads from then on
        nursery.cancel_scope.cancel()


async def test_context_variables_are_the_works_own(ship: Ship) -> None:
    """From its first step to its last, although that is taken in a task of others."""
    seen: list[str] = []

    async def first() -> None:
        WHO.set("first")
        await trio.lowlevel.checkpoint()
        seen.append(WHO.get())

    async def second() -> None:
        seen.append(WHO.get())
        WHO.set("second")

    async with trio.open_nursery() as nursery:
        ship.runner.start(nursery)
        await ship.say.send([first, second, second])
        ship.say.close()
    assert sorted(seen) == ["first", "nobody", "nobody"]


async def test_a_cancel_reaches_what_waits_and_nobody_else(ship: Ship) -> None:
    """`waits` is told what cancels the work, once it has to wait; the runner reads on."""
    told: list[trio.CancelScope] = []

    async def sleeps() -> None:
        await trio.sleep_forever()

    async def quick() -> None:
        ship.note("quick")

    async def employs() -> None:
        ship.runner.start_cancellable(quick, told.append, name="quick")
        ship.runner.start_cancellable(sleeps, told.append, name="sleeps")

    async with trio.open_nursery() as nursery:
        ship.runner.start(nursery)
        await ship.say.send([employs])
        await trio.testing.wait_all_tasks_blocked()
        (scope,) = told
        scope.cancel()
        await ship.say.send([quick])
        await trio.testing.wait_all_tasks_blocked()
        assert ship.log.count("quick") == 2
        ship.say.close()


async def test_work_that_nobody_has_heard_of_gets_a_task(ship: Ship) -> None:
    """What is begun from elsewhere runs beside the reader, who waits meanwhile; it can be cancelled as well."""
    told: list[trio.CancelScope] = []

    async def quick() -> None:
        ship.note("quick")

    async with trio.open_nursery() as nursery:
        ship.runner.start(nursery)
        ship.runner.start_soon(quick, name="alone")
        ship.runner.start_cancellable(trio.sleep_forever, told.append, name="sleeps")
        await trio.testing.wait_all_tasks_blocked()
        assert ship.tasks[0].name == "alone"
        told[0].cancel()
        ship.say.close()


async def test_before_anybody_reads_nothing_can_be_begun(ship: Ship) -> None:
    """As a nursery says that has closed."""
    with pytest.raises(RuntimeError, match=r"start\(\) was not called yet"):
        ship.runner.start_soon(trio.sleep_forever, name="early")


async def test_who_reads_is_stopped_and_who_works_goes_on(ship: Ship) -> None:
    """The connection is over; what still runs has its own end."""
    gate = trio.Event()

    async def waits() -> None:
        await gate.wait()
        ship.note("has waited")

    async with trio.open_nursery() as nursery:
        ship.runner.start(nursery)
        await ship.say.send([waits])
        await trio.testing.wait_all_tasks_blocked()
        ship.runner.stop()
        await trio.testing.wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 1
        gate.set()
    assert ship.log[-1] == "has waited"


async def test_who_was_to_lead_after_the_end_does_not_begin(ship: Ship) -> None:
    """The one before has to wait in the same moment in which the runner is stopped."""

    async def stops() -> None:
        await trio.lowlevel.checkpoint()

    async def halts() -> None:
        ship.runner.stop()
        await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        ship.runner.start(nursery)
        await ship.say.send([halts, stops])
    assert ship.log.count("heard") == 1


async def test_what_is_due_is_begun_even_if_the_crew_is_stopped_before() -> None:
    """Somebody waits for its end: in tasks of its own, and in order."""
    ship = Ship(turn=0.0)
    told: list[trio.CancelScope] = []

    async def halts() -> None:
        ship.runner.stop()

    async def due() -> None:
        ship.note("due")
        await trio.lowlevel.checkpoint()
        ship.note("done")

    async def employs() -> None:
        ship.runner.start_cancellable(due, told.append, name="employed")

    async with trio.open_nursery() as nursery:
        ship.runner.start(nursery)
        await ship.say.send([employs, halts, due])
    assert ship.log.count("due") == ship.log.count("done") == 2
    assert len(told) == 1


async def test_work_that_never_waits_lets_others_have_their_turn() -> None:
    """After a turn's time somebody else runs, between two pieces of work."""
    ship = Ship(turn=0.0)

    async def quick() -> None:
        ship.note("quick")

    async def neighbour() -> None:
        while ship.log.count("quick") < 3:
            ship.log.append("neighbour")
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(neighbour)
        ship.runner.start(nursery)
        await ship.say.send([quick, quick, quick])
        ship.say.close()
    first, _, last = (place for place, what in enumerate(ship.log) if what == "quick")
    assert "neighbour" in ship.log[first:last]


async def test_what_work_raises_is_the_nurserys_affair(ship: Ship) -> None:
    """At once, and after it has waited: nothing is swallowed on the way."""

    async def at_once() -> None:
        raise ValueError("at once")

    async def later() -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError("later")

    work: Any
    for work in (at_once, later):
        with pytest.RaisesGroup(ValueError):
            async with trio.open_nursery() as nursery:
                fresh = Ship()
                fresh.runner.start(nursery)
                await fresh.say.send([work])


async def test_what_is_thrown_into_a_task_reaches_the_work(ship: Ship) -> None:
    """As when it awaits something that is not trio's: trio throws a TypeError where that happened."""

    class NotTrios:
        def __await__(self) -> Any:
            yield "what is this?"

    async def foreign() -> None:
        await trio.lowlevel.checkpoint()
        try:
            await NotTrios()
        except TypeError:
            ship.note("told")

    async with trio.open_nursery() as nursery:
        ship.runner.start(nursery)
        await ship.say.send([foreign])
        await trio.testing.wait_all_tasks_blocked()
        ship.say.close()
    assert "told" in ship.log


async def test_work_that_is_thrown_away_is_closed() -> None:
    """As when a run of trio's ends in disorder: what the work holds is let go."""
    closed: list[str] = []

    async def work() -> None:
        try:
            await trio.sleep_forever()
        finally:
            closed.append("closed")

    running = work()
    trap = running.send(None)
    going_on = _continue_coroutine(running, copy_context(), trap)

    async def wait() -> None:
        await going_on

    waiting = wait()
    waiting.send(None)
    waiting.close()
    assert closed == ["closed"]


async def test_nothing_is_left_of_what_cancelled_work_has_held(ship: Ship) -> None:
    """Not until the next collection: a cancellation that has ended the work refers to it no longer."""

    class Held:
        """What the work has held."""

    held: list[weakref.ref[Held]] = []
    told: list[trio.CancelScope] = []

    async def waits() -> None:
        mine = Held()
        held.append(weakref.ref(mine))
        await trio.sleep_forever()

    async def employs() -> None:
        ship.runner.start_cancellable(waits, told.append, name="employed")

    gc.disable()
    try:
        async with trio.open_nursery() as nursery:
            ship.runner.start(nursery)
            await ship.say.send([employs])
            await trio.testing.wait_all_tasks_blocked()
            assert held[0]() is not None
            told[0].cancel()
            ship.say.close()
        assert held[0]() is None
    finally:
        gc.enable()
