"""A topic of several processes on Redis: order, kills, an entry of another program."""

from pathlib import Path
from typing import Any

import pytest
import trio
from _redis_server import RedisServer, needs_redis, running_redis
from penstock_redis import RedisLog

import penstock
from penstock import Retention, SharedTopic, SlowPolicy
from penstock.api import LogDamaged, LogError, PublicError, UsageError

KEEP = Retention(max_count=100_000)


def process(server: RedisServer, name: str, **options: Any) -> SharedTopic[bytes]:
    """A topic as another process makes it."""
    return SharedTopic(RedisLog(server.url, name, retention=KEEP, timeout=30), **options)


async def test_all_processes_get_one_order(redis: RedisServer) -> None:
    """Of two publishers, elements of any length."""
    async with process(redis, "order") as one, process(redis, "order") as two:

        async def publish(topic: SharedTopic[bytes], letter: bytes) -> None:
            for number in range(100):
                await topic.publish(letter * (1 + number * 97 % 3_000))

        async with (
            penstock.subscribe(one) as a,
            penstock.subscribe(two) as b,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(publish, one, b"a")
            nursery.start_soon(publish, two, b"b")
            seen = [(await anext(a), await anext(b)) for _ in range(200)]
    assert all(left == right for left, right in seen)
    assert {len(left) for left, _ in seen if left[:1] == b"a"} == {
        1 + number * 97 % 3_000 for number in range(100)
    }


async def test_a_killed_server_costs_no_stream_an_element(tmp_path: Path) -> None:
    """With a server that syncs, elements come later, once, and in their order."""
    needs_redis()
    with running_redis(tmp_path / "redis") as server:
        async with (
            process(server, "kills") as publisher,
            process(server, "kills") as other,
            penstock.subscribe(other) as stream,
            trio.open_nursery() as nursery,
        ):
            published: list[bytes] = []

            async def publish() -> None:
                while True:
                    await publisher.publish(b"%d" % len(published))
                    published.append(b"%d" % len(published))

            nursery.start_soon(publish)
            seen: list[bytes] = []
            for _ in range(3):
                seen += [await anext(stream) for _ in range(50)]
                await trio.to_thread.run_sync(server.kill)
                await trio.to_thread.run_sync(server.start)
            seen += [await anext(stream) for _ in range(50)]
            nursery.cancel_scope.cancel()
        assert seen == [b"%d" % number for number in range(200)]


async def test_a_server_that_forgets_ends_the_streams_and_the_topic_goes_on(
    tmp_path: Path,
) -> None:
    """What was missed is not known. New streams get what comes."""
    needs_redis()
    with running_redis(tmp_path / "redis", "--appendonly", "no") as server:
        log = RedisLog(server.url, "volatile", retention=KEEP, durability="memory", timeout=30)
        told: list[Exception] = []
        async with SharedTopic[bytes](
            log, slow=SlowPolicy.DROP_OLDEST, on_violation=told.append
        ) as topic:
            async with penstock.subscribe(topic) as stream:
                await topic.publish_many([b"1", b"2"])
                assert [await anext(stream), await anext(stream)] == [b"1", b"2"]
                await trio.to_thread.run_sync(server.kill)
                await trio.to_thread.run_sync(server.start)
                with pytest.raises(PublicError, match="what was missed is not known"):
                    await anext(stream)
            assert [type(each) for each in told] == [LogDamaged]
            async with penstock.subscribe(topic) as stream:
                while True:
                    try:
                        await topic.publish(b"3")
                    except LogError:  # it is opened again
                        await trio.lowlevel.checkpoint()
                    else:
                        break
                assert await anext(stream) == b"3"


async def test_an_entry_of_another_program_fails_this_topic_alone(redis: RedisServer) -> None:
    """Its streams end with a text that says so; another topic of the process goes on."""
    told: list[Exception] = []
    async with (
        process(redis, "spoilt", on_violation=told.append) as spoilt,
        process(redis, "sound") as sound,
        penstock.subscribe(spoilt) as failing,
        penstock.subscribe(sound) as going_on,
    ):
        await spoilt.publish(b"1")
        assert await anext(failing) == b"1"
        redis.command("XADD", "{spoilt}:0", "9999999999999-77", "x", "rubbish")
        with pytest.raises(LogDamaged, match="another program"):
            await spoilt.publish(b"2")
        await sound.publish(b"still here")
        assert await anext(going_on) == b"still here"


async def test_a_gap_is_told_when_the_log_keeps_too_little(redis: RedisServer) -> None:
    """A subscriber that holds up its process for longer than the log keeps elements."""
    few = Retention(max_count=100)
    told: list[Exception] = []
    async with (
        SharedTopic[bytes](
            RedisLog(redis.url, "few", retention=few), on_violation=told.append
        ) as topic,
        penstock.subscribe(topic, demand=1) as still,
    ):
        for _ in range(20):
            await topic.publish_many([bytes(10_000)] * 100)
        with pytest.raises(PublicError, match="elements of this topic were dropped"):
            while True:
                await anext(still)
        assert topic.missed > 0
        assert {type(each) for each in told} == {LogError}


async def test_a_server_that_stalls_delays_a_topic_and_costs_nothing(tmp_path: Path) -> None:
    """`publish` says that it is not known whether the element was kept. Streams go on."""
    needs_redis()
    with running_redis(tmp_path / "redis") as server:
        told: list[Exception] = []
        log = RedisLog(server.url, "stalled", retention=KEEP, timeout=1)
        async with (
            SharedTopic[bytes](log, on_violation=told.append) as topic,
            penstock.subscribe(topic) as stream,
        ):
            await topic.publish(b"1")
            assert await anext(stream) == b"1"
            server.stall()
            with pytest.raises(LogError, match="whether it was appended is not known"):
                await topic.publish(b"2")
            server.go_on()
            await topic.publish(b"3")
            seen = [await anext(stream)]
            while seen[-1] != b"3":
                seen.append(await anext(stream))
            assert seen in ([b"3"], [b"2", b"3"])


async def test_a_broker_that_is_not_there_fails_the_block(redis: RedisServer) -> None:
    """With what to do; so does a password that is wrong, which no text has."""
    with pytest.raises(LogError, match="Start the server"):
        async with SharedTopic(RedisLog("redis://127.0.0.1:1/0", "a", retention=KEEP, timeout=1)):
            pass
    wrong = f"redis://somebody:secret@127.0.0.1:{redis.port}/0"
    with pytest.raises(UsageError, match="WRONGPASS") as caught:
        async with SharedTopic(RedisLog(wrong, "a", retention=KEEP, timeout=1)):
            pass
    assert "secret" not in str(caught.value)
