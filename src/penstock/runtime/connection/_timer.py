"""The timer of a link: asks the session what is due, and sleeps until the next deadline."""

from typing import Final

import trio

from penstock.session import ConnectionState, Session

TIMER_GRANULARITY: Final = 0.05
"""The most seconds between two ticks while messages arrive. No deadline of a session needs to be met more exactly."""


class SessionTimer:
    """Calls `Session.tick` when something is due."""

    __slots__ = ("_last_tick", "_leaving", "_scope", "_session", "covered_until")

    def __init__(self, session: Session, leaving: trio.Event) -> None:
        """`leaving` is set when this side has said a goodbye that the peer does not answer."""
        self._session = session
        self._leaving = leaving
        self._scope = trio.CancelScope()  # around the sleep: its deadline is the time of the next tick
        self._last_tick = float("-inf")
        self.covered_until: float = float("-inf")
        """Messages that arrive before this time need no `reschedule_soon`: a tick comes then anyway."""

    async def run(self) -> None:
        """Tick whenever something is due, until cancelled."""
        while True:
            with self._scope:
                await trio.sleep_forever()
            self._scope = trio.CancelScope()  # a scope that was cancelled cannot be used again
            self.reschedule()

    def reschedule(self) -> None:
        """Do what is due now, and set the next deadline."""
        self._last_tick = trio.current_time()
        self.covered_until = float("-inf")
        # May close the session: a handshake, a keepalive or a goodbye may be overdue.
        due = self._session.tick(self._last_tick)
        # Whatever closed the session, it does so in a tick or before one: so this is the one place that looks.
        if self._session.state.is_closing and not self._session.channel.dialect.answers_goodbye:
            self._leaving.set()
        # A deadline that moves away is left where it is: a tick too early costs little, and a move would cost something per message.
        if due is not None and due < self._scope.deadline:
            self._scope.deadline = due

    def reschedule_soon(self, now: float) -> None:
        """Note that messages have arrived, at `now`. One tick within `TIMER_GRANULARITY` serves all of them."""
        due = self._last_tick + TIMER_GRANULARITY
        # During the handshake every message may move a deadline.
        if now >= due or self._session.state is not ConnectionState.OPEN:
            self.reschedule()
        else:
            self.covered_until = due
            self._scope.deadline = min(self._scope.deadline, due)
