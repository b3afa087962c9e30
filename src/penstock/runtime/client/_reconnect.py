"""The policy of reconnecting: how often, and how long to wait. A source reconnects only if it was given one."""

import random
from collections.abc import Callable

import attrs

from penstock.api import UsageError


@attrs.frozen(kw_only=True)
class Reconnect:
    """Try again when a connection is lost or cannot be made: a new connection, and a new subscription from its beginning.

    Between two attempts it waits a random time up to a bound that doubles (full jitter), so that a thousand clients of one server do not
    all connect at the moment when it is back. An element that arrives sets the count of attempts back to 0.
    """

    attempts: int = 5
    """Attempts in a row without a single element, before the error is passed on."""
    first: float = 0.1
    """The bound of the first wait, in seconds."""
    most: float = 30.0
    """The bound that it doubles up to."""
    chance: Callable[[], float] = random.random
    """Returns a random number from 0 to 1; give another function in tests."""

    # `type(...) is not int` also refuses True, which would count as one attempt.
    def __attrs_post_init__(self) -> None:
        if type(self.attempts) is not int or self.attempts < 1 or not 0 < self.first <= self.most:
            raise UsageError(f"{self!r}: give at least 1 attempt, and times with 0 < first <= most")

    # Full jitter instead of a fixed back-off: with a thousand clients a fixed wait only moves the rush to a later time.
    def wait(self, failed: int) -> float | None:
        """Return the seconds to wait after `failed` attempts in a row, or None to give up. 0 means that a working connection was lost."""
        if failed >= self.attempts:
            return None
        doublings = min(max(failed - 1, 0), 40)  # 40: a power with thousands of digits would not fit into a float
        return float(self.chance() * min(self.most, self.first * 2**doublings))
