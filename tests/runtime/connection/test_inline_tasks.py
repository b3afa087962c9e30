"""The reader runs short calls inline;
a call that blocks keeps the task, and another task becomes the reader.
"""

import gc
import weakref
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeAlias

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.runtime.connection import _decoding_turns, _inline_tasks
from penstock.runtime.connection._decoding_turns import DecodingTurns
from penstock.runtime.connection._inline_tasks import (
    HELPER,
    READER,
    InlineTaskRunner,
    _Continued,
)

LAST = 99
"""The number of the last call, in tests with many."""

CALLER: ContextVar[str] = ContextVar("CALLER", default="none")

Call: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class CancellableCall:
    """A call that notes the cancel scopes it is told of."""

    context: Context

    def __init__(self, function: Call, told: list[trio.CancelScope], name: str) -> None:
        self.run = function
        self.on_blocked = told.append
        self.name = name


class RunnerHarness:
    """A runner that gets its calls from the test, and a log."""

    def __init__(self, *, turn: float = 1.0) -> None:
        self.runner = InlineTaskRunner(
            self.read_and_dispatch,
            lambda: self.log.append("flushed"),
            turns=DecodingTurns(),
            turn=turn,
        )
        self.calls, self._arrivals = trio.open_memory_channel[list[Call]](10)
        self.log: list[str] = []
        self.tasks: list[trio.lowlevel.Task] = []

    async def read_and_dispatch(self) -> bool:
        """Queue the calls that the test has sent, each under its name."""
        try:
            calls = await self._arrivals.receive()
        except trio.EndOfChannel:
            return False
        self.runner.is_running_inline = True
        for call in calls:
            self.runner.start_soon(call, name=call.__name__)
        self.runner.is_running_inline = False
        self.log.append("read")
        return True

    def note(self, what: str) -> None:
        """Log an event with the task in which it happens."""
        self.log.append(what)
        self.tasks.append(trio.lowlevel.current_task())


@pytest.fixture
def harness() -> RunnerHarness:
    return RunnerHarness()


async def test_a_call_that_does_not_block_runs_in_the_reader_task(harness: RunnerHarness) -> None:
    """In order, after everything was read, and before the next read: no task is made for it."""

    async def first() -> None:
        harness.note("first")

    async def second() -> None:
        harness.note("second")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.runner.run, nursery)
        await harness.calls.send([first, second])
        await harness.calls.send([second])
        harness.calls.close()
    assert harness.log == [
        "flushed",
        "read",
        "first",
        "second",
        "flushed",
        "read",
        "second",
        "flushed",
    ]
    assert [task.name for task in harness.tasks] == [READER] * 3
    assert len(set(harness.tasks)) == 1


async def test_a_call_that_blocks_keeps_the_task_and_another_task_reads(
    harness: RunnerHarness,
) -> None:
    """Under the name of the call; the new reader runs the queued calls, and reads on."""
    gate = trio.Event()

    async def waits() -> None:
        harness.note("waits")
        await gate.wait()
        harness.note("has waited")

    async def quick() -> None:
        harness.note("quick")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.runner.run, nursery)
        await harness.calls.send([waits, quick])
        await harness.calls.send([quick])
        await trio.testing.wait_all_tasks_blocked()
        assert [what for what in harness.log if what not in {"read", "flushed"}] == [
            "waits",
            "quick",
            "quick",
        ]
        gate.set()
        await trio.testing.wait_all_tasks_blocked()
        before, _, reader, after = harness.tasks
        assert before is after
        assert before is not reader
        assert (before.name, reader.name) == ("waits", READER)
        harness.calls.close()


async def test_many_blocking_calls_start_in_order_within_a_few_passes(
    harness: RunnerHarness,
) -> None:
    """The hundredth of the calls that arrived together does not wait for a hundred scheduler
    passes.
    """
    gate, passes = trio.Event(), 0

    async def neighbour() -> None:
        nonlocal passes
        while not gate.is_set():
            passes += 1
            await trio.lowlevel.checkpoint()

    def work(number: int) -> Call:
        async def waits() -> None:
            harness.note(f"{number}")
            if number == LAST:
                gate.set()
            await gate.wait()

        return waits

    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.runner.run, nursery)
        await harness.calls.send([work(number) for number in range(LAST + 1)])
        harness.calls.close()
        nursery.start_soon(neighbour)
    assert [entry for entry in harness.log if entry.isdigit()] == [
        f"{number}" for number in range(LAST + 1)
    ]
    assert len(set(harness.tasks)) == LAST + 1
    assert {task.name for task in harness.tasks} == {"waits"}
    assert passes < 12


