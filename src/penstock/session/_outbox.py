"""The outbox holds what waits for the one writer of a connection, and says when publishers may go on.

Rules of this file:

* Small messages are bytes already, in order. Elements that can go out together are gathered by their streams, and are written before
  any message that comes after them. Large elements are not copied in: their streams take turns, and each turn writes one part, so that
  a large element delays nobody by more than a part of each other one that has begun.
* Above the high-water mark no publisher is asked for anything. A stream that would have asked stands in a queue, and goes on in turn
  when the writer has taken what waited. The writer takes all of it, so there is no low mark: what waits falls to nothing at once.
"""

from collections.abc import Callable
from typing import Protocol

from penstock.api import Limits
from penstock.session._fair_turns import LargeElementSender, RoundRobin


class Sender(LargeElementSender, Protocol):
    """A stream as the outbox sees it."""

    def flush(self) -> bytearray:
        """Return the messages of what was gathered."""

    def pull(self) -> None:
        """Ask the publisher for what may be sent, if there is room."""


class Outbox:
    """What waits to be sent on one connection."""

    __slots__ = ("_answered", "_blocked", "_gathering", "_held", "_large", "_limits", "answers", "buffer", "gathered", "large", "wake")

    def __init__(self, limits: Limits, wake: Callable[[], None]) -> None:
        self.buffer: bytearray = bytearray()
        self._limits = limits
        self.wake: Callable[[], None] = wake
        self._large = RoundRobin(limits)
        self._blocked: dict[Sender, None] = {}  # in turn, each once, however often it is asked; bounded by the number of streams, as below
        self._gathering: list[Sender] = []
        self.gathered: int = 0
        """Bytes that streams have gathered and not written yet; they keep count."""
        self._held = False
        self.answers: int = 0
        """Messages that the peer has caused, and that wait."""
        self._answered = 0  # their bytes
        self.large: int = 0
        """Bytes of large elements, which their streams hold."""

    @property
    def waiting(self) -> int:
        """Bytes that wait."""
        return len(self.buffer)

    @property
    def is_empty(self) -> bool:
        """Nothing waits."""
        return not (self.buffer or self._large or self._gathering)

    def put(self, data: bytes) -> None:
        """Queue a message, behind what its stream has gathered."""
        if self._gathering:
            self._flush()
        if not self.buffer:
            self.wake()
        self.buffer += data

    def count_answer(self, size: int) -> bool:
        """Count an answer among what waits; return whether so many may."""
        self.answers += 1
        self._answered += size
        return self.answers <= self._limits.outbound_control_count and self._answered <= self._limits.outbound_control

    def room(self) -> int:
        """Return how many bytes of elements may still be asked for; 0 or less is none."""
        limits = self._limits
        # A large element must not keep small ones of others from coming, so it takes no room; but above a bound none is asked for. One of
        # each stream may be on its way by then: nobody knows which of them will come soon, so none can be waited for.
        if self._held or self.large >= limits.outbound_high + limits.max_element:
            return 0
        return limits.outbound_high - len(self.buffer) - self.gathered

    def block(self, sender: Sender) -> None:
        """Let `sender` pull when there is room again."""
        self._blocked[sender] = None

    def enqueue_large(self, sender: Sender) -> None:
        """Let `sender` write parts, in turn with others."""
        self._large.join(sender)
        self.wake()

    def gather(self, sender: Sender) -> None:
        """Let `sender` write what it gathers when the writer comes, or before any other message."""
        self._gathering.append(sender)
        self.wake()

    def hold(self) -> None:
        """Ask no publisher for anything until `resume`."""
        self._held = True

    def resume(self) -> None:
        """Ask publishers again."""
        self._held = False
        self._unblock()

    def take(self) -> bytearray:
        """Return what shall be sent now: all that waits, and parts of large elements up to the high-water mark."""
        if self._gathering:
            self._flush()
        data, self.buffer = self.buffer, bytearray()
        self.answers = self._answered = 0
        if self._large:
            self._large.write(data, self._limits.outbound_high)
        self._unblock()
        return data

    def forget(self, sender: Sender) -> None:
        """Drop what stands here for a stream that has ended."""
        self._blocked.pop(sender, None)
        self._large.leave(sender)
        if sender in self._gathering:
            self._gathering.remove(sender)

    def clear(self) -> None:
        """Drop everything: the connection is over."""
        self.buffer = bytearray()
        self.close()

    def close(self) -> None:
        """Take nothing more from streams; what was said already, and comes before the goodbye, goes out."""
        self._large.clear()
        self._blocked.clear()
        self._gathering.clear()
        self.gathered = 0

    def _flush(self) -> None:
        gathering, self._gathering = self._gathering, []
        for sender in gathering:
            messages = sender.flush()
            if self.buffer:
                self.buffer += messages
            else:
                self.buffer = messages  # most of the time there is one alone, and nothing is copied

    def _unblock(self) -> None:
        for _ in range(len(self._blocked)):
            if self.room() <= 0:
                return
            sender = next(iter(self._blocked), None)
            if sender is None:
                return  # the one before has ended it
            del self._blocked[sender]
            sender.pull()
