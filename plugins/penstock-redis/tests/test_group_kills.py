"""Members of a `RedisGroup` that are killed, and a server that is: no element is lost, and the order of
a partition is kept.
"""

from pathlib import Path

from _redis_server import needs_redis, running_redis
from penstock_redis import RedisLog

from campaigns.brokers._group_kills import PARTITIONS, of_the_members, of_their_broker
from penstock import Retention

PLENTY = Retention(max_count=1_000_000)
KILLS = 2


async def test_members_that_are_killed_lose_nothing(tmp_path: Path) -> None:
    """Each element is handled, in the order of its partition. The elements of a killed member go to
    another one before those that follow it.
    """
    needs_redis()
    with running_redis(tmp_path / "server") as server:
        async with RedisLog(server.url, "orders", retention=PLENTY, partitions=PARTITIONS) as log:
            outcome = await of_the_members("redis", server, log, tmp_path, KILLS, seed=1)
    assert outcome.is_good, outcome


async def test_a_server_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    """Members go on when it is back. An element that was acknowledged just before may come again."""
    needs_redis()
    with running_redis(tmp_path / "server") as server:
        async with RedisLog(
            server.url, "orders", retention=PLENTY, partitions=PARTITIONS, timeout=50
        ) as log:
            outcome = await of_their_broker("redis", server, log, tmp_path, KILLS, seed=1)
    assert outcome.is_good, outcome
