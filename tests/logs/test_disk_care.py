"""The work of a log between commits: it joins small groups, and gives unused pages back."""

import logging
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest
import trio

from penstock.api import LogDamaged
from penstock.logs import DiskLog, Retention
from penstock.logs import _disk_store as store_module
from penstock.logs import _disk_writer as writer_module
from penstock.logs import _group_runs as runs_module
from penstock.logs._disk_store import DiskStore
from penstock.streams import collect
from tests._real_time import HANGS_AFTER
from tests.logs._opening import PLENTY, numbered


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """Four groups are joined at once, so that a test needs no thousand commits."""
    for module in (store_module, runs_module):
        monkeypatch.setattr(module, "MOST_JOINED", 4)
    return 4


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread does not care for the file: the test does."""
    monkeypatch.setattr(DiskStore, "needs_care", lambda self: False)
    monkeypatch.setattr(DiskStore, "is_urgent", lambda self: False)


async def _append(log: DiskLog, start: int, stop: int) -> None:
    for position in range(start, stop):
        await log.append(numbered(position, position + 1))


def _groups(log: DiskLog) -> list[tuple[int, int]]:
    return log._opened.store._connection.execute("SELECT key, count FROM groups").fetchall()


def _care(log: DiskLog) -> None:
    store = log._opened.store
    while DiskStore._next_loose(store, 1) is not None or store._has_dropped:
        store.care()


@pytest.mark.usefixtures("few", "no_pause")
async def test_small_groups_become_one(tmp_path: Path) -> None:
    """All but the last ones, which may get neighbours. Elements, positions and a stream that reads
    meanwhile are not affected, and the summary fits after a crash and after a close.
    """
    path = tmp_path / "orders.log"
    async with DiskLog(path, retention=PLENTY) as log:
        await _append(log, 0, 14)
        half = await collect(log.source("0", 0, 6))
        _care(log)
        assert _groups(log) == [(0, 4), (4, 4), (8, 4), (12, 1), (13, 1)]
        assert half + await collect(log.source("0", 6, 14)) == numbered(0, 14)
        for ending in ("", "-wal"):
            shutil.copy(f"{path}{ending}", tmp_path / f"crashed.log{ending}")
        state = log._opened.store.states[0]
    for name in ("orders.log", "crashed.log"):
        async with DiskLog(tmp_path / name, retention=PLENTY) as log:
            assert log._opened.store.states[0] == state
            assert await collect(log.source("0", 0, "latest")) == numbered(0, 14)
            await _append(log, 14, 18)
            _care(log)
            assert _groups(log)[-3:] == [(12, 4), (16, 1), (17, 1)]
            assert await collect(log.source("0", 0, "latest")) == numbered(0, 18)


@pytest.mark.usefixtures("few", "no_pause")
async def test_joined_groups_are_dropped_within_the_bounds(tmp_path: Path) -> None:
    """At least seven eighths stay; a group goes at its last time."""
    now = [0.0]
    retention = Retention(max_count=64, max_age=80)
    async with DiskLog(tmp_path / "orders.log", retention=retention, clock=lambda: now[0]) as log:
        for position in range(200):
            now[0] += 1
            await _append(log, position, position + 1)
            _care(log)
            kept = log.latest()["0"] - log.earliest()["0"]
            assert min(position + 1, 56) <= kept <= 64
        now[0] += 70
        await _append(log, 200, 201)
        # Those that were written at 190 or later, and the rest of their group.
        assert 189 - 8 < log.earliest()["0"] <= 189
        earliest = log.earliest()["0"]
        assert await collect(log.source(stop="latest")) == numbered(earliest, 201)


@pytest.mark.usefixtures("few", "no_pause")
async def test_a_kill_at_each_step_of_a_join_loses_nothing(tmp_path: Path) -> None:
    """The files before each statement, and PATH-wal cut at each page, are those of a log with all
    elements.
    """
    path = tmp_path / "orders.log"
    copies: list[Path] = []
    async with DiskLog(path, retention=PLENTY) as log:
        await _append(log, 0, 9)
        connection = log._opened.store._connection

        def copy(_: str) -> None:
            copies.append(tmp_path / f"step {len(copies)}.log")
            for ending in ("", "-wal"):
                shutil.copy(f"{path}{ending}", f"{copies[-1]}{ending}")

        begin = Path(f"{path}-wal").stat().st_size
        connection.set_trace_callback(copy)
        log._opened.store.care()
        connection.set_trace_callback(None)
        assert _groups(log)[0] == (0, 4)
        copy("the end")
        end = Path(f"{path}-wal").stat().st_size
        wal, last = Path(f"{path}-wal").read_bytes(), copies[-1]
        for length in range(begin, end, 1_030):
            copy("cut")
            Path(f"{copies[-1]}-wal").write_bytes(wal[:length])
    assert last.name == "step 7.log"
    found = []
    for each in copies:
        async with DiskLog(each, retention=PLENTY) as log:
            assert await collect(log.source(stop="latest")) == numbered(0, 9)
            found.append(_groups(log)[0])
            assert await log.append([b"next"]) == range(9, 10)
    assert set(found) == {(0, 1), (0, 4)}


@pytest.mark.usefixtures("few", "no_pause")
async def test_a_damaged_group_is_joined_with_none(tmp_path: Path) -> None:
    """A new checksum over changed bytes would hide the damage."""
    async with DiskLog(tmp_path / "orders.log", retention=PLENTY) as log:
        await _append(log, 0, 12)
        log._opened.store._connection.execute(
            "UPDATE groups SET elements = x'01000000ff' WHERE key = 2"
        )
        _care(log)
        assert _groups(log)[:5] == [(0, 1), (1, 1), (2, 1), (3, 1), (4, 4)]
        with pytest.raises(LogDamaged, match="from 2 on were changed"):
            await collect(log.source("0", 2, 3))
        assert await collect(log.source("0", 3, 12)) == numbered(3, 12)


@pytest.mark.usefixtures("few", "no_pause")
async def test_a_join_that_fails_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told once, appends go on, and it is tried again when more groups have come."""
    async with DiskLog(tmp_path / "orders.log", retention=PLENTY) as log:
        await _append(log, 0, 9)
        store = log._opened.store
        store._connection.execute(
            "CREATE TEMP TRIGGER full BEFORE INSERT ON groups WHEN new.count > 1 "
            "BEGIN SELECT RAISE(ABORT, 'disk full'); END"
        )
        with caplog.at_level(logging.WARNING, "penstock"):
            _care(log)
        (line,) = [record.getMessage() for record in caplog.records]
        assert "were not joined, and no elements were lost" in line
        assert "disk full" in line
        store._connection.execute("DROP TRIGGER full")
        await _append(log, 9, 14)
        _care(log)
        assert _groups(log)[:3] == [(0, 4), (4, 4), (8, 4)]
        assert await collect(log.source(stop="latest")) == numbered(0, 14)


