"""Where the elements of staged attempts are: in the file of a `DiskLog`, and there after a restart;
or in memory, for any other log.

Rules of this file:

* In a file, elements are gathered in memory up to PIECE_BYTES, and written in one piece. The stage
  of an attempt is answered when its last piece is on the disk.
* In memory, a restart loses what is staged, and the writer repeats its batch.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import trio

from penstock.logs import Attempt as StoredAttempt
from penstock.logs import DiskLog, Log, StagedTransaction, Transaction
from penstock.runtime.service._staging import Attempt, BatchId

PIECE: Final = 10_000
"""Elements that are given to a transaction at once, or written at once. It takes 20,000."""

PIECE_BYTES: Final = 1_048_576
"""Bytes after which elements are written to a file."""

MOST_PIECE_BYTES: Final = 67_108_864
"""Bytes that a transaction takes at once."""

LARGE_PIECE: Final = 16
"""Elements that are given to it at once if PIECE of them have more than MOST_PIECE_BYTES.
An element has 4 MiB at most.
"""


class StagedRows(Protocol):
    """The elements of the attempts of one receiver."""

    def now(self) -> float:
        """Return the time, in seconds."""

    def found(self) -> Sequence[Attempt]:
        """Return what was staged before a restart. It is returned once."""

    def begin(self, attempt: Attempt) -> None:
        """Prepare for the elements of a new attempt."""

    async def add(self, attempt: Attempt, elements: Sequence[bytes]) -> None:
        """Take elements. Raises LogError if they cannot be kept."""

    async def finish(self, attempt: Attempt) -> None:
        """Keep an attempt that is whole. Raises LogError if that is not possible."""

    def forget(self, attempt: Attempt) -> None:
        """Drop the elements of an attempt."""

    async def give(self, attempt: Attempt, transaction: Transaction) -> None:
        """Stage the elements in a transaction of the log."""

    def published(self, attempt: Attempt) -> None:
        """Note that the log has the elements."""


def staged_rows(log: Log, owner: str, max_seconds: float) -> StagedRows:
    """Return where the elements of a receiver are. `owner` is its name."""
    return RowsInFile(log, owner, max_seconds) if isinstance(log, DiskLog) else RowsInMemory()


class RowsInMemory:
    """Elements in the memory of this process."""

    def now(self) -> float:
        """Return the time of the run."""
        return trio.current_time()

    def found(self) -> Sequence[Attempt]:
        """Return nothing: a restart loses all."""
        return ()

    def begin(self, attempt: Attempt) -> None:
        """Do nothing."""

    async def add(self, attempt: Attempt, elements: Sequence[bytes]) -> None:
        """Keep elements."""
        attempt.elements.extend(elements)

    async def finish(self, attempt: Attempt) -> None:
        """Do nothing."""

    def forget(self, attempt: Attempt) -> None:
        """Do nothing: the attempt goes with its elements."""

    async def give(self, attempt: Attempt, transaction: Transaction) -> None:
        """Stage the elements."""
        for piece in pieces(attempt.elements):
            await transaction.stage(piece, partition=attempt.into)

    def published(self, attempt: Attempt) -> None:
        """Do nothing."""


class RowsInFile:
    """Elements in the file of a `DiskLog`."""

    def __init__(self, log: DiskLog, owner: str, max_seconds: float) -> None:
        self._log = log
        self._staged = log.staged
        self._owner = owner
        self._max_seconds = max_seconds

    def now(self) -> float:
        """Return the time of the log, which goes on while no program runs."""
        return self._staged.now()

    def found(self) -> Sequence[Attempt]:
        """Return what an earlier run of this program has staged."""
        return [_attempt_of(each) for each in self._staged.found(self._owner)]

    def begin(self, attempt: Attempt) -> None:
        """Give the attempt its number in the file."""
        attempt.number = self._staged.next_number()

    async def add(self, attempt: Attempt, elements: Sequence[bytes]) -> None:
        """Take elements, and write them if they are many."""
        waiting = attempt.elements
        waiting.extend(elements)
        if len(waiting) >= PIECE or attempt.length - attempt.written >= PIECE_BYTES:
            attempt.elements, attempt.written = [], attempt.length
            await self._staged.add(attempt.number, waiting)

    async def finish(self, attempt: Attempt) -> None:
        """Write the last elements, and what is known of the attempt."""
        stored = StoredAttempt(
            attempt.number,
            self._owner,
            _facts_of(attempt),
            attempt.count,
            attempt.length,
            attempt.began + self._max_seconds,
        )
        waiting, attempt.elements = attempt.elements, []
        await self._staged.add(attempt.number, waiting, stored)

    def forget(self, attempt: Attempt) -> None:
        """Delete the elements in the file."""
        if attempt.number:
            self._staged.forget(attempt.number)

    async def give(self, attempt: Attempt, transaction: Transaction) -> None:
        """Let the transaction move the elements."""
        assert isinstance(transaction, StagedTransaction)  # noqa: S101 (for the type checker)
        transaction.take(attempt.number, attempt.count, attempt.length, partition=attempt.into)

    def published(self, attempt: Attempt) -> None:
        """Note that nothing is left to delete: the transaction has moved the elements."""
        attempt.number = 0


def pieces(elements: list[bytes]) -> Iterator[Sequence[bytes]]:
    """Yield `elements` in pieces that a transaction takes at once."""
    for at in range(0, len(elements), PIECE):
        piece = elements[at : at + PIECE]
        if sum(map(len, piece)) <= MOST_PIECE_BYTES:
            yield piece
        else:
            yield from (
                piece[start : start + LARGE_PIECE] for start in range(0, len(piece), LARGE_PIECE)
            )


def _facts_of(attempt: Attempt) -> str:
    values = (attempt.of, attempt.run, attempt.partition, attempt.name, attempt.into)
    return json.dumps([*values, attempt.began])


def _attempt_of(stored: StoredAttempt) -> Attempt:
    of, run, partition, name, into, began = json.loads(stored.facts)
    return Attempt(
        BatchId(*of),
        run,
        partition,
        name,
        into,
        began,
        number=stored.number,
        count=stored.length,
        length=stored.size,
        is_whole=True,
    )
