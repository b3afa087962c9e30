"""Idleness: connections without streams, and streams without demand or traffic. Both hold a place that somebody else could use.

Rules of this file:

* Streams are looked at four times in the time that they may be idle, all at once; no element and hardly a request costs anything for it.
  So a stream ends after its time, and at the latest half as long again.
* Without a bound nothing ends; who serves is told of idle streams once, when they have been so for an hour.
"""

from typing import TYPE_CHECKING, Final

from penstock.api import LimitExceeded
from penstock.session._states import ConnectionState

if TYPE_CHECKING:
    from penstock.session._session import Session

LONG: Final = 3600.0
"""Idle for so long is worth a warning."""

LOOKS: Final = 4
IDLE: Final = "idle"


class IdleTimeouts:
    """Watches one session."""

    __slots__ = ("_look_at", "_quiet_since", "_session")

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._quiet_since: float | None = None
        self._look_at: float | None = None

    def tick(self, now: float) -> tuple[float | None, float | None]:
        """Do what is due, and return when to look again: at the connection, and at its streams."""
        return self._tick_connection(now), self._tick_streams(now)

    def _tick_connection(self, now: float) -> float | None:
        """End a connection that has had no stream for too long."""
        session = self._session
        if session.state is not ConnectionState.OPEN or session.serving or len(session.streams) > session.retirement.count:
            self._quiet_since = None
            return None
        if self._quiet_since is None:
            self._quiet_since = now
        due = self._quiet_since + session.limits.idle_connection
        if now >= due:
            session.close(IDLE)
            return None
        return due

    def _tick_streams(self, now: float) -> float | None:
        """End streams that have been idle for too long, or warn of them."""
        if not self._session.serving:
            self._look_at = None
            return None
        age = self._session.limits.idle_subscription_age or LONG
        if self._look_at is None:
            self._look_at = now + age / LOOKS
        elif now >= self._look_at:
            self._look_at = now + age / LOOKS
            self._look(now, age)
        return self._look_at

    def _look(self, now: float, age: float) -> None:
        session, warned = self._session, 0
        for stream in tuple(session.serving.values()):
            if not stream.is_idle:
                stream.idle_since = None
            elif stream.idle_since is None:
                stream.idle_since = now
            elif now >= stream.idle_since + age:
                if session.limits.idle_subscription_age is not None:
                    stream.cancelled_with(IDLE)
                else:
                    warned += 1
                    stream.idle_since = float("inf")  # once is enough
        if warned:
            session.owner.warned(
                LimitExceeded(
                    f"{warned} of the streams that a peer has open have had neither demand nor traffic for {age:g} s. "
                    "Nobody may have to act; Limits(idle_subscription_age=...) ends such streams, Limits.untrusted() after an hour",
                    limit="idle_subscription_age",
                    value=age,
                )
            )