async def test_a_helper_task_that_finds_no_call_ends(harness: RunnerHarness) -> None:
    """Helper tasks were started because other calls blocked; by now the queue is empty."""

    async def waits() -> None:
        harness.note("waits")
        await trio.lowlevel.checkpoint()

    async def quick() -> None:
        harness.note("quick")

    calls = [*[waits] * 5, *[quick] * 60]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.runner.run, nursery)
        await harness.calls.send(calls)
        await harness.calls.send([quick])
        harness.calls.close()
    assert [entry for entry in harness.log if entry in ("waits", "quick")] == ["waits"] * 5 + [
        "quick"
    ] * 61


async def test_helpers_share_the_budget_of_the_pass(
    harness: RunnerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls that block, and take 0.1 s of a turn of 1 s each: no pass has more than a turn and
    one call, and no call has two helpers.
    """
    now, taken, helpers = 100.0, [0.0], 0
    for module in (_inline_tasks, _decoding_turns):
        monkeypatch.setattr(module, "monotonic", lambda: now)

    class Passes(trio.abc.Instrument):
        def before_io_wait(self, timeout: float) -> None:
            taken.append(0.0)

        def task_spawned(self, task: trio.lowlevel.Task) -> None:
            nonlocal helpers
            helpers += task.name == HELPER

    async def waits() -> None:
        nonlocal now
        now += 0.1
        taken[-1] += 0.1
        await trio.lowlevel.checkpoint()

    trio.lowlevel.add_instrument(passes := Passes())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.runner.run, nursery)
        await harness.calls.send([waits] * 200)
        harness.calls.close()
    trio.lowlevel.remove_instrument(passes)
    assert sum(taken) == pytest.approx(20)
    assert max(taken) <= 1.1 + 1e-9
    assert helpers < 200  # each of them has found a call
    assert harness.runner._waiting_helpers == 0


async def test_if_few_calls_block_no_helper_task_is_started(harness: RunnerHarness) -> None:
    """A task for a call that does not block costs more than that call:
    each such call halves the number of helper tasks.
    """
    helpers = 0

    class Counts(trio.abc.Instrument):
        def task_spawned(self, task: trio.lowlevel.Task) -> None:
            nonlocal helpers
            helpers += task.name == HELPER

    async def waits() -> None:
        await trio.lowlevel.checkpoint()

    async def quick() -> None:
        harness.note("quick")

    instrument = Counts()
    trio.lowlevel.add_instrument(instrument)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(harness.runner.run, nursery)
            await harness.calls.send([waits] * 20)
            await trio.testing.wait_all_tasks_blocked()
            before = helpers
            await harness.calls.send([*[quick] * 8, *[waits, *[quick] * 8] * 4])
            harness.calls.close()
    finally:
        trio.lowlevel.remove_instrument(instrument)
    assert before > 0
    assert helpers == before


async def test_answers_are_flushed_when_a_call_blocks(harness: RunnerHarness) -> None:
    """They are not held back until the next reader runs."""

    async def waits() -> None:
        harness.note("waits")
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.runner.run, nursery)
        await harness.calls.send([waits])
        await trio.testing.wait_all_tasks_blocked()
        # By the call that blocks, and by the new reader.
        assert harness.log == ["flushed", "read", "waits", "flushed", "flushed"]
        nursery.cancel_scope.cancel()


async def test_each_call_has_its_own_context_variables(harness: RunnerHarness) -> None:
    """From its first step to its last, although the first step is taken in the reader's task."""
    seen: list[str] = []

    async def first() -> None:
        CALLER.set("first")
        await trio.lowlevel.checkpoint()
        seen.append(CALLER.get())

    async def second() -> None:
        seen.append(CALLER.get())
        CALLER.set("second")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.runner.run, nursery)
        await harness.calls.send([first, second, second])
        harness.calls.close()
    assert sorted(seen) == ["first", "none", "none"]


async def test_a_cancel_reaches_the_call_that_blocks_and_no_other(harness: RunnerHarness) -> None:
    """`on_blocked` gets the cancel scope when the call blocks; the reader goes on."""
    told: list[trio.CancelScope] = []

    async def sleeps() -> None:
        await trio.sleep_forever()

    async def quick() -> None:
        harness.note("quick")

    async def starts_cancellable() -> None:
        harness.runner.start_call(CancellableCall(quick, told, "quick"))
        harness.runner.start_call(CancellableCall(sleeps, told, "sleeps"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.runner.run, nursery)
        await harness.calls.send([starts_cancellable])
        await trio.testing.wait_all_tasks_blocked()
        (scope,) = told
        scope.cancel()
        await harness.calls.send([quick])
        await trio.testing.wait_all_tasks_blocked()
        assert harness.log.count("quick") == 2
        harness.calls.close()


async def test_a_call_from_elsewhere_gets_a_task(harness: RunnerHarness) -> None:
    """It runs beside the reader, which waits meanwhile; it can be cancelled as well."""
    told: list[trio.CancelScope] = []

    async def quick() -> None:
        harness.note("quick")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.runner.run, nursery)
        await trio.testing.wait_all_tasks_blocked()
        harness.runner.start_soon(quick, name="alone")
        harness.runner.start_call(CancellableCall(trio.sleep_forever, told, "sleeps"))
        await trio.testing.wait_all_tasks_blocked()
        assert harness.tasks[0].name == "alone"
        told[0].cancel()
        harness.calls.close()


