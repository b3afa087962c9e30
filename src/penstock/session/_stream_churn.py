"""Streams that are refused, or cancelled soon after they were opened: they cost something, and a peer may do that only so often.

Rules of this file:

* The clock of a session stands still while nothing arrives. A stream that ends in that time is judged when the clock goes on: a thousand
  that lived for hours and end together are no churn.
"""

from typing import Final

from penstock.api import Limits
from penstock.session._token_bucket import TokenBucket

SHORT: Final = 1.0
"""Seconds that a stream must live in order to cost nothing."""


class StreamChurn:
    """Counts the short lives of one connection."""

    def __init__(self, limits: Limits) -> None:
        self._bucket = TokenBucket(limits.churn_burst, limits.churn_rate)
        self._ended: list[float] = []  # when they began; bounded by the streams that can be open between two arrivals

    def ended(self, began: float) -> None:
        """A stream has ended that began then."""
        self._ended.append(began)

    def is_too_much(self, now: float) -> bool:
        """Judge those that have ended, by a clock that has just been read."""
        if not self._ended:
            return False
        ended, self._ended = self._ended, []
        return not all(self._bucket.spend(1, now) for began in ended if now - began < SHORT)
