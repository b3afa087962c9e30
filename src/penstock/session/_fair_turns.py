"""Whose turn it is to write a part: streams with large elements take turns, and no more of these begin than a peer joins at a time.

Rules of this file:

* A peer bounds what is unfinished on its connection, in number and in bytes (`Limits.max_partials_in_all`, `Limits.partial_bytes`), and
  ends the stream that goes beyond that. What this side takes is the measure of what the other one takes, as it is for one element.
* Who may not begin yet waits apart, and begins in the order in which it came: a large element is not overtaken for ever by less large
  ones. What goes in one message, and who has begun, never waits.
* Nobody waits while nobody has begun; so the queue is empty only where nothing is to be written.
"""

from collections import deque
from typing import Final, Protocol

from penstock.api import Limits

PARTS_WHEN_ALONE: Final = 4
"""How many parts go as one while no other stream has a large element."""


class LargeElementSender(Protocol):
    """A stream with large elements."""

    @property
    def begins(self) -> int:
        """Bytes of the element that the next part begins; 0 while one is under way, and for what goes in one message."""

    @property
    def is_mid_element(self) -> bool:
        """Parts of an element have been written, and its last one has not."""

    def write_part(self, into: bytearray, /, most: int) -> bool:
        """Write the next part of what is held, of at most so many bytes; return whether more is held."""


class RoundRobin:
    """The streams of one connection that hold large elements."""

    __slots__ = ("_begun", "_limits", "_queue", "_unfinished", "_waiting")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._queue: deque[LargeElementSender] = deque()  # bounded by the number of streams, like the two below
        self._waiting: dict[LargeElementSender, None] = {}
        self._begun: dict[LargeElementSender, int] = {}
        self._unfinished = 0  # bytes of all elements that have begun

    def __bool__(self) -> bool:
        """Tell whether anything is to be written."""
        return bool(self._queue)

    def join(self, sender: LargeElementSender) -> None:
        """Let `sender` write parts from now on."""
        self._queue.append(sender)

    def write(self, into: bytearray, high: int) -> None:
        """Write parts, one of each stream in turn, until `into` has `high` bytes or nothing is left."""
        part = self._limits.split_outbound_at
        while len(into) < high and (sender := self._next()) is not None:
            # Parts are for taking turns. Who is alone takes several in one: as much goes out at a time, and it is much less work.
            is_alone = not (self._queue or self._waiting)
            most = max(part, min(PARTS_WHEN_ALONE * part, high - len(into))) if is_alone else part
            if sender.write_part(into, most):
                self._queue.append(sender)
            if not sender.is_mid_element:
                self._end(sender)

    def leave(self, sender: LargeElementSender) -> None:
        """Forget a stream that has ended."""
        if not (self._queue or self._waiting or self._begun):
            return
        if sender in self._queue:
            self._queue.remove(sender)
        self._waiting.pop(sender, None)
        self._end(sender)

    def clear(self) -> None:
        """Forget all: the connection is over."""
        self._queue.clear()
        self._waiting.clear()
        self._begun.clear()
        self._unfinished = 0

    # --- inside

    def _next(self) -> LargeElementSender | None:
        """Return whose turn it is; who may not begin yet is put aside."""
        while self._queue:
            sender = self._queue.popleft()
            size = 0 if sender in self._begun else sender.begins
            if size and (self._waiting or not self._fits(size)):
                self._waiting[sender] = None
                continue
            if size:
                self._begin(sender, size)
            return sender
        return None

    def _fits(self, size: int) -> bool:
        """Return whether one more may begin; the first may in any case."""
        limits = self._limits
        return not self._begun or (len(self._begun) < limits.max_partials_in_all and self._unfinished + size <= limits.partial_bytes)

    def _begin(self, sender: LargeElementSender, size: int) -> None:
        self._begun[sender] = size
        self._unfinished += size

    def _end(self, sender: LargeElementSender) -> None:
        """An element of `sender` is finished, or never will be: others may begin."""
        self._unfinished -= self._begun.pop(sender, 0)
        while self._waiting:
            following = next(iter(self._waiting))
            if not self._fits(following.begins):
                return
            del self._waiting[following]
            self._begin(following, following.begins)
            self._queue.append(following)
