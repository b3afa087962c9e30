"""Large elements of several streams are written in turns, one part each, so that none delays
another by more than a part.

* A peer bounds the unfinished elements of a connection, in number and in bytes
  (`Limits.max_partials_in_all`, `Limits.partial_bytes`), and ends a stream that exceeds them. So no
  more elements begin than that. This side's limits stand for the peer's, as for `max_element`.
* A large element that may not begin yet waits in `_waiting`, in the order of arrival: smaller ones
  do not overtake it again and again.
* If nothing has begun, one element of any size may begin.
  So the queue is empty only if nothing is to be written.
"""

from collections import deque
from typing import Final, Protocol

from penstock.api import Limits

PARTS_WHEN_ALONE: Final = 4
"""How many parts go as one while no other stream has a large element. More in one piece is less
work; parts exist to take turns.
"""


class LargeElementSender(Protocol):
    """A stream with large elements."""

    @property
    def next_large_size(self) -> int:
        """The size of the large element that the next part begins. 0 while one is unfinished,
        and for an element that goes unsplit.
        """

    @property
    def is_mid_element(self) -> bool:
        """Parts of an element have been written, and its last part has not."""

    def write_part(self, into: bytearray, /, most: int) -> bool:
        """Write the next part, of at most `most` bytes. Return whether more is held."""


class RoundRobin:
    """The streams of one connection that hold large elements."""

    __slots__ = ("_limits", "_unfinished", "_unfinished_bytes", "_waiting", "queue")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        # Each of the three is bounded by the number of streams.
        # A deque from the first large element on: most connections send no large ones.
        self.queue: deque[LargeElementSender] | tuple[()] = ()
        """The senders whose turn comes. Empty if and only if nothing is to be written, which the
        outbox asks for with every message.
        """
        # An ordered set: a stream that ends leaves it without a search.
        self._waiting: dict[LargeElementSender, None] = {}
        self._unfinished: dict[LargeElementSender, int] = {}
        self._unfinished_bytes = 0

    def add(self, sender: LargeElementSender) -> None:
        """Let `sender` write parts from now on."""
        # At the end of the queue: an element behind another one of its stream waits its turn like
        # any other.
        self._append(sender)

    def write(self, into: bytearray, high: int) -> None:
        """Write parts in turn until `into` has `high` bytes or nothing is left;
        at least one part.
        """
        # One part per turn, up to the high-water mark in all:
        # the writer then sends, and small messages get in between.
        part = self._limits.split_outbound_at
        # One part in any case: small elements of busy streams can fill each turn, and a large
        # element after them was never written.
        high = max(high, len(into) + 1)
        while len(into) < high and (sender := self._next()) is not None:
            is_alone = not (self.queue or self._waiting)
            most = max(part, min(PARTS_WHEN_ALONE * part, high - len(into))) if is_alone else part
            if sender.write_part(into, most):
                self._append(sender)
            # A sender between two elements holds no place: a hundred streams with large elements
            # once broke each other's bounds.
            if not sender.is_mid_element:
                self._finish(sender)

    def remove(self, sender: LargeElementSender) -> None:
        """Forget a stream that has ended."""
        # Most streams that end never held a large element; for them this is one check.
        if not (self.queue or self._waiting or self._unfinished):
            return
        if self.queue and sender in self.queue:
            self.queue.remove(sender)
        self._waiting.pop(sender, None)
        self._finish(sender)

    def clear(self) -> None:
        """Forget all streams."""
        self.queue = ()
        self._waiting.clear()
        self._unfinished.clear()
        self._unfinished_bytes = 0

    def _append(self, sender: LargeElementSender) -> None:
        if isinstance(self.queue, tuple):
            self.queue = deque()
        self.queue.append(sender)

    def _next(self) -> LargeElementSender | None:
        """Return the sender whose turn it is.
        One whose next element may not begin yet moves to `_waiting`.
        """
        while self.queue:
            sender = self.queue.popleft()
            # A sender that waited has begun already, without a part written.
            size = 0 if sender in self._unfinished else sender.next_large_size
            if size and (self._waiting or not self._may_begin(size)):
                self._waiting[sender] = None
                continue
            if size:
                self._begin(sender, size)
            return sender
        return None

    def _may_begin(self, size: int) -> bool:
        limits = self._limits
        # The first may begin even if it alone exceeds the bytes:
        # no element would ever go otherwise.
        if not self._unfinished:
            return True
        return (
            len(self._unfinished) < limits.max_partials_in_all
            and self._unfinished_bytes + size <= limits.partial_bytes
        )

    def _begin(self, sender: LargeElementSender, size: int) -> None:
        self._unfinished[sender] = size
        self._unfinished_bytes += size

    def _finish(self, sender: LargeElementSender) -> None:
        """Note that an element of `sender` is finished, or never will be,
        and let waiting ones begin.
        """
        # pop with a default: a stream may end without having begun.
        self._unfinished_bytes -= self._unfinished.pop(sender, 0)
        while self._waiting:
            # Only the first may begin. A smaller one after it would otherwise overtake it again and
            # again.
            following = next(iter(self._waiting))
            if not self._may_begin(following.next_large_size):
                return
            del self._waiting[following]
            self._begin(following, following.next_large_size)
            self._append(following)
