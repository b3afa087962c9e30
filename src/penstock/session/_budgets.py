"""The budgets of the peer on one connection, and the prices of what it makes this side hold: values
in, a verdict out. Nothing here ends a stream or a connection; the caller does, and tells the time.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Final, Protocol

from penstock.api import UNBOUNDED, Limits, ProtocolError, SharedBytes, TokenBucket
from penstock.session._reassembly import PartialElements

# --- prices

# The flat prices of objects whose bytes nothing can count cheaply, beside the bytes that the peer
# sends. Each is what `tracemalloc` showed for 1,024 of the kind on one connection, rounded up: an
# account that is too low would let a peer hold more than the budget. `python -m campaigns costs`
# measures them.

STREAM_BYTES: Final = 400
"""A stream that the peer has opened and whose publisher does nothing yet."""

TASK_BYTES: Final = 11 << 9
"""A task, with the generator or handler that runs in it. Measured: 5,200 bytes for a generator that
waits, 4,100 for a handler, without the allocator's rounding.

A bare task of trio, with a generator that waits, has 2,100 of them.
"""

CANCELLED_BYTES: Final = 128
"""The place of a stream that this side has cancelled, in the table of streams."""

OBJECT_BYTES: Final = 48
"""A bytes object beside its bytes, and its place in a list:
33 and 8 bytes, rounded up as the allocator does.
"""

HANDLED: Final = 2
"""The data of a request is held as it came, and by the handler: as the payload cut out of it, or
as the value that a serializer made.
"""


# --- requests in proportion to elements (request flood)

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

    * A subscriber may request every element by itself:
      5 + 2 x streams opened + elements sent are *paid* by the elements.
    * Up to 5 + 2 x streams opened + 20 x elements sent are *free*: they count among the messages
      that cost the peer next to nothing.
    * One beyond that is *excess* and costs a token of the oddity budget.
      Thousands of those are an attack.
    * A request or a cancel for a stream that has just ended may have crossed the end on its way.
      Such a request is judged as that of a stream that is open: elements have paid for it. Two such
      cancels for each stream opened cost nothing.

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


# --- short streams

SHORT_SECONDS: Final = 1.0
"""A stream that lives at least this long costs no token."""


class StreamChurn:
    """Count the streams of one connection that are refused or cancelled soon after they were
    opened: each costs this side more than it costs the peer.
    """

    __slots__ = ("_bucket", "began_at")

    def __init__(self, limits: Limits) -> None:
        # Streams that end by themselves do not count: an honest client was once cut off after 1,000
        # answered requests in a second.
        self._bucket = TokenBucket(limits.churn_burst, limits.churn_rate)
        self.began_at: list[float] = []
        """When the streams began that ended since the last verdict. Bounded by
        Limits.max_subscriptions for each received chunk.
        """

    def count(self, began_at: float) -> None:
        """Count a stream that has ended.

        Its length is judged later: the session's clock stands still between two chunks. With that
        clock a thousand streams that lived for hours and ended together would all look short.
        """
        self.began_at.append(began_at)

    def verdict(self, now: float) -> ProtocolError | None:
        """Return an error if too many short streams have ended.
        `now` must have been read after they ended.
        """
        if not self.began_at:
            return None
        began_at, self.began_at = self.began_at, []
        for began in began_at:
            # HTTP/2's rapid reset: opening and cancelling costs the peer two short messages,
            # and this side a publisher.
            if now - began < SHORT_SECONDS and not self._bucket.spend(1, now):
                return ProtocolError(
                    "streams are opened and ended faster than is allowed here (Limits.churn_rate)",
                    reason="limit:churn",
                )
        return None


# --- the elements of the peer


class ReceivedElements:
    """Count the elements of the streams that this side has opened, without a step for each element.

    A stream counts its demand down as elements come, so the elements are the demand that was
    requested less the demand that is left. Demand is added here once for each request(n), and taken
    off again when a stream ends before it was used.

    Demand without bound is not counted down, so the elements that come against it are added here:
    once a run, or once a single element.
    """

    __slots__ = ("requested",)

    def __init__(self) -> None:
        self.requested: int = 0
        """Elements that were requested, less those that never came."""

    def total(self, outstanding: Iterable[int]) -> int:
        """Return how many elements have come.
        `outstanding` is the demand that is left on each open stream.
        """
        # Demand without bound was not added when it was requested:
        # it would be taken off for nothing.
        return self.requested - sum(left for left in outstanding if left < UNBOUNDED)


# --- all of them


class PeerBudgets:
    """The remaining budgets of the peer on one connection, and the counts of its requests."""

    __slots__ = ("churn", "controls", "oddities", "partials", "received", "requests", "unread")

    def __init__(self, limits: Limits) -> None:
        # Oddities are harmless one by one. Controls are normal messages that cost the peer a few
        # bytes and this side some work.
        self.oddities: TokenBucket = TokenBucket(limits.glitch_burst, limits.glitch_rate)
        self.controls: TokenBucket = TokenBucket(limits.control_burst, limits.control_rate)
        # Elements that a subscriber gets pay for its requests, so an honest reader by single
        # elements never meets the control rate.
        self.requests: RequestRatio = RequestRatio()
        self.received: ReceivedElements = ReceivedElements()
        self.churn: StreamChurn = StreamChurn(limits)
        self.partials: PartialElements = PartialElements(limits)
        self.unread: SharedBytes = SharedBytes(limits.unread_bytes)
