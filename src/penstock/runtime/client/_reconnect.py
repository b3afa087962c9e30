"""The policy of reconnecting: how often, and how long to wait; and the attempts of one client. Without a policy nothing is tried again."""

import random
from collections.abc import Callable
from math import inf

import attrs
import trio

from penstock.api import ConnectionLost, Rejected, UsageError
from penstock.plugins import Events, ReconnectEvent, ReconnectStage


@attrs.frozen(kw_only=True)
class Reconnect:
    """Try again when a connection is lost, cannot be made, or finds no room (`Rejected.temporary`), without limit unless `attempts` says
    otherwise.

    Between two attempts it waits a random time up to a bound that doubles (full jitter), so that a thousand clients of one server do not
    all connect at the moment when it is back. A connection that was open for `healthy` seconds sets the count of attempts back to 0.
    """

    attempts: int | None = None
    """Attempts in a row without a connection that stayed, before the error is passed on. None: no limit."""
    first: float = 0.1
    """The bound of the first wait, in seconds."""
    most: float = 30.0
    """The bound that it doubles up to."""
    healthy: float = 10.0
    """Seconds that a connection must be open. A server that lets clients in and loses them at once is asked less and less often."""
    chance: Callable[[], float] = random.random
    """Returns a random number from 0 to 1; give another function in tests."""

    # `type(...) is not int` also refuses True, which would count as one attempt.
    def __attrs_post_init__(self) -> None:
        has_bad_attempts = self.attempts is not None and (type(self.attempts) is not int or self.attempts < 1)
        if has_bad_attempts or not 0 < self.first <= self.most or not 0 <= self.healthy < inf:
            raise UsageError(f"{self!r}: give at least 1 attempt, or None for no limit, and times with 0 < first <= most and 0 <= healthy")

    # Full jitter instead of a fixed back-off: with a thousand clients a fixed wait only moves the rush to a later time.
    def wait(self, failed: int) -> float | None:
        """Return the seconds to wait after `failed` attempts in a row, or None to give up. 0 means that a working connection was lost."""
        if self.attempts is not None and failed >= self.attempts:
            return None
        doublings = min(max(failed - 1, 0), 40)  # 40: a power with thousands of digits would not fit into a float
        return float(self.chance() * min(self.most, self.first * 2**doublings))


def may_reconnect(error: BaseException) -> bool:
    """Return whether a new connection may help: the last one was lost or not made, or the server had no room for it."""
    return isinstance(error, ConnectionLost) or (isinstance(error, Rejected) and error.temporary)


class Attempts:
    """The attempts of one client to connect, by a policy or without one; told to the observers."""

    __slots__ = ("_address", "_events", "_failed", "_lost_at", "_policy")

    def __init__(self, policy: Reconnect | None, events: Events, address: str) -> None:
        self._policy = policy
        self._events = events
        self._address = address
        self._failed = 0  # in a row; the one under way is among them
        self._lost_at: float | None = None  # None while the first connection is made, or one is open

    def begin(self) -> None:
        """Count an attempt that is made now."""
        self._failed += 1

    def on_open(self) -> None:
        """Report a connection that is open, unless it is the first."""
        if self._lost_at is not None:
            self._lost_at = None
            self._report(ReconnectStage.BACK)

    def pause_after(self, error: Exception, opened_at: float | None) -> float | None:
        """Return how long to wait before the next attempt, or None to give up. `opened_at` is when the connection opened, if it did."""
        policy = self._policy
        if policy is None:
            return None
        # A server that takes every client and loses it at once must not be asked at full speed: only a connection that stayed counts.
        if opened_at is not None:
            if trio.current_time() - opened_at >= policy.healthy:
                self._failed = 0
            self._report(ReconnectStage.LOST, error=error)
        self._lost_at = trio.current_time()
        pause = policy.wait(self._failed)
        if pause is None:
            self._report(ReconnectStage.GIVEN_UP, error=error)
        else:
            self._report(ReconnectStage.RETRYING, more=1, wait=pause, error=error)
        return pause

    def _report(self, stage: ReconnectStage, *, more: int = 0, wait: float = 0.0, error: Exception | None = None) -> None:
        self._events.reconnect(ReconnectEvent(address=self._address, stage=stage, attempt=self._failed + more, wait=wait, error=error))
