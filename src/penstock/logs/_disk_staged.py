"""The tables of elements that are staged for a transaction, in the file of a log.

Rules of this file:

* A log of formats 1 and 2 that is read only has no such tables.
* Elements are in pieces, under the number of their attempt. The row of an attempt is written with
  its last piece: pieces without it are a part, and are dropped when the log is opened.
* Nothing here is an element of the log. A damaged attempt is dropped when the log is opened or when
  it is published: its writer repeats it.
"""

import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from penstock.core import LimitedLog
from penstock.logs._disk_errors import damaged
from penstock.logs._group_format import Row, checksum_of, encode_row, is_whole
from penstock.logs._page_cells import Cell
from penstock.logs._retention import Retention, split
from penstock.logs._work import Attempt, Stage

PIECES: Final = 2**24
"""Pieces of an attempt. The key of a piece has the number of its attempt before its own."""

_HAS_TABLES: Final = (
    "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('attempts', 'staged')"
)
_PIECES: Final = (
    "SELECT key, count, checksum, elements FROM staged WHERE key >= ? AND key < ? ORDER BY key"
)
_LAST_KEY: Final = "SELECT max(key) FROM staged WHERE key >= ? AND key < ?"
_DELETE: Final = "DELETE FROM staged WHERE key >= ? AND key < ?"
_OF_NO_ATTEMPT: Final = "DELETE FROM staged WHERE key / ? NOT IN (SELECT number FROM attempts)"


class StagedTables:
    """Reads and writes the two tables. The caller has begun a transaction of SQLite."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def load(self, now: float, lines: LimitedLog) -> list[Attempt]:
        """Drop what is damaged, a part or too old, and return the other attempts."""
        if not self._exist():
            return []
        attempts = []
        for row in self._connection.execute("SELECT * FROM attempts ORDER BY number").fetchall():
            attempt = _attempt_of(row)
            if attempt is not None and attempt.expires > now:
                attempts.append(attempt)
                continue
            if attempt is None:
                lines.write(
                    logging.WARNING,
                    "log staged",
                    "elements that were staged in the log %s for a batch were changed, and are "
                    "dropped. The batch is not committed yet: its writer has to repeat it",
                    self._path,
                )
            self._connection.execute("DELETE FROM attempts WHERE number = ?", (row[0],))
        self._connection.execute(_OF_NO_ATTEMPT, (PIECES,))
        return attempts

    def last_number(self) -> int:
        """Return the highest number that is in use, 0 without any."""
        if not self._exist():
            return 0
        (number,) = self._connection.execute("SELECT max(number) FROM attempts").fetchone()
        return number or 0

    def stage(self, work: Stage, retention: Retention) -> None:
        """Add elements, in pieces that can be groups, and the row of their attempt if they are its
        last ones.
        """
        low, high = work.number * PIECES, (work.number + 1) * PIECES
        (last,) = self._connection.execute(_LAST_KEY, (low, high)).fetchone()
        first = low if last is None else last + 1
        for key, part in enumerate(split(work.elements, retention), first):
            row = encode_row(key, part, 0.0)
            self._connection.execute(
                "INSERT INTO staged VALUES (?, ?, ?, ?)",
                (row.key, row.length, row.checksum, row.elements),
            )
        if work.attempt is not None:
            self._connection.execute(
                "INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*work.attempt, checksum_of(*work.attempt)),
            )

    def pieces(self, number: int) -> Iterator[Row]:
        """Yield the pieces of an attempt, as groups. A damaged one ends them."""
        if not self._exist():
            return
        rows = self._connection.execute(_PIECES, (number * PIECES, (number + 1) * PIECES))
        for row in map(_row_of, rows):
            if not is_whole(row):
                return
            yield row

    def unstage(self, number: int) -> None:
        """Delete an attempt."""
        if self._exist():
            self._connection.execute(_DELETE, (number * PIECES, (number + 1) * PIECES))
            self._connection.execute("DELETE FROM attempts WHERE number = ?", (number,))

    def check(self) -> None:
        """Compare all rows with their checksums. Raises LogDamaged."""
        if not self._exist():
            return
        for row in self._connection.execute("SELECT * FROM attempts ORDER BY number"):
            attempt = _attempt_of(row)
            found = () if attempt is None else self.pieces(attempt.number)
            if attempt is None or sum(each.length for each in found) != attempt.length:
                raise damaged(
                    self._path,
                    "elements that are staged for a batch were changed. They are no elements of "
                    "the log: without a backup it opens, and the writer repeats the batch",
                )

    def _exist(self) -> bool:
        return bool(self._connection.execute(_HAS_TABLES).fetchone() == (2,))


def is_staged(cell: Cell) -> bool:
    """Return whether a row of the file is of one of these tables, and whole."""
    values: Any = cell.values
    if len(values) == 7:
        return _attempt_of((cell.key, *values[1:])) is not None
    return (
        len(values) == 4
        and isinstance(values[3], bytes)
        and is_whole(_row_of((cell.key, *values[1:])))
    )


def _row_of(row: tuple[Any, ...]) -> Row:
    key, count, checksum, elements = row
    try:
        return Row(key, count, len(elements) - 4 * count, 0.0, checksum, elements)
    except TypeError:  # a value of another type
        return Row(key, 0, 0, 0.0, 0, b"")


def _attempt_of(row: tuple[Any, ...]) -> Attempt | None:
    return Attempt(*row[:6]) if row[6] == checksum_of(*row[:6]) else None
