"""Large elements of one sent stream: held without a copy, and written part by part, in turn with
other streams' large elements.
"""

from collections import deque
from typing import Protocol

from penstock.session._channel import Channel


class StreamOfLargeElements(Protocol):
    """The sent stream that the elements belong to."""

    @property
    def id(self) -> int:
        """The stream's id."""

    def on_written(self) -> None:
        """Go on: the last held element is written."""


class LargeElements:
    """The held elements of one stream: a large one, and all that came after it. It is the
    stream's `LargeElementSender`.
    """

    __slots__ = ("_channel", "_elements", "_number", "_stream", "_written", "size")

    def __init__(self, channel: Channel, stream: StreamOfLargeElements) -> None:
        self._channel = channel
        self._stream = stream
        # Bounded by the reserved demand, and so by the room in the outbox.
        self._elements: deque[bytes] = deque()
        self._written = 0  # bytes of the first element that were written in parts
        self._number = 0  # of the next element that goes in parts
        self.size: int = 0
        """Bytes that are not written yet."""

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
