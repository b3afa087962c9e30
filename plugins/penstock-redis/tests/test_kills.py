"""A server of Redis that is killed, that stalls, that comes back with less: what was acknowledged is
there, once.
"""

from pathlib import Path

import pytest
import trio
from _redis_server import needs_redis, running_redis
from penstock_redis import RedisGroup, RedisLog

import penstock
from penstock import Retention
from penstock.api import LogDamaged, LogError
from penstock.testing import OutageBench, check_outages

PLENTY = Retention(max_count=1_000_000)


async def test_a_server_that_is_killed_or_stalls_loses_nothing(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Each check of `penstock.testing.check_outages` passes."""
    needs_redis()
    bench = OutageBench(
        lambda: running_redis(tmp_path_factory.mktemp("server")),
        lambda url, timeout: RedisLog(url, "a", retention=PLENTY, timeout=timeout),
        lambda url, timeout: RedisGroup(
            url, "a", group="g", acknowledge="by hand", timeout=timeout
        ),
    )
    await check_outages(bench)


async def test_a_server_that_came_back_with_less_is_damaged(tmp_path: Path) -> None:
    """A server without a file forgets all. Positions must not be given twice without a word."""
    needs_redis()
    with running_redis(tmp_path / "redis", "--appendonly", "no") as server:
        log = RedisLog(server.url, "a", retention=PLENTY, durability="memory", timeout=30)
        async with log:
            await log.append([b"1", b"2"])
        async with log, penstock.subscribe(log.source(start=2)) as stream:
            await trio.to_thread.run_sync(server.kill)
            await trio.to_thread.run_sync(server.start)
            with pytest.raises(LogDamaged, match="had 2 elements, and has 0"):
                await log.append([b"3"])
            with pytest.raises(LogError, match=r"had 2 elements|was deleted"):
                await anext(stream)
        async with log:  # what is left can be opened
            assert await log.append([b"1"]) == range(1)
