"""Checks a whole log on disk: its tables, and each element of it."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from penstock.api import LogDamaged
from penstock.logs._disk_errors import FAULTS, damaged, explain
from penstock.logs._disk_files import header_of, is_written, real_path
from penstock.logs._disk_store import WHOLE_ROWS, DiskStore
from penstock.logs._disk_tables import keys_of
from penstock.logs._group_format import Row, is_lost, is_whole
from penstock.logs._read_only import ReadOnlyFile
from penstock.logs._readers import ReaderState
from penstock.logs._retention import DROPS_NOTHING
from penstock.logs._salvage import Loss, Wreck


class Checked(NamedTuple):
    """The result of a check of a whole log.

    `fault` says what is wrong, and is None for a whole log. `lost` is what cannot be read;
    None while another program writes the log, so that only the fault is known.
    """

    elements: int
    groups: int
    fault: str | None
    lost: list[Loss] | None
    readers: tuple[ReaderState, ...] = ()
    """The readers, if the log is whole."""
    names: tuple[str, ...] = ()
    """The names of the partitions, if the log is whole."""


def check_file(path: Path) -> Checked:
    """Check a log. Nothing is written. Raises LogError for a file that is not a log."""
    path = real_path(path)
    header_of(path)
    file = ReadOnlyFile(path)
    try:
        return file.run(lambda connection: check_tables(connection, path))
    except LogDamaged as error:
        return _looked_at(path, str(error))
    except FAULTS as error:
        explained = explain(error, path, read_only=True)
        if not isinstance(explained, LogDamaged):
            raise explained from error
        return _looked_at(path, str(explained))
    finally:
        file.close()


def _looked_at(path: Path, fault: str) -> Checked:
    if is_written(path):
        return Checked(0, 0, fault, None)
    with Wreck(path) as wreck:
        elements = groups = 0
        lost: list[Loss] = []
        for number, name in enumerate(wreck.names):
            for piece in wreck.pieces(number):
                if piece.row is None:
                    lost.append(Loss(name, piece.start, piece.stop))
                else:
                    elements, groups = elements + piece.stop - piece.start, groups + 1
        return Checked(elements, groups, fault, lost)


def check_tables(connection: sqlite3.Connection, path: Path) -> Checked:
    """Check the tables of a log, as they were at one moment. Raises LogDamaged."""
    connection.execute("BEGIN")
    try:
        store = DiskStore(connection, path, DROPS_NOTHING, lambda: 0.0)
        store.read_tables()
        elements = groups = 0
        lost: list[Loss] = []
        for number, name in enumerate(store.names):
            position, size = store.states[number].earliest, 0
            for row in _rows(connection, number):
                if row.key - keys_of(number)[0] != position:
                    raise damaged(
                        path, f"partition {name!r} lacks the elements from {position:,} on"
                    )
                if not is_whole(row):
                    raise damaged(
                        path,
                        f"the elements of partition {name!r} from {position:,} on were changed",
                    )
                if is_lost(row):
                    lost.append(Loss(name, position, position + row.length))
                else:
                    elements += row.length
                position, size, groups = position + row.length, size + row.size, groups + 1
            if (position, size) != (store.states[number].latest, store.states[number].size):
                raise damaged(path, f"the summary of partition {name!r} does not fit")
        store.check_staged()
        # Last: the checks above tell more. This one finds damage in the list of unused pages, which
        # no read meets, and the next opening for writing does.
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise damaged(path, f"SQLite says: {verdict}")
        readers = tuple(store.readers.known.values())
        return Checked(elements, groups, None, lost, readers, tuple(store.names))
    finally:
        connection.execute("ROLLBACK")


def _rows(connection: sqlite3.Connection, number: int) -> Iterator[Row]:
    low, high = keys_of(number)
    return map(Row._make, connection.execute(WHOLE_ROWS, (low, high - 1)))
