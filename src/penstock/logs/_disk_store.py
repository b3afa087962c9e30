"""The file of a log: a database of SQLite, and the only code that writes to it.

Rules of this file:

* One connection writes, used by one thread at a time.
  Readers have their own connection (`_disk_reader.py`).
* A commit is one transaction of SQLite: with `synchronous=FULL` it is on the disk when COMMIT
  returns. If it fails, the states in memory are those of before.
* A row is a group of elements. Its key has the number of the partition before the position of its
  first element, so the rows of a partition stand together in order, and no index is written.
* The times in the file never go back:
  a clock that was set back must not make new elements older than the ones before them.
"""

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from penstock.api import LogDamaged
from penstock.core import LOG, limited_log
from penstock.logs._disk_errors import damaged
from penstock.logs._disk_staged import StagedTables
from penstock.logs._disk_tables import (
    PartitionRow,
    Summary,
    keys_of,
    partition_rows,
    reader_row,
    shortened,
    stored_readers,
    summaries,
)
from penstock.logs._group_format import (
    Row,
    checksum_of,
    decode_row,
    encode_row,
    is_lost,
    is_whole,
    joined_times,
    moved_row,
)
from penstock.logs._group_runs import MOST_JOINED, GroupAt, joinable, next_run
from penstock.logs._readers import Hold, Readers, touched
from penstock.logs._retention import GroupFacts, Retention, split
from penstock.logs._work import (
    MOST_TRANSACTIONS,
    Acknowledge,
    Append,
    Attempt,
    MakeRoom,
    PartitionState,
    Publish,
    Result,
    Stage,
    Staged,
    Unstage,
    Work,
    works_appends,
)

APPLICATION_ID: Final = 0x50534C47
"""The mark of a log in the header of the file: the letters PSLG. `SCHEMA` sets it."""

FORMAT: Final = 3
"""The version of the tables below. `SCHEMA` and `UPGRADES` set it."""

SCHEMA: Final = """
PRAGMA auto_vacuum = INCREMENTAL;
BEGIN;
CREATE TABLE partitions (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, earliest INTEGER NOT NULL, latest INTEGER NOT NULL,
    first_acknowledged INTEGER NOT NULL, middle_acknowledged INTEGER NOT NULL, last_acknowledged INTEGER NOT NULL,
    checksum INTEGER NOT NULL, size INTEGER, joined INTEGER, summary INTEGER
);
CREATE TABLE groups (
    key INTEGER PRIMARY KEY, count INTEGER NOT NULL, size INTEGER NOT NULL, written REAL NOT NULL, checksum INTEGER NOT NULL,
    elements BLOB NOT NULL
);
CREATE TABLE transactions (number INTEGER PRIMARY KEY, id TEXT NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE state (
    number INTEGER PRIMARY KEY, is_open INTEGER NOT NULL, partitions INTEGER NOT NULL, transactions INTEGER NOT NULL,
    checksum INTEGER NOT NULL
);
CREATE TABLE readers (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, max_count INTEGER, max_bytes INTEGER, max_age REAL, positions TEXT NOT NULL,
    checksum INTEGER NOT NULL
);
CREATE TABLE attempts (
    number INTEGER PRIMARY KEY, owner TEXT NOT NULL, facts TEXT NOT NULL, count INTEGER NOT NULL, size INTEGER NOT NULL,
    expires REAL NOT NULL, checksum INTEGER NOT NULL
);
CREATE TABLE staged (key INTEGER PRIMARY KEY, count INTEGER NOT NULL, checksum INTEGER NOT NULL, elements BLOB NOT NULL);
PRAGMA application_id = 0x50534C47;
PRAGMA user_version = 3;
"""

