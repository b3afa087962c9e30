"""The policy of reconnecting: how often, and how long to wait.
Without a policy nothing is tried again.
"""

import random
from collections.abc import Callable
from math import inf

import attrs

from penstock.api import UsageError


@attrs.frozen(kw_only=True)
class Reconnect:
    """Try again when a connection is lost, cannot be made, or finds no room (`Rejected.temporary`),
    without limit unless `attempts` says otherwise.

    Between two attempts it waits a random time up to a bound that doubles (full jitter), so that a
    thousand clients of one server do not all connect at the moment when it is back. A connection
    that was open for `healthy` seconds sets the count of attempts back to 0.
    """

    attempts: int | None = None
    """Attempts in a row without a connection that stayed, before the error is passed on. None:
    no limit.
    """
    first: float = 0.1
    """The bound of the first wait, in seconds."""
    most: float = 30.0
    """The bound that it doubles up to."""
    healthy: float = 10.0
    """Seconds that a connection must be open. A server that lets clients in and loses them at
    once is asked less and less often.
    """
    chance: Callable[[], float] = random.random
    """Returns a random number from 0 to 1; give another function in tests."""

    # `type(...) is not int` also refuses True, which would count as one attempt.
    def __attrs_post_init__(self) -> None:
        has_bad_attempts = self.attempts is not None and (
            type(self.attempts) is not int or self.attempts < 1
        )
        if has_bad_attempts or not 0 < self.first <= self.most or not 0 <= self.healthy < inf:
            raise UsageError(
                f"{self!r}: give at least 1 attempt, or None for no limit, and times with 0 < "
                "first <= most and 0 <= healthy"
            )

    # Full jitter instead of a fixed back-off:
    # with a thousand clients a fixed wait only moves the rush to a later time.
    def wait(self, failed: int) -> float | None:
        """Return the seconds to wait after `failed` attempts in a row, or None to give up. 0
        means that a working connection was lost.
        """
        if self.attempts is not None and failed >= self.attempts:
            return None
        # 40: a power with thousands of digits would not fit into a float.
        doublings = min(max(failed - 1, 0), 40)
        return float(self.chance() * min(self.most, self.first * 2**doublings))
