"""A ledger of demand: what the subscriber granted, what was reserved from it for elements on their way, and what was not.

Every stream of elements that is sent has one. Reserving before an element exists is what keeps a promise to pull no more than may be
sent; rolling back is for what was reserved and never came, or was sent and never arrived.
"""

from penstock.api import UNBOUNDED


class DemandLedger:
    """Counts for one stream; 2^63-1 is without bound, and stays so (rule 3.17)."""

    __slots__ = ("available", "reserved")

    def __init__(self) -> None:
        self.available: int = 0
        self.reserved: int = 0

    @property
    def due(self) -> int:
        """How many elements were reserved and have not come yet."""
        return self.reserved

    def grant(self, n: int) -> None:
        """The subscriber permits `n` more."""
        total = self.available + n
        self.available = total if total < UNBOUNDED else UNBOUNDED

    def reserve(self, most: int) -> int:
        """Set up to `most` aside for elements that will be asked for, and return how many that is."""
        n = min(most, self.available)
        if self.available < UNBOUNDED:
            self.available -= n
        self.reserved += n
        return n

    def commit(self, n: int = 1) -> None:
        """`n` of what was reserved has been sent."""
        self.reserved -= n

    def roll_back(self, n: int) -> None:
        """`n` of what was reserved will not be used: it is available again."""
        self.reserved -= n
        self.grant(n)

    def restore(self, n: int) -> None:
        """`n` that were committed did not arrive: they may be sent again."""
        self.grant(n)
