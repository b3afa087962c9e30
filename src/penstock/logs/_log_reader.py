"""The iterator of one stream of a log.

Rules of this file:

* A reader reads as many elements as were asked for, and ahead as many as it has handed over so
  far. A reader that takes one element holds one; one that takes all soon reads in large steps.
* Elements that wait here, and a read that waits, count in the memory of the peer that reads.
* All readers of one log together hold at most `MOST_AHEAD`. The reader that has read nothing for
  longest gives its elements back, and reads them again when it goes on: the log has them.
"""

from collections.abc import AsyncIterator, Hashable, Sequence
from typing import Final, Protocol

from penstock.api import BytesList
from penstock.core import SourceMemory

MOST_AHEAD: Final = 32 << 20
"""Bytes that the readers of one log hold ready together: those of 32 readers with the longest
steps.
"""

LONGEST_STEP: Final = 1 << 20
"""Bytes after which a reader reads no further element for one step."""

SHORTEST_STEP: Final = 1 << 16
"""The same while very many readers hold elements ready."""


READ_BYTES: Final = 2 << 10
"""The bytes of the coroutines of a read that waits for its turn or for an element. The task of its
publisher is not counted. Measured: 2,150 bytes.
"""


class ReadLog(Protocol):
    """A log, as its readers see it."""

    most_ahead: int
    """Elements that a reader may hold ready."""
    ready: "ReadyElements"

    async def read_next(
        self, index: int, position: int, stop: int | None, most: int, step: int, owner: Hashable
    ) -> Sequence[bytes]:
        """Return up to `most` elements of a partition from `position` on, about `step` bytes,
        and wait for the first. Returns nothing at `stop`.
        """

    def at_hand(self, index: int, position: int, stop: int | None, most: int) -> Sequence[bytes]:
        """Return up to `most` elements of a partition from `position` on, if they need not be
        waited for.
        """

    def end_of(self, index: int) -> int | None:
        """Return the position after the last element of a partition that this process knows of."""


class ReadyElements:
    """The readers of one log that hold elements ready, and how many bytes each of them."""

    __slots__ = ("_readers", "held")

    def __init__(self) -> None:
        # Bounded by the streams of the log. The reader that has read last is the last one.
        self._readers: dict[LogReader, int] = {}
        self.held: int = 0
        """Bytes of all of them."""

    @property
    def step(self) -> int:
        """How many bytes a reader may read at once, so that the others keep theirs."""
        return max(SHORTEST_STEP, min(LONGEST_STEP, MOST_AHEAD // (len(self._readers) + 1)))

    def add(self, reader: "LogReader", size: int) -> None:
        """Note that `reader` holds `size` bytes, and take from others what is too much."""
        self._readers[reader] = size
        self.held += size
        while self.held > MOST_AHEAD and len(self._readers) > 1:
            next(iter(self._readers)).give_back()

    def remove(self, reader: "LogReader") -> int:
        """Note that `reader` holds nothing. Return what it has held."""
        size = self._readers.pop(reader, 0)
        self.held -= size
        return size


class LogReader(AsyncIterator[bytes]):
    """Reads a partition from `position` to `stop`. It has several elements at hand, as a pump
    calls it (`ReadyElements` there).
    """

    __slots__ = (
        "_asked",
        "_begin",
        "_elements",
        "_index",
        "_log",
        "_memory",
        "_position",
        "_stop",
        "_taken",
    )

    def __init__(
        self,
        log: ReadLog,
        index: int,
        position: int,
        stop: int | None,
        memory: SourceMemory | None,
    ) -> None:
        self._log = log
        self._index = index
        self._position = position  # of the first element that was not handed over
        self._stop = stop
        self._memory = memory
        self._elements: Sequence[bytes] = ()
        self._begin = 0  # of the elements that were not handed over
        self._asked = 1
        self._taken = 0

    def take_ready(self, most: int, /) -> Sequence[bytes]:
        """Return the next elements that are here. `most` are asked for."""
        self._asked = most
        if not self._elements:
            taken = self._log.at_hand(self._index, self._position, self._stop, most)
            self._position += len(taken)
            self._taken += len(taken)
            return BytesList(taken)
        taken = self._elements[self._begin : self._begin + most]
        self._move(len(taken))
        return BytesList(taken)  # `append` has examined their types

    async def __anext__(self) -> bytes:
        if not self._elements:
            # Not in a method: a thousand streams may wait here, each with a frame more.
            log, memory = self._log, self._memory
            if memory is not None:
                memory.change(READ_BYTES)
            try:
                elements = await log.read_next(
                    self._index,
                    self._position,
                    self._stop,
                    max(self._asked, min(self._taken, log.most_ahead)),
                    log.ready.step,
                    self if memory is None else memory.owner,
                )
            finally:
                if memory is not None:
                    memory.change(-READ_BYTES)
            self._begin_step(elements)
        # As `_move`, without its call: an operator takes each element here.
        element = self._elements[self._begin]
        self._position += 1
        self._taken += 1
        self._begin += 1
        if self._begin >= len(self._elements):
            self.give_back()
        return element

    @property
    def place(self) -> tuple[int, int | None]:
        """The position of the next element, and how many the log has from there on."""
        end = self._log.end_of(self._index)
        return self._position, None if end is None else max(0, end - self._position)

    async def aclose(self) -> None:
        """Drop the elements that wait here."""
        self.give_back()

    def give_back(self) -> None:
        """Drop the elements that wait here. They are read again if the stream goes on."""
        self._elements, self._begin = (), 0
        size = self._log.ready.remove(self)
        if size and self._memory is not None:
            self._memory.change(-size)

    def _move(self, count: int) -> None:
        self._position += count
        self._taken += count
        self._begin += count
        # Dropped at once: the next read may be far away.
        if self._begin >= len(self._elements):
            self.give_back()

    def _begin_step(self, elements: Sequence[bytes]) -> None:
        if not elements:
            raise StopAsyncIteration
        self._elements, self._begin = elements, 0
        # The elements that were asked for go on at once. The others are held ready.
        if len(elements) > self._asked:
            size = sum(map(len, elements))
            self._log.ready.add(self, size)
            if self._memory is not None:
                self._memory.change(size)
