"""What one connection sends: messages and elements that wait for the writer, and the turns that the
large elements of several streams take.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from penstock.api import Limits
from penstock.session._retained_bytes import RetainedBytes

# --- large elements

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
    """The streams of one connection that hold large elements. They are written in turns, one part
    each, so that none delays another by more than a part.

    * A peer bounds the unfinished elements of a connection, in number and in bytes
      (`Limits.max_partials_in_all`, `Limits.partial_bytes`), and ends a stream that exceeds them.
      So no more elements begin than that. This side's limits stand for the peer's, as for
      `max_element`.
    * A large element that may not begin yet waits in `_waiting`, in the order of arrival: smaller
      ones do not overtake it again and again.
    * If nothing has begun, one element of any size may begin.
      So the queue is empty only if nothing is to be written.
    """

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


# --- the outbox

MAX_LARGE: Final = 2
"""Large elements of a connection that may wait at a time:
while one is written, the next is there.
"""

MAX_ASKED: Final = 4
"""How often the room may be given away between two turns of the writer: publishers that do not
yield at once must not stop the others.
"""

MOST_AT_ONCE: Final = 64
"""Streams of unknown or large elements that are asked in one turn of the writer, at most."""


class Sender(Protocol):
    """A stream as the outbox sees it."""

    def flush(self) -> bytearray:
        """Return the messages of the elements that were gathered."""

    def pull(self) -> None:
        """Request elements from the publisher, if there is room for them."""


class Outbox:
    """The messages and elements of one connection that wait for the writer. It pulls more elements
    from streams when there is room.

    * Small messages are bytes already, in order. A stream that has gathered elements writes them
      before any message that comes after them.
    * Large elements are not copied here.
      Their streams write them part by part, in turns (`RoundRobin`).
    * Above the high-water mark no publisher is asked for elements. A stream that would ask waits in
      `_blocked` and goes on when the writer has taken the buffer. The writer takes the whole buffer
      at once, so a low-water mark would bound nothing.
    * A stream whose next element may be large waits in `_unsure` while `MAX_LARGE` of them wait to
      be written. In each turn of the writer one of these streams is asked, then two, then four: if
      a large element comes, the next turn begins with one again. So 1,024 streams of 1 MiB elements
      hold two of them, and 1,024 streams whose publishers wait for something have all been asked
      after some turns.
    """

    __slots__ = (
        "_answer_bytes",
        "_blocked",
        "_gathering",
        "_high",
        "_large",
        "_limits",
        "_turn",
        "_unsure",
        "answers",
        "asked",
        "buffer",
        "gathered",
        "large",
        "large_elements",
        "max_waiting",
        "owed",
        "owing",
        "retained",
        "taken_bytes",
        "wake",
    )

    def __init__(self, limits: Limits, wake: Callable[[], None]) -> None:
        self.buffer: bytearray = bytearray()
        self._limits = limits
        self.max_waiting: int = limits.outbound_high + limits.max_element + limits.outbound_control
        """More bytes than these cannot come from the high-water mark, one element and all
        answers together: the peer does not read.
        """
        self.wake: Callable[[], None] = wake
        self._large = RoundRobin(limits)
        # Ordered sets: a stream stands here once, however often it is asked.
        # All three are bounded by the number of streams.
        self._blocked: dict[Sender, None] = {}
        self._unsure: dict[Sender, None] = {}
        self._turn = 1  # streams of `_unsure` that are asked in the next turn of the writer
        self._gathering: list[Sender] = []
        self.gathered: int = 0
        """Bytes that streams have gathered and not written. The streams keep this count."""
        self._high = limits.outbound_high  # 0 while nothing is requested from publishers
        self.answers: int = 0
        """Waiting messages that answer something the peer sent."""
        self._answer_bytes = 0
        self.taken_bytes: int = 0
        """Bytes that the writer has taken."""
        self.large: int = 0
        """Bytes of large elements that streams hold. The streams keep this count."""
        self.large_elements: int = 0
        """The number of large elements that streams hold. The streams also keep this count."""
        self.asked: int = 0
        """Bytes that were requested from publishers since the last turn of the writer."""
        self.owed: int = 0
        """Bytes that were requested from publishers and have not come.
        The streams keep this count, and the next.
        """
        self.owing: int = 0
        """The number of these publishers."""
        self.retained: RetainedBytes | None = None
        """The bytes that were taken and are not acknowledged, on a connection that can be resumed.
        """

    @property
    def waiting(self) -> int:
        """Bytes in the buffer."""
        return len(self.buffer)

    @property
    def is_empty(self) -> bool:
        """Nothing waits."""
        return not (self.buffer or self._large.queue or self._gathering)

    def put(self, data: bytes | bytearray, *, wakes: bool = True) -> None:
        """Queue a message behind the elements that were gathered before it. Without `wakes` the
        caller lets the writer know of it.
        """
        # Order within a stream: a completion must not overtake the elements before it.
        if self._gathering:
            self._flush()
        # Only the first message finds the writer asleep.
        # A wake-up for each message would cost more than encoding it.
        if wakes and not self.buffer:
            self.wake()
        self.buffer += data

    def count_answer(self, size: int) -> bool:
        """Count an answer of `size` bytes.
        Return whether the answers that wait are within `Limits.outbound_control`.
        """
        # Reset by take(): an answer that the writer has taken no longer waits.
        self.answers += 1
        self._answer_bytes += size
        return (
            self.answers <= self._limits.outbound_control_count
            and self._answer_bytes <= self._limits.outbound_control
        )

    def room(self) -> int:
        """Return how many bytes of elements may be requested; nothing at 0 or less."""
        # A large element must not keep the small ones of other streams waiting, so it takes no
        # room. Above this bound nothing is requested. Each stream may already have requested one;
        # which publisher yields soon is unknown, so none can be waited for.
        if self.large and self.large >= self._limits.outbound_high + self._limits.max_element:
            return 0
        if self.retained is not None and self.retained.is_full:
            return 0
        return self._high - len(self.buffer) - self.gathered

    def may_start(self) -> bool:
        """Return whether a call may be started that answers with an element of unknown size."""
        if self.retained is not None and self.retained.is_full:
            return False
        return (
            self.large_elements < MAX_LARGE
            and len(self.buffer) + self.gathered < self._limits.outbound_high
        )

    def may_pull_large(self) -> bool:
        """Return whether a stream may be asked whose next element may be large.
        Those that wait go first.
        """
        return (
            self.large_elements < MAX_LARGE
            and self.asked < self._limits.outbound_high
            and not self._unsure
        )

    def block(self, sender: Sender) -> None:
        """Let `sender` pull when there is room again."""
        self._blocked[sender] = None

    def block_unsure(self, sender: Sender) -> None:
        """Let `sender`, whose next element may be large, pull in its turn."""
        self._unsure[sender] = None

    @property
    def needs_turn(self) -> bool:
        """Streams wait for a turn of the writer, and not for the peer to read:
        nothing needs to be sent for them to go on.
        """
        if self.retained is not None and self.retained.has_new_room:
            return True
        if self._unsure and self.large_elements < MAX_LARGE and self.room() > 0:
            return True
        return bool(self._blocked) and self.asked > 0 and self.room() > 0

    def take_turn(self) -> None:
        """Let waiting streams pull although there is nothing to send."""
        self.asked = 0
        if self.retained is not None:
            self.retained.has_new_room = False
        self._unblock()

    def add_large(self, sender: LargeElementSender) -> None:
        """Let `sender` write parts, in turn with others."""
        # The sender holds the bytes. Copying a large element in here would cost its size again, and
        # delay everything after it.
        self._large.add(sender)
        self._turn = 1
        self.wake()

    def remove_large(self, sender: LargeElementSender) -> None:
        """Forget a sender of large elements whose stream has ended."""
        self._large.remove(sender)

    def ask_blocked(self) -> None:
        """Let blocked streams pull: large elements were dropped, so there may be room although
        the writer has taken nothing.
        """
        self._unblock()
        self.wake()  # the writer lets requests go on that wait for room

    def gather(self, sender: Sender) -> None:
        """Call `sender.flush` when the writer comes, or before the next message."""
        # Once per run or block, not once per element.
        self._gathering.append(sender)
        self.wake()

    def hold(self) -> None:
        """Request nothing from publishers until `resume`."""
        self._high = 0

    def resume(self) -> None:
        """Request elements from publishers again."""
        self._high = self._limits.outbound_high
        self._unblock()

    def take(self) -> bytearray:
        """Return the bytes to send now:
        the whole buffer, and parts of large elements up to the high-water mark.
        """
        if self._gathering:
            self._flush()
        # The buffer itself, without a copy.
        # Its messages go before the parts, so that small ones are not delayed.
        data, self.buffer = self.buffer, bytearray()
        # Only waiting answers count. The connection has its own deadline for bytes
        # that the transport does not take.
        self.answers = self._answer_bytes = 0
        self.asked = 0
        if self._large.queue:
            self._large.write(data, self._limits.outbound_high)
        if self._blocked or self._unsure:
            self._unblock()
        self.taken_bytes += len(data)
        if self.retained is not None and data:
            self.retained.add(data)
        return data

    def forget(self, sender: Sender) -> None:
        """Forget a stream that has ended."""
        self._blocked.pop(sender, None)
        self._unsure.pop(sender, None)
        # A stream that has ended has flushed before, so nothing is lost.
        if sender in self._gathering:
            self._gathering.remove(sender)

    def clear(self) -> None:
        """Drop everything: the connection is over."""
        self.buffer = bytearray()
        self.close()

    def close(self) -> None:
        """Take nothing more from streams.
        The messages in the buffer still go out before the goodbye.
        """
        self._large.clear()
        self._blocked.clear()
        self._unsure.clear()
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
        # Before the others, which ask for more: 63 busy streams once took the whole turn, again and
        # again, and 961 were never asked.
        if self._unsure:
            self._ask_unsure()
        # Each stream gets one turn. One that is still without room blocks again
        # and must not be asked twice here.
        for _ in range(len(self._blocked)):
            if self.room() <= 0 or self.asked >= MAX_ASKED * self._limits.outbound_high:
                break
            # Looked up anew each time: a pull may end other streams, which changes the table.
            sender = next(iter(self._blocked), None)
            if sender is None:
                break  # the pull before has ended the other streams
            del self._blocked[sender]
            sender.pull()

    def _ask_unsure(self) -> None:
        """Let some of the streams pull whose next element may be large."""
        turn, self._turn = self._turn, min(2 * self._turn, MOST_AT_ONCE)
        waiting, self._unsure = self._unsure, {}
        # Out of the table while they are asked:
        # a stream that asks again stands behind those that have waited longer.
        for sender in tuple(waiting)[:turn]:
            if self.large_elements >= MAX_LARGE or self.room() <= 0:
                break
            del waiting[sender]
            sender.pull()
        self._unsure = waiting | self._unsure
        if not self._unsure:
            self._turn = 1
