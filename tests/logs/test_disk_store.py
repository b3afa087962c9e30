"""The tables of a log: commits that fail change nothing, a clock that goes back drops nothing,
the table of ids is bounded.
"""

import logging
import sqlite3
from pathlib import Path

import pytest
import trio

from penstock.api import LogError, LogLocked
from penstock.logs import DiskLog, Retention
from penstock.logs import _disk_store as module
from penstock.logs._work import Work
from penstock.streams import collect
from tests.logs._opening import PLENTY, numbered


class Clock:
    """A clock that the test sets."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


async def test_a_full_disk_refuses_elements_and_the_log_stays_usable(tmp_path: Path) -> None:
    """None of the elements of the failed commit is there. Appends work again when there is room."""
    path = tmp_path / "orders.log"
    async with DiskLog(path, retention=PLENTY) as log:
        await log.append(numbered(0, 10))
        connection = log._opened.store._connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        big = log.transaction("big")
        await big.stage([b"x" * 100_000])
        failures: list[LogError] = []

        async def fail() -> None:
            with pytest.raises(
                LogError,
                match=r"there is no room on the disk .* nothing of this call was appended\.",
            ) as refused:
                await log.append([b"x" * 100_000])
            failures.append(refused.value)

        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(fail)
        assert failures[0] is not failures[1]
        with pytest.raises(LogError, match="there is no room"):
            await big.publish()
        assert (log.latest(), log.earliest()) == ({"0": 10}, {"0": 0})
        connection.execute("PRAGMA max_page_count = 1000000")
        assert await big.publish()
        assert await log.append(numbered(0, 1)) == range(11, 12)
    async with DiskLog(path, retention=PLENTY) as log:
        assert await collect(log.source("0", 0, 12)) == [
            *numbered(0, 10),
            b"x" * 100_000,
            *numbered(0, 1),
        ]


async def test_a_clock_that_goes_back_drops_nothing_early_and_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The ages count from the latest time that was seen; the message names the difference. It is
    not repeated with each commit.
    """
    clock, path, retention = (
        Clock(),
        tmp_path / "orders.log",
        Retention(max_count=1_000, max_age=60),
    )
    async with DiskLog(path, retention=retention, clock=clock) as log:
        await log.append([b"first"])
        clock.now -= 500
        with caplog.at_level(logging.WARNING, "penstock"):
            for _ in range(50):
                await log.append([b"later"])
        assert log.earliest() == {"0": 0}
    lines = [record.getMessage() for record in caplog.records]
    assert 1 <= len(lines) <= 11
    assert "the clock is 500.0 s behind the newest elements of the log" in lines[0]
    assert "check the time service" in lines[0]
    async with DiskLog(path, retention=retention, clock=clock) as log:
        assert log.earliest() == {"0": 0}
        clock.now = 1_061.0
        await log.append([b"last"])
        assert log.earliest() == {"0": 51}


async def test_times_in_the_file_never_go_back(tmp_path: Path) -> None:
    """The clock is set back while the log is open, and while it is closed."""
    clock, path = Clock(), tmp_path / "orders.log"
    for now in (400.0, 300.0):
        async with DiskLog(path, retention=PLENTY, clock=clock) as log:
            await log.append([b"x"])
            clock.now = now
            await log.append([b"y"])
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT written FROM groups").fetchall() == [(1_000.0,)] * 4
    connection.close()


async def test_a_failed_commit_gives_its_number_back(tmp_path: Path) -> None:
    """Else the next transaction would leave a gap, and the log could not be opened again."""
    path = tmp_path / "orders.log"
    async with DiskLog(path, retention=PLENTY) as log:
        await log.transaction("a").publish()
        connection = log._opened.store._connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        big = log.transaction("big")
        await big.stage([b"x" * 100_000])
        with pytest.raises(LogError, match="there is no room"):
            await big.publish()
        await log.transaction("b").publish()
        connection.execute("PRAGMA max_page_count = 1000000")
        await big.publish()
        numbers = connection.execute("SELECT number, id FROM transactions").fetchall()
        assert numbers == [(0, "a"), (1, "b"), (2, "big")]
    async with DiskLog(path, retention=PLENTY) as log:
        assert not await log.transaction("big").publish()


async def test_a_second_writer_shows_before_a_commit_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that ignores PATH-lock: nothing of the commit is done, and it works when the
    program has ended.
    """
    path = tmp_path / "orders.log"
    done: list[Work] = []
    real = module.DiskStore._apply
    monkeypatch.setattr(
        module.DiskStore,
        "_apply",
        lambda store, work, *more: done.append(work) or real(store, work, *more),
    )
    async with DiskLog(path, retention=PLENTY) as log:
        other = sqlite3.connect(path, isolation_level=None, timeout=0)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LogLocked, match="is open for writing already"):
            await log.append([b"x"])
        assert done == []
        other.close()
        assert await log.append([b"x"]) == range(1)
        assert len(done) == 1


async def test_a_table_of_ids_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory and in the file; the newest ids are remembered over a restart."""
    monkeypatch.setattr(module, "MOST_TRANSACTIONS", 3)
    path = tmp_path / "orders.log"
    async with DiskLog(path, retention=PLENTY) as log:
        for number in range(10):
            assert await log.transaction(str(number)).publish()
        assert len(log._opened.store.published) == 3
        (rows,) = log._opened.store._connection.execute(
            "SELECT count(*) FROM transactions"
        ).fetchone()
        assert rows == 3
    async with DiskLog(path, retention=PLENTY) as log:
        assert [await log.transaction(name).publish() for name in ("9", "8", "7", "6")] == [
            False,
            False,
            False,
            True,
        ]


async def test_works_of_one_commit_are_applied_in_their_order(tmp_path: Path) -> None:
    """Two transactions with one id in one commit: the first one counts."""
    async with (
        DiskLog(tmp_path / "orders.log", retention=PLENTY) as log,
        trio.open_nursery() as nursery,
    ):
        results: list[object] = []

        async def publish(element: bytes) -> None:
            transaction = log.transaction("a")
            await transaction.stage([element])
            results.append(await transaction.publish())

        for number in range(5):
            nursery.start_soon(publish, b"%d" % number)
        nursery.start_soon(log.append, [b"x", b"y"])
        assert len(await collect(log.source("0", 0, 3))) == 3
        while len(results) < 5:
            await trio.lowlevel.checkpoint()
        assert sorted(results, key=bool) == [False] * 4 + [True]
        assert log.latest() == {"0": 3}
