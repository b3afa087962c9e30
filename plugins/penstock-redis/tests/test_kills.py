"""A server of Redis that is killed, that stalls, that comes back with less: what was acknowledged is
there, once.
"""

from pathlib import Path

import pytest
import trio
from _redis_server import RedisServer, needs_redis, running_redis
from penstock_redis import RedisLog

import penstock
from penstock import Retention
from penstock.api import LogDamaged, LogError

PLENTY = Retention(max_count=1_000_000)
KILLS = 3


async def test_nothing_acknowledged_is_lost_or_repeated_when_the_server_is_killed(
    tmp_path: Path,
) -> None:
    """Appends that were under way are made again on the next connection, and appended once. A
    reader goes on where it was.
    """
    needs_redis()
    with running_redis(tmp_path / "redis") as server:
        async with RedisLog(server.url, "a", retention=PLENTY, timeout=60) as log:
            given: dict[int, bytes] = {}
            is_over = trio.Event()

            async def append(letter: bytes) -> None:
                number = 0
                while not is_over.is_set():
                    element = b"%s%d" % (letter, number)
                    [position] = await log.append([element])
                    assert given.setdefault(position, element) == element
                    number += 1

            async with trio.open_nursery() as nursery:
                for letter in (b"a", b"b", b"c", b"d"):
                    nursery.start_soon(append, letter)
                for kill in range(KILLS):
                    await log.latest(after={"0": 200 * (kill + 1)})
                    await trio.to_thread.run_sync(server.kill)
                    await trio.to_thread.run_sync(server.start)
                    await log.latest(after={"0": log.latest()["0"] + 10})
                is_over.set()
            seen = await penstock.collect(log.source(stop="latest"))
            assert seen == [given[position] for position in range(len(given))]


async def test_a_reader_goes_on_after_a_kill(tmp_path: Path) -> None:
    """It sees neither the loss nor an element twice."""
    needs_redis()
    with running_redis(tmp_path / "redis") as server:
        async with (
            RedisLog(server.url, "a", retention=PLENTY, timeout=60) as log,
            penstock.subscribe(log) as stream,
        ):
            await log.append([b"1", b"2"])
            assert [await anext(stream), await anext(stream)] == [b"1", b"2"]
            await trio.to_thread.run_sync(server.kill)
            await trio.to_thread.run_sync(server.start)
            await log.append([b"3"])
            assert await anext(stream) == b"3"


async def test_a_server_that_stays_away_ends_calls_and_streams(tmp_path: Path) -> None:
    """After `timeout`, with who must act. The log works again when the server does."""
    needs_redis()
    with running_redis(tmp_path / "redis") as server:
        async with RedisLog(server.url, "a", retention=PLENTY, timeout=2) as log:
            await log.append([b"1"])
            async with penstock.subscribe(log.source(start=1)) as stream:
                await trio.to_thread.run_sync(server.kill)
                with pytest.raises(LogError, match=r"Start the server|whether it was appended"):
                    await log.append([b"2"])
                with pytest.raises(LogError, match="no connection to"):
                    await anext(stream)
            await trio.to_thread.run_sync(server.start)
            await log.append([b"3"])
            assert (await penstock.collect(log.source(stop="latest")))[-1] == b"3"


async def test_a_server_that_stalls_is_told_and_what_it_may_have_done_is_not_known(
    tmp_path: Path,
) -> None:
    """An append that was sent may be made later. The next one knows."""
    needs_redis()
    with running_redis(tmp_path / "redis") as server:
        async with RedisLog(server.url, "a", retention=PLENTY, timeout=1) as log:
            await log.append([b"1"])
            server.stall()
            with pytest.raises(LogError, match="whether it was appended is not known"):
                await log.append([b"2"])
            server.go_on()
            latest = (await log.append(())).start
            [position] = await log.append([b"3"])
            assert position == latest
            seen = await penstock.collect(log.source(stop="latest"))
            assert seen in ([b"1", b"3"], [b"1", b"2", b"3"])


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


async def test_a_cancelled_append_leaves_the_connection_usable(redis: RedisServer) -> None:
    """Its reply is dropped, and the next one has its own."""
    async with RedisLog(redis.url, "cancelled", retention=PLENTY) as log:
        for number in range(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(log.append, [b"x%d" % number] * 100)
                for _ in range(number % 4 + 1):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            latest = (await log.append(())).start
            assert await log.append([b"y"]) == range(latest, latest + 1)
