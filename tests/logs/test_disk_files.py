"""Opening the files of a log: one writer, a new file, a file that was begun."""

import errno
import gc
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from penstock import collect
from penstock.api import LogDamaged, LogError, LogLocked, UsageError
from penstock.logs import DiskLog, _disk_files, check_file
from penstock.logs._disk_files import beside, mark_made, take_lock, was_made
from penstock.logs._disk_store import DiskStore
from tests._real_time import HANGS_AFTER
from tests.logs._opening import PLENTY

OPEN_IN_ANOTHER_PROCESS = """
import sys, trio
from penstock import DiskLog, Retention
from penstock.api import LogLocked

async def main():
    async with DiskLog(sys.argv[1], retention=Retention(max_count=10)):
        pass

try:
    trio.run(main)
except LogLocked as error:
    print(error)
"""


async def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    """In the same process and in another one.
    When the first one has closed the log, the next one opens it.
    """
    path = tmp_path / "orders.log"
    async with DiskLog(path, retention=PLENTY) as log:
        with pytest.raises(
            LogLocked, match="is open for writing already, and a log has one writer"
        ):
            await _open(path)
        assert "is open for writing already" in _open_in_another_process(path)
        assert await log.append([b"x"]) == range(1)
    assert _open_in_another_process(path) == ""
    await _open(path)


