"""A log that is open for reading only: beside a program that writes it, or while none does.

Rules of this file:

* Nothing is written: no file is made, made longer or locked for others. So a log can be read on a
  full disk, on a read-only file system, and by a user who may only read.
* While a program writes the log, SQLite keeps the two apart, with the files PATH-wal and PATH-shm
  that the writer has made.
* A reader that comes from another process may have elements that the thread has not seen yet. So a
  question for the last position looks at the file, and a stream may begin at any position that is
  committed.
* While none does, SQLite is told to take no locks, because they would need PATH-shm. A writer that
  comes changes the files. So the files are looked at before and after each read. If they have
  changed, the result is thrown away, and the read is repeated on a new connection.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import trio

from penstock.api import LogError
from penstock.logs._disk_errors import FAULTS
from penstock.logs._disk_files import (
    beside,
    check_kind,
    check_opened,
    check_version,
    is_written,
)
from penstock.logs._disk_reader import DiskReader
from penstock.logs._disk_tables import states_for_reading
from penstock.logs._log import Written
from penstock.logs._wal_commits import WAL_HEADER, has_commit
from penstock.logs._work import PartitionState

FOLLOW_SECONDS: Final = 0.2
"""Seconds between two looks for new elements. A look without a change costs some 20 µs."""

ATTEMPTS: Final = 20
"""Repetitions of one read whose files change meanwhile. A writer that has begun is seen at the
second one.
"""

_WITHOUT_LOCKS: Final = "unix-none" if os.name == "posix" else "win32-none"

_Stamp: TypeAlias = tuple[tuple[int, int, int] | None, ...]

_Result = TypeVar("_Result")


class ReadOnlyFile:
    """The file of a log, for one thread that reads it."""

    def __init__(self, path: Path, *, accept_loss: bool = False) -> None:
        self._path = path
        self._accept_loss = accept_loss
        self._connection: sqlite3.Connection | None = None
        # The state of the files when they were opened. None: a writer has them, and SQLite cares
        # for changes.
        self._stamp: _Stamp | None = None

    def run(self, read: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Return the result of `read`, of files that did not change meanwhile."""
        for _ in range(ATTEMPTS):
            try:
                result = read(self._connected())
            except (LogError, *FAULTS):
                # A page that a writer was changing looks damaged.
                if not self._has_changed():
                    raise
            else:
                if not self._has_changed():
                    return result
            self.close()
        raise LogError(
            f"the files of the log {self._path} change all the time, and no program has its lock: "
            f"give this user the right to read {self._path.name}-lock"
        )

    def close(self) -> None:
        """Close the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            stamp = _stamp_of(self._path)
            options, locking = self._options(stamp)
            self._connection = connection = sqlite3.connect(
                f"{self._path.absolute().as_uri()}?{options}",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=8,
            )
            connection.execute("PRAGMA query_only = 1")
            connection.execute(f"PRAGMA locking_mode = {locking}")
            self._stamp = None if options == "mode=ro" else stamp
            check_version(connection, self._path)
            check_opened(connection, self._path, had_wal=_has_wal(stamp) or self._accept_loss)
        return self._connection

    def _options(self, stamp: _Stamp) -> tuple[str, str]:
        """Return how SQLite has to open the file, and its mode of locking."""
        if is_written(self._path):
            return "mode=ro", "NORMAL"
        # A PATH-wal without a commit is deleted by SQLite when it closes the file, and a log that
        # was not closed needs one.
        if _has_wal(stamp) and has_commit(beside(self._path, "-wal")):
            # The writer did not close the log. EXCLUSIVE: the index of PATH-wal is in memory, in
            # place of PATH-shm.
            return f"mode=ro&vfs={_WITHOUT_LOCKS}", "EXCLUSIVE"
        # Without PATH-wal: SQLite would make it.
        return "mode=ro&immutable=1", "NORMAL"

    def _has_changed(self) -> bool:
        return self._stamp is not None and self._stamp != _stamp_of(self._path)


def _has_wal(stamp: _Stamp) -> bool:
    return stamp[1] is not None and stamp[1][1] >= WAL_HEADER


def _stamp_of(path: Path) -> _Stamp:
    return tuple(_facts_of(each) for each in (path, beside(path, "-wal")))


def _facts_of(path: Path) -> tuple[int, int, int] | None:
    with suppress(OSError):
        facts = path.stat()
        return facts.st_ino, facts.st_size, facts.st_mtime_ns
    return None


class ReadOnlyFiles:
    """The resources of a log that is open for reading: the states of its partitions, and
    connections: one for streams, one for the thread that follows the writer, and one for a look of
    the run loop.
    """

    def __init__(self, path: Path, *, accept_loss: bool) -> None:
        check_kind(path, may_begin=False)
        self.path = path
        self._read = ReadOnlyFile(path, accept_loss=accept_loss)
        self._follow = ReadOnlyFile(path, accept_loss=accept_loss)
        self._look = ReadOnlyFile(path, accept_loss=accept_loss)
        self.names: Sequence[str]
        self.states: Sequence[PartitionState]
        try:
            self.names, self.states = self._follow.run(self._tables)
        except BaseException:
            self.close()
            raise

    def read(self, number: int, name: str, position: int, stop: int, most: int) -> list[bytes]:
        """Return elements as `DiskReader.read` does."""
        return self._read.run(
            lambda connection: DiskReader(connection, self.path).read(
                number, name, position, stop, most
            )
        )

    def positions_at(self, numbers: Sequence[int], time: float) -> list[int]:
        """Return positions as `DiskReader.position_at` does."""
        return self._read.run(
            lambda connection: [
                DiskReader(connection, self.path).position_at(number, time) for number in numbers
            ]
        )

    def times(self, number: int, start: int, stop: int) -> list[Written]:
        """Return times as `DiskReader.times` does."""
        return self._read.run(
            lambda connection: DiskReader(connection, self.path).times(number, start, stop)
        )

    def refreshed(self) -> bool:
        """Read the states again, and return whether they have changed."""
        _, states = self._follow.run(self._tables)
        # Partitions that the writer has added come with the next opening: streams hold numbers.
        states = states[: len(self.names)]
        before, self.states = self.states, states
        return states != before

    def look(self) -> Sequence[PartitionState]:
        """Return the states of now. It takes 15 to 60 µs, however long the log is: a state is the
        last group of its partition.
        """
        _, states = self._look.run(self._tables)
        return states[: len(self.names)]

    def close(self) -> None:
        """Close the connections."""
        self._look.close()
        self._read.close()
        self._follow.close()

    def _tables(
        self, connection: sqlite3.Connection
    ) -> tuple[Sequence[str], Sequence[PartitionState]]:
        return states_for_reading(connection, self.path)


class Follower:
    """A thread that looks for the elements that another program appends."""

    def __init__(
        self, files: ReadOnlyFiles, update: Callable[[Sequence[PartitionState]], None]
    ) -> None:
        self._files = files
        self._update = update
        self._token = trio.lowlevel.current_trio_token()
        self._stopped = threading.Event()
        # A daemon, because a program that raises out of trio.run() must be able to end.
        self.thread = threading.Thread(target=self._run, name="penstock log reader", daemon=True)
        self.ended = trio.Event()
        """Set when the thread reads no more, after `stop`."""

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def stop(self) -> None:
        """Let the thread end."""
        self._stopped.set()

    def _run(self) -> None:
        try:
            while not self._stopped.wait(FOLLOW_SECONDS):
                # The streams that read damage raise it. An exception here would reach no caller.
                with suppress(LogError, *FAULTS):
                    if self._files.refreshed():
                        self._token.run_sync_soon(self._update, tuple(self._files.states))
            self._token.run_sync_soon(self.ended.set)
        except trio.RunFinishedError:
            pass  # the tasks that waited are gone
