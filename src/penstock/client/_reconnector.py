"""When a client connects again, and when it gives up. No clock and no I/O: the time is passed in.

All clients ask a `Reconnector`, and differ only in how they wait: `connect(reconnect=…)` on trio,
on asyncio and in programs that block, `subscribe(url, reconnect=…)`, and a connection that resumes.
The policy (`penstock.spi.Reconnect`) has the figures: how often, and how long to wait.

| what happens | what follows |
|---|---|
| `on_attempt` | an attempt counts from now on |
| `on_connected` | what has waited goes over the new connection |
| `on_open`: both sides said hello | observers hear `BACK`, unless it is the first connection |
| `on_away`: it is over, or its server drains | new streams and requests wait |
| `on_lost`: it is over, or was not made | a decision: `TryAfter` some seconds, or `GiveUp` |
| `give_up` | what waits fails, and so does all that is asked for from now on |

Rules of this file:

* What ran on a lost connection is not repeated: the peer may have acted on it. It ends with its
  own error. (A stream whose publisher has positions goes on at its next element: `ClientStream`.)
* A refusal for good and a fault of a plugin are final at once: the next connection meets them.
* Only a connection that was open for `Reconnect.healthy` seconds sets the count of attempts back.
* A client that has given up does not begin again.
"""

from collections.abc import Callable
from typing import Final

import attrs

from penstock.api import ConnectionLost, Rejected
from penstock.session import own_copy
from penstock.spi import Events, Reconnect, ReconnectEvent, ReconnectStage


@attrs.frozen
class TryAfter:
    """Connect after that many seconds."""

    seconds: float


@attrs.frozen
class GiveUp:
    """Make no further attempt. The error says why."""

    error: Exception


NOW: Final = TryAfter(0.0)
"""The decision before the first attempt."""

DRAINS: Final = "the server shuts down, and takes no new streams"


LOOK_SECONDS: Final = 0.05
"""Seconds between two looks at a connection to a server that drains:
it is left when nothing runs on it any more.
"""


def may_reconnect(error: BaseException) -> bool:
    """Return whether a new connection may help: the last one was lost or not made, or the server
    had no room for it.
    """
    return isinstance(error, ConnectionLost) or (isinstance(error, Rejected) and error.temporary)


class Reconnector:
    """Decides for one client, by a policy or without one."""

    __slots__ = (
        "_address",
        "_error",
        "_events",
        "_failed",
        "_is_lost",
        "_policy",
        "_waiting",
        "is_away",
    )

    def __init__(self, policy: Reconnect | None, events: Events, address: str) -> None:
        self._policy = policy
        self._events = events
        self._address = address
        self._failed = 0  # attempts in a row; the one under way is among them
        self._is_lost = False  # observers wait for BACK
        self._error: Exception | None = None  # set when it has given up
        self._waiting: list[Callable[[], None]] = []
        self.is_away: bool = False
        """New streams and requests have no connection, and one may come."""

    # --- events

    def on_attempt(self) -> None:
        """Count an attempt that is made now."""
        self._failed += 1

    def on_connected(self) -> None:
        """Let what waits go on: there is a connection."""
        self.is_away = False
        self._wake()

    def on_open(self) -> None:
        """Tell observers of a connection that is open, unless it is the first."""
        if self._is_lost:
            self._is_lost = False
            self._report(ReconnectStage.BACK)

    def on_away(self) -> None:
        """Let new streams and requests wait: the connection is over, or its server drains.
        `on_lost` decides what follows.
        """
        self.is_away = self._policy is not None and self._error is None

    def on_lost(
        self, error: Exception | None, *, opened_at: float | None, now: float
    ) -> TryAfter | GiveUp:
        """Decide what follows a connection that is over, or an attempt that failed: then it has no
        `opened_at`. Without an error the server drains.
        """
        policy, error = self._policy, error or ConnectionLost(DRAINS)
        if policy is None or self._error is not None or not may_reconnect(error):
            return self._given_up(error)
        if opened_at is not None:
            # A server that takes every client and loses it at once must not be asked at full speed:
            # only a connection that stayed counts.
            if now - opened_at >= policy.healthy:
                self._failed = 0
            self._report(ReconnectStage.LOST, error=error)
        # Also after a first attempt that failed: BACK then tells that the attempts are over.
        self._is_lost = True
        seconds = policy.wait(self._failed)
        if seconds is None:
            self._report(ReconnectStage.GIVEN_UP, error=error)
            return self._given_up(error)
        self.on_away()
        # One more: the attempt that the wait leads to, and not the failed one.
        self._report(ReconnectStage.RETRYING, more=1, wait=seconds, error=error)
        return TryAfter(seconds)

    def give_up(self, error: Exception) -> None:
        """Fail what waits, and all that is asked for from now on. The first error stays."""
        self._error = self._error or error
        self.is_away = False
        self._wake()

    # --- for streams and requests

    def when_connected(self, act: Callable[[], None]) -> None:
        """Call `act` when there is a connection, or none will come: perhaps at once. `check` then
        tells which of the two.
        """
        if self.is_away:
            self._waiting.append(act)
        else:
            act()

    def failure(self) -> Exception | None:
        """Return the error for requests after the last attempt, None before that."""
        if self._error is None:
            return None
        # Any number of tasks may raise it, and an exception that is raised twice collects the
        # frames of both.
        if not may_reconnect(self._error):
            return own_copy(self._error)
        error = ConnectionLost(f"no further attempt to connect is made: {self._error}")
        error.__cause__ = self._error
        return error

    def check(self) -> None:
        """Raise the error of the last attempt, if no further one is made."""
        error = self.failure()
        if error is not None:
            raise error

    # --- inside

    def _given_up(self, error: Exception) -> GiveUp:
        if self._policy is not None:
            self.give_up(error)
        return GiveUp(error)

    def _wake(self) -> None:
        # Moved out: a stream that is opened now may be refused again, and wait for the connection
        # after this one.
        waiting, self._waiting = self._waiting, []
        for act in waiting:
            self.when_connected(act)

    def _report(
        self,
        stage: ReconnectStage,
        *,
        more: int = 0,
        wait: float = 0.0,
        error: Exception | None = None,
    ) -> None:
        self._events.reconnect(
            ReconnectEvent(
                address=self._address,
                stage=stage,
                attempt=self._failed + more,
                wait=wait,
                error=error,
            )
        )