@pytest.mark.parametrize("leaves_after", [3, None])
async def test_a_reader_that_looks_for_the_writer_refuses_none(
    leaves_after: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has PATH-lock for a moment. A writer tries again, and not for ever."""
    path = tmp_path / "orders.log"
    await _open(path)
    reader = sqlite3.connect(beside(path, "-lock"), check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
    looks: list[float] = []

    def look(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == leaves_after:
            reader.close()

    monkeypatch.setattr(_disk_files.time, "sleep", look)
    if leaves_after is None:
        with pytest.raises(LogLocked):
            await _open(path)
        assert len(looks) == _disk_files.MOST_LOOKS
        reader.close()
    else:
        await _open(path)
        assert len(looks) == leaves_after


async def test_the_next_writer_waits_for_the_one_before(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    """It opens the log when that one has closed it, and is refused when its time is over."""
    path, opened = tmp_path / "orders.log", trio.Event()

    async def follow() -> None:
        async with DiskLog(path, retention=PLENTY, wait=HANGS_AFTER) as log:
            assert await log.append([b"y"]) == range(1, 2)
            opened.set()

    async with DiskLog(path, retention=PLENTY) as log:
        await log.append([b"x"])
        nursery.start_soon(follow)
        with pytest.raises(LogLocked, match=r"wait=30"):
            async with DiskLog(path, retention=PLENTY, wait=0.3):
                raise AssertionError
        assert not opened.is_set()
    await opened.wait()
    with pytest.raises(UsageError, match="wait"):
        DiskLog(path, retention=PLENTY, wait=-1)


def _open_in_another_process(path: Path) -> str:
    command = [sys.executable, "-c", OPEN_IN_ANOTHER_PROCESS, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_AFTER, check=True)
    return done.stdout


async def test_a_log_that_cannot_be_opened_leaves_no_lock(tmp_path: Path) -> None:
    """The lock is let go when a check fails, so the repaired log can be opened."""
    path = tmp_path / "orders.log"
    path.write_bytes(b"SQLite format 3")
    with pytest.raises(LogDamaged):
        await _open(path)
    path.unlink()
    beside(path, "-lock").unlink()
    await _open(path)


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """The error says what has to exist."""
    with pytest.raises(
        LogError,
        match=r"nowhere/orders\.log cannot be opened for writing .*: its folder must exist",
    ):
        await _open(tmp_path / "nowhere/orders.log")


@pytest.mark.parametrize("has_file", [True, False])
async def test_a_log_that_was_not_made_is_begun(tmp_path: Path, has_file: bool) -> None:
    """A program that was killed while it made the file leaves an empty one, or the lock alone; so
    does a full disk.
    """
    path = tmp_path / "orders.log"
    if has_file:
        path.touch()
    beside(path, "-lock").touch()
    await _open(path)


@pytest.mark.parametrize("is_link", [False, True])
# A parameter of the test.
async def test_an_emptied_file_is_no_new_log(tmp_path: Path, is_link: bool) -> None:
    """It had elements, and their loss is not silent. Without PATH-lock a new log is begun."""
    path = tmp_path / "orders.log"
    async with DiskLog(path, retention=PLENTY) as log:
        await log.append([b"x"])
    path.write_bytes(b"")
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(
        LogDamaged,
        match=r"orders\.log is empty, and orders\.log-lock beside it says that there was a log",
    ):
        await _open(link if is_link else path)
    beside(path, "-lock").unlink()
    await _open(path)


async def test_a_link_is_the_same_log(tmp_path: Path) -> None:
    """A second writer is refused, also if it may lose elements; and all elements are there."""
    path, link = tmp_path / "orders.log", tmp_path / "link"
    link.symlink_to(path)
    async with DiskLog(path, retention=PLENTY) as log:
        await log.append([b"x"])
        with pytest.raises(LogLocked):
            async with DiskLog(link, retention=PLENTY, accept_loss=True):
                pass
    async with DiskLog(link, retention=PLENTY) as log:
        assert log.latest() == {"0": 1}
    assert not beside(link, "-lock").exists()


def test_a_mark_keeps_the_lock(tmp_path: Path) -> None:
    """Another program can take the file at no time in between."""
    path = tmp_path / "orders.log"
    lock = take_lock(path)
    assert not was_made(lock)
    mark_made(lock)
    with pytest.raises(LogLocked):
        take_lock(path)
    lock.close()
    lock = take_lock(path)
    assert was_made(lock)
    mark_made(lock)
    with pytest.raises(LogLocked):
        take_lock(path)
    lock.close()


def test_the_lock_is_an_exclusive_transaction(tmp_path: Path) -> None:
    """Any other connection to the file with the lock finds it busy, until it is let go."""
    path = tmp_path / "orders.log"
    lock = take_lock(path)
    other = sqlite3.connect(beside(path, "-lock"), timeout=0)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("SELECT * FROM sqlite_master")
    lock.close()
    assert other.execute("SELECT * FROM sqlite_master").fetchall() == []
    other.close()


async def _open(path: Path) -> None:
    async with DiskLog(path, retention=PLENTY):
        pass


_FEW_FILES = """
import os, resource, sqlite3, sys
import trio
from penstock import DiskLog, Retention
from penstock.api import LogDamaged, LogError

async def open_it(path):
    async with DiskLog(path, retention=Retention(max_count=100)) as log:
        return log.latest()["0"]

_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
trio.run(trio.to_thread.run_sync, int)  # its files are open
resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
outcomes = []
for free in range(14):
    held = []
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    for file in held[:free]:
        os.close(file)
    try:
        outcomes.append(trio.run(open_it, sys.argv[1]))
    except (LogError, OSError) as error:
        assert not isinstance(error, LogDamaged), (free, error)
    for file in held[free:]:
        os.close(file)
outcomes.append(trio.run(open_it, sys.argv[1]))
print(outcomes[0], len(outcomes) < 14)
"""


@pytest.mark.parametrize("was_closed", [True, False], ids=["closed", "crashed"])
async def test_an_opening_that_fails_for_lack_of_files_changes_nothing(
    tmp_path: Path, *, was_closed: bool
) -> None:
    """It once deleted PATH-wal and left the mark that the log is open: from then on the log was
    called damaged.
    """
    async with DiskLog(tmp_path / "open.log", retention=PLENTY) as log:
        await log.append([b"first", b"second"])
        for ending in ("", "-wal", "-lock"):
            shutil.copy(tmp_path / f"open.log{ending}", tmp_path / f"orders.log{ending}")
    path = tmp_path / ("open.log" if was_closed else "orders.log")
    assert _open_with_few_files(path) == "2 True"


def _open_with_few_files(path: Path) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", _FEW_FILES, path],
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
        check=False,
    )
    return ended.stdout.strip() or ended.stderr


_WITH_SQLITE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(connection.execute("SELECT sum(count) FROM groups").fetchone()[0])
connection.close()
"""


async def test_a_look_at_an_open_log_keeps_its_locks(tmp_path: Path) -> None:
    """The system drops the locks of a process on a file with the first close of it. After a look
    at the header, SQLite in another program took itself for the last one, and deleted PATH-wal: what
    was appended then would not have survived a crash.
    """
    path = tmp_path / "orders.log"
    async with DiskLog(path, retention=PLENTY) as log:
        await log.append([b"first"])
        async with DiskLog(path, read_only=True) as reader:
            assert await collect(reader.source(stop="latest")) == [b"first"]
        with pytest.raises(LogLocked):
            await _open(path)
        await log.backup(tmp_path / "copy.log")
        assert check_file(path).fault is None
        assert _with_sqlite(path) == "1"
        assert beside(path, "-wal").exists()
    # A log that is closed is looked at again.
    beside(path, "-lock").unlink()
    path.write_text("a text")
    with pytest.raises(LogError, match="is no log"):
        await _open(path)


def _with_sqlite(path: Path) -> str:
    return subprocess.run(
        [sys.executable, "-c", _WITH_SQLITE, path],
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
        check=True,
    ).stdout.strip()


async def test_a_log_that_cannot_be_marked_as_closed_keeps_its_newest_elements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk the mark fails. PATH-wal stays, and the next opening reads it: without it the
    log was called damaged.
    """
    path = tmp_path / "orders.log"

    def fail(_: DiskStore, *, is_open: bool) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    async with DiskLog(path, retention=PLENTY) as log:
        await log.append([b"first"])
        monkeypatch.setattr(DiskStore, "mark", fail)
    monkeypatch.undo()
    gc.collect()
    assert beside(path, "-wal").stat().st_size > 0
    async with DiskLog(path, retention=PLENTY) as log:
        assert await collect(log.source(stop="latest")) == [b"first"]
    assert not beside(path, "-wal").exists()


_KILLED_AT_EACH_STEP = """
import os, signal, sqlite3, sys, threading
import trio
from penstock import DiskLog, Retention, collect
from penstock.cli._main import parse

folder, lines = sys.argv[1:]
parse(["pub", "--to", folder, lines])  # what it imports is there in each process

def acts(function):
    owner = getattr(function, "__self__", None)
    return function is sqlite3.connect or isinstance(owner, sqlite3.Connection) or (
        function.__module__ == "posix" and function.__name__ in CALLS
    )

CALLS = {"open", "close", "fsync", "link", "unlink", "rename", "replace", "chmod"}

def makes_file(frame):
    names = []
    while frame is not None:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return "open_file" in names or "take_lock" in names or "mark_made" in names

def die_at(number):
    steps = 0
    def count(frame, event, argument):
        nonlocal steps
        if event == "c_call" and acts(argument) and makes_file(frame):
            steps += 1
            if steps == number:
                os.kill(os.getpid(), signal.SIGKILL)
    threading.setprofile(count)

def in_a_process(function):
    process = os.fork()
    if not process:
        status = 1
        try:
            trio.run(function)
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(process, 0)[1]

def check(path):
    async def make():
        async with DiskLog(path, retention=Retention(max_bytes=1 << 40)):
            pass

    def killed():
        die_at(number)
        return make()

    async def repeat():
        options = parse(["pub", "--quiet", "--to", path, lines])
        assert await options.run(options) == 0
        async with DiskLog(path, read_only=True) as log:
            assert await collect(log.source(stop="latest")) == [b"first", b"second"]
        assert not [each for each in os.listdir(folder) if "-begun" in each]

    number = 0
    while True:
        number += 1
        for each in os.listdir(folder):
            os.unlink(os.path.join(folder, each))
        if is_empty:
            open(path, "w").close()
        status = in_a_process(lambda: killed())
        again = in_a_process(repeat)
        assert again == 0, (number, again)
        if status == 0:
            return number

for is_empty in (False, True):
    assert check(os.path.join(folder, "orders.log")) > 30
print("whole")
"""


@pytest.mark.heavy
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the script forks")
def test_a_log_whose_making_was_killed_is_made_by_the_next_program(tmp_path: Path) -> None:
    """SIGKILL before each call of SQLite and of the system that makes a log, and then `pub --to`. It once took the file for
    one of another program, and refused it for ever.
    """
    (tmp_path / "folder").mkdir()
    (tmp_path / "lines").write_text("first\nsecond\n")
    done = subprocess.run(
        [sys.executable, "-c", _KILLED_AT_EACH_STEP, tmp_path / "folder", tmp_path / "lines"],
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
        check=False,
    )
    assert done.stdout == "whole\n", done.stderr


async def test_a_file_that_another_program_makes_meanwhile_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new log gets its name only if nobody has it, and nothing is left of it."""
    path = tmp_path / "orders.log"
    sync = _disk_files.sync

    def write(file: Path) -> None:
        path.write_text("of another program")
        sync(file)

    monkeypatch.setattr(_disk_files, "sync", write)
    with pytest.raises(LogError, match="another program has made"):
        await _open(path)
    assert path.read_text() == "of another program"
    assert not beside(path, "-begun").exists()


async def test_a_log_begins_without_links_and_keeps_the_mode_of_an_empty_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems have no second name of a file."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "no links")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    await _open(tmp_path / "orders.log")
    empty = tmp_path / "empty.log"
    empty.touch()
    empty.chmod(0o640)
    await _open(empty)
    assert stat.S_IMODE(empty.stat().st_mode) == 0o640


async def test_a_disk_that_fails_while_a_log_is_made_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what to mend, and the next opening makes the log."""
    path = tmp_path / "orders.log"

    def fail(_: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_disk_files, "sync", fail)
    with pytest.raises(LogError, match=r"orders\.log cannot be made \(No space left"):
        await _open(path)
    assert {each.name for each in tmp_path.iterdir()} == {"orders.log-lock"}
    monkeypatch.undo()
    await _open(path)


async def test_an_empty_file_beside_the_rest_of_a_log_is_no_new_log(tmp_path: Path) -> None:
    """SQLite would apply PATH-wal to the new file."""
    path = tmp_path / "orders.log"
    path.touch()
    beside(path, "-wal").write_bytes(bytes(100))
    with pytest.raises(LogDamaged, match=r"is empty, and orders\.log-wal beside it"):
        await _open(path)
