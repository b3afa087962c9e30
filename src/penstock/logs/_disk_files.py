"""Opening the files of a log: the lock, the checks of existing files, a new file.

Rules of this file:

* The lock is taken first and let go last. It is an exclusive transaction of SQLite on PATH-lock, so
  the system ends it with the process.
* PATH-lock stays when a log is closed.
  So a missing PATH beside a PATH-lock was lost, and is not begun anew.
* PATH-lock is marked once the log has been made. So an empty PATH was emptied, and not left by a
  program that ended while it made the file.
"""

import sqlite3
from pathlib import Path
from typing import Final

from penstock.api import LogDamaged, LogError
from penstock.logs._disk_errors import explain
from penstock.logs._disk_store import APPLICATION_ID, FORMAT, create_tables

CHECKPOINT_PAGES: Final = 1_000
"""Pages in PATH-wal before SQLite moves them into the main file: 4 MiB, its default.
More gave no more speed.
"""


def take_lock(path: Path) -> sqlite3.Connection:
    """Return the connection that holds the lock of the log at `path`.
    Raises LogLocked if it is taken.
    """
    try:
        # timeout=0: a second writer gets its error at once; by default sqlite3 waits five seconds.
        # check_same_thread=False: the log may be closed by another thread than the one
        # that has opened it.
        connection = sqlite3.connect(
            beside(path, "-lock"), isolation_level=None, timeout=0, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise explain(error, path) from error
    try:
        # With this mode the commit of `mark_made` keeps the lock.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        connection.close()
        raise explain(error, path) from error
    return connection


def was_made(lock: sqlite3.Connection) -> bool:
    """Return whether the log beside this lock has been made."""
    return bool(lock.execute("PRAGMA user_version").fetchone()[0])


def mark_made(lock: sqlite3.Connection) -> None:
    """Note that the log has been made. The lock stays."""
    if not was_made(lock):
        lock.execute("PRAGMA user_version = 1")
        lock.execute("COMMIT")


def open_file(path: Path, *, accept_loss: bool) -> sqlite3.Connection:
    """Return the connection that writes to the log at `path`, after the checks of its files.
    The lock is held.
    """
    # Asked before the first statement, which makes PATH-wal if it is missing.
    had_wal = beside(path, "-wal").exists()
    is_new = not path.exists()
    connection = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
    try:
        if is_new or _is_empty(connection, path):
            create_tables(connection)
        # Both checks come before `_use_wal`, which is the first write to a file that exists: a file
        # of another program must not be changed.
        _check_version(connection, path)
        _check_wal(connection, path, had_wal=had_wal or accept_loss)
        _use_wal(connection, path)
        # NORMAL, which is usual with WAL, syncs at checkpoints only: a crash of the machine could
        # lose commits that `append` returned for.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    except BaseException:
        connection.close()
        raise
    return connection


def _use_wal(connection: sqlite3.Connection, path: Path) -> None:
    # SQLite raises nothing if it cannot change the mode.
    # It answers with the mode that the file has.
    if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
        raise LogError(
            f"the log {path} needs a file system on which SQLite's WAL works: use a local disk"
        )


def check_presence(path: Path, *, had_lock: bool, had_log: bool) -> None:
    """Raise if the main file is missing or empty although the log existed."""
    wal = beside(path, "-wal").exists()
    is_missing = not path.exists()
    if (is_missing and (wal or had_lock)) or (had_log and path.stat().st_size == 0):
        rest = path.name + ("-wal" if wal else "-lock")
        what = "missing" if is_missing else "empty"
        raise LogDamaged(
            f"the file {path} is {what}, and {rest} beside it says that there was a log: put the "
            f"file back, or delete {rest} to begin an empty log"
        )


def beside(path: Path, ending: str) -> Path:
    """Return the path of a file of the same log."""
    return path.with_name(path.name + ending)


def _is_empty(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether the database has no tables: the program ended while it made the file."""
    has_tables = bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    # A file with bytes and without tables goes on to `_check_version`, which refuses it:
    # it may be of another program.
    return not has_tables and path.stat().st_size == 0


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    (mark,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if mark != APPLICATION_ID:
        raise LogDamaged(
            f"{path} is a database of another program, and no log of penstock: give the log "
            "another path"
        )
    if version != FORMAT:
        raise LogDamaged(
            f"the log {path} has format {version}, and this penstock reads format {FORMAT}: use "
            "the version of penstock that wrote it"
        )


def _check_wal(connection: sqlite3.Connection, path: Path, *, had_wal: bool) -> None:
    # A table without its row is found by `DiskStore.load`.
    (is_open,) = connection.execute("SELECT is_open FROM state").fetchone() or (0,)
    if is_open and not had_wal:
        raise LogDamaged(
            f"the file {path.name}-wal is missing beside {path}. The program that wrote the log "
            "did not close it, so the newest elements are in that file: put it back, or open the "
            "log with accept_loss=True, and it begins without them"
        )
