"""What can still be read of a damaged log: each group whose checksum fits, wherever it is in the
file.

Rules of this file:

* The file is read page by page, without the index of SQLite: one damaged page of the index would
  hide all pages that it leads to.
* Pages that are not in use any more may have groups: elements that were dropped, and groups that
  were joined. An element at a position never changes, so two groups with the same position have the
  same element there. Elements before the first position of a partition are left out.
* The list of the groups that were found is in a temporary file of SQLite, so its length does not
  count.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from penstock.api import LogError, LogLocked
from penstock.logs._disk_files import (
    beside,
    check_kind,
    check_new,
    header_of,
    is_written,
    put_in_place,
    real_path,
)
from penstock.logs._disk_staged import is_staged
from penstock.logs._disk_store import INSERT_GROUP, INSERT_READER, create_tables, save_totals
from penstock.logs._disk_tables import PartitionRow, keys_of, reader_of, reader_row
from penstock.logs._group_format import (
    Row,
    checksum_of,
    decode_row,
    encode_row,
    is_lost,
    is_whole,
    lost_row,
    times_of,
)
from penstock.logs._page_cells import Cell, CellPlace, PageFile
from penstock.logs._positions import MOST_PARTITIONS, MOST_POSITIONS
from penstock.logs._readers import ReaderState
from penstock.logs._work import MOST_TRANSACTIONS, PartitionState

MOST_IN_LOST_GROUP: Final = 2**31
"""Positions of one row for lost elements: `count` has 32 bits in the checksum."""

_FOUND: Final = """
CREATE TABLE found (
    key INTEGER PRIMARY KEY, length INTEGER, in_wal INTEGER, page_at INTEGER, offset INTEGER
);
CREATE TABLE ids (number INTEGER PRIMARY KEY, id TEXT);
"""

# The longer one of two groups that begin at one position has all elements of the other one.
_NOTE: Final = """
INSERT INTO found VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET length = excluded.length,
in_wal = excluded.in_wal, page_at = excluded.page_at, offset = excluded.offset
WHERE excluded.length > length
"""


_ENDS: Final = "SELECT latest FROM partitions WHERE number = ?"


class Loss(NamedTuple):
    """Positions of a partition from `start` up to, and not with, `stop` that cannot be read."""

    partition: str
    start: int
    stop: int

    def __str__(self) -> str:
        return (
            f"partition {self.partition!r} has lost the elements from {self.start:,} up to, and "
            f"not with, {self.stop:,}"
        )


class Piece(NamedTuple):
    """Elements of a partition in one piece: those of a group, or those that were lost."""

    start: int
    stop: int
    row: Row | None


class Wreck:
    """A log whose files may be damaged, and that no program has open for writing."""

    def __init__(self, path: Path) -> None:
        path = real_path(path)
        header_of(path)
        if is_written(path):
            raise LogLocked(
                f"the log {path} is open for writing, so its pages change: close it there, and try "
                "again"
            )
        self._path = path
        self._pages = PageFile(path)
        # A new file in the folder for temporary files.
        self._notes = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._rows: dict[int, PartitionRow] = {}
        self.readers: dict[str, ReaderState] = {}
        """The readers that can be read."""
        self.lost_ids = 0
        """Ids of published transactions that cannot be read."""
        try:
            self._look()
            self._check_found()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._notes.close()
        self._pages.close()

    # --- what there is

    @property
    def names(self) -> list[str]:
        """The names of the partitions. One whose record was lost has its number for a name."""
        (last,) = self._notes.execute("SELECT max(key) FROM found").fetchone()
        highest = max([*self._rows, -1 if last is None else last // MOST_POSITIONS])
        names = {number: row.name for number, row in self._rows.items()}
        for number in range(highest + 1):
            if number not in names:
                name = str(number)
                names[number] = f"{name} (salvaged)" if name in names.values() else name
        return [names[number] for number in range(highest + 1)]

    def state(self, number: int) -> PartitionState:
        """Return the known begin and end of a partition."""
        earliest, latest = self.earliest(number), 0
        for piece in self.pieces(number):
            latest = piece.stop
        return PartitionState(earliest, max(earliest, latest))

    def earliest(self, number: int) -> int:
        """Return the first position of a partition that a log would have."""
        row = self._rows.get(number)
        if row is not None:
            return row.earliest
        low, high = keys_of(number)
        (first,) = self._notes.execute(
            "SELECT min(key) FROM found WHERE key >= ? AND key < ?", (low, high)
        ).fetchone()
        return 0 if first is None else int(first - low)

    def acknowledged(self, number: int) -> tuple[int, int, int]:
        """Return the acknowledged positions of a partition."""
        row = self._rows.get(number)
        return (0, 0, 0) if row is None else row.acknowledged

    def pieces(self, number: int) -> Iterator[Piece]:
        """Yield all positions of a partition: the groups that can be read, and the losses."""
        low, high = keys_of(number)
        end = self.earliest(number)
        found = self._notes.execute(
            "SELECT key, length, in_wal, page_at, offset FROM found WHERE key >= ? AND key < ? "
            "ORDER BY key",
            (low, high),
        )
        for key, length, in_wal, page_at, offset in found:
            first, stop = key - low, key - low + length
            if stop <= end:
                continue
            cell = self._pages.cell(CellPlace(bool(in_wal), page_at, offset))
            row = None if cell is None else _group_of(cell)
            if row is None:  # the disk has changed its mind since the first look
                continue
            if first > end:
                yield Piece(end, first, None)
            yield Piece(max(first, end), stop, row)
            end = stop
        known = self._rows.get(number)
        if known is not None and known.latest > end:
            yield Piece(end, known.latest, None)

    def ids(self) -> list[str]:
        """Return the ids of published transactions that can be read, the newest ones."""
        rows = self._notes.execute(
            "SELECT id FROM ids ORDER BY number DESC LIMIT ?", (MOST_TRANSACTIONS,)
        ).fetchall()
        return [transaction_id for (transaction_id,) in reversed(rows)]

    # --- looking

    def _look(self) -> None:
        self._notes.executescript(_FOUND)
        self._notes.execute("BEGIN")  # one write for all notes
        # By page: 1 if all that it has was read, as rows or as the rest of a row.
        is_read = bytearray(self._pages.page_count + 1)
        published = 0
        for place in self._pages.places():
            cell = self._pages.cell(place)
            is_known = cell is not None and self._note(cell, place)
            if cell is not None and cell.values[0] is None and len(cell.values) == 5:
                published = max(published, _published_of(cell))
            if not place.in_wal:
                number = place.page_at // self._pages.page_size + 1
                # 2: a cell of this page is not a row, so others may be missing from its list.
                is_read[number] = max(is_read[number], 1 if is_known else 2)
            for page in () if cell is None or not is_known else cell.pages:
                if page < len(is_read):
                    is_read[page] = max(is_read[page], 1)
        for number in range(1, len(is_read)):
            if is_read[number] != 1:
                for place in self._pages.places_of_groups(number):
                    cell = self._pages.cell(place)
                    if cell is not None:
                        self._note(cell, place)
        self._notes.execute("COMMIT")
        (count,) = self._notes.execute("SELECT count(*) FROM ids").fetchone()
        self.lost_ids = max(0, min(published, MOST_TRANSACTIONS) - count)

    def _check_found(self) -> None:
        if not self.names:
            check_kind(self._path, may_begin=False)
            raise LogError(f"no part of a log can be read in {self._path}: put back a backup")

    def _note(self, cell: Cell, place: CellPlace) -> bool:
        """Note what a cell has, and return whether it is a row of a log."""
        row = _group_of(cell)
        if row is not None:
            if not is_lost(row):
                self._notes.execute(_NOTE, (row.key, row.length, *map(int, place)))
            return True
        if _is_id(cell):
            self._notes.execute(
                "INSERT OR REPLACE INTO ids VALUES (?, ?)", (cell.key, cell.values[1])
            )
            return True
        partition = _partition_of(cell)
        if partition is not None:
            known = self._rows.get(cell.key)
            # Of several versions the newest one: neither of the two positions goes back.
            if known is None or (known.earliest, known.latest) < (
                partition.earliest,
                partition.latest,
            ):
                self._rows[cell.key] = partition
            return True
        reader = _reader_of(cell)
        if reader is not None:
            known_reader = self.readers.get(reader.name, reader)
            # Of several versions the newest one: no position of a reader goes back.
            self.readers[reader.name] = max(reader, known_reader, key=lambda each: each.positions)
            return True
        # The row of `state`, or one that describes a table; or elements that were staged for a
        # batch, which its writer repeats.
        return len(cell.values) == 5 or is_staged(cell)


def _group_of(cell: Cell) -> Row | None:
    values: Any = cell.values
    if len(values) != 6 or values[0] is not None or not isinstance(values[5], bytes):
        return None
    if not isinstance(values[3], int | float):
        return None
    row = Row(cell.key, values[1], values[2], float(values[3]), values[4], values[5])
    is_here = 0 <= row.key < MOST_PARTITIONS * MOST_POSITIONS and is_whole(row)
    return row if is_here else None


def _is_id(cell: Cell) -> bool:
    values = cell.values
    return (
        len(values) == 3
        and isinstance(values[1], str)
        and values[2] == checksum_of(cell.key, values[1])
    )


def _partition_of(cell: Cell) -> PartitionRow | None:
    # Eight values in the first format.
    values: Any = cell.values
    if len(values) not in (8, 11) or not 0 <= cell.key < MOST_PARTITIONS:
        return None
    row = PartitionRow(values[1], values[2], values[3], tuple(values[4:7]))
    return row if values[7] == checksum_of(cell.key, *row) else None


def _reader_of(cell: Cell) -> ReaderState | None:
    return reader_of(cell.values[1:]) if len(cell.values) == 7 else None


def _published_of(cell: Cell) -> int:
    """Return the number of transactions that the totals of a log have; 0 for another row."""
    totals = cell.values[1:4]
    is_whole_row = cell.values[4] == checksum_of(*totals)
    return int(totals[2] or 0) if is_whole_row else 0


def salvage(path: Path, new: Path) -> tuple[list[Loss], int]:
    """Copy what can be read of a log into a new log, with the same positions. Return what was lost:
    elements, and the number of ids of published transactions.
    """
    check_new(path, new, "what is salvaged")
    with Wreck(path) as wreck:
        part = beside(new, ".part")
        with suppress(FileNotFoundError):
            part.unlink()
        try:
            connection = sqlite3.connect(part, isolation_level=None)
        except sqlite3.Error as error:
            raise unwritable(new, error) from error
        try:
            # Nobody reads the file before it is whole.
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            create_tables(connection)
            connection.execute("BEGIN")
            losses = _copy(wreck, connection)
            connection.execute("COMMIT")
        except BaseException as error:
            connection.close()
            part.unlink()
            if isinstance(error, sqlite3.Error):
                raise unwritable(new, error) from error
            raise
        connection.close()
        put_in_place(part, new)
        return losses, wreck.lost_ids


def _copy(wreck: Wreck, connection: sqlite3.Connection) -> list[Loss]:
    losses: list[Loss] = []
    names = wreck.names
    for number, name in enumerate(names):
        low, _ = keys_of(number)
        earliest = end = wreck.earliest(number)
        written = 0.0
        for piece in wreck.pieces(number):
            end = piece.stop
            if piece.row is None:
                losses.append(Loss(name, piece.start, piece.stop))
                for start in range(piece.start, piece.stop, MOST_IN_LOST_GROUP):
                    length = min(MOST_IN_LOST_GROUP, piece.stop - start)
                    connection.execute(INSERT_GROUP, lost_row(low + start, length, written))
                continue
            # The times of a log never go back.
            written = max(written, piece.row.written)
            row = _cut(piece.row, low + piece.start)
            connection.execute(INSERT_GROUP, row)
        facts = (number, name, earliest, end, wreck.acknowledged(number))
        # Without a summary: the first opening adds it.
        connection.execute(
            "INSERT INTO partitions VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL)",
            (*facts[:4], *facts[4], checksum_of(*facts)),
        )
    ends = [connection.execute(_ENDS, (number,)).fetchone() for number in range(len(names))]
    for reader in wreck.readers.values():
        # Elements after a lost end get these positions again. They were not acknowledged.
        places = [min(reader.position(number), end) for number, (end,) in enumerate(ends)]
        salvaged = reader._replace(positions=tuple(places))
        connection.execute(INSERT_READER, reader_row(salvaged))
    ids = wreck.ids()
    for number, transaction_id in enumerate(ids):
        connection.execute(
            "INSERT INTO transactions VALUES (?, ?, ?)",
            (number, transaction_id, checksum_of(number, transaction_id)),
        )
    save_totals(connection, is_open=False, partitions=len(names), transactions=len(ids))
    return losses


def _cut(row: Row, key: int) -> Row:
    """Return the group from `key` on."""
    if key == row.key:
        return row
    first = key - row.key
    elements = decode_row(row, first, row.length, row.size)
    times = times_of(row)
    # The last time that begins at the cut or before it is that of the first element.
    begun = [time for number, time in times if number <= first][-1:]
    later = [(number - first, time) for number, time in times if number > first]
    return encode_row(key, elements, row.written, [(0, begun[0]), *later])


def unwritable(new: Path, error: Exception) -> LogError:
    """Return the error about a copy of a log that could not be made."""
    return LogError(
        f"{new} cannot be written ({error}): its folder must exist, this program must be allowed "
        "to write there and to open a few files more (ulimit -n), and the disk must have room for "
        "the elements"
    )
