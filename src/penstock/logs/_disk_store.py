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
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from penstock.core import LOG, limited_log
from penstock.logs._disk_errors import damaged
from penstock.logs._disk_tables import keys_of, partition_rows, shortened
from penstock.logs._group_format import Row, checksum_of, encode_row, is_whole
from penstock.logs._retention import GroupFacts, Retention, split
from penstock.logs._work import (
    MOST_TRANSACTIONS,
    Acknowledge,
    Append,
    PartitionState,
    Publish,
    Result,
    Work,
    works_appends,
)

APPLICATION_ID: Final = 0x50534C47
"""The mark of a log in the header of the file: the letters PSLG. `SCHEMA` sets it."""

FORMAT: Final = 1
"""The version of the tables below. `SCHEMA` sets it."""

SCHEMA: Final = """
BEGIN;
CREATE TABLE partitions (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, earliest INTEGER NOT NULL, latest INTEGER NOT NULL,
    first_acknowledged INTEGER NOT NULL, middle_acknowledged INTEGER NOT NULL, last_acknowledged INTEGER NOT NULL,
    checksum INTEGER NOT NULL
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
PRAGMA application_id = 0x50534C47;
PRAGMA user_version = 1;
"""

INSERT_GROUP: Final = "INSERT INTO groups VALUES (?, ?, ?, ?, ?, ?)"
INSERT_PARTITION: Final = "INSERT OR REPLACE INTO partitions VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
LAST_ROW: Final = (
    "SELECT key, count, size, written, checksum, elements FROM groups WHERE key >= ? AND key < ? "
    "ORDER BY key DESC LIMIT 1"
)


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty log, in one transaction: a file has all of them or none."""
    connection.executescript(SCHEMA)
    _save_totals(connection, is_open=False, partitions=0, transactions=0)
    connection.execute("COMMIT")


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
        # Made here, because outside of trio's threads `limited_log` makes a new one with each call.
        self._lines = limited_log(LOG)

    # --- opening

    def load(self, names: Iterable[str]) -> None:
        """Read the state of the log, add partitions that it does not have yet, and drop what
        `retention` does not keep any more.
        """
        try:
            totals = self._load_totals()
            self._load_partitions(was_open=bool(totals[0]))
            self._load_transactions()
            self._check_totals(*totals[1:])
        except TypeError as error:  # a value of another type
            raise damaged(self._path, f"a record was changed ({error})") from error
        # The numbers of partitions are part of the keys of their groups,
        # so new names get the next numbers.
        for name in names:
            if name not in self.names:
                self.names.append(name)
                self.states.append(PartitionState())
        now = self._now()
        # At each opening: the retention may be lower than last time,
        # and elements age while the log is closed.
        with self._transaction():
            for number, state in enumerate(self.states):
                self.states[number] = self._drop(number, state, now)
                self._save(number, self.states[number])
            self._save_totals(is_open=True)

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

    def _load_partitions(self, *, was_open: bool) -> None:
        for number, row in enumerate(partition_rows(self._connection, self._path)):
            self.names.append(row.name)
            start = PartitionState(row.earliest, row.earliest, 0, row.acknowledged)
            state = self._scan(number, start)
            if state.latest < row.latest or (state.latest > row.latest and not was_open):
                raise shortened(self._path, row, state.latest)
            self.states.append(state)

    def _scan(self, number: int, state: PartitionState) -> PartitionState:
        """Add up the groups of a partition.
        A group that is missing between two others is found here.
        """
        low, high = keys_of(number)
        # Without the elements, which SQLite keeps in pages of their own if a group is large.
        rows = self._connection.execute(
            "SELECT key, count, size, written FROM groups WHERE key >= ? AND key < ? ORDER BY key",
            (low, high),
        )
        for key, count, size, written in rows:
            if key - low != state.latest or not count > 0:
                raise damaged(
                    self._path,
                    f"partition {self.names[number]!r} lacks the elements from {state.latest:,} on",
                )
            state, self._time = state.appended(count, size), max(self._time, written)
        last = self._connection.execute(LAST_ROW, (low, high)).fetchone()
        # Only the last group is checked: no other group can be torn by a crash. Readers check each
        # group that they hand over.
        if last is not None and not is_whole(Row(*last)):
            raise damaged(
                self._path,
                (
                    f"the elements of partition {self.names[number]!r} from {last[0] - low:,} on "
                    "were changed"
                ),
            )
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
        # One list for all works of the commit, so that many small appends become one group.
        pending: dict[int, list[bytes]] = {}
        try:
            with self._transaction():
                results = [self._apply(work, pending) for work in works]
                for index, elements in pending.items():
                    self._insert(index, before[index].latest, elements, now)
                touched = {
                    *pending,
                    *(
                        index
                        for work in works
                        if isinstance(work, Acknowledge)
                        for index in work.positions
                    ),
                }
                for index in touched:
                    self.states[index] = self._drop(index, self.states[index], now)
                    # An append alone changes no row of the partitions:
                    # it would be a page more for each commit.
                    if self.states[index].kept != before[index].kept:
                        self._save(index, self.states[index])
                # In the same transaction as the ids:
                # `_check_totals` compares the two when the log is opened.
                if self._next_transaction != number:
                    self._save_totals(is_open=True)
        except BaseException:
            # SQLite puts back the file; the memory is put back here,
            # or the next commit would leave a gap in the positions.
            self.states = before
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

    def _apply(self, work: Work, pending: dict[int, list[bytes]]) -> Result:
        if isinstance(work, Acknowledge):
            for index, position in work.positions.items():
                self.states[index] = self.states[index].with_acknowledged(position)
            return None
        if isinstance(work, Publish):
            if work.transaction_id in self.published:
                return False
            self.published[work.transaction_id] = None
            row = (
                self._next_transaction,
                work.transaction_id,
                checksum_of(self._next_transaction, work.transaction_id),
            )
            self._connection.execute("INSERT INTO transactions VALUES (?, ?, ?)", row)
            self._connection.execute(
                "DELETE FROM transactions WHERE number <= ?",
                (self._next_transaction - MOST_TRANSACTIONS,),
            )
            self._next_transaction += 1
        for append in works_appends(work):
            pending.setdefault(append.partition, []).extend(append.elements)
            self.states[append.partition] = self.states[append.partition].appended(
                len(append.elements), append.size
            )
        if not isinstance(work, Append):
            return True
        latest = self.states[work.partition].latest
        return range(latest - len(work.elements), latest)

    def _insert(self, number: int, position: int, elements: list[bytes], now: float) -> None:
        low, _ = keys_of(number)
        for part in split(elements, self._retention):
            self._connection.execute(INSERT_GROUP, encode_row(low + position, part, now))
            position += len(part)

    def _drop(self, number: int, state: PartitionState, now: float) -> PartitionState:
        """Delete the groups that the retention does not keep, and return the state without them."""
        if self._retention.keeps_all(state):
            return state
        low, high = keys_of(number)
        first = state.earliest
        rows = self._connection.execute(
            "SELECT key, count, size, written FROM groups WHERE key >= ? AND key < ? ORDER BY key",
            (low, high),
        )
        for key, count, size, written in rows:
            group = GroupFacts(key - low + count, size, written)
            if not self._retention.drops(group, state, now):
                break
            state = state.dropped(group.end, size)
        rows.close()
        if state.earliest != first:
            self._connection.execute(
                "DELETE FROM groups WHERE key >= ? AND key < ?", (low, low + state.earliest)
            )
        return state

    def _save(self, number: int, state: PartitionState) -> None:
        name = self.names[number]
        checksum = checksum_of(number, name, state.earliest, state.latest, state.acknowledged)
        self._connection.execute(
            INSERT_PARTITION,
            (number, name, state.earliest, state.latest, *state.acknowledged, checksum),
        )

    def _save_totals(self, *, is_open: bool) -> None:
        _save_totals(
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
        # TRUNCATE empties PATH-wal: a copy of a closed log needs the main file only.
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Write all into the main file and close it."""
        self.mark(is_open=False)
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


def _save_totals(
    connection: sqlite3.Connection, *, is_open: bool, partitions: int, transactions: int
) -> None:
    totals = (int(is_open), partitions, transactions)
    connection.execute(
        "INSERT OR REPLACE INTO state VALUES (0, ?, ?, ?, ?)", (*totals, checksum_of(*totals))
    )
