"""The log in a file: its elements after it was closed and opened again,
and the effects of closing.
"""

import sqlite3
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, assert_checkpoints, wait_all_tasks_blocked

from penstock.api import LogDamaged, UsageError
from penstock.logs import DiskLog, Retention
from penstock.logs._disk_files import beside
from penstock.logs._disk_reader import DiskReader
from penstock.streams import collect, subscribe
from tests._real_time import HANGS_AFTER
from tests.logs._opening import PLENTY, numbered


async def test_all_is_there_after_it_was_opened_again(tmp_path: Path) -> None:
    """Elements, positions, partitions, acknowledgements and published ids."""
    path, retention = tmp_path / "orders.log", Retention(max_count=100, acknowledged=True)
    async with DiskLog(path, retention=retention, partitions=["east", "west"]) as log:
        await log.append(numbered(0, 60), partition="east")
        await log.append(numbered(0, 5), partition="west")
        for position in (12, 24, 36):
            await log.acknowledge({"east": position})
        await log.transaction("a").publish()
    async with DiskLog(path, retention=retention, partitions=["west", "north"]) as log:
        assert log.partitions == ("east", "west", "north")
        assert log.latest() == {"east": 60, "west": 5, "north": 0}
        assert log.earliest() == {"east": 12, "west": 0, "north": 0}
        assert not await log.transaction("a").publish()
        assert await collect(log.source("east", 12, 60)) == numbered(12, 60)
        await log.acknowledge({"east": 48})
        assert log.earliest()["east"] == 24
        assert await log.append([b"x"], partition="north") == range(1)


async def test_a_lower_retention_counts_when_the_log_is_opened(tmp_path: Path) -> None:
    """The oldest groups go, and the positions of the others stay. The newest group is kept at any
    age, until the next one comes.
    """
    path = tmp_path / "orders.log"
    async with DiskLog(path, retention=PLENTY, clock=lambda: 1_000.0) as log:
        for start in range(0, 50, 5):
            await log.append(numbered(start, start + 5))
    async with DiskLog(path, retention=Retention(max_count=12), clock=lambda: 1_000.0) as log:
        assert (log.earliest(), log.latest()) == ({"0": 40}, {"0": 50})
    async with DiskLog(
        path, retention=Retention(max_count=12, max_age=10), clock=lambda: 1_011.0
    ) as log:
        assert (log.earliest(), log.latest()) == ({"0": 45}, {"0": 50})
        assert await log.append([b"x"]) == range(50, 51)
        assert log.earliest() == {"0": 50}
    async with DiskLog(path, retention=PLENTY) as log:
        assert await collect(log.source("0", 50, 51)) == [b"x"]


async def test_a_closed_log_is_one_file_and_its_lock(tmp_path: Path) -> None:
    """All elements are in the main file, so a copy of the two is a copy of the log. The reserve has
    no elements.
    """
    async with DiskLog(tmp_path / "orders.log", retention=PLENTY) as log:
        await log.append([b"x"])
    beside(tmp_path / "orders.log", "-reserve").unlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["orders.log", "orders.log-lock"]


async def test_the_file_does_not_grow_while_elements_are_dropped(tmp_path: Path) -> None:
    """The space of dropped groups is used again: four times the elements take no more than the
    first ones, and a quarter more.
    """
    path = tmp_path / "orders.log"
    sizes = []
    async with DiskLog(path, retention=Retention(max_bytes=1_000_000)) as log:
        for _ in range(5):
            for _ in range(10):
                await log.append([b"x" * 1_000] * 120)
            sizes.append(path.stat().st_size)
    assert path.stat().st_size <= 1.25 * 1_200_000
    assert sizes


