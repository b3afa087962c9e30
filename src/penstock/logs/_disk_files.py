"""Opening the files of a log for writing: the lock, the checks of existing files, a new file.

Rules of this file:

* The lock is taken first and let go last. It is an exclusive transaction of SQLite on PATH-lock, so
  the system ends it with the process.
* PATH-lock stays when a log is closed, and is marked once the log has been made. So a missing or an
  empty PATH beside a marked PATH-lock was lost, and is not begun anew. Without the mark a program
  has ended, or the disk was full, before the log had an element.
* A new log is made in PATH-begun, and gets its name when it is whole and on the disk. So a program
  that is killed meanwhile leaves no PATH, and the next writer begins again. An empty PATH counts as
  none.
* A file that is not a log is refused before the lock is made, and nothing is left beside it.
* While a log is open for writing, this process opens PATH through SQLite alone. The system drops
  the locks of a process on a file when the process closes the file once, however it was opened.
  Without them another program that opens PATH with SQLite deletes PATH-wal when it closes it.
"""

import os
import shutil
import sqlite3
import threading
import time
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Final

from penstock.api import LogDamaged, LogError
from penstock.logs._disk_errors import explain
from penstock.logs._disk_reader import DiskReader
from penstock.logs._disk_store import APPLICATION_ID, FORMAT, create_tables, upgrade
from penstock.logs._wal_commits import WAL_HEADER

CHECKPOINT_PAGES: Final = 1_000
"""Pages in PATH-wal before SQLite moves them into the main file: 4 MiB, its default.
More gave no more speed.
"""

MOST_LOOKS: Final = 200
"""Times that a writer finds a reader in PATH-lock, before it takes it for a writer: 1 s."""

LOOK_SECONDS: Final = 0.005

_HEADER_BYTES: Final = 100
"""The length of the header of a database of SQLite."""

_MAGIC: Final = b"SQLite format 3\0"

_HEADER_OF_A_LOG: Final = _MAGIC.ljust(68, b"\0") + APPLICATION_ID.to_bytes(4, "big") + bytes(28)


_open_here: set[tuple[int, int]] = set()
"""The device and the number of each file that this process has open for writing, as a log."""

_looks = threading.Lock()
"""Held while a file is looked at without SQLite, and while `_open_here` is changed."""


def note_open(path: Path) -> None:
    """Note that this process has the log open for writing, or begins to open it."""
    with _looks, suppress(FileNotFoundError):
        _open_here.add(_identity(path))


def note_closed(path: Path) -> None:
    """Note that this process has the log open for writing no more."""
    with _looks, suppress(FileNotFoundError):
        _open_here.discard(_identity(path))


