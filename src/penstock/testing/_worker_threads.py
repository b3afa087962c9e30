"""Waits for threads that work for a task, so that virtual time does not overtake them.

Rules of this file

* A thread works for a task that is inside `trio.to_thread.run_sync`. It does not while it has
  called back with `trio.from_thread`: then the task runs that call, and if this waits, the thread
  also waits.
* While a thread works, `settle` does not return, and the clock of `run_virtual` does not jump. Both
  look once in `_PAUSE` real seconds, and at once when the thread has come back. A run without
  threads pays one call for each pass of the run loop.
* A thread may wait for something that comes only later, such as demand in a queue. So after
  `seconds` of real time it counts as idle.
"""

import inspect
import threading
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final

import attrs
import trio
import trio.testing

_PAUSE: Final = 0.001
_LINGERS: Final = 20
_RUN_SYNC: Final = inspect.unwrap(trio.to_thread.run_sync).__code__

_WATCH: "Final[trio.lowlevel.RunVar[WorkerThreads | None]]" = trio.lowlevel.RunVar(
    "penstock.testing.worker_threads", default=None
)


@attrs.define(eq=False)
class WorkerThreads(trio.abc.Instrument):
    """How a run waits for threads: pass it to `run_virtual`.

    A thread that has not come back after `seconds` of real time counts as idle. For threads that no
    task waits for: `until_idle` returns when they have nothing more to do, or nothing must happen
    for `quiet` real seconds before all is settled.
    """

    seconds: float = 5.0
    quiet: float = 0.0
    until_idle: Callable[[], Awaitable[object]] | None = None
    seen: bool = attrs.field(default=False, init=False)
    """Whether a thread has worked for a task."""
    _holding: bool = attrs.field(default=False, init=False)
    _idle: int = attrs.field(default=0, init=False)

    def begin(self) -> None:
        """Watch over the current run."""
        _WATCH.set(self)

    def before_io_wait(self, timeout: float) -> None:
        """Keep the clock from jumping while a thread works. trio calls this before it waits for
        input or lets the clock jump.
        """
        del timeout
        active = trio.testing.active_thread_count()
        if active and not self._holding and active != self._idle and _is_working():
            self._holding = True
            # The call that is scheduled here also wakes the run loop, so
            # that the clock does not jump in this pass.
            trio.lowlevel.current_trio_token().run_sync_soon(self._begin_to_hold)

    def _begin_to_hold(self) -> None:
        trio.lowlevel.spawn_system_task(self._hold)

    async def _hold(self) -> None:
        # While a task waits for idleness, trio lets the clock of a test not jump.
        is_idle = await self.wait()
        self._idle = trio.testing.active_thread_count() if is_idle else 0
        self._holding = False

    async def wait(self) -> bool:
        """Wait until no thread works for a task. Return whether one counts as idle.
        Checkpoints if one works.
        """
        until = monotonic() + self.seconds
        while _is_working():
            self.seen = True
            if monotonic() > until:
                return True
            await trio.testing.wait_all_tasks_blocked(_PAUSE)
        return False


def linger(number: int) -> None:
    """Let other threads run for a moment, inside one of the first signals or calls
    that come from another thread.

    So two that overlap are seen to. `number` counts them: a long stream would take too long.
    """
    if number <= _LINGERS:
        threading.Event().wait(_PAUSE)


async def wait_for_threads() -> None:
    """Wait until the threads of the run are back, if `run_virtual` was told to wait for them.
    Checkpoints if it waits.
    """
    watch = _WATCH.get()
    if watch is not None:
        if watch.until_idle is not None:
            await watch.until_idle()
            await trio.testing.wait_all_tasks_blocked()
        elif watch.quiet:
            await trio.testing.wait_all_tasks_blocked(watch.quiet)
        if trio.testing.active_thread_count():
            await watch.wait()


def _is_working() -> bool:
    """Return whether a thread works for a task of the run."""
    if not trio.testing.active_thread_count():
        return False
    root = trio.lowlevel.current_root_task()
    tasks = [root] if root is not None else []
    for task in tasks:  # it grows while it is walked
        if _waits_for_thread(task):
            return True
        tasks += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return False


def _waits_for_thread(task: trio.lowlevel.Task) -> bool:
    codes = [frame.f_code for frame, _ in task.iter_await_frames()]
    # Behind run_sync only trio's own two functions that park the task may follow.
    # A call back from the thread adds others.
    return _RUN_SYNC in codes[-3:]
