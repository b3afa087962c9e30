"""`open_writer` writes batches to a receiver, each once."""

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import (
    ConnectionLost,
    PublisherFailed,
    Rejected,
    StreamTimeout,
    UsageError,
)
from penstock.logs import DiskLog, Log, Retention, RingLog
from penstock.runtime import Received, Service, Writer, open_writer, receive, serve
from penstock.runtime.service._staging import Attempt
from penstock.spi import Reconnect
from penstock.streams import collect

SHOP = "memory://shop"


def ring(*partitions: str) -> RingLog:
    return RingLog(retention=Retention(max_count=1_000), partitions=partitions or ("0",))


async def contents(log: Log, partition: str = "0") -> list[bytes]:
    return await collect(log.source(partition, stop="latest"))


@asynccontextmanager
async def written(target: Any, writer_id: str = "w", **options: Any) -> AsyncIterator[Writer]:
    service = Service()
    receive(service, "orders", target)
    async with (
        serve(service, SHOP),
        open_writer(SHOP, "orders", writer_id=writer_id, **options) as writer,
    ):
        yield writer


async def test_batches_are_appended_in_order() -> None:
    """Each whole, an empty one as well, into the partition that is named."""
    log = ring("0", "east")
    async with written(log) as writer:
        assert await writer.write(0, [b"a", b"b"], into="0")
        assert await writer.write(1, [])
        assert await writer.write(2, [b"c"], into="east")
    assert await contents(log) == [b"a", b"b"]
    assert await contents(log, "east") == [b"c"]


async def test_a_batch_that_is_repeated_is_appended_once() -> None:
    """By the same writer, and by the next one of the same id."""
    log = ring()
    async with written(log) as writer:
        assert await writer.write(0, [b"a"])
        assert not await writer.write(0, [b"a"])
    async with written(log) as writer:
        assert not await writer.write(0, [b"a"])
        assert await writer.write(1, [b"b"])
        assert not await writer.write(0, [b"a"])
    async with written(log, "other") as writer:
        assert await writer.write(0, [b"a"])
    assert await contents(log) == [b"a", b"b", b"a"]


async def test_tasks_that_write_at_once_take_turns() -> None:
    """The elements of one batch are never those of another."""
    log = ring()
    async with written(log) as writer, trio.open_nursery() as nursery:
        for batch in range(5):
            nursery.start_soon(writer.write, batch, [b"%d" % batch] * 3)
            await trio.testing.wait_all_tasks_blocked()
    assert await contents(log) == [b"%d" % batch for batch in range(5) for _ in range(3)]


async def test_what_the_receiver_refuses_is_told() -> None:
    """A batch that is missing, and one that has another number of elements."""
    async with written(ring()) as writer:
        with pytest.raises(PublisherFailed, match=r"'orders': batch 1 .* does not have batch 0"):
            await writer.write(1, [b"a"])
        assert await writer.write(0, [b"a"])
        with pytest.raises(PublisherFailed, match="another number of elements: 1, and this"):
            await writer.write(0, [b"a", b"b"])
    async with written(ring(), changed_batches="refuse") as writer:
        for batch in range(2):
            assert await writer.write(batch, [b"a"])
        with pytest.raises(PublisherFailed, match="and batch 1 after it"):
            await writer.write(0, [b"a"])
    async with written(ring(), missing_batches="accept", changed_batches="accept") as writer:
        assert await writer.write(7, [b"a"])
        assert not await writer.write(7, [b"a", b"b"])


async def test_a_function_takes_elements_at_least_once_if_that_is_asked_for() -> None:
    """Without ``exact=False`` it is refused before it gets an element."""
    got: list[bytes] = []

    async def keep(received: Received) -> None:
        got.extend(received.elements)

    async with written(keep) as writer:
        with pytest.raises(PublisherFailed, match="at least once"):
            await writer.write(0, [b"a"])
    assert not got
    async with written(keep, exact=False) as writer:
        assert await writer.write(0, [b"a"])
    assert got == [b"a"]


async def test_a_server_without_a_receiver_is_refused_with_advice() -> None:
    """It has no such name, or a request of another kind."""
    service = Service()

    @service.request("mean/stage")
    async def mean() -> int:
        return 7

    async with serve(service, SHOP):
        async with open_writer(SHOP, "orders", writer_id="w") as writer:
            with pytest.raises(Rejected, match=r"needs penstock.receive\(service, 'orders'"):
                await writer.write(0, [b"a"])
        async with open_writer(SHOP, "mean", writer_id="w") as writer:
            with pytest.raises(Rejected, match=r"needs penstock\.receive"):
                await writer.write(0, [b"a"])


