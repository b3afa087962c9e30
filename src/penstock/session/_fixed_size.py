"""Elements of fixed size of one sent stream, which go packed:
one message for all that was gathered.

A publisher may yield a *block*: several elements in one piece of memory. A pull reserves demand for
one element, so a block brings more elements than were reserved for it; what demand and room do not
permit waits in `unsent`, and nothing is pulled meanwhile.
"""

from typing import Protocol

from penstock.session._channel import Channel


class StreamOfFixedSize(Protocol):
    """The sent stream that the elements belong to, with its demand."""

    available: int
    reserved: int
    element_size: int

    def reserve(self, most: int, /) -> int:
        """Reserve up to `most` elements of the demand."""

    def commit(self, n: int = 1, /) -> None:
        """Count `n` reserved elements as sent."""

    def roll_back(self, n: int, /) -> None:
        """Make `n` reserved elements available again."""

    def on_fixed_gathered(self, size: int, /) -> None:
        """Note that `size` bytes more are gathered and wait for the writer."""

    def on_drained(self) -> None:
        """Go on: the last block is gathered."""

    def flush(self) -> bytearray:
        """Return the messages of the elements that were gathered."""

    def pull(self) -> None:
        """Send the unsent block, or request elements."""


class FixedSizeElements:
    """The gathered elements of one stream of fixed-size elements, and those
    that it may not send yet.
    """

    __slots__ = ("_channel", "_stream", "gathered", "unreserved_pulls", "unsent", "yields_blocks")

    def __init__(self, channel: Channel, stream: StreamOfFixedSize) -> None:
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