async def test_a_log_is_used_inside_of_its_block_only(tmp_path: Path) -> None:
    """Before and after it, and twice at once, is refused with advice."""
    log = DiskLog(tmp_path / "orders.log", retention=PLENTY)
    with pytest.raises(UsageError, match="is not open: use it inside of `async with DiskLog"):
        await log.append([b"x"])
    async with log:
        source = log.source("0", 0)
        with pytest.raises(UsageError, match="is open already"):
            await log.__aenter__()
    for call in (log.latest, log.earliest, lambda: log.source("0"), lambda: log.transaction("a")):
        with pytest.raises(UsageError, match="is not open"):
            call()
    with pytest.raises(UsageError, match="is not open"):
        await collect(source)
    with assert_checkpoints():
        await log.aclose()
    async with log:
        assert log.latest() == {"0": 0}


async def test_a_log_is_used_in_the_run_that_has_opened_it(tmp_path: Path) -> None:
    """A task of another run, in another thread, was once never woken: the threads of the log wake
    tasks of their own run.
    """
    async with DiskLog(tmp_path / "orders.log", retention=PLENTY) as log:

        async def use(call: Callable[..., Awaitable[object]], *arguments: object) -> None:
            with (
                trio.fail_after(HANGS_AFTER),
                pytest.raises(UsageError, match="in another run of trio"),
            ):
                await call(*arguments)

        def run(*arguments: Any) -> None:
            trio.run(use, *arguments, clock=MockClock(autojump_threshold=0))

        await log.append([b"x"])
        for call in (
            (log.append, [b"y"]),
            (collect, log.source(stop="latest")),
            (log.times, "0", 0, 1),
        ):
            await trio.to_thread.run_sync(run, *call)
        assert log.latest() == {"0": 1}


async def test_closing_commits_what_waits_and_ends_readers(tmp_path: Path) -> None:
    """An append that waits for the disk returns its positions;
    a stream and a wait for elements fail.
    """
    log = DiskLog(tmp_path / "orders.log", retention=PLENTY)
    appended: list[range] = []

    async def append() -> None:
        appended.append(await log.append([b"x"]))

    async def read() -> None:
        with pytest.raises(UsageError, match="is not open"):
            await collect(log.source("0", 0, 9))

    async def wait() -> None:
        with pytest.raises(UsageError, match="is not open"):
            await log.latest(after={"0": 9})

    async with trio.open_nursery() as nursery, log:
        nursery.start_soon(read)
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        nursery.start_soon(append)
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
    assert appended == [range(1)]


async def test_a_stream_that_reads_while_the_log_is_closed_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery
) -> None:
    """It gets what it reads, and then the error: nothing would wake it any more."""
    begun, may_end = trio.Event(), threading.Event()
    token, real = trio.lowlevel.current_trio_token(), DiskReader.read

    def held(*arguments: object) -> list[bytes]:
        token.run_sync_soon(begun.set)
        may_end.wait(HANGS_AFTER)
        return real(*arguments)

    monkeypatch.setattr(DiskReader, "read", held)
    found: list[bytes] = []
    async with DiskLog(tmp_path / "orders.log", retention=PLENTY) as log:
        await log.append([b"x"])

        async def read() -> None:
            with pytest.raises(UsageError, match="is not open"):
                async with subscribe(log.source("0", 0, 9)) as stream:
                    found.append(await anext(stream))
                    await anext(stream)

        nursery.start_soon(read)
        await begun.wait()
        nursery.start_soon(log.aclose)
        await wait_all_tasks_blocked()
        may_end.set()
        while nursery.child_tasks:
            await trio.lowlevel.checkpoint()
    assert found == [b"x"]


async def test_a_cancelled_block_closes_the_log(tmp_path: Path) -> None:
    """Otherwise it would stay locked until the process ends."""
    path = tmp_path / "orders.log"
    with trio.CancelScope() as scope:
        async with DiskLog(path, retention=PLENTY) as log:
            await log.append([b"x"])
            scope.cancel()
            await trio.sleep_forever()
    async with DiskLog(path, retention=PLENTY) as log:
        assert log.latest() == {"0": 1}


