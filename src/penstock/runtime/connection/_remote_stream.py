"""The consumer's end of a stream that comes over a connection. It also delivers elements of fixed size as packed memory.

Rules of this file:

* After a call of `buffers()`, packed elements are never taken apart. The buffer is a list of pieces; each holds a whole number of
  elements, and every count counts elements.
"""

from collections.abc import AsyncIterator
from time import monotonic
from typing import Any, TypeVar, cast

from penstock.api import UsageError
from penstock.core import PositionedStream

T = TypeVar("T")


class RemoteStream(PositionedStream[T]):
    """The elements of one subscription to a publisher of the peer."""

    __slots__ = ("_element_size", "_in_pieces", "restarts")

    def __init__(self, *, demand: int) -> None:
        super().__init__(demand=demand)
        self._element_size = 0
        self._in_pieces = False
        self.restarts: int = 0
        """How often the publisher was subscribed to anew, from its beginning, after a lost connection (`Reconnect`).

        A publisher with positions is subscribed to at the position of the next element, and that is not counted."""

    @property
    def element_size(self) -> int:
        """The size of every element in bytes, or 0 if sizes differ; known after the publisher has accepted."""
        return self._element_size

    @property
    def has_just_waited(self) -> bool:
        """True if the reader of this stream let other tasks run within the last 5 ms."""
        return self._turn_ends > monotonic()

    def buffers(self) -> AsyncIterator[bytes]:
        """Iterate over packed elements as memory: each time all that has arrived, a whole number of elements, and never empty.

        For publishers with a fixed ``element_size``; others raise UsageError from the iteration. Checkpoints once a piece.
        """
        # From here on the buffer holds pieces, and `_number_in` must divide by the size.
        self._in_pieces = True
        return _Buffers(self)

    async def next_buffer(self) -> bytes:
        """Return what has arrived as one piece of memory; `buffers` iterates with this. Checkpoints."""
        pieces = cast("list[bytes]", await self._next_batch())
        # Asked after the wait: the size comes with the acceptance, which the first piece follows.
        if not self._element_size:
            raise UsageError("buffers() on a stream whose elements have no fixed size: read it by element, or by batches()")
        # One piece is the usual case, and needs no copy.
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def on_restart(self) -> None:
        """Count that the stream begins anew, over another connection."""
        self.restarts += 1

    # --- the subscriber, for elements of fixed size

    def on_element_size(self, size: int, /) -> None:
        """Learn the size of every element."""
        self._element_size = size

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        """Take packed elements."""
        if self._in_pieces:
            self.on_next(cast("T", elements))
        else:
            size = self._element_size
            self.on_next_many(cast("list[T]", [elements[at : at + size] for at in range(0, count * size, size)]))

    # --- counting

    def _count(self, part: list[Any]) -> None:
        # Demand is renewed by elements, also if a reader takes whole pieces.
        counted = self._number_in(part)
        self._counted += counted
        self._unrenewed += counted

    def _number_in(self, part: list[Any]) -> int:
        return sum(map(len, part)) // self._element_size if self._in_pieces and self._element_size else len(part)

    def _count_arrived(self) -> int:
        return self._number_in(self._arrived)


class _Buffers(AsyncIterator[bytes]):
    """Iterates over a stream as memory."""

    __slots__ = ("_stream",)

    def __init__(self, stream: RemoteStream[Any]) -> None:
        self._stream = stream

    async def __anext__(self) -> bytes:
        return await self._stream.next_buffer()
