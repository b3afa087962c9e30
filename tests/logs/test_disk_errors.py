"""Each failure of SQLite becomes an error that says what to do."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.api import LogDamaged, LogError, LogLocked
from penstock.logs._disk_errors import explain


def _sqlite_error(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("as SQLite says it")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "kind", "advice"),
    [
        (
            _sqlite_error(sqlite3.SQLITE_FULL),
            LogError,
            "no room on the disk .* nothing of this call was appended. Make room for 1,048,576 bytes",
        ),
        (
            _sqlite_error(sqlite3.SQLITE_IOERR_FSYNC),
            LogError,
            "the disk failed .* open the log again, and append what was not appended",
        ),
        (
            _sqlite_error(sqlite3.SQLITE_IOERR_WRITE),
            LogError,
            r"could not be written .* nothing of this call .* limit of the size of files \(ulimit -f",
        ),
        (_sqlite_error(sqlite3.SQLITE_CANTOPEN), LogError, "its folder must exist"),
        (_sqlite_error(sqlite3.SQLITE_READONLY), LogError, "must be allowed to write"),
        (
            _sqlite_error(sqlite3.SQLITE_BUSY),
            LogLocked,
            r"or let it wait: DiskLog\(path, wait=30\)\. `fuser",
        ),
        (
            _sqlite_error(sqlite3.SQLITE_CORRUPT_VTAB),
            LogDamaged,
            "SQLite says: as SQLite says it. Put back orders.log, orders.log-wal",
        ),
        (_sqlite_error(sqlite3.SQLITE_ERROR), LogDamaged, "SQLite says"),
        (
            sqlite3.OperationalError("Could not decode"),
            LogDamaged,
            "Python's sqlite3 says: Could not decode",
        ),
        (
            UnicodeDecodeError("utf-8", b"\xd5", 0, 1, "invalid"),
            LogDamaged,
            "Python's sqlite3 says: .*0xd5",
        ),
    ],
    ids=lambda value: None if isinstance(value, type | str) else type(value).__name__,
)
def test_a_failure_says_what_to_do(error: Exception, kind: type[LogError], advice: str) -> None:
    """The kind of the error tells a program how to react, and its text names the file."""
    explained = explain(error, Path("orders.log"))
    assert type(explained) is kind
    assert explained.args[0].count("orders.log") >= 1
    with pytest.raises(kind, match=advice):
        raise explained


def test_the_room_that_a_full_disk_needs_is_told(tmp_path: Path) -> None:
    """The main file has to take what is in PATH-wal."""
    (tmp_path / "orders.log-wal").write_bytes(b"x" * 4_000_000)
    error = explain(_sqlite_error(sqlite3.SQLITE_FULL), tmp_path / "orders.log")
    assert "Make room for 5,048,576 bytes" in str(error)


def test_a_log_that_cannot_be_read_says_so() -> None:
    """A right to write there would not help."""
    error = explain(_sqlite_error(sqlite3.SQLITE_CANTOPEN), Path("orders.log"), read_only=True)
    assert "cannot be opened for reading" in str(error)
    assert "must be allowed to read its files" in str(error)


LIMITED = """
import resource, sys, trio
from penstock import DiskLog, Retention
from penstock.api import LogError

async def main():
    row = [b"x" * 1_000] * 100
    async with DiskLog(sys.argv[1], retention=Retention(max_count=10_000)) as log:
        most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, most[1]))
        try:
            for appended in range(100):
                await log.append(row)
        except LogError as error:
            print(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
        print(appended, await log.append(row))

trio.run(main)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_log_whose_file_may_not_grow_stays_usable(tmp_path: Path) -> None:
    """The append that fails has appended nothing, and the next one works without the limit."""
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "orders.log")]
    told, appended = subprocess.check_output(command, text=True).splitlines()
    assert "nothing of this call was appended" in told
    count, positions = appended.split(maxsplit=1)
    assert positions == f"range({100 * int(count)}, {100 * int(count) + 100})"
