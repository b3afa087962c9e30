"""`RedisLog` on a real server: the contract of a log, several programs, positions and times."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trio
from _redis_server import RedisServer, needs_redis, running_redis
from penstock_redis import RedisLog

import penstock
from penstock import PositionNotRetained, Retention, UsageError
from penstock.api import LogDamaged, LogError
from penstock.testing import check_log

PLENTY = Retention(max_count=1_000_000)
NAMES = count()


def new_log(redis: RedisServer, **options: Any) -> RedisLog:
    """A log of its own name."""
    return RedisLog(redis.url, f"log {next(NAMES)}", **{"retention": PLENTY, **options})


def again(log: RedisLog, redis: RedisServer, **options: Any) -> RedisLog:
    """Another program that opens the same log."""
    return RedisLog(redis.url, log.name, **({"retention": PLENTY} | options))


async def test_a_redis_log_keeps_the_contract(redis: RedisServer) -> None:
    """Every check of the contract passes, but those of appends that it refuses."""

    @asynccontextmanager
    async def open_log(names: Sequence[str], retention: Retention) -> AsyncIterator[RedisLog]:
        async with new_log(redis, partitions=names, retention=retention) as log:
            yield log

    await check_log(open_log, refuses=("acknowledged", "readers"))


async def test_programs_append_to_one_log_and_see_each_other(redis: RedisServer) -> None:
    """Positions are given by the server, so each is given once. A reader follows all writers."""
    async with new_log(redis) as one, again(one, redis) as other:

        async def append(log: RedisLog, letter: bytes) -> None:
            for number in range(50):
                await log.append([b"%s%d" % (letter, number)])

        async with penstock.subscribe(one.source(stop=100)) as stream:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(append, one, b"a")
                nursery.start_soon(append, other, b"b")
            seen = [element async for element in stream]
        assert len(seen) == 100
        for letter in (b"a", b"b"):
            mine = [each for each in seen if each.startswith(letter)]
            assert mine == [b"%s%d" % (letter, number) for number in range(50)]


async def test_an_element_of_another_program_is_told_while_nothing_is_called(
    redis: RedisServer,
) -> None:
    """The log waits at the server for it."""
    async with new_log(redis) as one, again(one, redis) as other:
        await other.append([b"x"])
        assert await one.latest(after={"0": 0}) == {"0": 1}


async def test_a_log_is_there_when_it_is_opened_again(redis: RedisServer) -> None:
    """With its partitions, ends, and published transactions."""
    log = new_log(redis, partitions=["a", "b"])
    async with log:
        await log.append([b"x", b"y"], partition="a")
        assert await log.transaction("t 1").publish()
    async with again(log, redis, partitions=["c"]) as later:
        assert later.partitions == ("c", "a", "b")
        assert later.latest() == {"a": 2, "b": 0, "c": 0}
        assert later.is_published("t 1")
        assert not await later.transaction("t 1").publish()


async def test_two_programs_publish_one_transaction_and_one_of_them_counts(
    redis: RedisServer,
) -> None:
    """The script of the server decides, whoever knows of the other."""
    async with new_log(redis) as one, again(one, redis) as other:
        results = []

        async def publish(log: RedisLog) -> None:
            transaction = log.transaction("batch 7")
            await transaction.stage([b"x"])
            results.append(await transaction.publish())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(publish, one)
            nursery.start_soon(publish, other)
        assert sorted(results) == [False, True]
        assert await one.latest(after={"0": 0}) == {"0": 1}


@pytest.mark.parametrize(
    "keep",
    [
        {"max_count": 100},
        {"max_bytes": 1_000},
        {"max_count": 80, "max_bytes": 2_000},
    ],
    ids=["count", "bytes", "both"],
)
async def test_the_server_drops_what_the_retention_does_not_keep(
    redis: RedisServer, keep: dict[str, int]
) -> None:
    """Within the bounds and not much below them; what is left is whole."""
    async with new_log(redis, retention=Retention(**keep)) as log:
        elements = [b"%010d" % number for number in range(1_000)]
        for start in range(0, 1_000, 7):
            await log.append(elements[start : start + 7])
        earliest, latest = log.earliest()["0"], log.latest()["0"]
        most = min(keep.get("max_count", 1_000), keep.get("max_bytes", 10_000) // 10)
        assert latest == 1_000
        assert most - 1 <= latest - earliest <= most
        assert await penstock.collect(log.source(stop="latest")) == elements[earliest:]
        async with again(log, redis, retention=PLENTY) as other:
            assert other.earliest() == {"0": earliest}
            with pytest.raises(PositionNotRetained, match=f"it has {earliest}"):
                await penstock.collect(other.source(start=0, stop=10))


async def test_the_bytes_are_counted_from_the_first_append_with_a_bound(
    redis: RedisServer,
) -> None:
    """A program without `max_bytes` does not count, and the next one with it starts anew."""
    log = new_log(redis)
    async with log:
        await log.append([b"x" * 100] * 50)
    async with again(log, redis, retention=Retention(max_bytes=2_000)) as bounded:
        await bounded.append([b"y" * 100])
        assert bounded.latest()["0"] - bounded.earliest()["0"] == 20


async def test_old_elements_are_dropped_by_their_age(redis: RedisServer) -> None:
    """With the next append, but for the newest element."""
    log = new_log(redis)
    async with log:
        await log.append([b"old"])
        [first] = await log.times()
        while (await again_time(log, redis)) <= first.time + 0.002:
            pass
    async with again(log, redis, retention=Retention(max_count=100, max_age=0.001)) as short:
        await short.append([b"new", b"newest"])
        assert short.earliest() == {"0": 1}


async def again_time(log: RedisLog, redis: RedisServer) -> float:
    """The clock of the server, by a log of its own."""
    async with new_log(redis) as other:
        await other.append([b""])
        [piece] = await other.times()
        return piece.time


async def test_a_position_is_found_by_its_time_and_a_time_by_its_position(
    redis: RedisServer,
) -> None:
    """Among many times, from each position."""
    async with new_log(redis) as log:
        for number in range(200):
            await log.append([b"%d" % number] * (1 + number % 3))
        pieces = await log.times()
        assert len(pieces) > 5
        assert [each.start for each in pieces[1:]] == [each.stop for each in pieces[:-1]]
        for piece in pieces:
            assert await log.position_at(piece.time) == {"0": piece.start}
            assert await log.position_at(piece.time + 0.0005) == {"0": piece.stop}
        for position in range(0, log.latest()["0"], 7):
            [found] = await log.times(start=position, stop=position + 1)
            assert any(
                each.start <= position < each.stop and each.time == found.time for each in pieces
            )
            assert (await log.elements_at({"0": position}))["0"] is not None


async def test_large_elements_come_in_bounded_fetches(redis: RedisServer) -> None:
    """A fetch ends after 1 MiB, and the next one goes on."""
    async with new_log(redis, retention=Retention(max_bytes=64 << 20)) as log:
        elements = [bytes([number]) * (3 << 20) for number in range(8)]
        for each in elements:
            await log.append([each])
        assert await penstock.collect(log.source(stop="latest")) == elements


async def test_a_fetch_is_bounded_when_large_elements_follow_small_ones(tmp_path: Path) -> None:
    """By the largest element that the partition ever had, and not by the size of the last ones."""
    needs_redis()
    keep = Retention(max_bytes=120 << 20)
    with running_redis(tmp_path / "large", "--maxmemory", "512mb") as server:
        async with new_log(server, retention=keep) as log:
            await log.append([b"small"] * 2_000)
            for _ in range(30):
                await log.append([b"x" * (3 << 20)])
            sizes = []
            read = log._broker.read

            async def counted(*place: Any) -> Sequence[bytes]:
                found = await read(*place)
                sizes.append(sum(map(len, found)))
                return found

            log._broker.read = counted  # type: ignore[method-assign]  # to count
            async with penstock.subscribe(log.source(stop=2_030), demand=4_000) as stream:
                assert sum([1 async for _ in stream]) == 2_030
            assert max(sizes) <= 64 << 20


async def test_elements_are_bytes_of_any_kind(redis: RedisServer) -> None:
    """Empty ones, ends of lines, zeros."""
    elements = [b"", b"\r\n", b"\0", b"$5\r\nabc", bytes(range(256))]
    async with new_log(redis) as log:
        await log.append(elements)
        assert await penstock.collect(log.source(stop="latest")) == elements


async def test_a_reader_has_the_log_read_only(redis: RedisServer) -> None:
    """It follows the writer, and changes nothing."""
    async with new_log(redis, partitions=["a"]) as log:
        await log.append([b"x"], partition="a")
        async with RedisLog(redis.url, log.name, partitions=["a"], read_only=True) as reader:
            assert await penstock.collect(reader.source("a", stop="latest")) == [b"x"]
            with pytest.raises(UsageError, match="is open for reading only"):
                await reader.append([b"y"], partition="a")
            await log.append([b"y"], partition="a")
            assert await reader.latest(after={"a": 1}) == {"a": 2}


async def test_a_fetch_is_what_was_requested_and_what_was_taken(redis: RedisServer) -> None:
    """A stream holds ready as many elements as it has handed over, and 1,024 at most."""
    async with new_log(redis) as log:
        await log.append([b"x"] * 5_000)
        sizes = []
        read = log._broker.read

        async def counted(*place: Any) -> Sequence[bytes]:
            found = await read(*place)
            sizes.append(len(found))
            return found

        log._broker.read = counted  # type: ignore[method-assign]  # to count
        async with penstock.subscribe(log, demand=0) as stream:
            for _ in range(4):
                stream.request(1)
                await anext(stream)
            assert sum(sizes) <= 8
            stream.request(3_000)
            for _ in range(3_000):
                await anext(stream)
            assert sum(sizes) <= 3_004 + 1_024 + 4


# --- what is wrong


async def test_a_server_that_is_not_there_is_named() -> None:
    """With what to do."""
    log = RedisLog("redis://127.0.0.1:1", "a", retention=PLENTY, timeout=1)
    with pytest.raises(LogError, match=r"no connection to redis://127.0.0.1:1.*Start the server"):
        await log.__aenter__()


async def test_another_program_at_the_port_is_found_out(nursery: trio.Nursery) -> None:
    """One that speaks HTTP, and one that closes."""

    async def answer(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await stream.aclose()

    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(trio.serve_listeners, answer, [listener])
    port = listener.socket.getsockname()[1]
    log = RedisLog(f"redis://127.0.0.1:{port}", "a", retention=PLENTY, timeout=5)
    with pytest.raises(LogError, match="look whether it is Redis"):
        await log.__aenter__()
    nursery.cancel_scope.cancel()


async def test_a_log_that_is_not_there_cannot_be_opened_for_reading(redis: RedisServer) -> None:
    """Nor one without the partition; nothing is made."""
    with pytest.raises(UsageError, match=r"has no log 'nothing': give the name"):
        await RedisLog(redis.url, "nothing", read_only=True).__aenter__()
    log = new_log(redis)
    async with log:
        pass
    with pytest.raises(UsageError, match=r"with the partitions \['b'\]"):
        await RedisLog(redis.url, log.name, partitions=["b"], read_only=True).__aenter__()
    assert redis.command("EXISTS", "{nothing}.meta") == b":0\r\n"


async def test_a_stream_of_another_program_is_not_taken(redis: RedisServer) -> None:
    """A key with another type, and one with entries that the log has not made."""
    redis.command("SET", "{mine}.meta", "7")
    with pytest.raises(UsageError, match="give the log another name"):
        await RedisLog(redis.url, "mine", retention=PLENTY).__aenter__()
    redis.command("XADD", "{theirs}:0", "9999999999999-9", "field", "value")
    with pytest.raises(LogDamaged, match=r"has an entry of another program \(9999999999999-9\)"):
        await RedisLog(redis.url, "theirs", retention=PLENTY).__aenter__()
    assert redis.command("EXISTS", "{theirs}.meta") == b":0\r\n"


@pytest.mark.parametrize("entry", ["{time}-3", "{time}-4", "*"])
@pytest.mark.parametrize("field", ["e", "foo"])
async def test_an_entry_of_another_program_hides_no_element(
    redis: RedisServer, entry: str, field: str
) -> None:
    """Nothing is appended after it, so a reader misses nothing. Without it the log goes on."""
    async with new_log(redis) as log, again(log, redis) as other:
        # A reader that looks before its block ends sees the entry, whatever its field.
        with suppress(LogDamaged):
            async with penstock.subscribe(other) as stream:
                await log.append([b"0", b"1", b"2"])
                assert [await anext(stream) for _ in range(3)] == [b"0", b"1", b"2"]
                key = f"{{{log.name}}}:0"
                last = redis.command("XREVRANGE", key, "+", "-", "COUNT", "1").split()[3].decode()
                wanted = entry.format(time=last.partition("-")[0])
                made = redis.command("XADD", key, wanted, field, "rubbish").split()[1].decode()
                with pytest.raises(LogDamaged, match=rf"another program \({made}\).*XDEL"):
                    await log.append([b"3"])
                with pytest.raises(LogDamaged, match=rf"another program \({made}\).*XDEL"):
                    transaction = log.transaction("batch 7")
                    await transaction.stage([b"3"])
                    await transaction.publish()
                if field == "foo":
                    with pytest.raises(LogDamaged, match="another program"):
                        await anext(stream)
        redis.command("XDEL", key, made)
        await log.append([b"3"])
        assert await penstock.collect(log.source(start=2, stop=4)) == [b"2", b"3"]


@pytest.mark.parametrize("is_known", [True, False])
async def test_an_entry_of_another_program_is_not_read_as_an_element(
    redis: RedisServer, is_known: bool
) -> None:
    """A log to which an earlier version appended may have some between its elements."""
    async with new_log(redis) as log:
        await log.append([b"0"])
        if is_known:
            assert await penstock.collect(log.source(stop=1)) == [b"0"]
        key = f"{{{log.name}}}"
        last = redis.command("XREVRANGE", f"{key}:0", "+", "-", "COUNT", "1").split()[3]
        time = int(last.partition(b"-")[0])
        redis.command("XADD", f"{key}:0", f"{time}-1", "foo", "rubbish")
        redis.command("XADD", f"{key}:0", f"{time + 1}-1", "e", "1")
        redis.command("HSET", f"{key}.meta", "n:0", "2", "t:0", str(time + 1))
        with pytest.raises(LogDamaged, match=rf"another program \({time}-1\)"):
            await log._broker.read("0", 1 if is_known else 0, 2, 1 << 20)


async def test_a_stream_that_is_deleted_beneath_a_log_is_told(redis: RedisServer) -> None:
    """To a reader, and to an append: what was appended is not taken for dropped."""
    async with new_log(redis) as log:
        await log.append([b"0", b"1"])
        redis.command("DEL", f"{{{log.name}}}:0")
        for _ in range(2):
            with pytest.raises(LogDamaged, match="was deleted"):
                await log.append([b"2"])
            with pytest.raises(LogDamaged, match="another program has deleted"):
                await penstock.collect(log.source(start=0, stop=2))


async def test_a_log_whose_keys_are_deleted_says_so(redis: RedisServer) -> None:
    """To those that call, and to those that wait."""
    async with new_log(redis) as log:
        await log.append([b"x"])
        async with penstock.subscribe(log.source(start=1)) as stream:
            redis.command("DEL", f"{{{log.name}}}.meta", f"{{{log.name}}}:0")
            with pytest.raises(LogDamaged, match="another program has deleted"):
                await log.append([b"y"])
            with pytest.raises(LogError, match="was deleted"):
                await anext(stream)


async def test_a_newer_format_is_refused(redis: RedisServer) -> None:
    """What a later penstock wrote."""
    redis.command("HSET", "{late}.meta", "format", "2")
    with pytest.raises(LogDamaged, match="has format '2'"):
        await RedisLog(redis.url, "late", retention=PLENTY).__aenter__()


async def test_a_user_without_rights_is_told_which(redis: RedisServer) -> None:
    """A wrong password, none, and a user that may read only. No text has the password."""
    redis.command("ACL", "SETUSER", "reader", "on", ">swordfish", "~*", "+@read", "+@connection")
    place = redis.url.removeprefix("redis://")
    with pytest.raises(UsageError, match="Give the user and the password") as wrong:
        await RedisLog(f"redis://reader:guess@{place}", "a", retention=PLENTY).__aenter__()
    assert "guess" not in str(wrong.value)
    with pytest.raises(UsageError, match="Give the user of the log the rights"):
        await RedisLog(f"redis://reader:swordfish@{place}", "a", retention=PLENTY).__aenter__()


@pytest.mark.parametrize(
    ("login", "database", "text"),
    [
        (":secret@", "0", "has no password: leave user:password@ out"),
        ("", "99", "has fewer databases"),
    ],
)
async def test_a_login_that_is_refused_says_what_to_change(
    redis: RedisServer, login: str, database: str, text: str
) -> None:
    """It is the URL, and nothing was about to be appended."""
    url = f"{redis.url.removesuffix('/0')}/{database}".replace("://", f"://{login}")
    with pytest.raises(UsageError, match=text) as caught:
        await RedisLog(url, "a", retention=PLENTY).__aenter__()
    assert "appended" not in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("place", ["127.0.0.1:99999", "127.0.0.1:x", "user:secret"])
def test_a_port_that_cannot_be_is_named(place: str) -> None:
    """And not shown: it may be a password."""
    with pytest.raises(UsageError, match="the port of the URL") as caught:
        RedisLog(f"redis://{place}/0", "a", retention=PLENTY)
    assert "secret" not in str(caught.value)


async def test_an_element_above_the_limit_is_refused_before_it_is_sent(redis: RedisServer) -> None:
    """By the limits of every log."""
    async with new_log(redis) as log:
        with pytest.raises(penstock.LimitExceeded, match="4,194,304 are allowed"):
            await log.append([b"x" * (4 << 20) + b"x"])
        assert log.latest() == {"0": 0}


async def test_a_server_without_memory_refuses_an_append_and_says_what_to_do(
    tmp_path: Path,
) -> None:
    """Nothing of it was appended, and the log can be read."""
    needs_redis()
    with running_redis(tmp_path / "full", "--maxmemory", "6mb") as server:
        async with RedisLog(server.url, "a", retention=Retention(max_bytes=10**9)) as log:
            with pytest.raises(LogError, match="give it a higher maxmemory"):
                for _ in range(100):
                    await log.append([b"x" * 100_000])
            kept = await penstock.collect(log.source(stop="latest"))
            assert len(kept) == log.latest()["0"] > 0


@pytest.mark.parametrize(
    ("settings", "durability", "text"),
    [
        (["--appendfsync", "everysec"], "always", r"\?durability=everysec\)"),
        (["--appendonly", "no"], "everysec", r"has appendonly no.*\?durability=memory\)"),
        (["--maxmemory-policy", "allkeys-lru"], "memory", "deletes keys of a log"),
    ],
    ids=["a second", "no file", "eviction"],
)
async def test_a_server_that_keeps_less_than_the_program_says_is_refused(
    tmp_path: Path, settings: list[str], durability: Any, text: str
) -> None:
    """With the commands that change it. `unchecked` takes it."""
    needs_redis()
    with running_redis(tmp_path / "weak", *settings) as server:
        with pytest.raises(UsageError, match=text):
            await RedisLog(server.url, "a", retention=PLENTY, durability=durability).__aenter__()
        async with RedisLog(server.url, "a", retention=PLENTY, durability="unchecked") as log:
            assert await log.append([b"x"]) == range(1)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"url": "http://127.0.0.1"}, "is no URL of Redis"),
        ({"url": "redis://:secret@127.0.0.1/orders"}, "is no database of Redis"),
        ({"url": "redis://u:secret@[::1"}, "is no URL of Redis"),
        ({"name": "{a}"}, "cannot be the name of a log"),
        ({"name": ""}, "cannot be the name of a log"),
        ({"retention": None}, "needs retention="),
        ({"read_only": True}, "leave retention out"),
        ({"durability": "often"}, "give 'always'"),
        ({"timeout": 0}, "give seconds"),
    ],
)
def test_arguments_that_cannot_be_are_refused(options: dict[str, Any], text: str) -> None:
    """At once, with what would work, and without a password."""
    given = {"url": "redis://127.0.0.1", "name": "a", "retention": PLENTY} | options
    with pytest.raises(UsageError, match=text) as caught:
        RedisLog(given.pop("url"), given.pop("name"), **given)
    assert "secret" not in str(caught.value)