UPGRADES: Final = {
    1: """
BEGIN;
ALTER TABLE partitions ADD COLUMN size INTEGER;
ALTER TABLE partitions ADD COLUMN joined INTEGER;
ALTER TABLE partitions ADD COLUMN summary INTEGER;
PRAGMA user_version = 2;
COMMIT;
""",
    2: """
BEGIN;
CREATE TABLE readers (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, max_count INTEGER, max_bytes INTEGER, max_age REAL, positions TEXT NOT NULL,
    checksum INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS attempts (
    number INTEGER PRIMARY KEY, owner TEXT NOT NULL, facts TEXT NOT NULL, count INTEGER NOT NULL, size INTEGER NOT NULL,
    expires REAL NOT NULL, checksum INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS staged (
    key INTEGER PRIMARY KEY, count INTEGER NOT NULL, checksum INTEGER NOT NULL, elements BLOB NOT NULL
);
PRAGMA user_version = 3;
COMMIT;
""",
}
"""Makes the next format of each older one, in one transaction. A row without a summary gets one when
the log is loaded.
"""

SUMMARY_GROUPS: Final = 1_000
"""Groups of a partition after which its summary is written again. So many are read when a log is
opened that was not closed.
"""

URGENT: Final = 16
"""Times MOST_JOINED: with that number of groups to join, the writer does not wait for a pause."""

READS_MILLISECONDS: Final = 5_000
"""The longest wait for reads of other processes. Each read takes milliseconds."""

FREE_PART: Final = 4
"""One of this number of pages may be unused. A log that drops as much as it gets has an eighth."""

FREE_PAGES: Final = 1_024
"""Unused pages that are given back to the disk at once, and that are not worth it: 4 MiB."""

