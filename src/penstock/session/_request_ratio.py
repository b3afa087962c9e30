"""Limits request(n) messages in proportion to the elements delivered (request flood).

* A subscriber may request every element by itself:
  5 + 2 x streams opened + elements sent are *paid* by the elements.
* Up to 5 + 2 x streams opened + 20 x elements sent are *free*: they count among the messages that
  cost the peer next to nothing.
* One beyond that is *excess* and costs a token of the oddity budget.
  Thousands of those are an attack.
* A request or a cancel for a stream that has just ended may have crossed the end on its way. Such a
  request is judged as that of a stream that is open: elements have paid for it. Two such cancels
  for each stream opened cost nothing.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Final, Protocol

FREE_AT_START: Final = 5
FREE_PER_STREAM: Final = 2
# Ten requests for each element are wasteful, and no attack. A test does that 200 times;
# the bound is twice as high.
FREE_PER_ELEMENT: Final = 20


class HasOutstanding(Protocol):
    """A sent stream."""

    @property
    def outstanding(self) -> int:
        """How many elements are reserved and have not arrived from the publisher."""


class RequestClass(Enum):
    """The price of a request(n) message."""

    PAID = "paid"
    FREE = "free"
    EXCESS = "excess"


class RequestRatio:
    """Count the requests of one connection against the elements that publishers were asked for.

    Nothing is counted per element: `requested` grows with each pull, and the elements that have not
    come yet are subtracted when needed.
    """

    __slots__ = ("_free", "_late_cancels", "_paid", "_requests", "requested", "streams")

    def __init__(self) -> None:
        self.streams: int = 0
        """How many streams the peer has opened."""
        self.requested: int = 0
        """How many elements were requested from publishers, less those that never came."""
        self._requests = 0
        self._late_cancels = 0
        self._paid = self._free = FREE_AT_START

    def classify(self, live: Iterable[HasOutstanding]) -> RequestClass:
        """Count a request and return its class.
        `live` are the streams whose reserved elements have not come yet.
        """
        self._requests += 1
        # The usual case: a subscriber that requests as elements come. It costs one comparison.
        if self._requests <= self._paid:
            return RequestClass.PAID
        # Both bounds only grow. So they are computed again only when the paid requests are used up,
        # and the rate of such requests bounds the work of the sum below.
        sent = self.requested - sum(stream.outstanding for stream in live)
        base = FREE_AT_START + FREE_PER_STREAM * self.streams
        self._paid, self._free = base + sent, base + FREE_PER_ELEMENT * sent
        if self._requests <= self._paid:
            return RequestClass.PAID
        return RequestClass.FREE if self._requests <= self._free else RequestClass.EXCESS

    def count_late_cancel(self) -> bool:
        """Count a cancel for a stream that has ended.
        Return whether it may have crossed the end.
        """
        self._late_cancels += 1
        return self._late_cancels <= FREE_PER_STREAM * self.streams
