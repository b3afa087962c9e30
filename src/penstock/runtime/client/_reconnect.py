"""The attempts of one client to connect, by a policy (`Reconnect`) or without one."""

import trio

from penstock.spi import Events, Reconnect, ReconnectEvent, ReconnectStage


class Attempts:
    """The attempts of one client to connect, by a policy or without one; told to the observers."""

    __slots__ = ("_address", "_events", "_failed", "_lost_at", "_policy")

    def __init__(self, policy: Reconnect | None, events: Events, address: str) -> None:
        self._policy = policy
        self._events = events
        self._address = address
        self._failed = 0  # in a row; the one under way is among them
        # None while the first connection is made, or one is open.
        self._lost_at: float | None = None

    def begin(self) -> None:
        """Count an attempt that is made now."""
        self._failed += 1

    def on_open(self) -> None:
        """Report a connection that is open, unless it is the first."""
        if self._lost_at is not None:
            self._lost_at = None
            self._report(ReconnectStage.BACK)

    def pause_after(self, error: Exception, opened_at: float | None) -> float | None:
        """Return how long to wait before the next attempt, or None to give up. `opened_at` is
        when the connection opened, if it did.
        """
        policy = self._policy
        if policy is None:
            return None
        # A server that takes every client and loses it at once must not be asked at full speed:
        # only a connection that stayed counts.
        if opened_at is not None:
            if trio.current_time() - opened_at >= policy.healthy:
                self._failed = 0
            self._report(ReconnectStage.LOST, error=error)
        self._lost_at = trio.current_time()
        pause = policy.wait(self._failed)
        if pause is None:
            self._report(ReconnectStage.GIVEN_UP, error=error)
        else:
            # The attempt that the pause leads to, and not the one that failed.
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
