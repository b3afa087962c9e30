"""Holds the messages and elements that wait for the writer of a connection, and pulls more from streams when there is room.

* Small messages are bytes already, in order. A stream that has gathered elements writes them before any message that comes after them.
* Large elements are not copied here. Their streams write them part by part, in turns (`RoundRobin`).
* Above the high-water mark no publisher is asked for elements. A stream that would ask waits in `_blocked` and goes on when the writer has
  taken the buffer. The writer takes the whole buffer at once, so a low-water mark would bound nothing.
"""

from collections.abc import Callable
from typing import Protocol

from penstock.api import Limits
from penstock.session._fair_turns import LargeElementSender, RoundRobin


class Sender(Protocol):
    """A stream as the outbox sees it."""

    def flush(self) -> bytearray:
        """Return the messages of the elements that were gathered."""

    def pull(self) -> None:
        """Request elements from the publisher, if there is room for them."""


class Outbox:
    """The messages and elements of one connection that wait for the writer."""

    __slots__ = (
        "_answer_bytes",
        "_blocked",
        "_gathering",
        "_is_held",
        "_large",
        "_limits",
        "answers",
        "buffer",
        "gathered",
        "large",
        "max_waiting",
        "wake",
    )

    def __init__(self, limits: Limits, wake: Callable[[], None]) -> None:
        self.buffer: bytearray = bytearray()
        self._limits = limits
        self.max_waiting: int = limits.outbound_high + limits.max_element + limits.outbound_control
        """More bytes than these cannot come from the high-water mark, one element and all answers together: the peer does not read."""
        self.wake: Callable[[], None] = wake
        self._large = RoundRobin(limits)
        # An ordered set: a stream stands here once, however often it is asked. Both are bounded by the number of streams.
        self._blocked: dict[Sender, None] = {}
        self._gathering: list[Sender] = []
        self.gathered: int = 0
        """Bytes that streams have gathered and not written. The streams keep this count."""
        self._is_held = False
        self.answers: int = 0
        """Waiting messages that answer something the peer sent."""
        self._answer_bytes = 0
        self.large: int = 0
        """Bytes of large elements that streams hold. The streams keep this count."""

    @property
    def waiting(self) -> int:
        """Bytes in the buffer."""
        return len(self.buffer)

    @property
    def is_empty(self) -> bool:
        """Nothing waits."""
        return not (self.buffer or self._large.queue or self._gathering)

    def put(self, data: bytes) -> None:
        """Queue a message behind the elements that were gathered before it."""
        # Order within a stream: a completion must not overtake the elements before it.
        if self._gathering:
            self._flush()
        # Only the first message finds the writer asleep. A wake-up for each message would cost more than encoding it.
        if not self.buffer:
            self.wake()
        self.buffer += data

    def count_answer(self, size: int) -> bool:
        """Count an answer of `size` bytes. Return whether the answers that wait are within `Limits.outbound_control`."""
        # Reset by take(): an answer that the writer has taken no longer waits.
        self.answers += 1
        self._answer_bytes += size
        return self.answers <= self._limits.outbound_control_count and self._answer_bytes <= self._limits.outbound_control

    def room(self) -> int:
        """Return how many bytes of elements may be requested; 0 or less is none."""
        limits = self._limits
        # A large element must not keep the small ones of other streams waiting, so it takes no room. Above this bound nothing is
        # requested. Each stream may already have requested one; which publisher yields soon is unknown, so none can be waited for.
        if self._is_held or self.large >= limits.outbound_high + limits.max_element:
            return 0
        return limits.outbound_high - len(self.buffer) - self.gathered

    def block(self, sender: Sender) -> None:
        """Let `sender` pull when there is room again."""
        self._blocked[sender] = None

    def add_large(self, sender: LargeElementSender) -> None:
        """Let `sender` write parts, in turn with others."""
        # The sender holds the bytes. Copying a large element in here would cost its size again, and delay everything behind it.
        self._large.add(sender)
        self.wake()

    def remove_large(self, sender: LargeElementSender) -> None:
        """Forget a sender of large elements whose stream has ended."""
        self._large.remove(sender)

    def gather(self, sender: Sender) -> None:
        """Call `sender.flush` when the writer comes, or before the next message."""
        # Once per run or block, not once per element.
        self._gathering.append(sender)
        self.wake()

    def hold(self) -> None:
        """Request nothing from publishers until `resume`."""
        self._is_held = True

    def resume(self) -> None:
        """Request elements from publishers again."""
        self._is_held = False
        self._unblock()

    def take(self) -> bytearray:
        """Return the bytes to send now: the whole buffer, and parts of large elements up to the high-water mark."""
        if self._gathering:
            self._flush()
        # The buffer itself, without a copy. Its messages go before the parts, so that small ones are not delayed.
        data, self.buffer = self.buffer, bytearray()
        # Only waiting answers count. The connection has its own deadline for bytes that the transport does not take.
        self.answers = self._answer_bytes = 0
        if self._large.queue:
            self._large.write(data, self._limits.outbound_high)
        self._unblock()
        return data

    def forget(self, sender: Sender) -> None:
        """Forget a stream that has ended."""
        self._blocked.pop(sender, None)
        # A stream that has ended has flushed before, so nothing is lost.
        if sender in self._gathering:
            self._gathering.remove(sender)

    def clear(self) -> None:
        """Drop everything: the connection is over."""
        self.buffer = bytearray()
        self.close()

    def close(self) -> None:
        """Take nothing more from streams. The messages in the buffer still go out before the goodbye."""
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
                # Usually one stream alone has gathered. Then nothing is copied.
                self.buffer = messages

    def _unblock(self) -> None:
        # Each stream gets one turn. One that is still without room blocks again and must not be asked twice here.
        for _ in range(len(self._blocked)):
            if self.room() <= 0:
                return
            # Looked up anew each time: a pull may end other streams, which changes the table.
            sender = next(iter(self._blocked), None)
            if sender is None:
                return  # the pull before has ended the other streams
            del self._blocked[sender]
            sender.pull()
