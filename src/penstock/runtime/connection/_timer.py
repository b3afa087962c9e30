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
from penstock.session import Session, Watcher

ROUNDING: Final = 1e-6
"""Seconds, more than the sum and the difference of two times differ from exact ones."""


class SessionTimer:
    """Calls `Session.tick` when something is due."""

    __slots__ = (
        "_batcher",
        "_due",
        "_leaving",
        "_paused_at",
        "_scope",
        "_session",
        "_task",
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
        self._paused_at: float | None = None
        self.stood_still: float = 0.0
        """Seconds for which the session's clock has stood still: no deadline of the session
        passes while its connection is suspended.
        """
        session.channel.deadlines.on_earlier = self.hasten

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
        due = self._tick(trio.current_time())
        # Whatever closed the session, it does so in a tick or before one:
        # so this is the one place that looks.
        if self._session.state.is_closing and not self._session.channel.dialect.answers_goodbye:
            self._leaving.set()
            self.wake()
        # A deadline that moves away is left where it is: a tick too early costs little, and a move
        # would cost something per message.
        if due is not None:
            self._tick_before(self._real(due))

    def hasten(self, due: float) -> None:
        """Let the next tick come when the session's clock shows `due`, or earlier."""
        self._tick_before(self._real(due))

    def watch(self, watcher: Watcher, seconds: float) -> None:
        """Ask `watcher` in that time, beside the watchers of the session."""
        self._session.channel.deadlines.add(
            watcher, trio.current_time() - self.stood_still + seconds
        )

    def unwatch(self, watcher: Watcher) -> None:
        """Ask it no more."""
        self._session.channel.deadlines.remove(watcher)

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
        self._session.channel.deadlines.on_earlier = None

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
            return self._session.tick(now - self.stood_still)
        # The writer need not be woken for messages of the tick: they are sent below.
        batcher.is_requesting = True
        try:
            # May close the session: a handshake, a keepalive or a goodbye may be overdue.
            return self._session.tick(now - self.stood_still)
        finally:
            batcher.is_requesting = False
            batcher.writer.flush()

    def _real(self, due: float) -> float:
        """Return the time at which the session's clock shows `due`."""
        # A little later: rounded down, the session would find that it is not due yet,
        # and this would never end.
        return due + self.stood_still + ROUNDING if self.stood_still else due
