"""Reading the groups of a log on disk, in a thread of trio, beside the thread that writes."""

import sqlite3
from pathlib import Path
from typing import Final, NamedTuple

from penstock.api import LogDamaged
from penstock.logs._disk_errors import damaged
from penstock.logs._group_format import Row, decode_row, has_times, is_lost, is_whole, times_of
from penstock.logs._log import Written
from penstock.logs._positions import MOST_POSITIONS, MOST_TIMES, not_retained

MOST_GROUPS_OF_TIMES: Final = 256
"""Groups that one call of `Log.times` reads. Those that were joined are read whole."""

# max(key) finds the group that `position` lies in, which may begin before it.
GROUPS: Final = """
SELECT key, count, size, written, checksum, elements FROM groups
WHERE key >= (SELECT max(key) FROM groups WHERE key <= :position AND key >= :low)
AND key < :stop ORDER BY key
"""

ENDS: Final = """
SELECT (SELECT min(key) FROM groups WHERE key >= :low AND key < :high), key + count FROM groups
WHERE key >= :low AND key < :high ORDER BY key DESC LIMIT 1
"""

# The groups without their elements: SQLite takes the length of a value from the head of its row.
_FACTS: Final = """
SELECT key, count, size, written, length(elements) FROM groups
WHERE key >= :first AND key < :stop ORDER BY key
"""

_FACTS_FROM_WITHIN: Final = _FACTS.replace(
    ":first", "(SELECT max(key) FROM groups WHERE key <= :first AND key >= :low)"
)

_ROW: Final = "SELECT key, count, size, written, checksum, elements FROM groups WHERE key = ?"


class _TimedGroup(NamedTuple):
    """A group without its elements."""

    key: int
    length: int
    size: int
    written: float
    stored: int


class DiskReader:
    """A connection that reads. One task at a time uses it."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._path = path
        self._connection = connection

    @classmethod
    def of(cls, path: Path) -> "DiskReader":
        """Return a reader with a new connection, for the process that writes the log. Its files are
        open.
        """
        # mode=ro: a mistake in this file fails, and does not change what the thread that writes
        # has committed. And closed last, such a connection leaves PATH-wal as it is.
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=8,
        )
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        except BaseException:
            connection.close()
            raise
        return cls(connection, path)

    def read(self, number: int, name: str, position: int, stop: int, most: int) -> list[bytes]:
        """Return elements of partition `number` from `position` on: at least one, none from
        `stop` on, and no more than have `most` bytes together.
        """
        low = number * MOST_POSITIONS
        rows = self._connection.execute(
            GROUPS, {"position": low + position, "low": low, "stop": low + stop}
        )
        taken: list[bytes] = []
        try:
            for row in map(Row._make, rows):
                first, whole = row.key - low, is_whole(row)
                if whole and is_lost(row) and not taken:
                    raise self._lost(name, position, first + row.length)
                # The rows of a partition are dense: the first one holds `position`, each later one
                # begins where the last one ended.
                is_next = first == position if taken else first <= position < first + row.length
                if not whole or not is_next or is_lost(row):
                    if taken:
                        # The elements before the damage are whole, and the next read reports it.
                        break
                    raise self._damaged(
                        name, position if whole else max(first, position), is_lost=whole
                    )
                part = decode_row(row, position - first, stop - first, most)
                # A single group is handed over without a copy.
                taken = taken + part if taken else part
                position += len(part)
                most -= row.size
                # The next group is likely to be as large. It is read only if it may come whole:
                # else the next read would have to decode it again.
                if row.length > stop - position or row.size > most:
                    break
        finally:
            rows.close()  # an open one would keep SQLite from reusing the space of PATH-wal
        if not taken:
            raise self._absent(low, name, position, stop)
        return taken

    def position_at(self, number: int, time: float) -> int:
        """Return the position of the first element of partition `number` that was appended at
        `time` or later; MOST_POSITIONS if none was.
        """
        low = number * MOST_POSITIONS
        self._connection.execute("BEGIN")  # all of it from one commit
        try:
            ends = self._connection.execute(
                ENDS, {"low": low, "high": low + MOST_POSITIONS}
            ).fetchone()
            first, stop = (0, 0) if ends is None else ends
            late: _TimedGroup | None = None
            # The groups before `first` are too early. From `stop` on, the first group is `late`,
            # or there is none.
            while first < stop:
                middle = (first + stop) // 2
                row = self._connection.execute(
                    _FACTS + "LIMIT 1", {"first": middle, "stop": stop}
                ).fetchone()
                group = None if row is None else _TimedGroup(*row)
                if group is not None and group.written < time:
                    first = group.key + group.length
                else:
                    stop, late = middle, late if group is None else group
            if late is None:
                return MOST_POSITIONS
            numbers = [number for number, each in self._times(late) if each >= time]
            return late.key - low + numbers[0]
        finally:
            self._connection.execute("ROLLBACK")

    def times(self, number: int, start: int, stop: int) -> list[Written]:
        """Return when the elements from `start` up to, and not with, `stop` of partition `number`
        were appended, or the first ones of them.
        """
        low = number * MOST_POSITIONS
        rows = self._connection.execute(
            f"{_FACTS_FROM_WITHIN} LIMIT {MOST_GROUPS_OF_TIMES}",
            {"first": low + start, "low": low, "stop": low + stop},
        ).fetchall()
        found: list[Written] = []
        for group in map(_TimedGroup._make, rows):
            begin, end = group.key - low, group.key - low + group.length
            times = self._times(group)
            ends = [begin + each for each, _ in times[1:]] + [end]
            for (number_of_first, time), after in zip(times, ends, strict=True):
                piece = Written(max(begin + number_of_first, start), min(after, stop), time)
                if found and (found[-1].time, found[-1].stop) == (time, piece.start):
                    found[-1] = found[-1]._replace(stop=piece.stop)
                elif piece.start < piece.stop:
                    found.append(piece)
            if len(found) >= MOST_TIMES:
                break
        return found[:MOST_TIMES]

    def _times(self, group: _TimedGroup) -> list[tuple[int, float]]:
        """Return the times of a group, each with the number of the first element that has it."""
        if has_times(group.length, group.size, group.stored):
            row = self._connection.execute(_ROW, (group.key,)).fetchone()
            # Damage is left for those who read the elements.
            if row is not None and is_whole(Row(*row)):
                return times_of(Row(*row))
        return [(0, group.written)]

    def _absent(self, low: int, name: str, position: int, stop: int) -> Exception:
        """Return the error about a position whose group is not there:
        it was dropped meanwhile, or a group was lost.
        """
        # Both ends of now: `stop` is from the time at which the read began to wait.
        ends = self._connection.execute(ENDS, {"low": low, "high": low + MOST_POSITIONS}).fetchone()
        earliest, latest = (stop, stop) if ends is None else (each - low for each in ends)
        if position < earliest:
            return not_retained(name, position, earliest, max(latest, earliest))
        return self._damaged(name, position, is_lost=True)

    def _damaged(self, name: str, position: int, *, is_lost: bool) -> LogDamaged:
        if is_lost:
            return damaged(
                self._path, f"partition {name!r} lacks the elements from {position:,} on"
            )
        return damaged(
            self._path, f"the elements of partition {name!r} from {position:,} on were changed"
        )

    def _lost(self, name: str, position: int, end: int) -> LogDamaged:
        return LogDamaged(
            f"the log {self._path} was salvaged, and partition {name!r} has lost the elements from "
            f"{position:,} up to, and not with, {end:,}. Start at {end:,} to read the next ones"
        )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
