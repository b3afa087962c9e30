"""`RedisGroup` on a real server: the contract of groups, and what Redis adds to it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count

from _redis_server import RedisServer
from penstock_redis import RedisGroup, RedisLog

from penstock import Retention
from penstock.testing import GroupBench, check_group

PLENTY = Retention(max_count=1_000_000)
NAMES = count()


async def test_a_redis_group_keeps_the_contract(redis: RedisServer) -> None:
    """Every check passes."""

    @asynccontextmanager
    async def open_group(partitions: Sequence[str]) -> AsyncIterator[GroupBench]:
        name = f"group {next(NAMES)}"
        async with RedisLog(redis.url, name, retention=PLENTY, partitions=partitions) as log:
            yield GroupBench(
                lambda partition, elements: log.append(elements, partition=partition),
                lambda way: RedisGroup(redis.url, name, group="g", acknowledge=way, hold=3),
            )

    await check_group(open_group)
