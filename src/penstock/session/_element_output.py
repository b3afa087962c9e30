"""The elements of one sent stream that wait for the writer, in three forms: a run, elements of a
fixed size, large elements.

The stream decides which form an element takes, and counts demand (`_sending_stream.py`).
"""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.session._budgets import OBJECT_BYTES
from penstock.session._channel import Channel

# A circle for type checkers alone: the two are one object in two parts.
if TYPE_CHECKING:
    from penstock.session._sending_stream import SendingStream

Failure: TypeAlias = tuple[str, int | None]
"""What the peer is told of a failed publisher: the text, and the code of a `PublicError`."""

CLOSED: Final = -1
"""The longest element that a closed run accepts: no element is that short."""


class ElementRun:
    """Elements of any lengths that go out together, each after its own header. The headers are made
    when the run is sent.

    The publisher's pump appends elements to the run itself, without a call. So the stream counts
    and weighs them when it looks at the run.

    A run accepts elements that are not much longer than those before. The publisher was asked for
    as many elements as fill the outbox's room if they have the expected length. Longer ones would
    fill it several times before the stream looks at the run; so they are signalled with a call, and
    the stream weighs them at once.
    """

    __slots__ = ("counted", "elements", "longest", "weighed")

    def __init__(self, first: bytes, longest: int) -> None:
        # A list and not a deque or bytearray: the pump appends without a call of this class, and
        # join() takes the list at once.
        self.elements: list[bytes] = [first]
        self.longest: int = longest
        """The length of the longest element that may be appended; `CLOSED` if none may."""
        self.counted: int = 0
        """How many of the elements the stream has counted."""
        self.weighed: int = 0
        """Bytes of the counted elements."""

    def count(self) -> int:
        """Count and weigh the elements that were appended since the last call.
        Return how many they are.
        """
        new = len(self.elements) - self.counted
        if new:
            # The first count of a run needs no slice.
            self.weighed += sum(
                map(len, self.elements[self.counted :] if self.counted else self.elements)
            )
            self.counted += new
        return new

    def add(self, elements: Sequence[bytes], weight: int) -> None:
        """Append elements of `weight` bytes, counted and weighed.
        All those before them are counted.
        """
        self.elements += elements
        self.counted += len(elements)
        self.weighed += weight

    @property
    def size(self) -> int:
        """Bytes of the elements and of their objects."""
        return sum(map(len, self.elements)) + len(self.elements) * OBJECT_BYTES