async def test_before_run_no_call_can_be_made(harness: RunnerHarness) -> None:
    """RuntimeError, as from a nursery that has closed."""
    with pytest.raises(RuntimeError, match=r"run\(\) was not called yet"):
        harness.runner.start_soon(trio.sleep_forever, name="early")


async def test_stop_ends_the_reader_and_no_call(harness: RunnerHarness) -> None:
    """The connection is over; each call that runs ends by itself."""
    gate = trio.Event()

    async def waits() -> None:
        await gate.wait()
        harness.note("has waited")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.runner.run, nursery)
        await harness.calls.send([waits])
        await trio.testing.wait_all_tasks_blocked()
        harness.runner.stop()
        await trio.testing.wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 1
        gate.set()
    assert harness.log[-1] == "has waited"


async def test_a_reader_that_starts_after_stop_does_not_read(harness: RunnerHarness) -> None:
    """A call blocks in the same step in which the runner is stopped."""

    async def stops() -> None:
        await trio.lowlevel.checkpoint()

    async def halts() -> None:
        harness.runner.stop()
        await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.runner.run, nursery)
        await harness.calls.send([halts, stops])
    assert harness.log.count("read") == 1


async def test_queued_calls_start_although_the_runner_is_stopped() -> None:
    """Each in its own task, and in order: a caller may wait for their end."""
    harness = RunnerHarness(turn=0.0)
    told: list[trio.CancelScope] = []

    async def halts() -> None:
        harness.runner.stop()

    async def due() -> None:
        harness.note("due")
        await trio.lowlevel.checkpoint()
        harness.note("done")

    async def starts_cancellable() -> None:
        harness.runner.start_call(CancellableCall(due, told, "cancellable"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.runner.run, nursery)
        await harness.calls.send([starts_cancellable, halts, due])
    assert harness.log.count("due") == harness.log.count("done") == 2
    assert len(told) == 1


async def test_calls_that_never_block_give_other_tasks_a_turn() -> None:
    """After `turn` seconds other tasks run, between two calls."""
    harness = RunnerHarness(turn=0.0)

    async def quick() -> None:
        harness.note("quick")

    async def neighbour() -> None:
        while harness.log.count("quick") < 3:
            harness.log.append("neighbour")
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(neighbour)
        nursery.start_soon(harness.runner.run, nursery)
        await harness.calls.send([quick, quick, quick])
        harness.calls.close()
    first, _, last = (place for place, what in enumerate(harness.log) if what == "quick")
    assert "neighbour" in harness.log[first:last]


async def test_an_exception_of_a_call_reaches_the_nursery(harness: RunnerHarness) -> None:
    """Before the call blocks and after it."""

    async def at_once() -> None:
        raise ValueError("at once")

    async def later() -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError("later")

    work: Any
    for work in (at_once, later):
        with pytest.RaisesGroup(ValueError):
            async with trio.open_nursery() as nursery:
                fresh = RunnerHarness()
                nursery.start_soon(fresh.runner.run, nursery)
                await fresh.calls.send([work])


async def test_an_exception_thrown_into_the_task_reaches_the_call(harness: RunnerHarness) -> None:
    """Trio throws a TypeError into a task that awaits a foreign object."""

    class NotTrios:
        def __await__(self) -> Any:
            yield "what is this?"

    async def foreign() -> None:
        await trio.lowlevel.checkpoint()
        try:
            await NotTrios()
        except TypeError:
            harness.note("told")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.runner.run, nursery)
        await harness.calls.send([foreign])
        await trio.testing.wait_all_tasks_blocked()
        harness.calls.close()
    assert "told" in harness.log


async def test_a_call_whose_task_is_dropped_is_closed() -> None:
    """As when a trio run ends in disorder: the call runs its cleanup."""
    closed: list[str] = []

    async def work() -> None:
        try:
            await trio.sleep_forever()
        finally:
            closed.append("closed")

    running = work()
    trap = running.send(None)
    going_on = _Continued(running, copy_context(), trap)

    async def wait() -> None:
        await going_on

    waiting = wait()
    waiting.send(None)
    waiting.close()
    assert closed == ["closed"]


