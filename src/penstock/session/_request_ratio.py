"""Requests in proportion to elements: a peer that asks and asks, and gets next to nothing, makes work and nothing else.

Rules of this file:

* A subscriber may ask for every element by itself, as fast as elements come: 5 + 2 · streams opened + elements sent are *earned*.
* Up to 5 + 2 · (streams opened + 10 · elements sent) are *tolerated*: they count among the messages that cost the peer next to nothing.
  One beyond that is *odd*, and costs a token of the glitch budget; thousands of such requests are an attack.
* A request or a cancel for a stream that has just ended has crossed its end: twice for each stream opened costs nothing.
"""

from collections.abc import Iterable
from enum import Enum

from penstock.session._demand_ledger import DemandLedger

FREE_AT_START = 5
FOR_EACH_STREAM = 2
FOR_EACH_ELEMENT = 20


class RequestClass(Enum):
    """What a request is worth."""

    PAID = "earned"
    FREE = "tolerated"
    EXCESS = "odd"


class RequestRatio:
    """Counts the requests of one connection, and what publishers were asked for: nothing is counted with each element."""

    __slots__ = ("_allowance", "_crossed", "_earned", "_requests", "asked", "streams")

    def __init__(self) -> None:
        self.streams: int = 0
        """How many the peer has opened so far."""
        self.asked: int = 0
        """How many elements publishers were asked for so far, less those that never came."""
        self._requests = 0
        self._crossed = 0
        self._earned = self._allowance = FREE_AT_START

    def weigh(self, live: Iterable[DemandLedger]) -> RequestClass:
        """Count a request. `live` are the streams, whose reserves have not come yet."""
        self._requests += 1
        if self._requests <= self._earned:
            return RequestClass.PAID
        # Both only grow, so they are computed anew only when what was earned is used up: the rate of such requests bounds that work.
        sent = self.asked - sum(stream.due for stream in live)
        base = FREE_AT_START + FOR_EACH_STREAM * self.streams
        self._earned, self._allowance = base + sent, base + FOR_EACH_ELEMENT * sent
        if self._requests <= self._earned:
            return RequestClass.PAID
        return RequestClass.FREE if self._requests <= self._allowance else RequestClass.EXCESS

    def crosses(self) -> bool:
        """Count a message for a stream that has ended; return whether as many may well have crossed the ends of those there were."""
        self._crossed += 1
        return self._crossed <= FOR_EACH_STREAM * self.streams
