"""The real time that request() and cancel() of a publisher take: as much as it declares for each
call is its right, and does not count against a check.
"""

from time import perf_counter
from types import TracebackType
from typing import Any, Final

DEFAULT_SECONDS: Final = 0.01
"""The run loop stands still meanwhile. An ordinary call takes 0.1 ms."""


def call_seconds_of(verification: type[Any]) -> float:
    """Return how many seconds a call may take."""
    declared: float | None = getattr(verification, "call_seconds", None)
    # A call that never returns must still be ended.
    most: float = verification.watchdog_seconds
    return min(DEFAULT_SECONDS if declared is None else declared, most)


class CallClock:
    """Adds up the time of the calls of one run, of each no more than it may take.
    It is entered for each call.
    """

    def __init__(self, most: float) -> None:
        self.most = most
        self.seconds: float = 0.0
        self._open: list[tuple[float, float]] = []
        """When each call began that has not returned, and the seconds of calls before it."""

    def __enter__(self) -> None:
        self._open.append((perf_counter(), self.seconds))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        began, before = self._open.pop()
        # A call inside a signal of another call has been counted.
        inside = self.seconds - before
        self.seconds += min(max(perf_counter() - began - inside, 0.0), self.most)
