"""A log on a full disk: it opens, and drops elements, with the room that it has kept."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import trio

from penstock.api import LogError
from penstock.logs import DiskLog, Retention, _disk_reserve
from penstock.logs._disk_files import beside
from penstock.logs._disk_reserve import Reserve
from penstock.logs._disk_store import DiskStore
from penstock.streams import collect
from tests.logs._opening import PLENTY

MIB = 1 << 20
KILLED = """
import os, sys
import trio
from penstock import DiskLog, Retention

async def main():
    log = await DiskLog(sys.argv[1], retention=Retention(max_bytes=100_000_000)).__aenter__()
    for number in range(50):
        await log.append([b"%d" % number * 10_000] * 10)
    with open(sys.argv[2], "ab", buffering=0) as other:
        try:
            while True:
                other.write(bytes(4096))
        except OSError:
            os._exit(0)

trio.run(main)
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 32 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(folder)]
    if sys.platform != "linux" or os.geteuid() or subprocess.run(mount, check=False).returncode:
        pytest.skip("only root can mount a disk here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> None:
    """Leave no byte, as another program does."""
    with pytest.raises(OSError, match="No space left"), (disk / "other").open("ab", 0) as file:
        while True:
            file.write(bytes(4096))


@pytest.mark.parametrize("way", ["closed", "killed"])
async def test_a_log_opens_on_a_full_disk_and_makes_room(disk: Path, way: str) -> None:
    """With the bounds that it had, and with lower ones."""
    path = disk / "orders.log"
    await trio.run_process([sys.executable, "-c", KILLED, str(path), str(disk / "other")])
    if way == "closed":
        async with DiskLog(path, retention=Retention(max_bytes=100_000_000)):
            pass
        fill(disk)
    for _ in range(2):
        async with DiskLog(path, retention=Retention(max_bytes=100_000_000)) as log:
            assert log.latest() == {"0": 500}
            fill(disk)
    async with DiskLog(path, retention=Retention(max_bytes=2_000_000)) as log:
        assert log.earliest()["0"] > 300
        assert await log.append([b"x" * 10_000] * 10) == range(500, 510)
        assert len(await collect(log.source("0", 500, "latest"))) == 10
    # Only now: while the log is open, what the disk gets back may still be in PATH-wal.
    assert os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize > MIB
    assert beside(path, "-reserve").exists()


async def test_an_acknowledgement_makes_room_on_a_full_disk(disk: Path) -> None:
    """Appends, which get nothing of the reserve, go on in the room of the dropped elements."""
    path, retention = disk / "orders.log", Retention(max_bytes=100_000_000, acknowledged=True)
    async with DiskLog(path, retention=retention) as log:
        with pytest.raises(
            LogError, match=r"With the room that orders\.log-reserve keeps it opens"
        ):
            while True:
                await log.append([b"x" * 10_000] * 10)
                if log.latest()["0"] >= 1_000:
                    fill(disk)
        latest = log.latest()["0"]
        reader = await log.add_reader("nightly", start="latest", max_bytes=80_000_000)
        for _ in range(2):
            await log.acknowledge_as("nightly", {"0": latest})
        await reader.remove()
        for _ in range(20):
            await log.append([b"y" * 10_000] * 10)
        assert len(await collect(log.source("0", latest, "latest"))) == 200


def full() -> sqlite3.Error:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    return error


async def test_work_that_makes_room_gets_the_reserve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elements of the same commit do not."""
    path, commit = tmp_path / "log", DiskStore.commit
    async with DiskLog(path, retention=Retention(max_count=800, acknowledged=True)) as log:
        await log.append([b"x"] * 10)

        def commit_with_room(store: DiskStore, works: list[object]) -> object:
            if beside(path, "-reserve").exists():
                raise full()
            return commit(store, works)  # type: ignore[arg-type]  # of any kind

        monkeypatch.setattr(DiskStore, "commit", commit_with_room)
        # As long as the reserve is there.
        monkeypatch.setattr(Reserve, "take_back", lambda reserve: reserve._make(1))
        async with trio.open_nursery() as nursery:

            async def append() -> None:
                with pytest.raises(LogError, match="no room"):
                    await log.append([b"y"])

            nursery.start_soon(append)
            nursery.start_soon(log.acknowledge, {"0": 5})
        assert log.latest() == {"0": 10}
        monkeypatch.undo()
        await log.acknowledge({"0": 6})
        assert await log.append([b"y"]) == range(10, 11)


@pytest.mark.parametrize(
    ("retention", "size"),
    [
        (Retention(max_count=5), 4_620_288),
        (Retention(max_bytes=1_000_000), 2_524_288),
        (Retention(max_bytes=10**12), 4_620_288),
    ],
)
def test_the_size_of_a_reserve(tmp_path: Path, retention: Retention, size: int) -> None:
    """For the pages of PATH-wal, or twice what the log may hold."""
    reserve = Reserve(tmp_path / "log", retention)
    assert not reserve.spend()
    reserve.restore()
    assert beside(tmp_path / "log", "-reserve").stat().st_size == size
    assert reserve.spend()
    reserve.take_back()
    assert not reserve.is_spent
    assert beside(tmp_path / "log", "-reserve").exists()


def test_a_reserve_leaves_room_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice its size has to be there. It is looked at again later; a reserve that was spent comes
    back.
    """
    path, free, now = tmp_path / "log", [5 * MIB], [0.0]
    monkeypatch.setattr(_disk_reserve.shutil, "disk_usage", lambda _: SimpleNamespace(free=free[0]))
    monkeypatch.setattr(_disk_reserve.time, "monotonic", lambda: now[0])
    reserve, file = Reserve(path, Retention(max_bytes=10**12)), beside(path, "-reserve")
    for seconds, room, is_there in ((0.0, 5, False), (9.0, 10, False), (10.0, 10, True)):
        now[0], free[0] = seconds, room * MIB
        reserve.restore()
        assert file.exists() == is_there
    assert reserve.spend()
    free[0] = MIB
    reserve.take_back()
    assert file.stat().st_size == MIB


def test_a_reserve_that_cannot_be_made_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left of it."""

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_disk_reserve, "_allocate", refuse)
    Reserve(tmp_path / "log", PLENTY).restore()
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(_disk_reserve.shutil, "disk_usage", refuse)
    Reserve(tmp_path / "log", PLENTY).restore()


def test_another_failure_spends_nothing(tmp_path: Path) -> None:
    """And a function that fails again raises."""
    reserve, calls = Reserve(tmp_path / "log", PLENTY), []
    reserve.restore()

    def fail(error: sqlite3.Error) -> None:
        calls.append(beside(tmp_path / "log", "-reserve").exists())
        raise error

    for error in (sqlite3.OperationalError("other"), full()):
        with pytest.raises(sqlite3.OperationalError):
            reserve.use(lambda error=error: fail(error))
    assert calls == [True, True, False]
    assert beside(tmp_path / "log", "-reserve").exists()