@pytest.mark.usefixtures("few")
async def test_a_pause_is_used(few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the thread, without a call. Work that comes is taken before the next piece."""
    monkeypatch.setattr(writer_module, "PAUSE_SECONDS", 0.001)
    done = Event()
    real = DiskStore._join
    joined: list[int] = []

    def join(store: DiskStore, number: int) -> None:
        real(store, number)
        joined.append(number)
        if len(joined) == 14 // few:  # the first ones may be joined before the last append
            done.set()

    monkeypatch.setattr(DiskStore, "_join", join)
    async with DiskLog(tmp_path / "orders.log", retention=PLENTY) as log:
        await _append(log, 0, 14)
        await trio.to_thread.run_sync(done.wait, HANGS_AFTER)
        assert await log.append(numbered(14, 15)) == range(14, 15)
        assert await collect(log.source(stop="latest")) == numbered(0, 15)
    with closing(sqlite3.connect(tmp_path / "orders.log")) as connection:
        assert len(connection.execute("SELECT key FROM groups").fetchall()) <= 7


@pytest.mark.usefixtures("few")
async def test_without_a_pause_a_piece_is_done_after_many_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that is written all the time has no pause."""
    monkeypatch.setattr(writer_module, "PAUSE_SECONDS", HANGS_AFTER)
    monkeypatch.setattr(store_module, "URGENT", 2)
    async with DiskLog(tmp_path / "orders.log", retention=PLENTY) as log:
        await _append(log, 0, 60)
        assert len(_groups(log)) <= 4 * 2 + 60 / 4 + 2
        assert await collect(log.source(stop="latest")) == numbered(0, 60)


async def test_lower_bounds_give_room_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces, until a quarter of the file is unused at most."""
    monkeypatch.setattr(store_module, "FREE_PAGES", 16)
    monkeypatch.setattr(DiskStore, "needs_care", lambda self: False)
    path = tmp_path / "orders.log"
    elements = [b"x" * 4_000] * 10
    async with DiskLog(path, retention=PLENTY) as log:
        for _ in range(30):
            await log.append(elements)
    before = path.stat().st_size
    async with DiskLog(path, retention=Retention(max_count=50)) as log:
        assert log.earliest() == {"0": 250}
        _care(log)
        assert await collect(log.source(stop="latest")) == elements * 5
    assert path.stat().st_size < before / 3
    async with DiskLog(path, retention=PLENTY) as log:
        assert await collect(log.source(stop="latest")) == elements * 5
