"""The consumer's end of a stream that comes over a connection.
It also delivers elements of fixed size as packed memory.

Rules of this file:

* With a serializer, elements wait as bytes, and are loaded when the reader takes them
  (`load_with`), up to `MOST_LOADED` at a time. Loaded when they arrived, up to 1,024 objects of a
  dataclass waited for a reader. Python's collector looked at each of them again and again, which
  took a quarter of the reader's time.
* An element that is not loaded ends the stream when the reader comes to it.

* After a call of `buffers()`, packed elements are never taken apart. The buffer is a list of
  pieces; each holds a whole number of elements, and every count counts elements.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import accumulate, islice
from time import monotonic
from typing import Any, Final, TypeAlias, TypeVar, cast

from penstock.api import StreamState, UsageError
from penstock.core import PositionedStream

T = TypeVar("T")

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_CANCELLED: Final = StreamState.CANCELLED

MOST_LOADED: Final = 256
"""Elements that are loaded at a time. The collector runs when 700 objects more were made than
freed, and a dataclass that msgspec makes has two: 256 of them are read and freed before the next
ones, and the collector does not run at all.
"""

LOADED_BYTES: Final = 64 << 10
"""Bytes after which no further element is loaded at a time.
The reader of a connection also receives as many at a time.
"""

FEW_WAITING: Final = 2048
"""Elements that may wait in a list. If there are more, they are moved to a deque: the rest of a
list is copied each time that some are loaded, which took ten times as long as to load them when
800,000 waited.
"""

Loader: TypeAlias = Callable[[Sequence[bytes]], tuple[list[Any], Exception | None]]
"""Loads elements. Returns those before one that cannot be loaded, and the error of that one; or all
of them, and None.
"""


class RemoteStream(PositionedStream[T]):
    """The elements of one subscription to a publisher of the peer."""

    __slots__ = ("_element_size", "_in_pieces", "_load", "restarts")

    def __init__(self, *, demand: int) -> None:
        super().__init__(demand=demand)
        self._element_size = 0
        self._in_pieces = False
        self._load: Loader | None = None
        self.restarts: int = 0
        """How often the publisher was subscribed to anew, from its beginning,
        after a lost connection (`Reconnect`).

        A publisher with positions is subscribed to at the position of the next element, and
        that is not counted.
        """

    @property
    def element_size(self) -> int:
        """The size of every element in bytes, or 0 if sizes differ;
        known after the publisher has accepted.
        """
        return self._element_size

    @property
    def has_just_waited(self) -> bool:
        """True if the reader of this stream let other tasks run within the last 5 ms."""
        return self._turn_ends > monotonic()

    def buffers(self) -> AsyncIterator[bytes]:
        """Iterate over packed elements as memory:
        each time all that has arrived, a whole number of elements, and never empty.

        For publishers with a fixed ``element_size``; others raise UsageError from the iteration.
        Checkpoints once a piece.
        """
        # From here on the buffer holds pieces, and `_number_in` must divide by the size.
        self._in_pieces = True
        return _Buffers(self)

    async def next_buffer(self) -> bytes:
        """Return what has arrived as one piece of memory; `buffers` iterates with this.
        Checkpoints.
        """
        pieces = cast("list[bytes]", await self._next_batch())
        # Asked after the wait: the size comes with the acceptance, which the first piece follows.
        if not self._element_size:
            raise UsageError(
                "buffers() on a stream whose elements have no fixed size: read it by element, or "
                "by batches()"
            )
        # One piece is the usual case, and needs no copy.
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def on_restart(self) -> None:
        """Count that the stream begins anew, over another connection."""
        self.restarts += 1

    # --- the subscriber, for elements that are loaded when they are read

    def load_with(self, load: Loader, /) -> None:
        """Load elements with `load` when they are read: from now on bytes arrive.
        Called before the first element.
        """
        self._load = load

    def _take(self, most: int) -> list[T]:
        load = self._load
        if load is None or not self._arrived:
            return super()._take(most)
        waiting = self._take_waiting(min(most, MOST_LOADED))
        loaded, error = load(waiting)
        # The code of a serializer may have cancelled the stream, which drops what was not read.
        if self._state is _CANCELLED:
            self._dropped += len(waiting)
            return []
        if error is not None:
            self._fail_loading(error, len(waiting) - len(loaded))
        return loaded

    def _take_waiting(self, most: int) -> list[bytes]:
        arrived: Any = self._arrived
        if len(arrived) > FEW_WAITING and type(arrived) is list:
            self._arrived = arrived = cast("Any", deque(arrived))
        most = _within(LOADED_BYTES, list(islice(arrived, most)))
        if type(arrived) is list:
            return cast("list[bytes]", super()._take(most))
        waiting = [arrived.popleft() for _ in range(most)]
        if not arrived:
            self._arrived = []
        self._counted += most
        self._unrenewed += most
        return waiting

    def _fail_loading(self, error: Exception, unloaded: int) -> None:
        # The publisher may have completed or failed: the element that cannot be loaded came before
        # that.
        self._counted += len(self._arrived)
        self._dropped += unloaded + len(self._arrived)
        self._arrived, self._error = [], error
        self._end(StreamState.FAILED)

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
            self.on_next_many(
                cast("list[T]", [elements[at : at + size] for at in range(0, count * size, size)])
            )

    # --- counting

    def _number_in(self, part: list[Any]) -> int:
        # Demand is renewed by elements, also if a reader takes whole pieces.
        return (
            sum(map(len, part)) // self._element_size
            if self._in_pieces and self._element_size
            else len(part)
        )


def _within(most: int, elements: Sequence[Any]) -> int:
    """Return how many of the first `elements` together have `most` bytes, and one more."""
    if sum(map(len, elements)) <= most:
        return len(elements)
    return 1 + sum(length <= most for length in accumulate(map(len, elements)))


class _Buffers(AsyncIterator[bytes]):
    """Iterates over a stream as memory."""

    __slots__ = ("_stream",)

    def __init__(self, stream: RemoteStream[Any]) -> None:
        self._stream = stream

    async def __anext__(self) -> bytes:
        return await self._stream.next_buffer()