def _identity(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_dev, facts.st_ino


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
        _begin_exclusive(connection, path)
        # With this mode the commit of `mark_made` keeps the lock. Not before: a transaction that
        # fails would keep a part of it.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    except sqlite3.Error as error:
        connection.close()
        if error.sqlite_errorcode in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
            raise LogDamaged(
                f"the file {path.name}-lock beside {path} was changed ({error}). It has no "
                "elements: delete it while no program has the log open, and open the log again"
            ) from error
        raise explain(error, path) from error
    return connection


def _begin_exclusive(connection: sqlite3.Connection, path: Path) -> None:
    for _ in range(MOST_LOOKS):
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or is_written(path):
                raise
        else:
            return
        # No writer has it: a reader looks at this moment whether one does.
        time.sleep(LOOK_SECONDS)
    connection.execute("BEGIN EXCLUSIVE")


def is_written(path: Path) -> bool:
    """Return whether a program has the log open for writing: it holds PATH-lock."""
    lock = beside(path, "-lock")
    connection = None
    try:
        connection = sqlite3.connect(f"{lock.absolute().as_uri()}?mode=ro", uri=True, timeout=0)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        # Other errors: it is missing, or left by a program that was killed.
        return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
    finally:
        if connection is not None:
            connection.close()
    return False


def was_made(lock: sqlite3.Connection) -> bool:
    """Return whether the log beside this lock has been made."""
    return bool(lock.execute("PRAGMA user_version").fetchone()[0])


def mark_made(lock: sqlite3.Connection) -> None:
    """Note that the log has been made. The lock stays."""
    if not was_made(lock):
        lock.execute("PRAGMA user_version = 1")
        lock.execute("COMMIT")


def open_file(path: Path, *, accept_loss: bool) -> tuple[sqlite3.Connection, DiskReader]:
    """Return the connection that writes to the log at `path`, after the checks of its files, and a
    reader. The lock is held.
    """
    # Asked before the first statement, which makes PATH-wal if it is missing.
    had_wal = size_of(beside(path, "-wal")) >= WAL_HEADER
    # One may be left, also beside a log that is whole: it is a second name of its file then.
    _remove_begun(path)
    if size_of(path) == 0:
        _begin(path)
    # First, and closed last: if anything fails, PATH-wal stays. SQLite would delete it with the
    # last connection that writes.
    reader = DiskReader.of(path) if had_wal else None
    try:
        connection = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
    except BaseException:
        if reader is not None:
            reader.close()
        raise
    try:
        # Both checks come before `_use_wal`, which is the first write to a file that exists: a file
        # of another program must not be changed.
        check_version(connection, path)
        check_opened(connection, path, had_wal=had_wal or accept_loss)
        _use_wal(connection, path)
        reader = reader or DiskReader.of(path)
        upgrade(connection)
        # NORMAL, which is usual with WAL, syncs at checkpoints only: a crash of the machine could
        # lose commits that `append` returned for.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        # Some builds of SQLite overwrite each page that becomes free: a log that drops as much as
        # it gets would write two fifths more, and a full disk would have to hold it.
        connection.execute("PRAGMA secure_delete = OFF")
    except BaseException:
        connection.close()
        if reader is not None:
            reader.close()
        raise
    return connection, reader


def _use_wal(connection: sqlite3.Connection, path: Path) -> None:
    # SQLite raises nothing if it cannot change the mode.
    # It answers with the mode that the file has.
    if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
        raise LogError(
            f"the log {path} needs a file system on which SQLite's WAL works: use a local disk"
        )


def _begin(path: Path) -> None:
    """Make the file of an empty log. There is none at `path`, or an empty one. The lock is held."""
    begun = beside(path, "-begun")
    try:
        connection = sqlite3.connect(begun, isolation_level=None, timeout=0)
        try:
            # Nobody reads the file before it is whole.
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            create_tables(connection)
            # Now: later the change would need PATH-journal, which a reader cannot apply.
            _use_wal(connection, path)
        finally:
            connection.close()
        _put_first(begun, path)
    except OSError as error:
        raise LogError(
            f"the log {path} cannot be made ({error.strerror}): this program must be allowed to "
            "write in its folder, and the disk must have room. Mend that, and open it again"
        ) from error
    finally:
        _remove_begun(path)


def _remove_begun(path: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        # What cannot be removed is in the way of `create_tables`, which says so.
        with suppress(OSError):
            beside(path, f"-begun{ending}").unlink()


def _put_first(begun: Path, path: Path) -> None:
    """Give a new log its name, unless another program has made a file with this name meanwhile."""
    if path.exists():
        shutil.copymode(path, begun)
        if size_of(path):
            raise _came_meanwhile(path)
        note_closed(path)  # the number of the empty file becomes free
        put_in_place(begun, path)
    else:
        sync(begun)
        try:
            path.hardlink_to(begun)
        except FileExistsError:
            raise _came_meanwhile(path) from None
        except OSError:  # a file system without such links
            begun.rename(path)
        sync_folder(path)
    note_open(path)


def _came_meanwhile(path: Path) -> LogError:
    return LogError(
        f"another program has made {path} while a log was begun there. Nothing was written to it; "
        "give the path of a log, or a new path"
    )


def put_in_place(part: Path, new: Path) -> None:
    """Give a file that is whole its name, and wait until the disk has both."""
    sync(part)
    part.replace(new)
    sync_folder(new)


def sync(file: Path) -> None:
    """Wait until the disk has a file."""
    descriptor = os.open(file, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(file: Path) -> None:
    """Wait until the disk has the name of a file."""
    if os.name == "posix":
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def check_presence(path: Path, *, had_log: bool) -> None:
    """Raise if the main file is missing or empty although the log existed."""
    wal = beside(path, "-wal").exists()
    is_missing = not path.exists()
    # SQLite would apply PATH-wal to a new file, whatever it belongs to.
    if size_of(path) == 0 and (wal or had_log):
        rest = path.name + ("-wal" if wal else "-lock")
        what = "missing" if is_missing else "empty"
        raise LogDamaged(
            f"the file {path} is {what}, and {rest} beside it says that there was a log: put the "
            f"file back, or delete {rest} to begin an empty log"
        )


def check_kind(path: Path, *, may_begin: bool) -> None:
    """Raise for a file that is not a log. With `may_begin` a missing or an empty one passes."""
    header = header_of(path, may_begin=may_begin)
    if not header:
        return
    # Each of these may have been a log before its header was damaged: SQLite tells what is wrong.
    # With PATH-journal it has to undo something first.
    was_log = (
        _mark_of(header) == APPLICATION_ID
        or _MAGIC.startswith(header)  # all but a part of the header was cut off
        or _has_bytes(path, "-lock")
        or _has_bytes(path, "-journal")
    )
    if was_log:
        return
    what = (
        "a database of SQLite of another program"
        if header.startswith(_MAGIC)
        else f"a file that begins with {header[:16]!r}"
    )
    raise LogError(
        f"{path} is no log: it is {what}. Nothing was written to it; give the path of a log, or "
        "a new path"
    )


def lacks_mark(path: Path) -> bool:
    """Return whether a file does not begin as a database of SQLite does."""
    return path.is_file() and not header_of(path, may_begin=True).startswith(_MAGIC)


def header_of(path: Path, *, may_begin: bool = False) -> bytes:
    """Return the begin of a file. Raise if it has none."""
    if path.is_dir():
        raise LogError(f"{path} is a folder, and no log: give the path of a file")
    # A pipe would wait for a writer.
    if path.exists() and not path.is_file():
        raise LogError(f"{path} is no log: it is no regular file")
    try:
        with _looks:
            # Its header is that of a log: see the rules of this file.
            if _identity(path) in _open_here:
                return _HEADER_OF_A_LOG
            with path.open("rb") as file:
                header = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        if may_begin:
            return b""
        raise LogError(f"there is no log {path}: no file has this name") from None
    except OSError as error:
        raise LogError(
            f"the log {path} cannot be read ({error.strerror}): this program must be allowed to "
            "read it"
        ) from error
    if not header and not may_begin:
        raise LogError(
            f"{path} is no log: it is an empty file. The first program that opens it for writing "
            "begins a log there"
        )
    return header


def _mark_of(header: bytes) -> int:
    """Return the `application_id` of a database of SQLite that begins with this header."""
    return int.from_bytes(header[68:72], "big")


def _has_bytes(path: Path, ending: str) -> bool:
    file = beside(path, ending)
    # PATH-lock is empty until the log has been made.
    return file.exists() and file.stat().st_size > 0


def real_path(path: str | PathLike[str]) -> Path:
    """Return the path of the file itself, or `path` if it is not a link. SQLite follows a link, so
    the files beside a log have to be the same ones for all names of it.
    """
    # `Path.resolve` raises RuntimeError for a circle of links, and this leaves it to SQLite.
    real = os.path.realpath(path)
    return Path(path) if real == os.path.normpath(Path.cwd() / path) else Path(real)


def beside(path: Path, ending: str) -> Path:
    """Return the path of a file of the same log."""
    return path.with_name(path.name + ending)


def size_of(path: Path) -> int:
    """Return the length of a file, 0 if there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def check_new(path: Path, new: Path, purpose: str) -> None:
    """Raise if a copy of the log at `path` cannot be made at `new`."""
    if new.exists():
        raise LogError(f"{new} exists already: give a new path for {purpose}")
    if new.resolve() in {
        beside(path.resolve(), each) for each in ("-wal", "-shm", "-lock", "-begun")
    }:
        raise LogError(
            f"{new} is the name of a file that belongs to the log {path}, and would be taken for "
            f"it: give another path for {purpose}"
        )


def check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Raise for a file of another program or of another format."""
    (mark,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if mark != APPLICATION_ID:
        raise LogDamaged(
            f"{path} is a database of another program, and no log of penstock: give the log "
            "another path"
        )
    if not 1 <= version <= FORMAT:
        raise LogDamaged(
            f"the log {path} has format {version}, and this penstock reads the formats up to "
            f"{FORMAT}: use the version of penstock that wrote it"
        )


def check_opened(connection: sqlite3.Connection, path: Path, *, had_wal: bool) -> None:
    """Raise if the log was not closed, and PATH-wal is missing."""
    # A table without its row is found by `DiskStore.load`.
    (is_open,) = connection.execute("SELECT is_open FROM state").fetchone() or (0,)
    if is_open and not had_wal:
        raise LogDamaged(
            f"the file {path.name}-wal is missing beside {path}, or empty. The program that wrote "
            "the log did not close it, so the newest elements are in that file: put it back, or "
            "open the log with accept_loss=True, and it begins without them"
        )
