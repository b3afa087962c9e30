"""A log that is open for reading only: it writes nothing, and it follows the writer."""

import os
import shutil
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from campaigns.crashes._damage import APPENDS, closed_log, crashed_log
from penstock.api import LogDamaged, LogError, PositionNotRetained, UsageError
from penstock.logs import DiskLog, Retention
from penstock.logs import _read_only as module
from penstock.logs._disk_files import is_written
from penstock.logs._read_only import ReadOnlyFile
from penstock.logs._wal_commits import WAL_HEADER
from penstock.streams import collect
from tests._real_time import HANGS_AFTER
from tests.logs._opening import PLENTY, numbered

ALL = [element for append in APPENDS for element in append]

# No file of this process may become longer, as on a full disk. Without a handler a write ends it.
READER_ON_A_FULL_DISK = """
import resource, signal, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
import trio
from penstock import DiskLog, collect

async def main():
    async with DiskLog(sys.argv[1], read_only=True) as log:
        print(len(await collect(log.source(stop="latest"))))

trio.run(main)
"""


@asynccontextmanager
async def unchanged(folder: Path) -> AsyncIterator[None]:
    """Nothing of a folder changes in this block: no file is made, deleted or written."""
    before = _facts(folder)
    yield
    assert _facts(folder) == before


def _facts(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        each.name: (each.stat().st_ino, each.stat().st_mtime_ns, each.read_bytes())
        for each in folder.iterdir()
    }


@pytest.mark.parametrize("make", [closed_log, crashed_log])
async def test_it_writes_nothing(tmp_path: Path, make) -> None:
    """To a log that was closed, and to one whose newest elements are in PATH-wal."""
    path = await make(tmp_path)
    async with unchanged(tmp_path), DiskLog(path, read_only=True) as log:
        assert await collect(log.source(stop="latest")) == ALL
        assert (log.earliest(), log.latest()) == ({"0": 0}, {"0": 100})
        assert log.partitions == ("0",)


@pytest.mark.parametrize("make", [closed_log, crashed_log])
@pytest.mark.skipif(sys.platform == "win32", reason="no limits of the size of files")
async def test_it_needs_no_room_on_the_disk(tmp_path: Path, make) -> None:
    """Its process may not make a file longer. A log that is opened for writing needs room."""
    path = await make(tmp_path)
    program = READER_ON_A_FULL_DISK
    assert await _run(program, path) == ("100\n", 0)
    program = program.replace("read_only=True", "retention=Retention(max_count=200)")
    output, status = await _run(
        program.replace("import DiskLog", "import DiskLog, Retention"), path
    )
    assert output == ""
    assert status


async def _run(program: str, path: Path) -> tuple[str, int]:
    done = await trio.run_process(
        # -B: Python writes what it has compiled, and must not here.
        [sys.executable, "-B", "-c", program, str(path)],
        capture_stdout=True,
        capture_stderr=True,
        check=False,
    )
    return done.stdout.decode(), done.returncode


async def test_many_read_beside_the_writer(tmp_path: Path) -> None:
    """They see what it appends, and it drops and appends as if they were not there."""
    path = tmp_path / "orders.log"
    async with DiskLog(path, retention=Retention(max_count=80)) as log:
        await log.append(numbered(0, 10))
        assert is_written(path)
        async with DiskLog(path, read_only=True) as one, DiskLog(path, read_only=True) as other:
            source = one.source("0", 5, 50)
            assert await collect(other.source(stop="latest")) == numbered(0, 10)
            async with trio.open_nursery() as nursery:
                found: list[list[bytes]] = []

                async def follow() -> None:
                    found.append(await collect(source))

                nursery.start_soon(follow)
                for start in range(10, 100, 10):
                    await log.append(numbered(start, start + 10))
                    assert (await one.latest(after={"0": start}))["0"] == start + 10
            assert found == [numbered(5, 50)]
            while other.earliest() != {"0": 20}:
                await other.latest(after={"0": 100}, timeout=0.05)
            with pytest.raises(PositionNotRetained):
                await collect(other.source("0", 5, 50))
    assert not is_written(path)


