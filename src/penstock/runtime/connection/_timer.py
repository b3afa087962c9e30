"""The timer of a connection: asks the session what is due,
and lets the task of the connection wait until then.

It has no task: the task of the connection has nothing to do but to wait,
and waits here (`wait_until`).
"""

from collections.abc import Callable
from math import inf
from typing import Any, Final

import trio

from penstock.core import WOKEN
from penstock.runtime.connection._lazy_event import LazyEvent
from penstock.runtime.connection._requests import SendBatcher
from penstock.session import ConnectionState, Session

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_OPEN: Final = ConnectionState.OPEN

TIMER_GRANULARITY: Final = 0.05
"""The most seconds between two ticks while messages arrive.
No deadline of a session needs to be met more exactly.
"""

REST_SECONDS: Final = 1.0
"""The most seconds between two ticks while the writer has a task. A tick ends a task that had
nothing to do since the last one.
"""


ROUNDING: Final = 1e-6
"""Seconds, more than the sum and the difference of two times differ from exact ones."""


class SessionTimer:
    """Calls `Session.tick` when something is due."""

    __slots__ = (
        "_batcher",
        "_due",
        "_last_tick",
        "_leaving",
        "_paused_at",
        "_scope",
        "_session",
        "_task",
        "covered_until",
        "has_idle_task",
        "stood_still",
    )

    def __init__(self, session: Session, leaving: LazyEvent, batcher: SendBatcher) -> None:
        """`leaving` is set when this side has said a goodbye that the peer does not answer."""
        self._session = session
        self._leaving = leaving
        self._batcher = batcher
        # The waiting task. `ParkedTask` would be an object and a coroutine more.
        self._task: trio.lowlevel.Task | None = None
        self._due = inf  # the time of the next tick
        # around the wait, with that deadline; between two waits it is that of the last one.
        self._scope = trio.CancelScope()
        self._last_tick = -inf
        self.covered_until: float = -inf
        """Messages that arrive before this time need no `reschedule_soon`:
        a tick comes then anyway.
        """
        self._paused_at: float | None = None
        self.stood_still: float = 0.0
        """Seconds for which the session's clock has stood still: no deadline of the session
        passes while its connection is suspended.
        """
        self.has_idle_task: Callable[[], bool] = _has_none
        """Called in each tick. Returns whether a tick must come within `REST_SECONDS`. The
        writer of each link sets it.
        """

    async def wait_until(self, is_reached: Callable[[], bool]) -> None:
        """Wait until `is_reached()` is true, and tick whenever something is due. Call `wake`
        when it may have become true.
        """
        while not is_reached():
            # The scope is kept, so that another task can move its deadline while this one waits.
            with trio.CancelScope(deadline=self._due) as self._scope:
                self._task = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._leave)
            # The deadline was reached: only then is a tick due.
            if self._scope.cancelled_caught:
                self._due = inf
                self.reschedule()

    async def wait_unticked(self, is_reached: Callable[[], bool]) -> None:
        """Wait until `is_reached()` is true, without a tick: the session is over, or broken."""
        while not is_reached():
            self._task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._leave)

    def wake(self) -> None:
        """Let `wait_until` look again."""
        # Taken out: a task may be rescheduled once only.
        task, self._task = self._task, None
        if task is not None:
            trio.lowlevel.reschedule(task, WOKEN)

    def reschedule(self) -> None:
        """Do what is due now, and set the next deadline."""
        if self._paused_at is not None:
            # No link can carry a goodbye, so nothing is waited for.
            if self._session.state.is_closing:
                self._leaving.set()
                self.wake()
            return
        self._last_tick = trio.current_time()
        # No tick is planned yet for messages that come from now on.
        self.covered_until = -inf
        due = self._tick(self._last_tick)
        # Whatever closed the session, it does so in a tick or before one:
        # so this is the one place that looks.
        if self._session.state.is_closing and not self._session.channel.dialect.answers_goodbye:
            self._leaving.set()
            self.wake()
        # A deadline that moves away is left where it is: a tick too early costs little, and a move
        # would cost something per message.
        if due is not None:
            self._tick_before(due)
        if self.has_idle_task():
            self.tick_soon()

    def reschedule_soon(self, now: float) -> None:
        """Note that messages have arrived, at `now`.
        One tick within `TIMER_GRANULARITY` serves all of them.
        """
        # The deadlines were once computed after each receive, which a round trip paid for.
        due = self._last_tick + TIMER_GRANULARITY
        # During the handshake every message may move a deadline.
        if now >= due or self._session.state is not _OPEN:
            self.reschedule()
        else:
            self.covered_until = due
            self._tick_before(due)

    def tick_soon(self) -> None:
        """Let a tick come within `REST_SECONDS`."""
        self._tick_before(trio.current_time() + REST_SECONDS)

    def pause(self) -> None:
        """Let the clock of the session stand still: its connection is suspended."""
        self._paused_at = trio.current_time()
        # No deadline wakes the task while the clock stands. `go_on` sets the next one.
        self._due = self._scope.deadline = inf

    def go_on(self) -> None:
        """Let the clock of the session run again."""
        if self._paused_at is not None:
            self.stood_still += trio.current_time() - self._paused_at
            self._paused_at = None
            self.reschedule()

    def release(self) -> None:
        """Refer to the writer no longer: the connection is over."""
        self.has_idle_task = _has_none

    # --- inside

    def _leave(self, _: Any) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _tick_before(self, due: float) -> None:
        if due < self._due and self._paused_at is None:
            self._due = self._scope.deadline = due

    def _tick(self, now: float) -> float | None:
        """Do what is due, and send what that has queued from here:
        a ping must not cost a task of the writer.
        """
        outbox, batcher = self._session.outbox, self._batcher
        if not outbox.is_empty:  # something else is about to send
            return self._real(self._session.tick(now - self.stood_still))
        # The writer need not be woken for messages of the tick: they are sent below.
        batcher.is_requesting = True
        try:
            # May close the session: a handshake, a keepalive or a goodbye may be overdue.
            return self._real(self._session.tick(now - self.stood_still))
        finally:
            batcher.is_requesting = False
            batcher.writer.flush()

    def _real(self, due: float | None) -> float | None:
        """Return the time at which the session's clock shows `due`."""
        # A little later: rounded down, the session would find that it is not due yet,
        # and this would never end.
        return due if due is None or not self.stood_still else due + self.stood_still + ROUNDING


def _has_none() -> bool:
    return False
