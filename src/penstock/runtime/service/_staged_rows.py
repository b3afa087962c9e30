"""Where the elements of staged attempts are: in the file of a `DiskLog`, and there after a restart;
or in memory, for any other log.

Rules of this file:

* In a file, the elements of a task are gathered in memory up to PIECE_BYTES, and written in one
  piece for each attempt, all at once. The stage of a task is answered when its last pieces are on
  the disk.
* In memory, a restart loses what is staged, and the writer repeats its batch.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Final, Protocol

import trio

from penstock.api import PenstockError
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

    async def keep(self, attempts: Collection[Attempt]) -> None:
        """Keep the elements that were added to the attempts of a task, if they are many. Raises
        LogError if that is not possible.
        """

    async def finish(self, attempts: Collection[Attempt]) -> None:
        """Keep the attempts of a task that is whole. Raises LogError if that is not possible."""

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

    async def keep(self, attempts: Collection[Attempt]) -> None:
        """Do nothing: the attempts have their elements."""

    async def finish(self, attempts: Collection[Attempt]) -> None:
        """Do nothing: the attempts have their elements."""

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

    async def keep(self, attempts: Collection[Attempt]) -> None:
        """Write the elements that are in memory if those of all attempts are many."""
        count = sum(len(each.elements) for each in attempts)
        size = sum(each.length - each.written for each in attempts)
        if count >= PIECE or size >= PIECE_BYTES:
            await self._write([each for each in attempts if each.elements], is_last=False)

    async def finish(self, attempts: Collection[Attempt]) -> None:
        """Write the last elements, and what is known of the attempts."""
        await self._write(attempts, is_last=True)

    async def _write(self, attempts: Collection[Attempt], *, is_last: bool) -> None:
        """Write a piece of each attempt. One after the other they would wait for a sync each."""
        errors: list[PenstockError] = []

        async def write(attempt: Attempt) -> None:
            stored = self._stored(attempt) if is_last else None
            waiting, attempt.elements, attempt.written = attempt.elements, [], attempt.length
            try:
                await self._staged.add(attempt.number, waiting, stored)
            except PenstockError as error:
                errors.append(error)

        async with trio.open_nursery() as nursery:
            for each in attempts:
                nursery.start_soon(write, each)
        if errors:
            raise errors[0]

    def _stored(self, attempt: Attempt) -> StoredAttempt:
        return StoredAttempt(
            attempt.number,
            self._owner,
            _facts_of(attempt),
            attempt.count,
            attempt.length,
            attempt.began + self._max_seconds,
        )

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