async def test_a_cancelled_call_keeps_nothing_alive(harness: RunnerHarness) -> None:
    """Without the garbage collector:
    the Cancelled exception refers to a frame that refers to it no longer.
    """

    class Held:
        """An object in the frame of the call."""

    held: list[weakref.ref[Held]] = []
    told: list[trio.CancelScope] = []

    async def waits() -> None:
        mine = Held()
        held.append(weakref.ref(mine))
        await trio.sleep_forever()

    async def starts_cancellable() -> None:
        harness.runner.start_call(CancellableCall(waits, told, "cancellable"))

    gc.disable()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(harness.runner.run, nursery)
            await harness.calls.send([starts_cancellable])
            await trio.testing.wait_all_tasks_blocked()
            assert held[0]() is not None
            told[0].cancel()
            harness.calls.close()
        assert held[0]() is None
    finally:
        gc.enable()


# --- the same as with a nursery


Step: TypeAlias = str
"""A step of a call: `log` an entry, `block` for one scheduler pass,
`spawn` the next script as another call, or `fail`.
"""

SCRIPTS = st.lists(
    st.lists(st.sampled_from(["log", "block", "spawn"]), max_size=5), min_size=1, max_size=8
)


class Scripted:
    """Calls that do the steps of their scripts, and keep what each of them has seen."""

    def __init__(self, scripts: list[list[Step]]) -> None:
        self.scripts = scripts
        self.started: list[int] = []
        self.seen: dict[int, list[str]] = {}
        self.start_soon: Callable[..., None]

    def call(self, number: int) -> Call:
        async def run() -> None:
            self.started.append(number)
            seen = self.seen.setdefault(number, [])
            before = CALLER.get()
            CALLER.set(str(number))
            for step in self.scripts[number % len(self.scripts)]:
                if step == "log":
                    seen.append(f"{before}: log")
                elif step == "block":
                    await trio.lowlevel.checkpoint()
                    seen.append(f"{CALLER.get()}: woken")
                elif number < 2 * len(self.scripts):  # a bound: each call may start others
                    self.start_soon(self.call(number + len(self.scripts)), name="spawned")
            seen.append("ended")

        return run


@given(SCRIPTS)
@settings(max_examples=150, deadline=None)
def test_calls_see_the_same_as_in_tasks_of_a_nursery(scripts: list[list[Step]]) -> None:
    """The same calls run to the same ends, with the same context variables; the calls that
    arrived together start in their order.
    """
    inline, plain = Scripted(scripts), Scripted(scripts)

    async def run_inline() -> None:
        harness = RunnerHarness()
        inline.start_soon = harness.runner.start_soon
        async with trio.open_nursery() as nursery:
            nursery.start_soon(harness.runner.run, nursery)
            await harness.calls.send([inline.call(number) for number in range(len(scripts))])
            await trio.testing.wait_all_tasks_blocked()
            harness.calls.close()

    async def run_plain() -> None:
        async with trio.open_nursery() as nursery:
            plain.start_soon = nursery.start_soon
            for number in range(len(scripts)):
                nursery.start_soon(plain.call(number))

    trio.run(run_inline)
    trio.run(run_plain)
    assert {number: sorted(seen) for number, seen in inline.seen.items()} == {
        number: sorted(seen) for number, seen in plain.seen.items()
    }
    assert sorted(inline.started) == sorted(plain.started)
    first = [number for number in inline.started if number < len(scripts)]
    assert first == list(range(len(scripts)))


async def test_calls_that_may_not_start_wait_and_the_reader_goes_on(harness: RunnerHarness) -> None:
    """They are started one after the other when they may, each in a task,
    and only as long as they may.
    """
    room = 1

    async def call() -> None:
        nonlocal room
        room -= 1
        harness.note("call")

    harness.runner.may_start = lambda: room > 0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.runner.run, nursery)
        await harness.calls.send([call] * 5)
        await trio.testing.wait_all_tasks_blocked()
        await harness.calls.send([])
        await trio.testing.wait_all_tasks_blocked()
        assert harness.log == ["flushed", "read", "call", "flushed", "read", "flushed"]
        harness.runner.start_deferred()
        await trio.testing.wait_all_tasks_blocked()
        assert harness.log.count("call") == 1
        room = 2
        harness.runner.start_deferred()
        await trio.testing.wait_all_tasks_blocked()
        assert harness.log.count("call") == 3
        harness.runner.stop()
        harness.calls.close()
    assert harness.log.count("call") == 5  # accepted calls are started in any case


async def test_calls_that_wait_are_started_when_the_input_has_ended(harness: RunnerHarness) -> None:
    """Their places would never be free otherwise: no reader is left that could start them."""

    async def call() -> None:
        harness.note("call")

    harness.runner.may_start = lambda: False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.runner.run, nursery)
        await harness.calls.send([call, call])
        harness.calls.close()
        await trio.testing.wait_all_tasks_blocked()
        assert harness.log.count("call") == 0
        harness.runner.stop()
    assert harness.log.count("call") == 2
