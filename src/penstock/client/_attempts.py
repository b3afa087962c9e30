"""The attempts of one client to connect, by a policy (`Reconnect`) or without one. No clock:
the time is passed in.
"""

from penstock.spi import Events, Reconnect, ReconnectEvent, ReconnectStage


class Attempts:
    """Counts attempts in a row, and tells how long to wait before the next one."""

    def __init__(self, policy: Reconnect | None, events: Events, address: str) -> None:
        self._policy = policy
        self._events = events
        self._address = address
        self._failed = 0  # in a row; the one under way is among them
        self._is_lost = False

    def begin(self) -> None:
        """Count an attempt that is made now."""
        self._failed += 1

    def on_open(self) -> None:
        """Report a connection that is open, unless it is the first."""
        if self._is_lost:
            self._is_lost = False
            self._report(ReconnectStage.BACK)

    def pause_after(self, error: Exception, *, opened_at: float | None, now: float) -> float | None:
        """Return how long to wait before the next attempt, None to give up. `opened_at` is when
        the connection opened, if it did.
        """
        if self._policy is None:
            return None
        if opened_at is not None:
            # A server that takes every client and loses it at once must not be asked at full speed:
            # only a connection that stayed counts.
            if now - opened_at >= self._policy.healthy:
                self._failed = 0
            self._report(ReconnectStage.LOST, error=error)
        # Also after a first attempt that failed: BACK then tells that the attempts are over.
        self._is_lost = True
        pause = self._policy.wait(self._failed)
        if pause is None:
            self._report(ReconnectStage.GIVEN_UP, error=error)
        else:
            # One more: the attempt that the pause leads to, and not the one that failed.
            self._report(ReconnectStage.RETRYING, more=1, wait=pause, error=error)
        return pause

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
