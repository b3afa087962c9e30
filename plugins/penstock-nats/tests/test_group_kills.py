"""Members of a `JetStreamGroup` that are killed, and a server that is: no element is lost, and the order of
a partition is kept.
"""

from pathlib import Path

import trio
import trio.testing
from _nats_server import needs_nats, running_nats
from penstock_nats import JetStreamGroup, JetStreamLog
from penstock_nats._server import ask_api

import penstock
from campaigns._server_process import HANGS_AFTER
from campaigns.brokers._group_kills import PARTITIONS, of_the_members, of_their_broker
from penstock import Retention

PLENTY = Retention(max_count=1_000_000)
KILLS = 2


async def test_members_that_are_killed_lose_nothing(tmp_path: Path) -> None:
    """Each element is handled, in the order of its partition. The elements of a killed member go to
    another one before those that follow it.
    """
    needs_nats()
    with running_nats(tmp_path / "server") as server:
        async with JetStreamLog(
            server.url, "orders", retention=PLENTY, partitions=PARTITIONS
        ) as log:
            outcome = await of_the_members("nats", server, log, tmp_path, KILLS, seed=1)
    assert outcome.is_good, outcome


async def test_a_server_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    """Members go on when it is back. An element that was acknowledged just before may come again."""
    needs_nats()
    with running_nats(tmp_path / "server") as server:
        async with JetStreamLog(
            server.url, "orders", retention=PLENTY, partitions=PARTITIONS, timeout=50
        ) as log:
            outcome = await of_their_broker("nats", server, log, tmp_path, KILLS, seed=1)
    assert outcome.is_good, outcome


async def test_a_member_that_stays_is_not_held_up_by_a_server_that_forgot(tmp_path: Path) -> None:
    """The server that is back does not answer to acknowledgements of what it gave before. The
    member goes on, and the server learns what is done. Otherwise the stream would
    fail after `timeout`.
    """
    needs_nats()
    with running_nats(tmp_path / "server") as server:
        async with (
            JetStreamLog(server.url, "orders", retention=PLENTY, timeout=59) as log,
            JetStreamGroup(server.url, "orders", group="g", hold=2, timeout=30) as group,
            penstock.subscribe(group, demand=8) as stream,
        ):
            await log.append([b"%d" % at for at in range(600)])
            seen = {(await anext(stream)).position for _ in range(100)}
            await trio.to_thread.run_sync(server.kill)
            await trio.to_thread.run_sync(server.start)
            while len(seen) < 600:
                seen.add((await anext(stream)).position)
            floor = 0
            async with trio.open_nursery() as nursery:
                nursery.cancel_scope.deadline = trio.current_time() + HANGS_AFTER

                async def read_on() -> None:
                    async for _ in stream:
                        pass

                nursery.start_soon(read_on)
                while floor < 600:
                    link = group._member._connection.current
                    info = await ask_api(link, "CONSUMER.INFO.orders=0.g")
                    floor = info["ack_floor"]["stream_seq"]
                    await trio.testing.wait_all_tasks_blocked(0.01)
                nursery.cancel_scope.cancel()
            assert (floor, group.statistics.taken) == (600, 600)