class FixedSizeElements:
    """Elements of a fixed size, which go packed: one message for all that was gathered; and those
    that the stream may not send yet.

    A publisher may yield a *block*: several elements in one piece of memory. A pull reserves demand
    for one element, so a block brings more elements than were reserved for it; what demand and room
    do not permit waits in `unsent`, and nothing is pulled meanwhile.
    """

    __slots__ = (
        "_channel",
        "_stream",
        "failure",
        "gathered",
        "unreserved_pulls",
        "unsent",
        "yields_blocks",
    )

    def __init__(self, channel: Channel, stream: "SendingStream") -> None:
        self._channel = channel
        self._stream = stream
        self.gathered: bytearray = bytearray()
        """Elements that go with the writer's next turn."""
        self.unsent: memoryview | None = None
        """The rest of the last block, for which demand or room is missing."""
        # One pull until the kind of the elements is known:
        # 100 pulls of a publisher of 1 MB blocks would bring 100 MB.
        self.yields_blocks: bool = True
        """The publisher may yield blocks, so one is pulled at a time.
        True until a single element has come.
        """
        self.unreserved_pulls: int = 0
        """Pulls that are outstanding, and whose reservation a block has used."""
        self.failure: Failure | None = None
        """The error that follows the last block, once the publisher has failed."""

    @property
    def weight(self) -> int:
        """Bytes that are held here."""
        return len(self.gathered) + len(self.unsent or b"")

    def add(self, block: bytes) -> str:
        """Take one element, or several in one block.
        Return what is wrong with it, or an empty text.
        """
        stream, size = self._stream, self._stream.element_size
        count, rest = divmod(len(block), size)
        if rest or not count:
            return (
                f"an element of {len(block)} bytes on a stream whose elements have {size}; give "
                "one or more of them, whole"
            )
        # A block that followed single elements once stalled its stream: their reservations were
        # never used, so nothing was pulled again.
        if self.unreserved_pulls:
            self.unreserved_pulls -= 1
        else:
            # The pull's reservation is counted with the rest of the block, in send_unsent.
            self._unreserve(1)
        self.yields_blocks = count > 1
        if count > 1 and stream.reserved:
            # More was pulled while single elements came. This block may use those reservations: the
            # peer has requested these elements and may request no more before they come.
            self.unreserved_pulls += stream.reserved
            self._unreserve(stream.reserved)
        if count > 1:
            self._channel.on_buffered(len(block))
        # A block that was pulled before waits behind the rest of the last one, in order.
        self.unsent = memoryview(block if self.unsent is None else bytes(self.unsent) + block)
        self.send_unsent()
        return ""

    def send_unsent(self) -> None:
        """Gather as much of the unsent block as demand and room permit."""
        stream, size = self._stream, self._stream.element_size
        while self.unsent is not None and stream.available:
            # Large demand alone must not fill the outbox: a block once became one message that the
            # peer had to refuse for its length.
            room = self._channel.outbox.room()
            if room <= 0:
                self._channel.outbox.block(stream)
                return
            unsent = self.unsent
            # At least one element: one that is larger than the room must still be sent at some
            # time.
            count = stream.reserve(min(len(unsent) // size, room // size or 1))
            stream.commit(count)
            self._channel.budgets.requests.requested += count
            sent = count * size
            # Slices of a memoryview: a block of a megabyte is copied once, into `gathered`.
            self.gathered += unsent[:sent]
            stream.on_fixed_gathered(sent)
            self.unsent = unsent[sent:] if sent < len(unsent) else None
            if self.unsent is None:
                stream.on_drained()
                return

    def take(self) -> bytearray:
        """Return what was gathered, and start anew."""
        gathered, self.gathered = self.gathered, bytearray()
        return gathered

    def _unreserve(self, n: int) -> None:
        self._stream.roll_back(n)
        self._channel.budgets.requests.requested -= n


class LargeElements:
    """The held elements of one stream: a large one, and all that came after it. They are held
    without a copy, and written part by part, in turn with the large elements of other streams.

    It is the stream's `LargeElementSender`.
    """

    __slots__ = ("_channel", "_elements", "_number", "_stream", "_written", "failure", "size")

    def __init__(self, channel: Channel, stream: "SendingStream") -> None:
        self._channel = channel
        self._stream = stream
        # Bounded by the reserved demand, and so by the room in the outbox.
        self._elements: deque[bytes] = deque()
        self._written = 0  # bytes of the first element that were written in parts
        self._number = 0  # of the next element that goes in parts
        self.size: int = 0
        """Bytes that are not written yet."""
        self.failure: Failure | None = None
        """The error that follows the last element, once the publisher has failed."""

    def add(self, element: bytes) -> None:
        """Hold an element."""
        self._elements.append(element)
        self.size += len(element)
        if len(element) > self._channel.dialect.max_unsplit:
            self._channel.outbox.large_elements += 1
        self._channel.outbox.large += len(element)
        # The memory budget must know at once: a slow peer may take seconds for the element.
        self._channel.on_buffered(len(element))

    def __bool__(self) -> bool:
        """Return whether an element is held."""
        return bool(self._elements)

    @property
    def next_large_size(self) -> int:
        """The size of the large element that the next part begins. 0 while one is unfinished,
        and for an element that goes unsplit.
        """
        size = len(self._elements[0]) if self._elements else 0
        return 0 if self._written or size <= self._channel.dialect.max_unsplit else size

    @property
    def is_mid_element(self) -> bool:
        """Parts of an element have been written, and its last part has not."""
        return self._written > 0

    @property
    def weight(self) -> int:
        """Bytes that are held: an element of which parts were written is still here as a whole."""
        return self.size + self._written

    def write_part(self, into: bytearray, /, most: int) -> bool:
        """Write a part of the first element, or the whole of it if it goes unsplit.
        Return whether more is held.
        """
        # RoundRobin may still hold a turn of a stream whose elements are gone.
        if not self._elements:
            return False
        element = self._elements[0]
        if not self._written and len(element) <= self._channel.dialect.max_unsplit:
            into += self._channel.dialect.join_run(self._stream.id, [element])
            self._elements.popleft()
            self._count_written(len(element))
        else:
            self._write_split(element, into, most)
        # The elements after a large one go in the same turns, so that the order within the stream
        # holds.
        if self._elements:
            return True
        self._stream.on_written()
        return False

    def clear(self) -> None:
        """Drop everything: the stream has ended."""
        # Not written, but no longer held: the outbox counts held bytes over all streams.
        self._count_written(self.size)
        most = self._channel.dialect.max_unsplit
        self._channel.outbox.large_elements -= sum(
            len(element) > most for element in self._elements
        )
        self._elements.clear()
        self._written = 0

    def _write_split(self, element: bytes, into: bytearray, most: int) -> None:
        # memoryview: a part of a large element is copied once, into the writer's buffer.
        begin, end = self._written, min(len(element), self._written + most)
        last = end == len(element)
        into += self._channel.dialect.part(
            self._stream.id, self._number, end - begin, not begin, last
        )
        into += memoryview(element)[begin:end]
        self._written = end
        self._count_written(end - begin)
        if last:
            self._elements.popleft()
            self._channel.outbox.large_elements -= 1
            self._written = 0
            # The peer joins parts by this number, so each split element of a stream has its own.
            self._number += 1

    def _count_written(self, size: int) -> None:
        self.size -= size
        self._channel.outbox.large -= size
