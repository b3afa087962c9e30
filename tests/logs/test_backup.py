"""A copy of a log that is written meanwhile: it has what the log had at one moment, and it is
whole.
"""

import shutil
import sqlite3
from pathlib import Path
from threading import Event

import pytest
import trio

from penstock.api import LogDamaged, LogError, UsageError
from penstock.logs import DiskLog, Retention
from penstock.logs import _backup as module
from penstock.streams import collect
from tests._real_time import HANGS_AFTER
from tests.logs._opening import PLENTY, numbered


async def test_a_backup_of_a_running_log_opens_without_a_loss(tmp_path: Path) -> None:
    """Elements, positions, acknowledgements and published ids; one file, as that of a closed log."""
    retention = Retention(max_count=1_000, acknowledged=True)
    async with DiskLog(tmp_path / "a.log", retention=retention, partitions=["east", "west"]) as log:
        for start in range(0, 60, 10):
            await log.append(numbered(start, start + 10), partition="east")
        for position in (10, 20, 30):
            await log.acknowledge({"east": position})
        await log.transaction("a").publish()
        await log.backup(tmp_path / "b.log")
        await log.append([b"later"], partition="west")
        assert [each.name for each in tmp_path.glob("b.log*")] == ["b.log"]
        async with DiskLog(tmp_path / "b.log", retention=retention) as copy:
            assert copy.latest() == {"east": 60, "west": 0, "0": 0}
            assert copy.earliest()["east"] == 10
            assert await collect(copy.source("east", stop="latest")) == numbered(10, 60)
            assert not await copy.transaction("a").publish()
            assert await copy.append([b"x"], partition="west") == range(1)
        assert log.latest() == {"east": 60, "west": 1}


async def test_appends_go_on_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy has each element that was there before it began, and the elements that it has
    follow each other.
    """
    begun, may_end = trio.Event(), Event()
    token, real = trio.lowlevel.current_trio_token(), module._copy

    def held(*arguments: object) -> None:
        token.run_sync_soon(begun.set)
        may_end.wait(HANGS_AFTER)
        real(*arguments)

    monkeypatch.setattr(module, "_copy", held)
    async with DiskLog(tmp_path / "a.log", retention=PLENTY) as log:
        await log.append(numbered(0, 10))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(log.backup, tmp_path / "b.log")
            await begun.wait()
            for position in range(10, 30):
                await log.append(numbered(position, position + 1))
                may_end.set()
        async with DiskLog(tmp_path / "b.log", read_only=True) as copy:
            found = await collect(copy.source(stop="latest"))
        assert found == numbered(0, len(found))
        assert len(found) >= 10


async def test_a_damaged_log_has_no_backup(tmp_path: Path) -> None:
    """Changed elements are found, and nothing is left of the copy."""
    async with DiskLog(tmp_path / "a.log", retention=PLENTY) as log:
        for start in range(0, 30, 10):
            await log.append(numbered(start, start + 10))
        log._opened.store._connection.execute("UPDATE groups SET size = size + 1 WHERE key = 10")
        with pytest.raises(
            LogDamaged,
            match=r"from 10 on were changed.* No backup was made; `penstock log salvage`",
        ):
            await log.backup(tmp_path / "b.log")
    assert list(tmp_path.glob("b.log*")) == []


async def test_a_backup_overwrites_nothing(tmp_path: Path) -> None:
    """A mistake in a path must not cost a log. A folder that is missing is named."""
    async with DiskLog(tmp_path / "a.log", retention=PLENTY) as log:
        (tmp_path / "b.log").write_text("something")
        with pytest.raises(LogError, match=r"b\.log exists already"):
            await log.backup(tmp_path / "b.log")
        with pytest.raises(LogError, match=r"cannot be written .* its folder must exist"):
            await log.backup(tmp_path / "nowhere" / "b.log")
    assert (tmp_path / "b.log").read_text() == "something"
    with pytest.raises(UsageError, match="is not open"):
        await log.backup(tmp_path / "c.log")


async def test_a_cancelled_backup_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite stops in the middle of the copy."""
    begun, ended, scope = trio.Event(), trio.Event(), trio.CancelScope()
    token, real = trio.lowlevel.current_trio_token(), module.back_up
    wait = Event()

    def held(path: Path, new: Path, stopped: Event) -> None:
        class Held(Event):
            def is_set(self) -> bool:
                token.run_sync_soon(begun.set)
                wait.wait(HANGS_AFTER)
                return stopped.is_set()

        real(path, new, Held())
        token.run_sync_soon(ended.set)

    monkeypatch.setattr("penstock.logs._disk_log.back_up", held)
    monkeypatch.setattr(module, "_STEPS", 10)
    async with DiskLog(tmp_path / "a.log", retention=PLENTY) as log:
        for start in range(0, 300, 10):
            await log.append(numbered(start, start + 10))
        async with trio.open_nursery() as nursery:

            async def copy() -> None:
                with scope:
                    await log.backup(tmp_path / "b.log")

            nursery.start_soon(copy)
            await begun.wait()
            scope.cancel()
        wait.set()
        await ended.wait()
        assert list(tmp_path.glob("b.log*")) == []


async def test_a_backup_that_is_cancelled_at_its_end_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite has made the copy, and it is checked."""
    stopped, real = Event(), module._close

    def close(part: Path) -> None:
        real(part)
        stopped.set()

    monkeypatch.setattr(module, "_close", close)
    async with DiskLog(tmp_path / "a.log", retention=PLENTY) as log:
        await log.append(numbered(0, 10))
        module.back_up(tmp_path / "a.log", tmp_path / "b.log", stopped)
    assert list(tmp_path.glob("b.log*")) == []


async def test_of_two_backups_to_one_path_one_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one is told that the file exists, and leaves it."""
    real = module._close

    def close(part: Path) -> None:
        real(part)
        monkeypatch.setattr(module, "_close", real)
        module.back_up(tmp_path / "a.log", tmp_path / "b.log", Event())

    monkeypatch.setattr(module, "_close", close)
    async with DiskLog(tmp_path / "a.log", retention=PLENTY) as log:
        await log.append(numbered(0, 10))
        with pytest.raises(LogError, match=r"b\.log exists already"):
            module.back_up(tmp_path / "a.log", tmp_path / "b.log", Event())
    assert [each.name for each in tmp_path.glob("b.log*")] == ["b.log"]


async def test_a_backup_of_the_first_format_has_the_format_of_today(tmp_path: Path) -> None:
    """Also of a log that is open for reading only, which is not upgraded itself."""
    shutil.copy(Path(__file__).with_name("format_1") / "closed.log", tmp_path / "a.log")
    async with DiskLog(tmp_path / "a.log", read_only=True) as log:
        await log.backup(tmp_path / "b.log")
    for name, version, vacuum in (("a.log", 1, 0), ("b.log", 3, 2)):
        connection = sqlite3.connect(tmp_path / name)
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (vacuum,)
        connection.close()
    async with DiskLog(tmp_path / "b.log", read_only=True) as log:
        assert log.latest() == {"east": 60, "west": 2}
