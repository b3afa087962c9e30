"""The log in memory: elements, dropping, and ages."""

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from penstock.api import BytesList, PositionNotRetained
from penstock.logs import Retention, RingLog
from penstock.logs._log_reader import LogReader
from penstock.logs._ring_log import COMPACT_AT
from penstock.streams import collect
from penstock.testing import run_virtual
from tests.logs._opening import numbered


@given(st.lists(st.integers(0, 40), max_size=30), st.integers(1, 60), st.integers(1, 400))
def test_what_is_retained_is_the_end_of_what_was_appended(
    counts: list[int], max_count: int, max_bytes: int
) -> None:
    """After each append: positions are dense, the bounds hold,
    and each retained position has its element.
    """

    async def scenario() -> None:
        log = RingLog(retention=Retention(max_count=max_count, max_bytes=max_bytes))
        latest = 0
        for count in counts:
            elements = [b"%d" % position for position in range(latest, latest + count)]
            if count > max_count or sum(map(len, elements)) > max_bytes:
                continue
            assert await log.append(elements) == range(latest, latest + count)
            latest += count
            earliest = log.earliest()["0"]
            retained = await collect(log.source("0", earliest, latest))
            assert retained == [b"%d" % position for position in range(earliest, latest)]
            assert len(retained) <= max_count
            assert sum(map(len, retained)) <= max_bytes
            # Seven eighths at least: a group has an eighth of a bound at most,
            # and one element at least.
            assert latest - earliest >= min(
                count,
                latest,
                max_count - max(1, max_count // 8) + 1,
                max_bytes // 2 // len(str(latest)),
            )

    run_virtual(scenario)


async def test_elements_are_dropped_by_age(mock_clock: MockClock) -> None:
    """When the next elements are appended, those that are older than `max_age` go;
    younger ones stay.
    """
    log = RingLog(retention=Retention(max_count=1_000, max_age=60))
    for position in range(10):
        await log.append([b"%d" % position])
        mock_clock.jump(10)
    assert log.earliest() == {"0": 3}
    mock_clock.jump(1_000)
    await log.append([b"10"])
    assert log.earliest() == {"0": 10}
    assert await collect(log.source("0", "earliest", "latest")) == [b"10"]


async def test_elements_that_come_one_by_one_share_groups() -> None:
    """The records of groups do not cost more than the elements."""
    log = RingLog(retention=Retention(max_count=10_000))
    for element in numbered(0, 2_000):
        await log.append([element])
    assert len(log._rings[0].groups) <= 2_000 // 32


async def test_dropped_elements_are_freed() -> None:
    """A dropped element is not held, and the list of a ring
    that drops all the time does not grow.
    """
    log = RingLog(retention=Retention(max_count=100))
    for _ in range(100):
        await log.append([b"x" * 50] * 100)
    ring = log._rings[0]
    assert len(ring.elements) <= 2 * COMPACT_AT + 200
    assert sum(map(len, ring.elements)) <= 50 * 100


async def test_a_following_source_waits_without_a_task_that_polls(nursery: trio.Nursery) -> None:
    """Nothing runs while nothing is appended: all tasks are blocked."""
    log = RingLog(retention=Retention(max_count=100))
    nursery.start_soon(collect, log.source("0", 0, 1))
    await trio.testing.wait_all_tasks_blocked()
    await log.append([b"x"])


def test_its_repr_tells_its_size() -> None:
    """For messages and the debugger."""
    assert (
        repr(RingLog(retention=Retention(max_count=1), partitions=["a"]))
        == "<RingLog: 1 partitions, 0 bytes>"
    )


async def test_a_replay_comes_in_lists_as_long_as_the_demand() -> None:
    """They come with one call, and nothing waits in the reader."""
    log = RingLog(retention=Retention(max_count=10_000))
    await log.append(numbered(0, 5_000))
    reader = LogReader(log, 0, 0, 5_000, None)
    assert [len(reader.take_ready(most)) for most in (1, 4_096, 4_096)] == [1, 4_096, 903]
    assert log.ready.held == 0
    with pytest.raises(StopAsyncIteration):
        await anext(reader)


async def test_elements_are_handed_over_as_known_bytes() -> None:
    """`append` has examined their types, so no part on their way does it again."""
    log = RingLog(retention=Retention(max_count=10_000))
    await log.append(numbered(0, 2))
    assert type(LogReader(log, 0, 0, 2, None).take_ready(2)) is BytesList


async def test_elements_that_were_dropped_are_not_at_hand() -> None:
    """The next read says what the log has."""
    log = RingLog(retention=Retention(max_count=1))
    reader = LogReader(log, 0, 0, None, None)
    await log.append(numbered(0, 1))
    await log.append(numbered(1, 2))
    assert reader.take_ready(1) == []
    with pytest.raises(PositionNotRetained):
        await anext(reader)


async def test_groups_that_are_joined_keep_their_bytes() -> None:
    """The bound of bytes holds, and no more is dropped than it demands: single elements share
    groups of an eighth of it at most.
    """
    log = RingLog(retention=Retention(max_bytes=1_000))
    for _ in range(1_000):
        await log.append([bytes(5)])
    retained = log.latest()["0"] - log.earliest()["0"]
    assert 100 <= retained <= 200
