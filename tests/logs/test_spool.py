"""A spool: elements are requested when those before them are kept,
and a restart goes on where the log ends.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from penstock.api import (
    LimitExceeded,
    LogError,
    PositionNotRetained,
    PublisherFailed,
    Rejected,
    UsageError,
)
from penstock.logs import DiskLog, Retention, RingLog, Spool
from penstock.runtime import Service, remote, serve
from penstock.spi import Reconnect
from penstock.streams import collect, generate
from penstock.testing import ManualPublisher

KEEP_ALL = Retention(max_count=1_000_000)
PARTITIONS = ("0", "marks")
POLICY = Reconnect(chance=lambda: 1.0)


def ring(retention: Retention = KEEP_ALL) -> RingLog:
    return RingLog(retention=retention, partitions=PARTITIONS)


async def numbers_in(log: RingLog | DiskLog) -> list[int]:
    return [int(element) for element in await collect(log.source(stop="latest"), limit=100_000)]


async def append(log: RingLog, first: int, end: int) -> None:
    await log.append([b"%d" % number for number in range(first, end)])


class SlowLog(RingLog):
    """A log whose elements are kept when the test says so."""

    def __init__(self) -> None:
        super().__init__(retention=KEEP_ALL, partitions=PARTITIONS)
        self.may_write = trio.Event()

    async def append(self, elements: Sequence[bytes], **place: Any) -> range:
        if elements:
            await self.may_write.wait()
        return await super().append(elements, **place)


async def test_no_element_is_requested_before_those_of_before_are_kept(
    autojump_clock: MockClock,
) -> None:
    """`demand` elements are under way;
    after the sync as many as were kept are requested, and no more.
    """
    publisher: ManualPublisher[bytes] = ManualPublisher()
    log = SlowLog()
    spool = Spool(publisher, log, demand=4)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(spool.run)
        await trio.testing.wait_all_tasks_blocked()
        assert publisher.requested == 4
        for number in range(3):
            publisher.emit(b"%d" % number)
        await trio.testing.wait_all_tasks_blocked()
        assert publisher.requested == 4
        log.may_write.set()
        await trio.testing.wait_all_tasks_blocked()
        assert publisher.requested == 7
        assert (spool.appended, spool.missed) == (3, None)
        publisher.complete()
    assert await numbers_in(log) == [0, 1, 2]


async def test_a_full_log_stops_the_publisher(autojump_clock: MockClock) -> None:
    """With Retention(acknowledged=True) nothing more is requested until a reader has
    acknowledged.
    """
    yielded = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal yielded
        while True:
            yielded += 1
            yield b"element"

    log = RingLog(retention=Retention(max_count=100, acknowledged=True))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Spool(generate(endless), log, demand=10).run)
        await trio.testing.wait_all_tasks_blocked()
        held = yielded
        assert log.latest()["0"] <= 100
        assert held <= 100 + 11
        await log.acknowledge({"0": 50})
        await log.acknowledge({"0": 60})
        await log.acknowledge({"0": 70})
        await trio.testing.wait_all_tasks_blocked()
        assert held < yielded <= held + 50
        nursery.cancel_scope.cancel()


async def test_a_restart_goes_on_behind_the_last_element_on_disk(tmp_path: Path) -> None:
    """The log is closed and opened again, by another object:
    the mark leads to the next position of the publisher.
    """
    upstream = ring()
    await append(upstream, 0, 1_000)
    for end in (400, 700, 1_000):
        async with DiskLog(
            tmp_path / "spool.log", retention=KEEP_ALL, partitions=PARTITIONS
        ) as log:
            spool = Spool(upstream.source(start=100, stop=end), log, marks="marks")
            await spool.run()
            assert spool.missed == 0
            assert await numbers_in(log) == list(range(100, end))


async def test_a_cancelled_spool_repeats_nothing(tmp_path: Path) -> None:
    """It is cancelled at many places, also while the disk syncs, and run again:
    each element is in the log once.
    """
    upstream = ring()
    await append(upstream, 0, 300)
    async with DiskLog(tmp_path / "spool.log", retention=KEEP_ALL, partitions=PARTITIONS) as log:
        spool = Spool(upstream.source(stop="latest"), log, marks="marks", demand=7)
        for passes in range(0, 120, 3):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(spool.run)
                for _ in range(passes):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
        await spool.run()
        assert await numbers_in(log) == list(range(300))
        assert spool.missed == 0


async def test_what_the_publisher_dropped_is_counted(autojump_clock: MockClock) -> None:
    """The spool was away for longer than the publisher keeps elements: it goes on with the
    earliest one, and tells the gap.
    """
    upstream, log = RingLog(retention=Retention(max_count=80)), ring()
    await append(upstream, 0, 10)
    await Spool(upstream.source(stop="latest"), log, marks="marks").run()
    for first in range(10, 500, 10):
        await append(upstream, first, first + 10)
    earliest = upstream.earliest()["0"]
    spool = Spool(upstream.source(stop="latest"), log, marks="marks")
    await spool.run()
    assert spool.missed == earliest - 10 > 0
    assert await numbers_in(log) == [*range(10), *range(earliest, 500)]
    again = Spool(upstream.source(stop="latest"), log, marks="marks")
    await again.run()
    assert (again.missed, again.appended) == (0, 0)


async def test_a_publisher_that_began_anew_is_refused(autojump_clock: MockClock) -> None:
    """Its positions are others: they are told from a gap, and nothing is written."""
    upstream, log = ring(), ring()
    await append(upstream, 0, 100)
    await Spool(upstream.source(stop="latest"), log, marks="marks").run()
    for fresh in (ring(), ring()):
        await append(fresh, 0, 3 if fresh else 0)
        with pytest.raises(PositionNotRetained, match="does not have position 100"):
            await Spool(fresh.source(), log, marks="marks").run()
    assert log.latest()["0"] == 100


async def test_a_publisher_without_positions_cannot_tell_a_gap() -> None:
    """`missed` is None, and not 0."""

    async def three() -> AsyncIterator[bytes]:
        for number in range(3):
            yield b"%d" % number

    log, upstream = ring(), ring()
    for _ in range(2):
        spool = Spool(generate(three), log)
        await spool.run()
        assert (spool.missed, spool.appended) == (None, 3)
    assert "3 appended" in repr(spool)
    marked = ring()
    await append(upstream, 0, 3)
    await Spool(upstream.source(stop="latest"), marked, marks="marks").run()
    with pytest.raises(UsageError, match="has no positions"):
        await Spool(generate(three), marked, marks="marks").run()


async def test_elements_without_a_mark_are_refused() -> None:
    """Without the mark the spool would write all elements of the publisher again."""
    log, upstream = ring(), ring()
    await append(upstream, 0, 3)
    await Spool(upstream.source(stop="latest"), log).run()
    with pytest.raises(UsageError, match="has 3 elements, and 'marks' has no mark"):
        await Spool(upstream.source(stop="latest"), log, marks="marks").run()
    assert await numbers_in(log) == [0, 1, 2]


@pytest.mark.parametrize("kind", ["ring", "disk"])
async def test_a_mark_outlives_the_age_of_the_elements(
    kind: str, mock_clock: MockClock, tmp_path: Path
) -> None:
    """The mark was written once, long before the last element. The spool still goes on after it."""
    keep = Retention(max_count=1_000, max_age=60)
    upstream = ring()
    await append(upstream, 0, 10)
    kept = RingLog(retention=keep, partitions=PARTITIONS)
    for end in (10, 20, 30):
        disk = DiskLog(
            tmp_path / "spool.log",
            retention=keep,
            partitions=PARTITIONS,
            clock=mock_clock.current_time,
        )
        async with disk if kind == "disk" else nullcontext(kept) as log:
            await Spool(upstream.source(stop="latest"), log, marks="marks").run()
            assert log.latest()["0"] == end
            assert (await numbers_in(log))[-10:] == list(range(end - 10, end))
        await append(upstream, end, end + 10)
        mock_clock.jump(1_000)


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
async def test_a_spool_over_a_network_survives_both_sides(
    protocol: str, autojump_clock: MockClock
) -> None:
    """The server stops again and again, and so does the spool: each element is in the log once."""
    upstream, log = RingLog(retention=KEEP_ALL), ring()
    service = Service()
    service.publish("ticks", upstream)

    async def serve_again_and_again() -> None:
        while True:
            async with serve(service, "memory://up"):
                await trio.sleep(0.7)
            await trio.sleep(0.1)

    async def publish() -> None:
        for number in range(500):
            await append(upstream, number, number + 1)
            await trio.sleep(0.01)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_again_and_again)
        nursery.start_soon(publish)
        while log.latest()["0"] < 500:
            source = remote(f"{protocol}+memory://up/ticks", start=0, stop=500, reconnect=POLICY)
            with trio.move_on_after(1.3):
                await Spool(source, log, marks="marks").run()
        nursery.cancel_scope.cancel()
    assert await numbers_in(log) == list(range(500))


async def test_a_gap_over_a_network_is_counted(autojump_clock: MockClock) -> None:
    """The refusal of the server leads to the earliest element that it has. A protocol without
    positions leaves the refusal.
    """
    upstream, log = RingLog(retention=Retention(max_count=80)), ring()
    service = Service()
    service.publish("ticks", upstream)
    await append(upstream, 0, 10)
    async with serve(service, "memory://up"):
        await Spool(remote("memory://up/ticks", stop="latest"), log, marks="marks").run()
        for first in range(10, 500, 10):
            await append(upstream, first, first + 10)
        with pytest.raises((Rejected, PublisherFailed), match="It was dropped"):
            await Spool(
                remote("reactivesocket+memory://up/ticks", stop="latest"), log, marks="marks"
            ).run()
        spool = Spool(remote("memory://up/ticks", stop="latest"), log, marks="marks")
        await spool.run()
    assert spool.missed == upstream.earliest()["0"] - 10


async def test_a_failure_of_the_log_ends_the_spool() -> None:
    """The elements that it had at hand are not lost: they were not acknowledged."""

    class FullLog(RingLog):
        async def append(self, elements: Sequence[bytes], **place: Any) -> range:
            if elements:
                raise LogError("no room")
            return await super().append(elements, **place)

    upstream = ring()
    await append(upstream, 0, 3)
    with pytest.raises(LogError, match="no room"):
        await Spool(upstream.source(), FullLog(retention=KEEP_ALL)).run()


async def test_a_spool_may_take_one_element_at_a_time() -> None:
    """The least demand there is."""
    upstream, log = ring(), ring()
    await append(upstream, 0, 3)
    await Spool(upstream.source(stop="latest"), log, demand=1).run()
    assert await numbers_in(log) == [0, 1, 2]


def test_what_a_spool_refuses() -> None:
    """Each mistake names what to give."""
    log = ring()
    for arguments, text in (
        ({"log": 5}, "give a Log"),
        ({"partition": "east"}, "has no partition 'east'"),
        ({"marks": "east"}, "has no partition 'east'"),
        ({"marks": "0"}, "a partition of their own"),
        ({"demand": 0}, "from 1 to 20,000"),
        ({"demand": 20_001}, "from 1 to 20,000"),
    ):
        with pytest.raises(UsageError, match=text):
            Spool([], **{"log": log, **arguments})  # type: ignore[arg-type]  # the mistakes that are tested


async def test_a_batch_above_the_bound_of_an_append_goes_in_pieces() -> None:
    """64 MiB are appended at most at a time; the order stays."""
    big = [bytes([number]) * 4_000_000 for number in range(20)]
    log = RingLog(retention=Retention(max_bytes=100_000_000))
    await Spool(big, log).run()
    assert log.latest()["0"] == 20


class NarrowLog(RingLog):
    """A log that takes at most 1,000 bytes at once, as one on a broker may."""

    async def append(self, elements: Sequence[bytes], **place: Any) -> range:
        if sum(map(len, elements)) > 1_000:
            raise LimitExceeded("too many", limit="bytes", value=1_000)
        return await super().append(elements, **place)


async def test_a_log_that_takes_less_at_once_gets_several_parts() -> None:
    """The elements come in order and once; one that is too large by itself ends the spool."""
    log = NarrowLog(retention=KEEP_ALL, partitions=PARTITIONS)
    elements = [b"%0300d" % number for number in range(10)]
    spool = Spool(elements, log)
    await spool.run()
    assert (await collect(log.source(stop="latest")), spool.appended) == (elements, 10)
    with pytest.raises(LimitExceeded):
        await Spool([b"x" * 1_001], log).run()
