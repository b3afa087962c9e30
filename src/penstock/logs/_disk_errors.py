"""Faults of the file of a log, as errors that say what to do."""

import sqlite3
from pathlib import Path
from typing import Final

from penstock.api import LogDamaged, LogError, LogLocked

FILES: Final = "PATH, PATH-wal, PATH-shm and PATH-lock"

FAULTS: Final = (sqlite3.Error, UnicodeDecodeError)
"""The exceptions of the module sqlite3 about a file. UnicodeDecodeError: SQLite quotes damaged
bytes in its message, and Python cannot decode that.
"""

_READING: Final = "this program must be allowed to read its files, and to open as many (ulimit -n)"
_WRITING: Final = (
    "its folder must exist, and this program must be allowed to write there, and to open some six "
    "files more (ulimit -n)"
)

_MARGIN: Final = 1_048_576
"""Bytes beside those of PATH-wal: for PATH-shm and for the writes when a log is opened."""

_LOCKED: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def explain(error: Exception, path: Path, *, read_only: bool = False) -> LogError:
    """Return the error of penstock about one of FAULTS.
    `read_only`: the log is open for reading only.
    """
    # Errors of the module sqlite3 itself have no code.
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return damaged(path, f"Python's sqlite3 says: {error}")
    primary = code & 0xFF  # the higher bits say more about the same failure
    # The second one: PATH-shm could not get longer.
    if primary == sqlite3.SQLITE_FULL or code == sqlite3.SQLITE_IOERR_SHMSIZE:
        # The file is whole: the transaction was rolled back, and the next commit works
        # when there is room.
        opens = (
            f"With the room that {path.name}-reserve keeps"
            if path.with_name(path.name + "-reserve").exists()
            else "With the same room"
        )
        return LogError(
            f"there is no room on the disk for the log {path}: nothing of this call was appended. "
            f"Make room for {_needed(path):,} bytes, and append again; the log stays usable. "
            f"{opens} it opens with lower bounds in its Retention, and gives back the room of what "
            "it drops. DiskLog(path, read_only=True) reads it without any room"
        )
    if primary in _LOCKED:
        return locked(path)
    if primary in {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_AUTH,
    }:
        return LogError(
            f"the log {path} cannot be opened for {'reading' if read_only else 'writing'} "
            f"({error}): {_READING if read_only else _WRITING}"
        )
    if primary == sqlite3.SQLITE_IOERR:
        return _failed(error, path, is_write=code == sqlite3.SQLITE_IOERR_WRITE)
    # SQLITE_CORRUPT and SQLITE_NOTADB come here. So does a code that is not listed: it must not
    # look like a failure that passes.
    return damaged(path, f"SQLite says: {error}")


def _failed(error: Exception, path: Path, *, is_write: bool) -> LogError:
    if is_write:
        # As on a full disk: the transaction was rolled back, and the next commit works when the
        # reason is gone.
        return LogError(
            f"the log {path} could not be written ({error}): nothing of this call was appended. "
            "The disk has failed, or a quota or a limit of the size of files (ulimit -f) does not "
            "allow this program more. Mend that, and append again; the log stays usable"
        )
    return LogError(
        f"the disk failed under the log {path} ({error}): open the log again, and append what "
        "was not appended"
    )


def _needed(path: Path) -> int:
    """Return the bytes that a log on a full disk needs: the main file takes what is in PATH-wal,
    and then PATH-wal is empty.
    """
    try:
        return path.with_name(path.name + "-wal").stat().st_size + _MARGIN
    except OSError:  # there is none
        return _MARGIN


def damaged(path: Path, what: str) -> LogDamaged:
    """Return the error about a file that another program changed."""
    return LogDamaged(
        f"the log {path} is damaged: {what}. Put back {FILES.replace('PATH', path.name)} together, "
        "from one backup; without one, `penstock log salvage` copies what can be read"
    )


def locked(path: Path) -> LogLocked:
    """Return the error about a second writer."""
    return LogLocked(
        f"the log {path} is open for writing already, and a log has one writer: close it there, "
        f"give this log another path, or let it wait: DiskLog(path, wait=30). `fuser {path}-lock` "
        "names the process"
    )
