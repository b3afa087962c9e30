"""Lets the loop of asyncio wait for trio as well, in its own `select`.

Why: a guest run of trio waits in a thread, and each wait that begins costs about 30 µs and a change
of threads, also if it ends at once. Here no thread is started: the clock tells trio that each wait
is over, and the next pass of trio is held back until something is due.

Rules of this file:

* A pass is held back only if trio had nothing to run in the last one.
* It is made when the selector of trio, which is itself a file that the loop watches, is ready, or
  a deadline of trio has come. trio makes its selector ready when a plain call from asyncio makes a
  task of trio runnable, or changes the next deadline.
* Passes that are due follow one another without a trip through the loop, for `TURN` seconds. Then
  the tasks of asyncio get their turn.
* `wait_all_tasks_blocked` does not return in such a run: for trio no time passes while it is idle.
"""

import asyncio
from collections.abc import Callable
from math import inf
from time import perf_counter
from typing import Final

import trio

from penstock.guest._inside_trio import has_events, hold, release

TURN: Final = 0.0002
"""Seconds for which passes follow one another. A trip through the loop takes 3 to 5 µs beside a
pass of 4 µs and more; so tasks of asyncio wait for at most this and one pass.
"""


class LoopWaits:
    """The waits of one guest run."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.clock: PassingClock = PassingClock()
        """For the guest run."""
        self._make_pass: Callable[[], object]
        self._is_held = False  # the next pass waits until something is due
        self._is_due = False  # the next pass is to be made
        self._is_in_turn = False
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0  # when the timer is due: a handle of uvloop may not tell
        self._file: int | None = None

    def watch(self, file: int) -> None:
        """Begin: `file` is ready when a file of trio is."""
        self._loop.add_reader(file, self._on_ready)
        self._file = file

    def close(self) -> None:
        """End."""
        if self._file is not None:
            self._loop.remove_reader(self._file)
        if self._timer is not None:
            self._timer.cancel()

    def run_soon(self, make_pass: Callable[[], object]) -> None:
        """Make the next pass of trio when it is due. trio calls this at the end of each pass."""
        self._make_pass = make_pass
        clock = self.clock
        # What trio would have waited; 0 if it has a task to run, because it does not ask then.
        seconds, clock.seconds = clock.seconds, 0.0
        if seconds <= 0 or self._file is None or has_events(make_pass):
            self._is_due = True
            if not self._is_in_turn:
                self._loop.call_soon(self._take_turn)
            return
        self._is_held = True
        hold(make_pass)
        if seconds < inf:
            due = self._loop.time() + seconds
            # A timer that comes earlier makes a pass for nothing, which costs less than a new timer
            # for each wait.
            if self._timer is None or self._due > due:
                if self._timer is not None:
                    self._timer.cancel()
                self._timer, self._due = self._loop.call_at(due, self._on_time), due

    # --- for the loop

    def _take_turn(self) -> None:
        """Make the pass that is due, and those that are due after it while there is time."""
        ends = perf_counter() + TURN
        self._is_in_turn = True
        try:
            while self._is_due:
                self._is_due = False
                self._make_pass()
                if perf_counter() >= ends:
                    break
        finally:
            self._is_in_turn = False
        if self._is_due:
            self._loop.call_soon(self._take_turn)

    def _on_ready(self) -> None:
        """Make the pass that is held back: a file of trio is ready, or a deadline has come."""
        if self._is_held:
            self._is_held, self._is_due = False, True
            release(self._make_pass)
            self._take_turn()

    def _on_time(self) -> None:
        self._timer = None
        self._on_ready()


class PassingClock(trio.abc.Clock):
    """The time of the system, on which no wait takes time: it tells how long one would take."""

    def __init__(self) -> None:
        self.seconds: float = 0.0
        """How long trio would wait."""

    def start_clock(self) -> None:
        """Do nothing: the clock of the system runs."""

    def current_time(self) -> float:
        return perf_counter()

    def deadline_to_sleep_time(self, deadline: float) -> float:
        self.seconds = inf if deadline == inf else deadline - perf_counter()
        return 0.0
