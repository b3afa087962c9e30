"""What streams of a log hold counts for the peer that reads them, over a connection and without
one.
"""

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from penstock import Service, connect, serve
from penstock.logs import DiskLog, Log, Retention, RingLog
from penstock.runtime.connection._memory_budget import FULL_FOR_ADDRESS
from penstock.testing import ManualSubscriber
from tests.runtime.server.test_hosted_streams import Fixture, PlainSubscriber

PLENTY = Retention(max_count=1_000_000)
SIZE = 1_000


def _publish(service: Service, log: Log) -> None:
    service.publisher("log", log=log)(lambda: None)
    # An operator between the log and the peer: the elements wait in the stream of the log.
    service.publisher("mapped")(lambda: log.source().map(bytes.upper))


@pytest.mark.parametrize("name", ["log", "mapped"])
async def test_streams_with_a_demand_of_one_hold_little(tmp_path: Path, name: str) -> None:
    """Each of them once held 2 MiB of the log, and no account knew of it."""
    service = Service()
    async with DiskLog(tmp_path / "a.log", retention=PLENTY) as log:
        await log.append([bytes(SIZE)] * 1_000)
        _publish(service, log)
        async with (
            serve(service, "memory://test") as server,
            connect("memory://test") as peer,
            trio.open_nursery() as nursery,
        ):
            subscribers = [ManualSubscriber(within=5.0) for _ in range(50)]
            for each in subscribers:
                peer.source(name).publisher(nursery).subscribe(each)
                each.request(1)
            for each in subscribers:
                await each.expect_elements(1)
            assert log.ready.held == 0
            assert server.statistics().buffered_bytes < 50 * 10_000
            nursery.cancel_scope.cancel()


async def test_elements_that_were_read_ahead_count_for_their_connection(tmp_path: Path) -> None:
    """In the statistics of the server, until the streams end."""
    service = Service()
    async with DiskLog(tmp_path / "a.log", retention=PLENTY) as log:
        await log.append([bytes(SIZE)] * 1_000)
        _publish(service, log)
        async with serve(service, "memory://test") as server, connect("memory://test") as peer:
            async with trio.open_nursery() as nursery:
                subscriber = ManualSubscriber(within=5.0)
                peer.source("mapped").publisher(nursery).subscribe(subscriber)
                for _ in range(20):
                    subscriber.request(1)
                    await subscriber.expect_elements(1)
                held = log.ready.held
                assert held == 16 * SIZE
                assert held < server.statistics().buffered_bytes < held + 20_000
                subscriber.cancel()
            await trio.testing.wait_all_tasks_blocked()
            assert log.ready.held == 0
            assert server.statistics().buffered_bytes < 10_000


async def test_the_stream_that_holds_most_of_a_log_is_cut(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Without a connection as well: its bytes are in the account of its client."""
    async with trio.open_nursery() as nursery:
        # A quarter of it is for the address of the client.
        fixture = Fixture(nursery, memory_budget=400_000)
        log = RingLog(retention=PLENTY)
        await log.append([bytes(SIZE)] * 1_000)
        _publish(fixture.service, log)
        subscriber: Any = PlainSubscriber()
        await fixture.open("mapped", subscriber)
        for _ in range(40):
            subscriber.request(1)
            await trio.testing.wait_all_tasks_blocked()
        assert log.ready.held == 32 * SIZE
        assert fixture.budget.held() >= 32 * SIZE
        for _ in range(90):
            subscriber.request(1)
            await trio.testing.wait_all_tasks_blocked()
        assert str(subscriber.error) == FULL_FOR_ADDRESS
        assert (log.ready.held, fixture.budget.held()) == (0, 0)
        fixture.streams.stop()
