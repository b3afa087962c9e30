"""The elements that a stream of a log holds: none ahead of its demand at first, later as many as it
has handed over. They are counted for the peer that reads the stream, and bounded for all streams of
the log.
"""

from collections.abc import AsyncIterator, Hashable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from penstock.core import Scope, SourceMemory
from penstock.logs import DiskLog, Retention, RingLog
from penstock.logs import _log_reader as module
from penstock.logs._log_base import LogBase
from penstock.logs._log_reader import READ_BYTES, LogReader
from penstock.testing import ManualSubscriber

LARGE = Retention(max_count=100_000)
SIZE = 1_000


class WatchedLog(DiskLog):
    """Records how many elements each read asks for."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, retention=LARGE)
        self.reads: list[int] = []

    async def _read(
        self, index: int, position: int, stop: int, step: int, owner: Hashable
    ) -> Sequence[bytes]:
        self.reads.append(stop - position)
        return await super()._read(index, position, stop, step, owner)


@asynccontextmanager
async def opened(path: Path, count: int = 1_000) -> AsyncIterator[WatchedLog]:
    """A log with one group of `count` elements."""
    async with WatchedLog(path / "a.log") as log:
        await log.append([b"%04d" % number * (SIZE // 4) for number in range(count)])
        yield log


def attach(
    log: LogBase, nursery: trio.Nursery, memory: SourceMemory | None = None
) -> ManualSubscriber:
    """Subscribe to all elements of `log`."""
    subscriber = ManualSubscriber(within=5.0)
    log.source().attach(subscriber, Scope(nursery, memory=memory))
    return subscriber


async def test_a_stream_reads_ahead_no_more_than_it_has_handed_over(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    """A peer that takes one element makes the log hold none; one that takes many pays for fewer
    reads.
    """
    async with opened(tmp_path) as log:
        subscriber = attach(log, nursery)
        for _ in range(31):
            subscriber.request(1)
            await subscriber.expect_elements(1)
        assert log.reads == [1, 1, 2, 4, 8, 16]
        # The last step, until its last element has gone.
        assert log.ready.held == 16 * SIZE
        subscriber.request(1)
        await subscriber.expect_elements(1)
        assert log.ready.held == 0


async def test_what_was_asked_for_is_read_at_once(tmp_path: Path, nursery: trio.Nursery) -> None:
    """An operator that takes each element by itself tells no demand: its steps grow."""
    async with opened(tmp_path, 100) as log:
        subscriber = ManualSubscriber(within=5.0)
        log.source().map(len).attach(subscriber, Scope(nursery))
        subscriber.request(100)
        assert await subscriber.expect_elements(100) == [SIZE] * 100
        assert log.reads == [1, 1, 2, 4, 8, 16, 32, 36]
        assert log.ready.held == 0


@pytest.mark.parametrize("kind", ["disk", "ring"])
async def test_elements_that_wait_count_for_the_peer_until_its_stream_ends(
    kind: str, tmp_path: Path, nursery: trio.Nursery
) -> None:
    """The memory budget is told of them when they are read."""
    noted: list[int] = []
    memory = SourceMemory("peer", noted.append)
    async with opened(tmp_path) as disk:
        ring = RingLog(retention=LARGE)
        await ring.append([bytes(SIZE)] * 1_000)
        log = disk if kind == "disk" else ring
        # An operator takes each element by itself, so the ring has to read ahead as well.
        subscriber = ManualSubscriber(within=5.0)
        log.source().map(len).attach(subscriber, Scope(nursery, memory=memory))
        subscriber.request(5)
        await subscriber.expect_elements(5)
        assert memory.held == log.ready.held == 4 * SIZE
        assert sum(size for size in noted if size != READ_BYTES) == (2 + 4) * SIZE
        subscriber.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert memory.held == log.ready.held == 0


async def test_a_read_that_waits_counts_for_the_peer(nursery: trio.Nursery) -> None:
    """With its coroutines, until its element comes, or until it is cancelled."""
    memory = SourceMemory("peer", None)
    log = RingLog(retention=LARGE)
    subscribers = [ManualSubscriber(within=5.0) for _ in range(3)]
    for each in subscribers:
        log.source().attach(each, Scope(nursery, memory=memory))
        each.request(1)
    await trio.testing.wait_all_tasks_blocked()
    assert memory.held == 3 * READ_BYTES
    subscribers[0].cancel()
    await trio.testing.wait_all_tasks_blocked()
    assert memory.held == 2 * READ_BYTES
    await log.append([b"x"])
    await trio.testing.wait_all_tasks_blocked()
    assert memory.held == 0


async def test_all_streams_together_hold_a_bounded_number_of_bytes(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream that has read nothing for longest gives its elements back, and loses none."""
    monkeypatch.setattr(module, "MOST_AHEAD", 40 * SIZE)
    async with opened(tmp_path) as log:
        subscribers = [attach(log, nursery) for _ in range(5)]
        taken: list[list[bytes]] = [[] for _ in subscribers]
        for _ in range(40):
            for subscriber, elements in zip(subscribers, taken, strict=True):
                subscriber.request(1)
                elements.extend(await subscriber.expect_elements(1))
                assert log.ready.held <= 40 * SIZE
        assert all(elements == log_elements(40) for elements in taken)


def log_elements(count: int) -> list[bytes]:
    return [b"%04d" % number * (SIZE // 4) for number in range(count)]


async def test_steps_are_shorter_while_many_streams_hold_elements() -> None:
    """Each step leaves the others what they hold."""
    log = RingLog(retention=LARGE)
    readers = [LogReader(log, 0, 0, None, None) for _ in range(1_000)]
    assert log.ready.step == module.LONGEST_STEP
    for number, reader in enumerate(readers):
        log.ready.add(reader, 1)
        assert log.ready.step * (number + 2) <= module.MOST_AHEAD or (
            log.ready.step == module.SHORTEST_STEP
        )
    for reader in readers:
        reader.give_back()
    assert (log.ready.held, log.ready.step) == (0, module.LONGEST_STEP)