async def test_a_request_that_answers_otherwise_is_no_receiver() -> None:
    """The answer is shown."""
    service = Service()

    @service.request("mean/commit", serializer="json")
    async def mean() -> int:
        return 7

    async with serve(service, SHOP), open_writer(SHOP, "mean", writer_id="w") as writer:
        with pytest.raises((PublisherFailed, Rejected), match="receive"):
            await writer.write(0, [])


async def test_a_lost_connection_is_made_again(tmp_path: Path) -> None:
    """The server is stopped between two batches, and within the next one; each batch is there
    once.
    """
    async with DiskLog(tmp_path / "log", retention=Retention(max_count=1_000)) as log:
        service = Service()
        receive(service, "orders", log)
        async with trio.open_nursery() as nursery:
            server = await nursery.start(_serve_once, service)
            address = str(server.addresses[0])
            async with open_writer(address, "orders", writer_id="w") as writer:
                assert await writer.write(0, [b"a"])
                for peer in server.peers:
                    assert peer.is_connected
                server.cancel_scope.cancel()
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(writer.write, 1, [b"b"])
                again = await nursery.start(_serve_once, service, address)
                await log.latest(after={"0": 1}, timeout=60)
                assert not await writer.write(1, [b"b"])
            again.cancel_scope.cancel()
        assert await contents(log) == [b"a", b"b"]


async def _serve_once(
    service: Service, url: str = "tcp://127.0.0.1:0", task_status: Any = trio.TASK_STATUS_IGNORED
) -> None:
    with trio.CancelScope() as scope:
        async with serve(service, url) as server:
            server.cancel_scope = scope  # type: ignore[attr-defined]  # for this test alone
            task_status.started(server)
            await trio.sleep_forever()


async def test_a_server_that_stays_away_is_an_error_after_some_attempts() -> None:
    """The text says that the batch may be written again."""
    with pytest.raises(ConnectionLost):
        async with open_writer(
            "memory://nobody", "orders", writer_id="w", reconnect=Reconnect(attempts=2, first=0.01)
        ):
            raise AssertionError("nothing is there")


async def test_a_receiver_that_hangs_is_bounded_in_time(autojump_clock: object) -> None:
    """`timeout` is that of one attempt."""
    service = Service()

    @service.request("orders/stage")
    async def stage(
        query: str, batch: int, run: str, partition: int, attempt: str, exact: bool
    ) -> bytes:
        await trio.sleep_forever()
        return b""

    async with (
        serve(service, SHOP),
        open_writer(SHOP, "orders", writer_id="w", timeout=5, reconnect=None) as writer,
    ):
        with pytest.raises(StreamTimeout, match="within 5 s; give open_writer"):
            await writer.write(0, [b"a"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"writer_id": ""}, "1 to 200 bytes"),
        ({"writer_id": "x" * 201}, "1 to 200 bytes"),
        ({"writer_id": "w", "timeout": 0}, "more than 0 seconds"),
        ({"writer_id": "w", "timeout": float("nan")}, "more than 0 seconds"),
        ({"writer_id": "w", "service": Service()}, "leave service out"),
        ({"writer_id": "w", "windowbytes": 1}, "windowbytes"),
    ],
)
async def test_a_wrong_argument_is_refused_before_anything_is_opened(
    options: dict[str, Any], message: str
) -> None:
    """At the entry of the block."""
    with pytest.raises(UsageError, match=message):
        async with open_writer(SHOP, "orders", **options):
            raise AssertionError("it must not open")


async def test_a_check_writes_nothing_and_leaves_nothing_behind() -> None:
    """Neither a batch nor a staged one, before the first batch and after it."""
    log = ring()
    async with written(log) as writer:
        await writer.check()
        assert await writer.write(0, [b"a"], into="0")
        await writer.check(into="0")
        gc.collect()  # those of other tests
        assert not [each for each in gc.get_objects() if isinstance(each, Attempt)]
        assert await writer.write(1, [b"b"])
    assert await contents(log) == [b"a", b"b"]


async def test_a_check_finds_what_a_batch_would() -> None:
    """No such receiver, no such partition, and a function that cannot take each element once."""

    async def handle(received: Received) -> None:
        raise AssertionError(received)

    async with serve(Service(), SHOP), open_writer(SHOP, "orders", writer_id="w") as writer:
        with pytest.raises(Rejected, match="needs penstock"):
            await writer.check()
    async with written(ring()) as writer:
        with pytest.raises(PublisherFailed, match="west"):
            await writer.check(into="west")
    async with written(handle) as writer:
        with pytest.raises(PublisherFailed, match="function"):
            await writer.check()
    async with written(handle, exact=False) as writer:
        await writer.check()
