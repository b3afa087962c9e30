"""A spool writes the elements of a publisher that keeps none to a log when they come.

Rules of this file:

* Elements are requested only when those before them are in the log, and on disk if it is a
  `DiskLog`. So a full log stops the publisher.
* A mark is one element of another partition. It says which position of the publisher a position of
  the log has. From the last mark and the length of the log follows where a spool that starts again
  goes on. A mark is written before the elements that it is about.
* Elements that the log has already are dropped, and a gap in the positions of the publisher is
  counted.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import trio

from penstock.api import (
    LimitExceeded,
    PlaceInStream,
    PositionNotRetained,
    PublisherFailed,
    Rejected,
    UsageError,
    shown,
)
from penstock.core import Stream
from penstock.logs._log import Log
from penstock.logs._positions import (
    DEFAULT_PARTITION,
    MOST_AT_ONCE,
    MOST_BYTES_AT_ONCE,
    unknown_partition,
)
from penstock.streams import Source, Streamable, as_source, open_into

DEFAULT_SPOOL_DEMAND: Final = 1_024
"""Elements that are requested ahead of the log: enough for one commit, so that the publisher
works while the disk syncs.
"""


@runtime_checkable
class StartsAnywhere(Protocol):
    """A source whose publisher has positions: the source of a log, and `remote`."""

    def starting_at(self, start: PlaceInStream) -> Source[Any]:
        """Return a source with the same elements that begins at `start`."""


class Spool:
    """Writes what `source` streams to `log`, and requests more only when it is written.

    ::

        keep = Retention(max_bytes=10**9)
        async with DiskLog("ticks.log", retention=keep, partitions=["0", "marks"]) as log:
            await Spool(remote("tcp://127.0.0.1:7000/ticks"), log, marks="marks").run()

    At most `demand` elements are under way. No other task may append to `partition`.
    With `marks`, the name of another partition of the log, a spool that starts again goes on after
    its last element if the publisher has positions. Raises UsageError for arguments that are not
    possible, and `run` raises it if the log has elements and no mark.
    """

    def __init__(
        self,
        source: Streamable[bytes],
        log: Log,
        *,
        partition: str = DEFAULT_PARTITION,
        marks: str | None = None,
        demand: int = DEFAULT_SPOOL_DEMAND,
    ) -> None:
        if not isinstance(log, Log):
            raise UsageError(f"Spool() was given {shown(log)} to write to; give a Log")
        for name in (partition, *(() if marks is None else (marks,))):
            if name not in log.partitions:
                raise unknown_partition(name, log.partitions)
        if marks == partition:
            raise UsageError(
                f"marks={marks!r} is the partition of the elements; give the marks a partition of "
                "their own"
            )
        if type(demand) is not int or not 0 < demand <= MOST_AT_ONCE:
            raise UsageError(
                f"demand={shown(demand)}; give how many elements may be under way, from 1 to "
                f"{MOST_AT_ONCE:,}"
            )
        self._source = as_source(source)
        self._log = log
        self._partition = partition
        self._marks = marks
        self._demand = demand
        # The position that the publisher gives to the next element; None if it is not known.
        self._next: int | None = None
        # A position of the log, and the publisher's position of the same element.
        self._mark: tuple[int, int] | None = None
        self._gaps = 0
        self._is_exact = True
        self.appended: int = 0
        """Elements that this object has written."""

    @property
    def missed(self) -> int | None:
        """How many elements the publisher signalled since the first one that the log has, and the
        log lacks; None if that is not known.

        It can be known if the publisher has positions, and if the log was empty,
        or has a mark (`marks`).
        """
        return self._gaps if self._is_exact and self._next is not None else None

    async def run(self) -> None:
        """Write until the source completes.
        Raises what it fails with, and LogError if the log cannot keep its elements.

        It may be called again after a failure or a cancel,
        and goes on behind the last element in the log.
        """
        # A barrier: if the call before was cancelled while it waited for the disk, its elements are
        # counted in `latest` from here on.
        await self._log.append((), partition=self._partition)
        await self._find_next()
        if self._next is None:
            await self._write(self._source)
            return
        if not isinstance(self._source, StartsAnywhere):
            raise UsageError(
                f"the log has a mark at position {self._next:,} of the publisher, and "
                f"{self._source!r} has no positions"
            )
        before = self.appended
        try:
            await self._write(self._source.starting_at(self._next))
        except (PositionNotRetained, Rejected, PublisherFailed) as error:
            # The publisher may have dropped the position. Any other refusal comes again, or the
            # stream begins before the position.
            if self.appended > before or not await self._is_behind(self._source, self._next):
                raise
            await self._write(self._source.starting_at("earliest"), instead_of=error)

    # --- inside

    async def _find_next(self) -> None:
        """Find out from the last mark which position the next element has at the publisher."""
        latest = self._log.latest()
        if (
            self._mark is None
            and self._marks is not None
            and latest[self._marks] > self._log.earliest()[self._marks]
        ):
            last = self._log.source(self._marks, latest[self._marks] - 1, latest[self._marks])
            async with open_into(Stream[bytes](demand=1), last) as stream:
                mark = json.loads(await anext(stream))
            self._mark = mark["position"], mark["upstream"]
        if self._mark is not None:
            position, upstream = self._mark
            self._next = upstream + latest[self._partition] - position
        elif latest[self._partition] and self._marks is not None:
            raise UsageError(
                f"partition {self._partition!r} has {latest[self._partition]:,} elements, and "
                f"{self._marks!r} has no mark, so where the publisher goes on is not known, and "
                "elements would be written twice: give an empty partition, the partition of the "
                "marks that were written with these elements, or no marks"
            )
        elif latest[self._partition]:
            self._is_exact = False

    async def _is_behind(self, source: StartsAnywhere, position: int) -> bool:
        """Return whether the publisher has dropped `position`."""
        stream = _FirstSignal()
        async with open_into(stream, source.starting_at("earliest")):
            # A publisher that has no elements now signals none;
            # it has told its positions by then, if it tells them at all.
            await stream.came.wait()
            earliest = stream.position_if_known
            return earliest is not None and earliest > position

    async def _write(self, source: Source[bytes], instead_of: Exception | None = None) -> None:
        # Without automatic demand, which is renewed when elements are taken, and not
        # when they are in the log.
        stream: Stream[bytes] = Stream(demand=0)
        async with open_into(stream, source) as stream:
            stream.request(self._demand)
            async for batch in stream.batches():
                after = stream.position_if_known
                if after is None and instead_of is not None:
                    # A protocol without positions: where the stream begins is not known, so the
                    # refusal of the first try is raised.
                    raise instead_of
                elements = batch if after is None else await self._new_of(batch, after)
                for piece in _pieces(elements):
                    await self._append(piece)
                self._next = after
                # Only behind the append, so that a log that waits for room stops the publisher.
                stream.request(len(batch))

    async def _append(self, elements: list[bytes]) -> None:
        """Append elements, in parts if the log takes fewer at once: one on a broker may."""
        try:
            await self._log.append(elements, partition=self._partition)
        except LimitExceeded:
            # None of them was appended.
            half = len(elements) // 2
            if not half:
                raise
            await self._append(elements[:half])
            await self._append(elements[half:])
        else:
            self.appended += len(elements)

    async def _new_of(self, batch: list[bytes], after: int) -> list[bytes]:
        """Return the elements that the log has not, after a mark was written if one is needed.
        `after` is the position after them.
        """
        first = after - len(batch)
        expected = first if self._next is None else self._next
        if first > expected:
            self._gaps += first - expected
        new = batch[max(0, expected - first) :]
        # Without a gap the positions of both sides grow together,
        # and the mark of before still fits.
        if new and (self._mark is None or first > expected):
            self._mark = self._log.latest()[self._partition], after - len(new)
            if self._marks is not None:
                mark = {"position": self._mark[0], "upstream": self._mark[1]}
                # A crash behind this line does no harm: the mark names the next position of the
                # log, where the next run goes on.
                await self._log.append([json.dumps(mark).encode()], partition=self._marks)
        return new

    def __repr__(self) -> str:
        missed = "" if self.missed is None else f", {self.missed:,} missed"
        return f"<Spool of {self._source!r}: {self.appended:,} appended{missed}>"


class _FirstSignal(Stream[bytes]):
    """A stream that tells when anything has come: where it begins, an element, or its end."""

    __slots__ = ("came",)

    def __init__(self) -> None:
        super().__init__(demand=1)
        self.came = trio.Event()

    def on_fact(self, fact: object, /) -> None:
        super().on_fact(fact)
        self.came.set()

    def on_next(self, element: bytes, /) -> None:
        self.came.set()
        super().on_next(element)

    def on_next_many(self, elements: Sequence[bytes], /) -> None:
        self.came.set()
        super().on_next_many(elements)

    def on_error(self, error: BaseException, /) -> None:
        self.came.set()
        super().on_error(error)

    def on_complete(self, /) -> None:
        self.came.set()
        super().on_complete()


def _pieces(elements: list[bytes]) -> Iterator[list[bytes]]:
    """Yield `elements` in lists that one append takes."""
    start = size = 0
    for index, element in enumerate(elements):
        if index > start and size + len(element) > MOST_BYTES_AT_ONCE:
            yield elements[start:index]
            start, size = index, 0
        size += len(element)
    if start < len(elements):
        yield elements[start:]
