"""The thread that writes: all that came during a sync is the next commit, and a fault of
penstock reaches the tasks that wait.
"""

from collections.abc import Sequence
from pathlib import Path
from threading import Event

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from penstock.api import InternalError
from penstock.logs import DiskLog
from penstock.logs import _log_base as base
from penstock.logs._disk_writer import Ticket
from penstock.logs._work import Append, Result, Work
from penstock.streams import collect
from tests._real_time import HANGS_AFTER
from tests.logs._opening import PLENTY


class HeldCommits:
    """Holds the first commit of a log until the test lets it go,
    and records how much work each commit had.
    """

    def __init__(self, log: DiskLog) -> None:
        self.begun, self.go_on = Event(), Event()
        self.counts: list[int] = []
        self._commit = log._opened.store.commit
        log._opened.store.commit = self

    def __call__(self, works: Sequence[Work]) -> list[Result]:
        self.counts.append(len(works))
        self.begun.set()
        self.go_on.wait(HANGS_AFTER)
        return self._commit(works)


async def test_all_that_came_during_a_sync_is_the_next_commit(tmp_path: Path) -> None:
    """A thousand appends that come during one commit are synced by the second one,
    in the order of their calls.
    """
    async with DiskLog(tmp_path / "orders.log", retention=PLENTY) as log:
        held = HeldCommits(log)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(log.append, [b"first"])
            await trio.to_thread.run_sync(held.begun.wait, HANGS_AFTER)
            for _ in range(1_000):
                nursery.start_soon(log.append, [b"x"])
            await wait_all_tasks_blocked()
            held.go_on.set()
        assert held.counts == [1, 1_000]
        assert await collect(log.source("0", 0, 1_001)) == [b"first", *[b"x"] * 1_000]


async def test_a_bounded_number_of_elements_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above it `append` waits; the elements are appended when the disk has caught up."""
    monkeypatch.setattr(base, "MOST_AT_ONCE", 10)
    async with DiskLog(tmp_path / "orders.log", retention=PLENTY) as log:
        held = HeldCommits(log)
        async with trio.open_nursery() as nursery:
            for _ in range(25):
                nursery.start_soon(log.append, [b"x", b"y"])
            await wait_all_tasks_blocked()
            assert log._waiting[0] == (10, 10)
            held.go_on.set()
        assert log.latest() == {"0": 50}
        monkeypatch.setattr(base, "MOST_BYTES_AT_ONCE", 10)
        held.go_on.clear()
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(log.append, [b"123456"])
            await wait_all_tasks_blocked()
            assert log._waiting[0] == (1, 6)
            held.go_on.set()
        assert log.latest() == {"0": 55}
        assert log._waiting[0] == (0, 0)


async def test_a_fault_in_the_thread_reaches_the_tasks_that_wait(tmp_path: Path) -> None:
    """As an InternalError, a new one for each task; the thread goes on."""

    def fail(_works: Sequence[Work]) -> list[Result]:
        raise ValueError("a fault")

    async with DiskLog(tmp_path / "orders.log", retention=PLENTY) as log:
        commit, log._opened.store.commit = log._opened.store.commit, fail
        for _ in range(2):
            with pytest.raises(
                InternalError, match=r"failed with ValueError: a fault; please report it"
            ):
                await log.append([b"x"])
        log._opened.store.commit = commit
        assert await log.append([b"x"]) == range(1)


def test_a_run_that_ends_ends_the_thread(tmp_path: Path) -> None:
    """A log that the program did not close: the thread finds that the run is over, and ends."""
    log = DiskLog(tmp_path / "orders.log", retention=PLENTY)
    commits: list[HeldCommits] = []

    async def scenario() -> None:
        await log.__aenter__()
        commits.append(HeldCommits(log))
        log._thread.put(Ticket(Append(0, (b"x",), 1)))
        await trio.to_thread.run_sync(commits[0].begun.wait, HANGS_AFTER)

    trio.run(scenario)
    commits[0].go_on.set()
    log._thread.thread.join(HANGS_AFTER)
    assert not log._thread.thread.is_alive()
    log._close()
