"""What both logs share: room, waiting, sources. `check_log` has the sentences of the contract."""

import pytest
import trio
from trio.testing import MockClock, assert_checkpoints, wait_all_tasks_blocked

from penstock.api import LimitExceeded, PositionNotRetained, UsageError
from penstock.logs import Retention, RingLog
from penstock.streams import collect, subscribe
from penstock.testing import ManualSubscriber
from tests.logs._opening import numbered


def _full(**bounds: int) -> RingLog:
    return RingLog(
        retention=Retention(**(bounds or {"max_count": 4}), acknowledged=True),
        partitions=["a", "b"],
    )


def test_a_log_needs_its_retention() -> None:
    """The retention has no default: a program must choose between a log that grows without a bound
    and one that drops elements.
    """
    with pytest.raises(UsageError, match=r"a log needs retention=Retention\(...\)"):
        RingLog(retention=None)  # type: ignore[arg-type]  # on purpose


async def test_each_async_method_checkpoints() -> None:
    """It does so even if it has nothing to wait for."""
    log = _full()
    with assert_checkpoints():
        await log.append([b"x"], partition="a")
    with assert_checkpoints():
        await log.acknowledge({"a": 1})
    with assert_checkpoints():
        await log.latest(after={"a": 0})


@pytest.mark.parametrize("bounds", [{"max_count": 4}, {"max_bytes": 4}], ids=["count", "bytes"])
async def test_appends_that_wait_go_on_in_the_order_of_their_calls(
    nursery: trio.Nursery, bounds: dict[str, int]
) -> None:
    """A large append that waits for room is not overtaken by a small one that would fit."""
    log = _full(**bounds)
    await log.append([b"x"] * 3, partition="a")
    done: list[range] = []

    async def append(count: int) -> None:
        done.append(await log.append([b"x"] * count, partition="a"))

    for count in (2, 1):
        nursery.start_soon(append, count)
        await wait_all_tasks_blocked()
    assert done == []  # the second one would fit
    for position in (1, 2, 3):
        await log.acknowledge({"a": position})
    await wait_all_tasks_blocked()
    assert done == [range(3, 5)]
    await log.acknowledge({"a": 4})
    await wait_all_tasks_blocked()
    assert done == [range(3, 5), range(5, 6)]


async def test_an_append_that_waits_can_be_cancelled(nursery: trio.Nursery) -> None:
    """Its elements are not appended, and the next one gets its turn."""
    log = _full()
    await log.append([b"x"] * 4, partition="a")
    with trio.CancelScope() as scope:
        nursery.start_soon(_cancel_when_blocked, scope)
        await log.append([b"y"] * 4, partition="a")
    assert scope.cancelled_caught
    for position in (1, 2, 3):
        await log.acknowledge({"a": position})
    assert await log.append([b"z"], partition="a") == range(4, 5)


async def _cancel_when_blocked(scope: trio.CancelScope) -> None:
    await wait_all_tasks_blocked()
    scope.cancel()


@pytest.mark.parametrize(
    ("bounds", "limit"),
    [({"max_count": 4}, "max_count"), ({"max_bytes": 4}, "max_bytes")],
    ids=["count", "bytes"],
)
async def test_an_append_that_never_fits_is_refused(bounds: dict[str, int], limit: str) -> None:
    """Whether the log drops or waits; the message names the bound."""
    for acknowledged in (True, False):
        log = RingLog(retention=Retention(**bounds, acknowledged=acknowledged))
        with pytest.raises(
            LimitExceeded, match=rf"Retention\({limit}=4\), so the log would never have room"
        ) as refused:
            await log.append([b"x"] * 5)
        assert (refused.value.limit, refused.value.value) == (limit, 4)


async def test_latest_with_a_timeout_returns_when_the_time_is_over(
    autojump_clock: MockClock,
) -> None:
    """It returns the positions of that time, and raises nothing."""
    log = _full()
    began = trio.current_time()
    assert await log.latest(after={"a": 0}, timeout=25) == {"a": 0, "b": 0}
    assert trio.current_time() - began == 25


async def test_misuse_is_refused_with_advice() -> None:
    """A timeout without `after`, an acknowledgement that the log does not use."""
    with pytest.raises(UsageError, match=r"waits for elements only with after="):
        _full().latest(timeout=5)  # type: ignore[call-overload]  # on purpose
    with pytest.raises(UsageError, match=r"open it with Retention\(acknowledged=True\)"):
        await RingLog(retention=Retention(max_count=1)).acknowledge({"0": 0})


async def test_the_words_mean_the_positions_at_the_time_of_the_subscription() -> None:
    """One source, subscribed to twice, begins at two places."""
    log = RingLog(retention=Retention(max_count=100))
    source = log.source("0", "latest", "latest")
    assert await collect(source) == []
    later = log.source("0", "latest", 4)
    await log.append(numbered(0, 3))
    async with subscribe(later) as stream:
        await log.append(numbered(3, 6))
        assert [element async for element in stream] == numbered(3, 4)
    with pytest.raises(UsageError, match="the source starts at 6 now, behind its stop at 4"):
        await collect(later)


async def test_an_empty_range_completes_without_demand() -> None:
    """Rule 1.5: the end is known, so the subscriber gets it before it requests anything."""
    log = RingLog(retention=Retention(max_count=100))
    subscriber: ManualSubscriber[bytes] = ManualSubscriber()
    async with trio.open_nursery() as nursery:
        log.source("0", 0, 0).publisher(nursery).subscribe(subscriber)
        await subscriber.expect_complete()


async def test_demand_counts_elements() -> None:
    """A list that is longer than the demand waits in part."""
    log = RingLog(retention=Retention(max_count=100))
    await log.append(numbered(0, 50))
    async with subscribe(log.source("0", 0, 50), demand=0) as stream:
        for count in (1, 3, 7):
            stream.request(count)
            await wait_all_tasks_blocked()
            assert stream.statistics().buffered == count
            for _ in range(count):
                await anext(stream)


async def test_a_position_that_is_gone_fails_one_stream_only() -> None:
    """The log and its other streams are not affected."""
    log = RingLog(retention=Retention(max_count=8))
    await log.append(numbered(0, 8))
    await log.append(numbered(8, 12))
    async with subscribe(log.source("0", 4)) as stream:
        with pytest.raises(
            PositionNotRetained, match=r"does not have position 0; it has 4 up to, and not with, 12"
        ):
            await collect(log.source("0", 0, 8))
        assert await anext(stream) == numbered(4, 5)[0]


def test_a_source_tells_its_range() -> None:
    """In messages and the debugger."""
    log = RingLog(retention=Retention(max_count=8))
    assert repr(log.source("0", 5)) == "<source of partition '0' from 5 on>"
    assert repr(log.source("0", "earliest", 9)) == "<source of partition '0' from earliest to 9>"
