"""Lets the loop of asyncio wait for trio as well, in its own `select`.

Why: a guest run of trio waits in a thread, and each wait that begins costs about 30 µs and a change
of threads, also if it ends at once. Here no thread is started: the clock tells trio that each wait
is over, and the next pass of trio is held back until something is due.

Rules of this file:

* A pass is held back only if trio had nothing to run in the last one.
* It is made when a file of trio is ready (its selector is itself a file that the loop watches), a
  deadline of trio has come, or a plain call has made a task of trio runnable.
* A plain call from asyncio that changes a deadline of trio is noticed within `LONGEST_HOLD`.
* `wait_all_tasks_blocked` does not return in such a run: for trio no time passes while it is idle.
"""

import asyncio
from collections.abc import Callable
from math import inf
from time import perf_counter
from typing import Final

import trio

from penstock.guest._inside_trio import has_events

LONGEST_HOLD: Final = 0.1
"""Seconds for which a pass is held back at most."""


class LoopWaits(trio.abc.Instrument):
    """The waits of one guest run."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.clock: PassingClock = PassingClock()
        """For the guest run."""
        self._held: Callable[[], object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0  # when the timer is due: a handle of uvloop may not tell
        self._file: int | None = None

    def watch(self, file: int) -> None:
        """Begin: `file` is ready when a file of trio is."""
        self._loop.add_reader(file, self.wake)
        self._file = file

    def close(self) -> None:
        """End."""
        if self._file is not None:
            self._loop.remove_reader(self._file)
        if self._timer is not None:
            self._timer.cancel()

    def run_soon(self, make_pass: Callable[[], object]) -> None:
        """Make the next pass of trio when it is due."""
        seconds = self.clock.take_wait()
        if seconds <= 0 or self._file is None or has_events(make_pass):
            self._loop.call_soon(make_pass)
            return
        self._held = make_pass
        due = self._loop.time() + min(seconds, LONGEST_HOLD)
        # A timer that comes earlier makes a pass for nothing, which costs less than a new timer for
        # each wait.
        if self._timer is None or self._due > due:
            if self._timer is not None:
                self._timer.cancel()
            self._timer, self._due = self._loop.call_at(due, self._on_time), due

    def wake(self) -> None:
        """Make the pass that is held back, if there is one."""
        held, self._held = self._held, None
        if held is not None:
            self._loop.call_soon(held)

    # --- for trio

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        """Make the next pass: a task can run."""
        if self._held is not None:
            self.wake()

    # --- inside

    def _on_time(self) -> None:
        self._timer = None
        self.wake()


class PassingClock(trio.abc.Clock):
    """The time of the system, on which no wait takes time: it tells how long one would take."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def start_clock(self) -> None:
        """Do nothing: the clock of the system runs."""

    def current_time(self) -> float:
        return perf_counter()

    def deadline_to_sleep_time(self, deadline: float) -> float:
        self._seconds = inf if deadline == inf else deadline - perf_counter()
        return 0.0

    def take_wait(self) -> float:
        """Return the seconds that trio would have waited before this pass; 0 if it had a task to
        run.
        """
        seconds, self._seconds = self._seconds, 0.0
        return seconds
