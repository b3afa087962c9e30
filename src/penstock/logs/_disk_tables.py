"""Where the partitions of a log on disk begin and end, as its tables have it.

`DiskStore` reads it when a log is opened for writing, a log that is open for reading reads it again
and again.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from penstock.logs._disk_errors import damaged
from penstock.logs._group_format import checksum_of
from penstock.logs._positions import MOST_POSITIONS
from penstock.logs._readers import ReaderState
from penstock.logs._work import PartitionState

_PARTITIONS: Final = (
    "SELECT number, name, earliest, latest, first_acknowledged, middle_acknowledged, "
    "last_acknowledged, checksum FROM partitions ORDER BY number"
)

_LAST_GROUP: Final = (
    "SELECT key, count FROM groups WHERE key >= ? AND key < ? ORDER BY key DESC LIMIT 1"
)


_SUMMARIES: Final = "SELECT number, earliest, latest, size, joined, summary FROM partitions"


class Summary(NamedTuple):
    """The sums over the groups of a partition, so that they need not be read again.

    `size` is the sum of the elements from `earliest` up to, and not with, `latest` of the row.
    The groups before `joined` are joined.
    """

    size: int
    joined: int


class PartitionRow(NamedTuple):
    """A row of the table `partitions`.

    `latest` is written when the log is closed, and with each change of `earliest`. After a crash
    the partition may be longer.
    """

    name: str
    earliest: int
    latest: int
    acknowledged: tuple[int, int, int]


def partition_rows(connection: sqlite3.Connection, path: Path) -> list[PartitionRow]:
    """Return the partitions, by number. Raises LogDamaged for a row that was changed."""
    found: list[PartitionRow] = []
    for number, name, earliest, latest, *rest in connection.execute(_PARTITIONS):
        row = PartitionRow(name, earliest, latest, tuple(rest[:3]))
        if number != len(found) or rest[3] != checksum_of(number, *row):
            raise damaged(path, f"the record of partition {len(found)} was changed")
        found.append(row)
    return found


def summaries(connection: sqlite3.Connection) -> dict[int, Summary]:
    """Return the summaries whose checksum fits, by the number of the partition. A log of format 1
    has none.
    """
    if connection.execute("PRAGMA user_version").fetchone() == (1,):
        return {}
    return {
        number: Summary(size, joined)
        for number, earliest, latest, size, joined, summary in connection.execute(_SUMMARIES)
        if summary == checksum_of(number, earliest, latest, size, joined)
    }


def reader_row(reader: ReaderState) -> tuple[object, ...]:
    """Return the columns of a reader, after its number."""
    facts = (*reader[:4], reader.to_text())
    return (*facts, checksum_of("reader", *facts))


def reader_of(row: Sequence[Any]) -> ReaderState | None:
    """Return the reader with these columns, or None if they were changed."""
    name, *bounds, positions, checksum = row
    if checksum != checksum_of("reader", name, *bounds, positions):
        return None
    return ReaderState.of_text(name, bounds, positions)


def stored_readers(connection: sqlite3.Connection, path: Path) -> list[ReaderState]:
    """Return the readers of a log, by name. Raises LogDamaged for a row that was changed."""
    # Formats 1 and 2 have none.
    if connection.execute("PRAGMA user_version").fetchone()[0] < 3:
        return []
    found = []
    for number, *row in connection.execute("SELECT * FROM readers ORDER BY name").fetchall():
        reader = reader_of(row)
        if reader is None:
            raise damaged(path, f"the record of reader {number:,} was changed")
        found.append(reader)
    return found


def states_for_reading(
    connection: sqlite3.Connection, path: Path
) -> tuple[Sequence[str], Sequence[PartitionState]]:
    """Return the names and the states of all partitions, without the sums of their sizes. Reads one
    group of each partition.
    """
    connection.execute("BEGIN")  # all of it from one commit
    try:
        rows = partition_rows(connection, path)
        states = [_state_of(connection, path, number, row) for number, row in enumerate(rows)]
    finally:
        connection.execute("ROLLBACK")
    return [row.name for row in rows], states


def _state_of(
    connection: sqlite3.Connection, path: Path, number: int, row: PartitionRow
) -> PartitionState:
    low, high = keys_of(number)
    key, count = connection.execute(_LAST_GROUP, (low, high)).fetchone() or (low + row.earliest, 0)
    latest = key - low + count
    if latest < row.latest:
        raise shortened(path, row, latest)
    return PartitionState(row.earliest, latest, 0, row.acknowledged)


def shortened(path: Path, row: PartitionRow, latest: int) -> Exception:
    """Return the error about a partition that does not end where its row says."""
    return damaged(
        path,
        (
            f"partition {row.name!r} ends at {latest:,} in place of {row.latest:,}: its last "
            "elements are lost"
        ),
    )


def keys_of(number: int) -> tuple[int, int]:
    """Return the lowest key of a partition, and that of the next one."""
    return number * MOST_POSITIONS, (number + 1) * MOST_POSITIONS
