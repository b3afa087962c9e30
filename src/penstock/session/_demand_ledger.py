"""The demand of one sent stream: the elements that the peer granted, and those reserved because the
publisher was asked for them.

Demand is reserved *before* an element exists.
So a stream never requests more from its publisher than it may send.
"""

from penstock.api import UNBOUNDED


class DemandLedger:
    """Counts for one stream. 2^63-1 is unbounded and stays so (rule 3.17)."""

    __slots__ = ("available", "reserved")

    def __init__(self) -> None:
        self.available: int = 0
        self.reserved: int = 0

    @property
    def outstanding(self) -> int:
        """Return how many elements are reserved and have not arrived from the publisher."""
        return self.reserved

    def grant(self, n: int) -> None:
        """Add `n` elements that the peer requested."""
        # rule 3.17: the sum of two demands may exceed 2^63-1, which is unbounded.
        total = self.available + n
        self.available = total if total < UNBOUNDED else UNBOUNDED

    def reserve(self, most: int) -> int:
        """Reserve up to `most` elements, and return how many."""
        # Unbounded demand stays unbounded, however much of it is reserved.
        n = min(most, self.available)
        if self.available < UNBOUNDED:
            self.available -= n
        self.reserved += n
        return n

    def commit(self, n: int = 1) -> None:
        """Count `n` reserved elements as sent."""
        # reserve() has taken them from `available` already.
        self.reserved -= n

    def roll_back(self, n: int) -> None:
        """Make `n` reserved elements available again."""
        self.reserved -= n
        # Through grant(), so that unbounded demand stays unbounded.
        self.grant(n)
