"""A copy of a log that may be written meanwhile.

Rules of this file:

* The copy has what the log had at one moment. It is a closed log: one file, without PATH-wal.
* Each element of the copy is checked before it gets its name. A damaged log gives no backup.
* The copy is made by one read of SQLite. It does not stop the writer. Until it ends, PATH-wal keeps
  all that is appended.
"""

import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Final

from penstock.api import LogDamaged
from penstock.logs._disk_check import check_tables
from penstock.logs._disk_errors import FAULTS, explain
from penstock.logs._disk_files import beside, check_new, header_of, put_in_place
from penstock.logs._disk_store import DiskStore, upgrade
from penstock.logs._read_only import ReadOnlyFile
from penstock.logs._retention import DROPS_NOTHING
from penstock.logs._salvage import unwritable

_STEPS: Final = 10_000
"""Steps of SQLite between two looks at whether the copy is still wanted: about a millisecond."""


def back_up(path: Path, new: Path, stopped: threading.Event) -> None:
    """Copy a log. Raises LogDamaged for a log that is not whole. Ends early, without a copy, when
    `stopped` is set.
    """
    header_of(path)
    check_new(path, new, "the backup")
    # The name is random: another backup to this path, also one that was cancelled and is about to
    # end, must not find this file.
    part = beside(new, f".{token_hex(4)}.part")
    file = ReadOnlyFile(path)
    try:
        file.run(lambda connection: _copy(connection, part, stopped))
        _close(part)
        if stopped.is_set():
            _remove(part)
            return
        check_new(path, new, "the backup")
        put_in_place(part, new)
    except FAULTS as error:
        _remove(part)
        if stopped.is_set():
            return
        explained = explain(error, path, read_only=True)
        raise (
            explained if isinstance(explained, LogDamaged) else unwritable(new, error)
        ) from error
    except LogDamaged as error:
        _remove(part)
        raise LogDamaged(
            f"{error}. No backup was made; `penstock log salvage` copies what can be read"
        ) from error
    except BaseException:
        _remove(part)
        raise
    finally:
        file.close()


def _copy(connection: sqlite3.Connection, part: Path, stopped: threading.Event) -> None:
    _remove(part)
    connection.set_progress_handler(stopped.is_set, _STEPS)
    connection.execute("PRAGMA query_only = 0")
    connection.execute("VACUUM INTO ?", (str(part),))


def _close(part: Path) -> None:
    """Check the copy, and note in it that it was closed."""
    connection = sqlite3.connect(part, isolation_level=None)
    try:
        if connection.execute("PRAGMA auto_vacuum").fetchone() == (0,):
            # The log began with the first format. The copy can give room back.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("VACUUM")
        upgrade(connection)
        check_tables(connection, part)
        store = DiskStore(connection, part, DROPS_NOTHING, lambda: 0.0)
        store.read_tables()
        store.mark(is_open=False)
    finally:
        connection.close()


def _remove(part: Path) -> None:
    with suppress(FileNotFoundError):
        part.unlink()