async def test_a_reader_sees_only_what_is_synced(tmp_path: Path) -> None:
    """`latest` grows when the commit has returned, and not when `append` is called."""
    async with (
        DiskLog(tmp_path / "orders.log", retention=PLENTY) as log,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(log.append, [b"x"])
        await trio.lowlevel.checkpoint()
        assert log.latest() == {"0": 0}
        assert await log.latest(after={"0": 0}) == {"0": 1}


async def test_a_stream_fails_with_the_damage_that_it_meets(tmp_path: Path) -> None:
    """A group that another program deletes while the log is open is not skipped."""
    path = tmp_path / "orders.log"
    async with DiskLog(path, retention=PLENTY) as log:
        for start in range(0, 9, 3):
            await log.append(numbered(start, start + 3))
        log._opened.store._connection.execute("DELETE FROM groups WHERE key = 3")
        async with subscribe(log.source("0", 1), demand=0) as stream:
            stream.request(2)
            assert [await anext(stream), await anext(stream)] == numbered(1, 3)
            stream.request(1)
            with pytest.raises(LogDamaged, match="lacks the elements from 3 on"):
                await anext(stream)
        log._opened.store._connection.execute("INSERT INTO groups VALUES (3, 1, 1, 1.0, 1, x'00')")


def test_its_repr_tells_whether_it_is_open(tmp_path: Path) -> None:
    """For messages and the debugger."""
    assert repr(DiskLog("orders.log", retention=PLENTY)) == "<DiskLog 'orders.log': closed>"


@pytest.mark.parametrize("is_full", [True, False])
async def test_a_publish_beside_one_that_was_cancelled_tells_the_truth(
    tmp_path: Path, nursery: trio.Nursery, *, is_full: bool
) -> None:
    """It waits for the commit of the first one. If that fails, it publishes its own elements; it
    never returns False for nothing.
    """
    begun, may_end = trio.Event(), threading.Event()
    async with DiskLog(tmp_path / "orders.log", retention=PLENTY) as log:
        assert log._opened is not None
        store, token = log._opened.store, trio.lowlevel.current_trio_token()
        real = store._save_totals

        def held(*, is_open: bool) -> None:
            store._save_totals = real  # type: ignore[method-assign]  # for one commit
            token.run_sync_soon(begun.set)
            may_end.wait(5)
            if is_full:
                raise sqlite3.OperationalError("database or disk is full")
            real(is_open=is_open)

        store._save_totals = held  # type: ignore[method-assign]  # the commit ends when the test says so
        first, second = log.transaction("a"), log.transaction("a")
        await first.stage([b"x"])
        await second.stage([b"x"])
        scope = trio.CancelScope()

        async def publish() -> None:
            with scope:
                await first.publish()

        nursery.start_soon(publish)
        await begun.wait()
        scope.cancel()
        results: list[bool] = []

        async def publish_again() -> None:
            results.append(await second.publish())

        nursery.start_soon(publish_again)
        await wait_all_tasks_blocked()
        assert results == []
        may_end.set()
        assert await log.latest(after={"0": 0}) == {"0": 1}
        while not results:
            await trio.lowlevel.checkpoint()
        assert results == [is_full]
        assert not await log.transaction("a").publish()
        assert await collect(log.source("0", 0, "latest")) == [b"x"]


async def test_a_peer_with_many_streams_delays_another_by_one_read(tmp_path: Path) -> None:
    """Reads take turns between peers, and not between streams."""
    async with DiskLog(tmp_path / "a.log", retention=PLENTY) as log:
        await log.append(numbered(0, 10))
        order: list[str] = []

        async def read(owner: str) -> None:
            await log._read(0, 0, 1, 1, owner)
            order.append(owner)

        # All ask before the first read comes back: that takes a thread and a pass of the loop.
        async with trio.open_nursery() as nursery:
            await log._turns_to_read.take("first")
            for owner in "aaaaaaaab":
                nursery.start_soon(read, owner)
                await trio.testing.wait_all_tasks_blocked()
            log._turns_to_read.pass_on()
        assert order == list("abaaaaaaa")