INSERT_GROUP: Final = "INSERT INTO groups VALUES (?, ?, ?, ?, ?, ?)"
INSERT_PARTITION: Final = (
    "INSERT OR REPLACE INTO partitions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_READER: Final = "INSERT INTO readers VALUES (NULL, ?, ?, ?, ?, ?, ?)"
FACTS: Final = (
    "SELECT key, count, size, written FROM groups WHERE key >= ? AND key < ? ORDER BY key"
)
WHOLE_ROWS: Final = (
    "SELECT key, count, size, written, checksum, elements FROM groups WHERE key BETWEEN ? AND ? "
    "ORDER BY key"
)
SIZES: Final = "SELECT ifnull(sum(size), 0) FROM groups WHERE key >= ? AND key < ?"
FIRST_KEY: Final = "SELECT min(key) FROM groups WHERE key >= ? AND key < ?"
LAST_ROW: Final = (
    "SELECT key, count, size, written, checksum, elements FROM groups WHERE key >= ? AND key < ? "
    "ORDER BY key DESC LIMIT 1"
)


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty log, in one transaction: a file has all of them or none."""
    connection.executescript(SCHEMA)
    save_totals(connection, is_open=False, partitions=0, transactions=0)
    connection.execute("COMMIT")


def upgrade(connection: sqlite3.Connection) -> None:
    """Make the format of today of an older one."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for older in range(version, FORMAT):
        connection.executescript(UPGRADES[older])


class DiskStore:
    """The tables of one open log. `states` and `names` are those of its partitions, by number."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        retention: Retention,
        clock: Callable[[], float],
    ) -> None:
        self._connection = connection
        self._path = path
        self._retention = retention
        self._clock = clock
        self._time = float("-inf")  # of the newest group
        self.names: list[str] = []
        self.states: list[PartitionState] = []
        # The ids in the order of their publishing; bounded by MOST_TRANSACTIONS.
        self.published: dict[str, None] = {}
        self._next_transaction = 0
        self.readers: Readers = Readers()
        self._staged = StagedTables(connection, path)
        self.attempts: list[Attempt] = []
        """The attempts that were staged when the log was opened."""
        self.last_attempt: int = 0
        """The highest number of it."""
        # By partition: where the joined groups end, how many groups come after it, and how many
        # have come since the summary was written.
        self._joined: list[int] = []
        self._loose: list[int] = []
        self._unsaved: list[int] = []
        # Whether pages may be given back to the disk. The last program may have left some.
        self._has_dropped = True
        # Made here, because outside of trio's threads `limited_log` makes a new one with each call.
        self._lines = limited_log(LOG)

    # --- opening

    def load(self, names: Iterable[str]) -> None:
        """Read the state of the log, add partitions that it does not have yet, and drop what
        `retention` does not keep any more.
        """
        self.read_tables()
        # The numbers of partitions are part of the keys of their groups,
        # so new names get the next numbers.
        for name in names:
            if name not in self.names:
                self._add(name, PartitionState(), 0)
        self.readers.hold(self.states)
        now = self._now()
        # At each opening: the retention may be lower than last time,
        # and elements age while the log is closed.
        with self._transaction():
            for number, state in enumerate(self.states):
                self.states[number] = self._drop(number, state, now)
                self._drop_readers(number, (0, 0), now)
                self._save(number, self.states[number])
            self._save_readers()
            self.attempts = self._staged.load(now, self._lines)
            self.last_attempt = self._staged.last_number()
            self._save_totals(is_open=True)

    def check_staged(self) -> None:
        """Check what is staged, and change nothing. Raises LogDamaged."""
        self._staged.check()

    def read_tables(self) -> None:
        """Read the state of the log, and change nothing."""
        try:
            totals = self._load_totals()
            self._load_partitions(was_open=bool(totals[0]))
            self._load_transactions()
            self._check_totals(*totals[1:])
            self.readers = Readers(stored_readers(self._connection, self._path))
        except TypeError as error:  # a value of another type
            raise damaged(self._path, f"a record was changed ({error})") from error

    def _load_totals(self) -> tuple[int, int, int]:
        row = self._connection.execute(
            "SELECT is_open, partitions, transactions, checksum FROM state"
        ).fetchone()
        if row is None or row[3] != checksum_of(*row[:3]):
            raise damaged(self._path, "the record of its totals was changed")
        return row[0], row[1], row[2]

    def _check_totals(self, partitions: int, transactions: int) -> None:
        """Compare the rows that were found with the totals:
        a page that lost its last rows looks whole by itself.
        """
        if (len(self.names), self._next_transaction) != (partitions, transactions):
            found = f"{len(self.names):,} partitions and {self._next_transaction:,} transactions"
            raise damaged(
                self._path, f"it has {found}, and recorded {partitions:,} and {transactions:,}"
            )

    def _add(self, name: str, state: PartitionState, joined: int) -> None:
        self.names.append(name)
        self.states.append(state)
        self._joined.append(joined)
        # The first turn of joining counts them.
        self._loose.append(MOST_JOINED + 1 if state.latest > joined else 0)
        self._unsaved.append(0)

    def _load_partitions(self, *, was_open: bool) -> None:
        known = summaries(self._connection)
        for number, row in enumerate(partition_rows(self._connection, self._path)):
            summary = known.get(number)
            if summary is None or not self._fits(number, row):
                # A log of format 1, or a wrong summary: the groups tell the truth.
                summary = Summary(0, row.earliest)
                state = PartitionState(row.earliest, row.earliest, 0, row.acknowledged)
            else:
                state = PartitionState(row.earliest, row.latest, summary.size, row.acknowledged)
            state = self._scan(number, row.name, state)
            if state.latest < row.latest or (state.latest > row.latest and not was_open):
                raise shortened(self._path, row, state.latest)
            self._add(row.name, state, summary.joined)

    def _fits(self, number: int, row: PartitionRow) -> bool:
        """Return whether the first group begins, and another one ends, where the row says."""
        if row.earliest == row.latest:
            return True
        low, high = keys_of(number)
        (first,) = self._connection.execute(FIRST_KEY, (low, high)).fetchone()
        last = self._connection.execute(LAST_ROW, (low, low + row.latest)).fetchone()
        return bool(first == low + row.earliest and last and last[0] + last[1] == low + row.latest)

    def _scan(self, number: int, name: str, state: PartitionState) -> PartitionState:
        """Add up the groups of a partition from the end of `state` on.
        A group that is missing between two of them is found here.
        """
        low, high = keys_of(number)
        # Without the elements, which SQLite keeps in pages of their own if a group is large.
        rows = self._connection.execute(FACTS, (low + state.latest, high))
        for group in map(GroupAt._make, rows):
            if group.key - low != state.latest or not group.length > 0:
                raise damaged(
                    self._path, f"partition {name!r} lacks the elements from {state.latest:,} on"
                )
            state = state.appended(group.length, group.size)
        last = self._connection.execute(LAST_ROW, (low, high)).fetchone()
        if last is None:
            return state
        # Only the last group is checked: no other group can be torn by a crash. Readers check each
        # group that they hand over.
        if not is_whole(Row(*last)):
            raise damaged(
                self._path,
                f"the elements of partition {name!r} from {last[0] - low:,} on were changed",
            )
        self._time = max(self._time, last[3])
        return state

    def _load_transactions(self) -> None:
        for number, transaction_id, checksum in self._connection.execute(
            "SELECT * FROM transactions ORDER BY number"
        ):
            # Older ids are deleted, so the first row has any number.
            # From there on none may be missing.
            if checksum != checksum_of(number, transaction_id) or (
                self.published and number != self._next_transaction
            ):
                raise damaged(self._path, f"the record of transaction {number:,} was changed")
            self.published[transaction_id] = None
            self._next_transaction = number + 1

    # --- commits

    def commit(self, works: Sequence[Work]) -> list[Result]:
        """Apply all of `works` in one transaction, and return their results
        when it is on the disk.
        """
        now = self._now()
        before, published, number = list(self.states), len(self.published), self._next_transaction
        readers = self.readers.copy()
        # One list for all works of the commit, so that many small appends become one group.
        pending: dict[int, list[bytes]] = {}
        try:
            with self._transaction():
                results = [self._apply(work, pending, now) for work in works]
                for index in pending:
                    self._flush(index, pending, now)
                waiting = _waiting(works)
                for index in {each for work in works for each in touched(work, len(self.states))}:
                    self.states[index] = self._drop(index, self.states[index], now)
                    self._drop_readers(index, waiting.get(index, (0, 0)), now)
                    # An append alone changes no row of the partitions:
                    # it would be a page more for each commit.
                    if (
                        self.states[index].kept != before[index].kept
                        or self._unsaved[index] >= SUMMARY_GROUPS
                    ):
                        self._save(index, self.states[index])
                self._save_readers()
                # In the same transaction as the ids:
                # `_check_totals` compares the two when the log is opened.
                if self._next_transaction != number:
                    self._save_totals(is_open=True)
        except BaseException:
            # SQLite puts back the file; the memory is put back here,
            # or the next commit would leave a gap in the positions.
            self.states, self.readers = before, readers
            # The ids of this commit are the last ones, because a dictionary keeps the order.
            for transaction_id in list(self.published)[published:]:
                del self.published[transaction_id]
            self._next_transaction = number
            raise
        self._time = now
        # Only after the commit: the code above could not put an older id back.
        while len(self.published) > MOST_TRANSACTIONS:
            del self.published[next(iter(self.published))]
        return results

    def _apply(self, work: Work, pending: dict[int, list[bytes]], now: float) -> Result:
        if not isinstance(work, Append | Publish):
            self._apply_other(work, pending, now)
            return None
        if isinstance(work, Publish):
            if work.transaction_id in self.published:
                return False
            lost = self._move_all(work.staged, pending, now)
            if lost is not None:
                return lost
            self._add_id(work.transaction_id)
        for append in works_appends(work):
            pending.setdefault(append.partition, []).extend(append.elements)
            self.states[append.partition] = self.states[append.partition].appended(
                len(append.elements), append.size
            )
        if not isinstance(work, Append):
            return True
        latest = self.states[work.partition].latest
        return range(latest - len(work.elements), latest)

    def _apply_other(self, work: Work, pending: dict[int, list[bytes]], now: float) -> None:
        """Apply work that brings no elements."""
        if isinstance(work, Stage | Unstage):
            self._apply_staged(work)
        elif isinstance(work, Acknowledge) and work.reader is None:
            for index, position in work.positions.items():
                self.states[index] = self.states[index].with_acknowledged(position)
        else:

            def groups_of(index: int) -> Iterator[GroupFacts]:
                self._flush(index, pending, now)
                return self._groups(index)

            self.readers.apply(work, self.states, groups_of, now)

    def _groups(self, index: int) -> Iterator[GroupFacts]:
        """Yield what is known of the groups of a partition, without their elements."""
        low, high = keys_of(index)
        for group in map(GroupAt._make, self._connection.execute(FACTS, (low, high))):
            yield GroupFacts(group.key - low + group.length, group.size, group.written)

    def _apply_staged(self, work: Stage | Unstage) -> None:
        if isinstance(work, Stage):
            self._staged.stage(work, self._retention)
            return
        for number in work.numbers:
            self._staged.unstage(number)
        self._has_dropped = True

    def _add_id(self, transaction_id: str) -> None:
        number = self._next_transaction
        self.published[transaction_id] = None
        row = (number, transaction_id, checksum_of(number, transaction_id))
        self._connection.execute("INSERT INTO transactions VALUES (?, ?, ?)", row)
        self._connection.execute(
            "DELETE FROM transactions WHERE number <= ?", (number - MOST_TRANSACTIONS,)
        )
        self._next_transaction += 1

    def _move_all(
        self, staged: Sequence[Staged], pending: dict[int, list[bytes]], now: float
    ) -> LogDamaged | None:
        """Append staged elements, all of them or none. Return an error if some cannot be read."""
        if not staged:
            return None
        before = list(self.states)
        for each in staged:
            # Elements that wait for their insert have the positions before these.
            self._flush(each.partition, pending, now)
        # Other work of this commit stays if this one fails.
        self._connection.execute("SAVEPOINT staged")
        moved = [self._move(each, now) for each in staged]
        if not all(moved):
            self._connection.execute("ROLLBACK TO staged")
            self.states = before
        self._connection.execute("RELEASE staged")
        if all(moved):
            return None
        return LogDamaged(
            f"elements that were staged for this batch in the log {self._path} were changed or "
            "deleted, so nothing of the batch was appended. Start the query again: it repeats the "
            "batch"
        )

    def _move(self, staged: Staged, now: float) -> bool:
        """Append the elements of an attempt, piece by piece, and delete it. Return whether they are
        as many as were staged.
        """
        index, left = staged.partition, staged.length
        for row in self._staged.pieces(staged.number):
            latest, retention = self.states[index].latest, self._retention
            if row.length <= retention.group_count and row.size <= retention.group_bytes:
                # Most pieces: they were cut for the retention of the same log.
                key = keys_of(index)[0] + latest
                self._connection.execute(INSERT_GROUP, moved_row(row, key, now))
                self._loose[index] += 1
                self._unsaved[index] += 1
            else:
                self._insert(index, latest, decode_row(row, 0, row.length, row.size), now)
            self.states[index] = self.states[index].appended(row.length, row.size)
            left -= row.length
        self._staged.unstage(staged.number)
        self._has_dropped = True
        return not left

    def _flush(self, index: int, pending: dict[int, list[bytes]], now: float) -> None:
        """Insert what waits for it. These elements are the last ones of the partition."""
        elements = pending.get(index)
        if elements:
            self._insert(index, self.states[index].latest - len(elements), elements, now)
            pending[index] = []

    def _insert(self, number: int, position: int, elements: list[bytes], now: float) -> None:
        low, _ = keys_of(number)
        for part in split(elements, self._retention):
            # If the commit fails, these counts are too high, which does no harm.
            self._loose[number] += 1
            self._unsaved[number] += 1
            self._connection.execute(INSERT_GROUP, encode_row(low + position, part, now))
            position += len(part)

    def _drop(self, number: int, state: PartitionState, now: float) -> PartitionState:
        """Delete the groups that the retention does not keep, and return the state without them."""
        if self._retention.keeps_all(state):
            return state
        low, high = keys_of(number)
        first, has_gap = state.earliest, False
        rows = self._connection.execute(FACTS, (low, high))
        for group in map(GroupAt._make, rows):
            end = group.key - low + group.length
            if not self._retention.drops(GroupFacts(end, group.size, group.written), state, now):
                break
            has_gap |= group.key - low != state.earliest
            state = state.dropped(end, group.size)
        rows.close()
        if state.earliest != first:
            self._has_dropped = True
            self._connection.execute(
                "DELETE FROM groups WHERE key >= ? AND key < ?", (low, low + state.earliest)
            )
        if has_gap:
            # Groups were lost, and their elements are still in the sum.
            (size,) = self._connection.execute(SIZES, (low, high)).fetchone()
            state = state._replace(size=size)
        return state

    def _drop_readers(self, index: int, waiting: tuple[int, int], now: float) -> None:
        """Drop readers that hold too much of a partition, and then the elements that no reader
        needs. `waiting` are elements that have no room yet, and their bytes.
        """
        while self._retention.acknowledged and self.readers.known:
            state = self.states[index]
            low, high = keys_of(index)
            row = self._connection.execute(f"{FACTS} LIMIT 1", (low, high)).fetchone()
            if row is None or state.held >= state.latest:
                return
            first = GroupAt(*row)
            # The slowest reader may have acknowledged a part of the first group. The bound of bytes
            # then leaves that group out.
            size = state.size - (first.size if first.key - low < state.held else 0)
            length = state.latest - max(state.held, state.earliest)
            hold = Hold(length + waiting[0], size + waiting[1], now - first.written)
            if not self.readers.drop(self.states, index, hold):
                return
            self.states[index] = self._drop(index, self.states[index], now)

    def _save_readers(self) -> None:
        for name in sorted(self.readers.changed):
            self._connection.execute("DELETE FROM readers WHERE name = ?", (name,))
            if name in self.readers.known:
                self._connection.execute(INSERT_READER, reader_row(self.readers.known[name]))
        self.readers.changed.clear()

    def _save(self, number: int, state: PartitionState) -> None:
        name = self.names[number]
        checksum = checksum_of(number, name, state.earliest, state.latest, state.acknowledged)
        summary = Summary(state.size, max(self._joined[number], state.earliest))
        facts = (number, state.earliest, state.latest, *summary)
        row = (number, name, state.earliest, state.latest, *state.acknowledged, checksum)
        self._connection.execute(INSERT_PARTITION, (*row, *summary, checksum_of(*facts)))
        self._unsaved[number] = 0

    def _save_totals(self, *, is_open: bool) -> None:
        save_totals(
            self._connection,
            is_open=is_open,
            partitions=len(self.names),
            transactions=self._next_transaction,
        )

    def _now(self) -> float:
        """Return the time for new groups: never less than that of the newest group in the file."""
        now = self._clock()
        if now < self._time:
            self._lines.write(
                logging.WARNING,
                "log clock",
                "the clock is %.1f s behind the newest elements of the log %s. Their ages count "
                "from the later time, so they are kept for longer; check the time service of this "
                "machine",
                self._time - now,
                self._path,
            )
        return max(now, self._time)

    # --- care, between commits

    def needs_care(self) -> bool:
        """Return whether `care` may have something to do."""
        return self._has_dropped or self._next_loose(1) is not None

    def is_urgent(self) -> bool:
        """Return whether enough small groups have come that they are joined without a pause."""
        return self._next_loose(URGENT) is not None

    def care(self) -> None:
        """Do a bounded piece of work that keeps the file small and quick to read: join small
        groups, or give unused pages back to the disk.
        """
        try:
            number = self._next_loose(1)
            if number is not None:
                self._join(number)
            elif self._has_dropped:
                self._give_back()
        except Exception as error:
            # boundary: the end of a thread. The transaction was rolled back, appends go on, and the
            # next one tells what is wrong with the disk.
            self._lines.write(
                logging.WARNING,
                "log care",
                "the small groups of the log %s were not joined, and no elements were lost: %r",
                self._path,
                error,
            )

    def _next_loose(self, times: int) -> int | None:
        """Return a partition that has more than `times` MOST_JOINED groups to join."""
        most = max(self._loose)
        if most <= times * MOST_JOINED or not joinable(self._retention):
            return None
        return self._loose.index(most)

    def _join(self, number: int) -> None:
        """Make one group of the next small ones of a partition."""
        low, high = keys_of(number)
        begin = low + max(self._joined[number], self.states[number].earliest)
        rows = self._connection.execute(f"{FACTS} LIMIT {MOST_JOINED + 1}", (begin, high))
        # The last group of a partition is left alone.
        groups = [GroupAt(*row) for row in rows][:-1]
        # Before the work: if it fails, it is tried again when as many groups have come.
        self._loose[number] = 0
        first, end = next_run(groups, self._retention)
        if not end:
            self._loose[number] = len(groups)
            return
        before = self._joined[number]
        # Before the transaction, which stores it.
        self._joined[number] = groups[end - 1].key + groups[end - 1].length - low
        try:
            if first < end:
                self._replace(number, groups[first:end])
        except BaseException:
            self._joined[number] = before
            raise
        self._loose[number] = MOST_JOINED + 1

    def _replace(self, number: int, groups: Sequence[GroupAt]) -> None:
        keys = groups[0].key, groups[-1].key
        rows = [Row(*row) for row in self._connection.execute(WHOLE_ROWS, keys)]
        # Damage is left for those who read it, and its neighbours stay as they are.
        if not all(map(is_whole, rows)) or any(map(is_lost, rows)):
            return
        elements = [each for row in rows for each in decode_row(row, 0, row.length, row.size)]
        with self._transaction():
            self._connection.execute("DELETE FROM groups WHERE key BETWEEN ? AND ?", keys)
            row = encode_row(keys[0], elements, groups[-1].written, joined_times(rows))
            self._connection.execute(INSERT_GROUP, row)
            # With the new summary, so that it is written often enough.
            self._save(number, self.states[number])

    def _give_back(self) -> None:
        """Give pages back to the disk if too many are unused."""
        # Before the work, as in `_join`.
        self._has_dropped = False
        (free,) = self._connection.execute("PRAGMA freelist_count").fetchone()
        (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
        if free <= max(FREE_PAGES, pages // FREE_PART):
            return
        self._connection.execute(f"PRAGMA incremental_vacuum({FREE_PAGES})").fetchall()
        # The main file gets shorter by it. A read that goes on puts it off.
        self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        (left,) = self._connection.execute("PRAGMA freelist_count").fetchone()
        # The same number: a file that began with format 1 keeps its pages, and uses them again.
        self._has_dropped = left < free

    # --- the connection

    def _transaction(self) -> "_Transaction":
        return _Transaction(self._connection)

    def mark(self, *, is_open: bool) -> None:
        """Write into the main file where the partitions end, and whether PATH-wal belongs to it,
        so that lost elements are noticed.
        """
        with self._transaction():
            for number, state in enumerate(self.states):
                self._save(number, state)
            self._save_totals(is_open=is_open)
        # TRUNCATE empties PATH-wal: a copy of a closed log needs the main file only. While the log
        # is open it is not empty, so an empty one was lost. Both wait for the reads of other
        # processes.
        mode = "FULL" if is_open else "TRUNCATE"
        self._connection.execute(f"PRAGMA busy_timeout = {READS_MILLISECONDS}")
        self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
        self._connection.execute("PRAGMA busy_timeout = 0")

    def empty_wal(self) -> None:
        """Move what PATH-wal has into the main file, so that later commits write over it."""
        self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def give_room(self) -> None:
        """Give pages back to the disk until few are unused."""
        while self._has_dropped:
            self._give_back()

    def close(self) -> None:
        """Close the main file, behind `mark(is_open=False)`.

        Without that mark another connection, which only reads, must be open. SQLite moves PATH-wal
        into the main file and deletes it with the last connection that writes: the file would say
        that the log is open, and look like one whose PATH-wal was lost.
        """
        self._connection.close()


class _Transaction:
    """A transaction of SQLite around a block: committed at its end, rolled back if it raises."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        # IMMEDIATE takes SQLite's lock for writing now:
        # a second writer shows here, and not in the middle of the block.
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            try:
                self._connection.execute("COMMIT")
            except BaseException:
                # A COMMIT can fail and leave the transaction open. The next BEGIN, and so each
                # later commit, would then fail.
                self._roll_back()
                raise
        else:
            self._roll_back()

    def _roll_back(self) -> None:
        # SQLite itself has rolled back after some failures, such as a full disk.
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def _waiting(works: Sequence[Work]) -> dict[int, tuple[int, int]]:
    """Return the elements and the bytes that wait for room, by partition: of each the largest piece
    of work.
    """
    found: dict[int, tuple[int, int]] = {}
    for work in works:
        for load in work.loads if isinstance(work, MakeRoom) else ():
            length, size = found.get(load.partition, (0, 0))
            found[load.partition] = max(length, load.length), max(size, load.size)
    return found


def save_totals(
    connection: sqlite3.Connection, *, is_open: bool, partitions: int, transactions: int
) -> None:
    totals = (int(is_open), partitions, transactions)
    connection.execute(
        "INSERT OR REPLACE INTO state VALUES (0, ?, ?, ?, ?)", (*totals, checksum_of(*totals))
    )
