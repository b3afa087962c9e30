"""Requests in proportion to elements: a peer that asks and asks, and gets next to nothing, makes work and nothing else.

Allowed are 5 + 2 · (streams opened + 10 · elements sent). One beyond that is tolerated for a token of the glitch budget: a subscriber may
well ask for a hundred elements one by one before the first one comes; thousands of such requests are an attack.
"""

from collections.abc import Iterable

from penstock.session._ledger import Ledger

FREE = 5
FOR_EACH_STREAM = 2
FOR_EACH_ELEMENT = 20


class Proportion:
    """Counts the requests of one connection, and what publishers were asked for: nothing is counted with each element."""

    __slots__ = ("_allowance", "_requests", "asked", "streams")

    def __init__(self) -> None:
        self.streams: int = 0
        """How many the peer has opened so far."""
        self.asked: int = 0
        """How many elements publishers were asked for so far, less those that never came."""
        self._requests = 0
        self._allowance = FREE

    def count(self, live: Iterable[Ledger]) -> bool:
        """Count a request; return whether it is in proportion. `live` are the streams, whose reserves have not come yet."""
        self._requests += 1
        if self._requests <= self._allowance:
            return True
        # The allowance only grows, so it is computed anew only when the last one was used up.
        sent = self.asked - sum(stream.reserved for stream in live)
        self._allowance = FREE + FOR_EACH_STREAM * self.streams + FOR_EACH_ELEMENT * sent
        return self._requests <= self._allowance