async def test_a_writer_that_comes_and_goes_is_followed(tmp_path: Path) -> None:
    """The reader was open before, and it is open afterwards. After a crash as after a close."""
    for name, make in ("closed.log", closed_log), ("crashed.log", crashed_log):
        path = await make(tmp_path, name)
        async with DiskLog(path, read_only=True) as log:
            assert await collect(log.source(stop="latest")) == ALL
            for at in (100, 101, 102):
                async with DiskLog(path, retention=PLENTY) as writer:
                    await writer.append([b"next"])
                    assert (await log.latest(after={"0": at}))["0"] == at + 1
                    assert await collect(log.source("0", at, at + 1)) == [b"next"]
                assert await collect(log.source("0", at, at + 1)) == [b"next"]
            assert await collect(log.source(stop="latest")) == [*ALL, *[b"next"] * 3]
        async with DiskLog(path, retention=PLENTY) as writer:
            assert writer.latest() == {"0": 103}


async def test_a_read_whose_files_change_is_repeated(tmp_path: Path) -> None:
    """Without a lock of the writer: the result of a read that it disturbed is not used, and a
    file that changes all the time is an error that says what to do.
    """
    path = await closed_log(tmp_path)
    file, results = ReadOnlyFile(path), []

    def read(connection: sqlite3.Connection) -> int:
        if len(results) < changes:
            os.utime(path, ns=(len(results), len(results)))
        results.append(connection)
        if len(results) == 2:
            raise sqlite3.DatabaseError("a page that was half written")
        return len(results)

    changes = 3
    assert file.run(read) == 4
    changes = 1_000
    with pytest.raises(LogError, match=r"change all the time, .* right to read closed\.log-lock"):
        file.run(read)
    assert len(results) == 4 + module.ATTEMPTS
    changes, results[:] = 0, [None]
    with pytest.raises(sqlite3.DatabaseError, match="half written"):
        file.run(read)
    file.close()


async def test_it_cannot_append(tmp_path: Path) -> None:
    """Each call that would change the log says how to open it."""
    path = await closed_log(tmp_path)
    async with DiskLog(path, read_only=True) as log:
        for call in (
            lambda: log.append([b"x"]),
            lambda: log.acknowledge({"0": 1}),
            log.transaction,
        ):
            with pytest.raises(UsageError, match="open for reading only: leave read_only=True out"):
                await call() if call != log.transaction else call("a")
    with pytest.raises(UsageError, match="drops nothing: leave retention out"):
        DiskLog(path, retention=PLENTY, read_only=True)  # type: ignore[call-overload]  # what the test is about


async def test_a_closed_reader_ends_its_streams(tmp_path: Path) -> None:
    """As a log that was open for writing does, and its thread ends."""
    path = await closed_log(tmp_path)
    log = DiskLog(path, read_only=True)

    async def read() -> None:
        with pytest.raises(UsageError, match=r"is not open|was closed while"):
            await collect(log.source("0", 0, 500), limit=500)

    async with trio.open_nursery() as nursery, log:
        thread = log._thread.thread
        nursery.start_soon(read)
        await wait_all_tasks_blocked()
    thread.join(HANGS_AFTER)
    assert not thread.is_alive()


@pytest.mark.parametrize("length", [None, 0, 20, 31])
async def test_a_lost_wal_is_told(tmp_path: Path, length: int | None) -> None:
    """PATH-wal is missing, or shorter than its header. It is not changed."""
    crashed = await crashed_log(tmp_path)
    wal = crashed.with_name(crashed.name + "-wal")
    if length is None:
        wal.unlink()
    else:
        with wal.open("rb+") as file:
            file.truncate(length)
    lost = pytest.raises(LogDamaged, match=r"crashed\.log-wal is missing .* accept_loss=True")
    with lost:
        await _read(crashed)
    async with DiskLog(crashed, read_only=True, accept_loss=True) as log:
        assert log.latest() == {"0": 0}
    assert (wal.stat().st_size if wal.exists() else None) == length
    with lost:
        async with DiskLog(crashed, retention=PLENTY):
            pass


