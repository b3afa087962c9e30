"""Streams that this side has cancelled. Late elements were requested, so they are free; some dialects must still delimit them."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from penstock.session._channel import Channel
from penstock.session._receiving_stream import ReceivingStream

MAX_LATE_ELEMENTS: Final = 1 << 20
"""Elements that may arrive after cancels at no cost to the peer, over a connection."""


class CancelledStreams:
    """Keeps the places of cancelled streams in the table of opened streams, if the dialect needs them to delimit late elements."""

    __slots__ = ("_by_size", "_channel", "_late", "_opened", "count")

    def __init__(self, channel: Channel, opened: "OpenedStreams") -> None:
        self._channel = channel
        self._opened = opened
        self.count: int = 0
        """Places of streams that the peer has not ended."""
        self._late = 0
        self._by_size: dict[int, CancelledStream] = {}

    def add(self, stream: ReceivingStream) -> None:
        """Take over a stream that this side has cancelled. Its demand may still arrive as late elements."""
        # Requested elements that cross the cancel cost nothing. A subscriber that left with much demand outstanding once lost its
        # connection for them. The sum is bounded, so that one cancel with unbounded demand does not make late elements free for ever.
        self._late = min(self._late + stream.outstanding, MAX_LATE_ELEMENTS)
        # Packed elements carry no lengths: late ones can only be skipped if the stream's element size is kept.
        if self._channel.dialect.delimits_cancelled:
            self.count += 1
        self.replace(stream)

    def replace(self, stream: ReceivingStream) -> None:
        """Put a stream that has ended here out of the table, or a cancelled stream in its place."""
        if self._channel.dialect.delimits_cancelled:
            self.resize(stream.id, stream.element_size)
        else:
            del self._opened[stream.id]

    def resize(self, stream_id: int, element_size: int) -> None:
        """Expect late elements of that size on a cancelled stream."""
        # Cancelled streams share one object per element size, so each costs only an entry of the table.
        cancelled = self._by_size.get(element_size)
        if cancelled is None:
            cancelled = self._by_size[element_size] = CancelledStream(self, self._channel, element_size)
        self._opened[stream_id] = cancelled

    def count_late(self, count: int) -> None:
        """Count late elements that were dropped. More of them than were asked for are odd."""
        if count <= self._late:
            self._late -= count
        else:
            self._channel.count_oddity()


class CancelledStream:
    """Drops what arrives for streams that this side has cancelled and the peer has not ended (rule 2.8)."""

    __slots__ = ("_cancelled", "_channel", "element_size")

    def __init__(self, cancelled: CancelledStreams, channel: Channel, element_size: int) -> None:
        self._cancelled = cancelled
        self._channel = channel
        self.element_size = element_size

    @property
    def takes_whole(self) -> bool:
        """Unsplit elements may come straight here, to be dropped. The decoder asks."""
        return True

    def receive_element(self, element: bytes, /) -> None:
        """Drop an element."""
        self._cancelled.count_late(1)

    def receive_run(self, elements: Sequence[bytes], /) -> None:
        """Drop elements."""
        self._cancelled.count_late(len(elements))

    def receive_packed(self, count: int, elements: bytes, /) -> None:
        """Drop packed elements."""
        self._cancelled.count_late(count)

    def receive_part(self, number: int, part: bytes, last: bool, /) -> None:  # noqa: FBT001  # as the decoder calls it
        """Drop a part. The last part of an element is what demand was for."""
        if last:
            self._cancelled.count_late(1)
        elif len(part) < self._channel.limits.tiny_part:
            self._channel.count_oddity()


OpenedStreams: TypeAlias = dict[int, ReceivingStream | CancelledStream]
"""The streams that this side has opened, by id; cancelled ones until the peer has ended them."""
