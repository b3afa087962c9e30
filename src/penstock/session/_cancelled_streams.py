"""Streams that this side has cancelled. Late elements were requested, so they are free; some
dialects must still delimit them.

Rules of this file:

* A message that crosses a cancel is legal and costs the peer nothing: as many elements as were
  requested and have not come, the rest of an element that was begun, and one end for each stream.
* Late elements are bounded in number by the demand, and in bytes by `Limits.late_bytes`. An element
  beyond the demand costs a glitch, and its bytes count too. Beyond either bound the connection
  ends: `limit:late`.
* A place is given up when the peer has ended the stream, or long after the cancel (`KEPT_SECONDS`):
  a publisher need not send an end.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

from penstock.api import UNBOUNDED, ProtocolError
from penstock.session._channel import Channel
from penstock.session._receiving_stream import ReceivingStream

MESSAGE_OVERHEAD: Final = 3
"""Bytes around a late element, at least:
without them elements of no bytes would have no bound in bytes.
"""

KEPT_SECONDS: Final = 60.0
"""A peer that has read the cancel sends nothing more; after this time it has read it, or the
keepalive has ended the connection.
"""

LATE: Final = "limit:late"

_NONE: Final[frozenset["CancelledStream"]] = frozenset()
"""One object for all connections: an empty set has 216 bytes."""


class CancelledStreams:
    """Keeps the places of cancelled streams in the table of opened streams, if the dialect needs
    them to delimit late elements.
    """

    __slots__ = (
        "_by_size",
        "_bytes",
        "_channel",
        "_elements",
        "_ends",
        "_kept_since",
        "_older",
        "_opened",
        "_reason",
        "count",
    )

    def __init__(self, channel: Channel, opened: "OpenedStreams") -> None:
        self._channel = channel
        self._opened = opened
        self.count: int = 0
        """Places of streams that the peer has not ended."""
        self._elements = 0
        self._bytes = 0
        self._ends = 0
        # As long as no stream was cancelled, a late element belongs to nothing.
        self._reason = "limit:glitches"
        self._by_size: dict[int, CancelledStream] = {}
        self._older: frozenset[CancelledStream] = _NONE
        self._kept_since = channel.now

    def add(self, stream: ReceivingStream, unfinished: int = 0) -> None:
        """Take over a stream that this side has cancelled.
        Its demand, and its `unfinished` elements, may still come.
        """
        channel, due, self._reason = self._channel, stream.outstanding + unfinished, LATE
        # Elements that cross the cancel cost nothing: a subscriber that left with much outstanding
        # demand once lost its connection.
        self._elements = min(self._elements + due, UNBOUNDED)
        # To the full at each cancel: bytes that are under way over a connection are under way for
        # all of its streams together.
        self._bytes = channel.limits.late_bytes
        # Packed elements carry no lengths:
        # late ones can only be skipped if the stream's element size is kept.
        if channel.dialect.delimits_cancelled:
            self.count += 1
            if self.count > channel.limits.retired_ids // 2:
                self._give_up_old_places()
        else:
            # The end of such a stream finds no place, so the ends that may come are counted.
            # Bounded: a peer need not send any.
            self._ends = min(self._ends + 1, channel.limits.retired_ids)
        self.replace(stream)

    def replace(self, stream: ReceivingStream) -> None:
        """Put a stream that has ended here out of the table, or a cancelled stream in its place."""
        if self._channel.dialect.delimits_cancelled:
            self.resize(stream.id, stream.element_size)
        else:
            del self._opened[stream.id]

    def resize(self, stream_id: int, element_size: int) -> None:
        """Expect late elements of that size on a cancelled stream."""
        # Cancelled streams share one object per element size,
        # so each costs only an entry of the table.
        cancelled = self._by_size.get(element_size)
        if cancelled is None:
            cancelled = self._by_size[element_size] = CancelledStream(self, element_size)
        self._opened[stream_id] = cancelled

    def count_late(self, count: int, size: int) -> None:
        """Count `count` late elements, or a part of one, that were dropped: `size` bytes. More
        of them than were asked for are odd.
        """
        # A part counts no element, and is odd if no element is due.
        if self._elements < (count or 1):
            self._channel.count_oddity(reason=self._reason)
            if self._reason != LATE:
                return  # no stream was cancelled
            # No return after a cancel: with glitches alone a peer could send elements of
            # `max_frame` bytes, 33 a second, without end.
        else:
            self._elements -= count
        self._bytes -= size + MESSAGE_OVERHEAD
        if self._bytes < 0:
            most = self._channel.limits.late_bytes
            self._channel.fail_connection(
                ProtocolError(
                    (
                        f"after a cancel the peer sent more than {most:,} bytes of its stream "
                        "(Limits.late_bytes)"
                    ),
                    reason=LATE,
                )
            )

    def count_part(self, size: int, *, last: bool) -> None:
        """Count a late element, or a part of one. The last part of an element is what demand was
        for.
        """
        self.count_late(int(last), size)
        # The same price as for a stream that is read: tiny fragments have no honest use.
        if not last and size < self._channel.limits.tiny_part:
            self._channel.count_oddity()

    def count_end(self) -> bool:
        """Count an end that found no stream. Return whether it may have crossed a cancel."""
        if not self._ends:
            return False
        self._ends -= 1
        return True

    def _give_up_old_places(self) -> None:
        """Forget the places that were old at the last look, if that was long ago. Each place is
        kept for once to twice that time.
        """
        # Without this a peer that sends no end after a cancel, as it may,
        # lost its connection after 65,536 timeouts.
        now = self._channel.now
        if now - self._kept_since < KEPT_SECONDS:
            return
        for stream_id in [
            stream_id for stream_id, place in self._opened.items() if place in self._older
        ]:
            del self._opened[stream_id]
            self.count -= 1
        # New objects from now on: the object in a place tells how old the place is.
        self._older, self._by_size, self._kept_since = frozenset(self._by_size.values()), {}, now


class CancelledStream:
    """Drops what arrives for streams that this side has cancelled
    and the peer has not ended (rule 2.8).
    """

    __slots__ = ("_cancelled", "element_size")

    def __init__(self, cancelled: CancelledStreams, element_size: int) -> None:
        self._cancelled = cancelled
        self.element_size: int = element_size

    @property
    def takes_whole(self) -> bool:
        """Unsplit elements may come straight here, to be dropped. The decoder asks."""
        return True

    def receive_element(self, element: bytes, /) -> None:
        """Drop an element."""
        self._cancelled.count_late(1, len(element))

    def receive_run(self, elements: Sequence[bytes], _size: int = -1, /) -> None:
        """Drop elements."""
        count = len(elements)
        self._cancelled.count_late(count, sum(map(len, elements)) + MESSAGE_OVERHEAD * (count - 1))

    def receive_packed(self, count: int, elements: bytes, /) -> None:
        """Drop packed elements."""
        self._cancelled.count_late(count, len(elements))

    def receive_part(self, number: int, part: bytes, last: bool, /) -> None:  # noqa: FBT001  # as the decoder calls it
        """Drop a part."""
        self._cancelled.count_part(len(part), last=last)


OpenedStreams: TypeAlias = dict[int, ReceivingStream | CancelledStream]
"""The streams that this side has opened, by id; cancelled ones until the peer has ended them."""
