"""The fetched elements of a topic, kept until others need the room.

Rules of this file:

* A broker sends whole record batches, also to a reader that asks for one element. The others stay
  here for the next read, and for other readers.
* The newest elements of a partition, which `Watch` has seen come, are kept beside these runs: one
  run of a partition.
* All of it together has at most `MOST_FETCHED` bytes. The run that was
  read longest ago goes first, and is fetched again if it is needed.
"""

from bisect import bisect_right, insort
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

MOST_FETCHED: Final = 16 << 20
"""Bytes of fetched elements of one log."""

ELEMENT_BYTES: Final = 60
"""What an element of type bytes holds beside its bytes: its head, and its place in a list."""


class Run(NamedTuple):
    """Elements of a partition without a gap. The first one has the position `start`."""

    start: int
    elements: Sequence[bytes]
    size: int

    @property
    def stop(self) -> int:
        """The position after the last element."""
        return self.start + len(self.elements)

    @classmethod
    def of(cls, start: int, elements: Sequence[bytes]) -> "Run":
        """Return a run with its size."""
        return cls(start, elements, sum(map(len, elements)) + ELEMENT_BYTES * len(elements))


class Fetched:
    """The runs of all partitions that are kept."""

    def __init__(self, most: int = MOST_FETCHED) -> None:
        self._most = most
        # The run that was read last is the last one.
        self._runs: OrderedDict[tuple[int, int], Run] = OrderedDict()
        self._starts: dict[int, list[int]] = {}
        self._tails: dict[int, Run] = {}
        self.held: int = 0
        """Bytes of all runs."""

    def find(self, index: int, position: int) -> Run | None:
        """Return the run of a partition that has the element at `position`."""
        tail = self._tails.get(index)
        if tail is not None and tail.start <= position < tail.stop:
            return tail
        starts = self._starts.get(index, ())
        at = bisect_right(starts, position) - 1
        if at < 0:
            return None
        key = (index, starts[at])
        run = self._runs[key]
        if position >= run.stop:
            return None
        self._runs.move_to_end(key)
        return run

    def add(self, index: int, run: Run) -> None:
        """Keep a run, and drop others for it."""
        key = (index, run.start)
        if key in self._runs:
            self._remove(key)
        self._runs[key] = run
        insort(self._starts.setdefault(index, []), run.start)
        self.held += run.size
        # The last one stays, however large: it is what a reader waits for.
        while self.held > self._most and len(self._runs) > 1:
            self._remove(next(iter(self._runs)))

    def keep_tail(self, index: int, run: Run) -> None:
        """Keep the newest elements of a partition, in the place of those before."""
        before = self._tails.pop(index, None)
        self.held += run.size - (0 if before is None else before.size)
        self._tails[index] = run
        while self.held > self._most and self._runs:
            self._remove(next(iter(self._runs)))

    def _remove(self, key: tuple[int, int]) -> None:
        run = self._runs.pop(key)
        self._starts[key[0]].remove(run.start)
        self.held -= run.size

    def clear(self) -> None:
        """Drop all runs."""
        self._runs.clear()
        self._starts.clear()
        self._tails.clear()
        self.held = 0