async def test_a_wal_without_a_commit_stays(tmp_path: Path) -> None:
    """The writer was killed right after a checkpoint. SQLite would delete the file, and the next
    opening of the log would call it damaged.
    """
    crashed, folder = await crashed_log(tmp_path), tmp_path / "copy"
    folder.mkdir()
    path = folder / crashed.name
    with closing(sqlite3.connect(crashed)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        path.write_bytes(crashed.read_bytes())
        wal = crashed.with_name(f"{crashed.name}-wal").read_bytes()
        path.with_name(f"{path.name}-wal").write_bytes(wal[:WAL_HEADER])
    async with unchanged(folder), DiskLog(path, read_only=True) as log:
        assert await collect(log.source(stop="latest")) == ALL
    async with DiskLog(path, retention=PLENTY) as log:
        assert await collect(log.source(stop="latest")) == ALL


async def test_what_was_lost_is_told(tmp_path: Path) -> None:
    """A partition is shorter than it was when the log was closed."""
    closed = await closed_log(tmp_path)
    connection = sqlite3.connect(closed, isolation_level=None)
    connection.execute("DELETE FROM groups WHERE key > 20")
    connection.close()
    for left in tmp_path.glob("closed.log-[ws]*"):
        left.unlink()
    with pytest.raises(LogDamaged, match="ends at 70 in place of 100"):
        await _read(closed)


@pytest.mark.parametrize("read_only", [True, False])
async def test_a_file_that_is_no_log_is_named(tmp_path: Path, *, read_only: bool) -> None:
    """A text, a database of another program, a folder; for reading also an empty file, and a name
    without a file. Nothing is left beside them.
    """
    (tmp_path / "notes.txt").write_text("These are notes, and no database. " * 40)
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE anything (a)")
    other.close()
    (tmp_path / "folder").mkdir()
    expected = {
        "notes.txt": r"is no log: it is a file that begins with b'These are notes,'",
        "other.db": "is no log: it is a database of SQLite of another program",
        "folder": "is a folder, and no log: give the path of a file",
    }
    if read_only:
        (tmp_path / "empty").touch()
        expected |= {
            "empty": "is no log: it is an empty file",
            "missing": "there is no log .*missing: no file has this name",
        }
    names = {each.name for each in tmp_path.iterdir()}
    for name, message in expected.items():
        with pytest.raises(LogError, match=message) as refused:
            if read_only:
                await _read(tmp_path / name)
            else:
                async with DiskLog(tmp_path / name, retention=PLENTY):
                    pass
        assert type(refused.value) is LogError
    assert {each.name for each in tmp_path.iterdir()} == names


async def test_the_files_of_a_copy_are_enough(tmp_path: Path) -> None:
    """PATH and PATH-wal of a running log, without its lock."""
    path = await crashed_log(tmp_path)
    assert not path.with_name("crashed.log-lock").exists()
    shutil.copy(path, tmp_path / "a #?%20 copy.log")
    shutil.copy(f"{path}-wal", tmp_path / "a #?%20 copy.log-wal")
    async with DiskLog(tmp_path / "a #?%20 copy.log", read_only=True) as log:
        assert await collect(log.source(stop="latest")) == ALL


async def _read(path: Path) -> list[bytes]:
    async with DiskLog(path, read_only=True) as log:
        return await collect(log.source(stop="latest"))


async def test_a_stream_may_begin_at_a_position_that_was_just_committed(tmp_path: Path) -> None:
    """Its reader has come from another process, which has seen more: the log looks at the file."""
    path = tmp_path / "a.log"
    async with (
        DiskLog(path, retention=PLENTY) as writing,
        DiskLog(path, read_only=True) as log,
    ):
        await writing.append([b"%d" % number for number in range(10)])
        # Nothing has waited since: the thread that follows the writer has seen none of them.
        assert await collect(log.source(start=10, stop="latest")) == []
        await writing.append([b"more"])
        assert log.latest() == {"0": 11}
        with pytest.raises(PositionNotRetained, match="does not exist yet"):
            await collect(log.source(start=12))
