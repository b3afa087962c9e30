"""A topic of several processes on a broker: kills of the broker, and its speed beside the plain
client of the broker, from a publisher to a reader in another task or thread.

Rules of this file:

* Both run in turns, and a ratio is that of one round: a machine that does other work slows both.
* The plain client publishes lists, as the topic does, and waits for each.
"""

import asyncio
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from threading import Thread
from time import perf_counter, sleep
from typing import Final

import nats
import redis
import trio
from nats.js.api import AckPolicy, ConsumerConfig

import penstock
from campaigns.brokers._engines import TIMEOUT, Engine, Server
from penstock import Retention, SharedTopic

COUNT: Final = 30_000
LIST: Final = 256
"""Elements of a list that is published."""

LONE: Final = 100
"""Elements that are published one by one, each when the one before it was read."""

PAUSE: Final = 0.02
"""Seconds before each of these."""

ELEMENT: Final = bytes(64)
KEEP: Final = Retention(max_count=100_000)


def _topic(engine: Engine, server: Server, name: str) -> SharedTopic[bytes]:
    return SharedTopic(engine.open_log(server.url, name, retention=KEEP, timeout=TIMEOUT))


# --- the plain clients: each returns the seconds of many elements, and those of each lone one


def _plain_redis(url: str, key: str) -> tuple[float, list[float]]:
    reader, writer = redis.Redis.from_url(url), redis.Redis.from_url(url)
    last = "0"

    def read(count: int) -> None:
        nonlocal last
        while count > 0:
            [[_, rows]] = reader.xread({key: last}, count=1_024, block=60_000)
            count, last = count - len(rows), rows[-1][0]

    def write() -> None:
        for _ in range(0, COUNT, LIST):
            with writer.pipeline(transaction=True) as pipeline:
                for _ in range(LIST):
                    pipeline.xadd(key, {"e": ELEMENT}, maxlen=100_000)
                pipeline.execute()

    began, thread = perf_counter(), Thread(target=write)
    thread.start()
    read(-(-COUNT // LIST) * LIST)
    seconds = perf_counter() - began
    thread.join()
    lone = []
    for _ in range(LONE):
        waiting = Thread(target=read, args=(1,))
        waiting.start()
        sleep(PAUSE)
        began = perf_counter()
        writer.xadd(key, {"e": ELEMENT}, maxlen=100_000)
        waiting.join()
        lone.append(perf_counter() - began)
    reader.close()
    writer.close()
    return seconds, lone


async def _plain_nats(url: str, key: str) -> tuple[float, list[float]]:
    reader, writer = await nats.connect(url), await nats.connect(url)
    stream = writer.jetstream()
    await stream.add_stream(name=key, subjects=[key])
    config = ConsumerConfig(ack_policy=AckPolicy.NONE)
    pulled = await reader.jetstream().pull_subscribe(key, stream=key, config=config)

    async def write() -> None:
        for _ in range(0, COUNT, LIST):
            await asyncio.gather(*[await stream.publish_async(key, ELEMENT) for _ in range(LIST)])

    began, task, left = perf_counter(), asyncio.create_task(write()), -(-COUNT // LIST) * LIST
    while left:
        left -= len(await pulled.fetch(min(left, 1_024), timeout=60))
    seconds = perf_counter() - began
    await task
    lone = []
    for _ in range(LONE):
        await asyncio.sleep(PAUSE)
        began = perf_counter()
        await stream.publish(key, ELEMENT)
        await pulled.fetch(1, timeout=60)
        lone.append(perf_counter() - began)
    await reader.close()
    await writer.close()
    return seconds, lone


async def _through_topics(engine: Engine, server: Server, name: str) -> tuple[float, list[float]]:
    async with (
        _topic(engine, server, name) as writer,
        _topic(engine, server, name) as reader,
        penstock.subscribe(reader, demand=1_024) as stream,
    ):

        async def write() -> None:
            for _ in range(0, COUNT, LIST):
                await writer.publish_many([ELEMENT] * LIST)

        async with trio.open_nursery() as nursery:
            began, left = perf_counter(), -(-COUNT // LIST) * LIST
            nursery.start_soon(write)
            async for batch in stream.batches():
                left -= len(batch)
                if not left:
                    break
            seconds = perf_counter() - began
        lone = []
        for _ in range(LONE):
            await trio.sleep(PAUSE)
            began = perf_counter()
            await writer.publish(ELEMENT)
            await anext(stream)
            lone.append(perf_counter() - began)
    return seconds, lone


def _plain(engine: Engine, server: Server, key: str) -> Callable[[], tuple[float, list[float]]]:
    if engine.name == "redis":
        return lambda: _plain_redis(server.url, key)
    return lambda: asyncio.run(_plain_nats(server.url, key))


async def _lead(engine: Engine, server: Server) -> int:
    """Return how many elements a process has read that stands still for a subscriber which has
    got ten.
    """
    log, fetched = engine.open_log(server.url, "lead", retention=KEEP, timeout=TIMEOUT), 0
    read = log._read

    async def counted(*args: object) -> object:
        nonlocal fetched
        found = await read(*args)  # type: ignore[arg-type]  # passed on
        fetched += len(found)
        return found

    log._read = counted  # type: ignore[method-assign, assignment]  # counts what is fetched
    async with SharedTopic[bytes](log) as topic, penstock.subscribe(topic, demand=0) as still:
        for _ in range(0, COUNT, LIST):
            await topic.publish_many([ELEMENT] * LIST)
        still.request(10)
        for _ in range(10):
            await anext(still)
        await trio.sleep(1)
        # Counted before the subscriber leaves, which lets the process go on.
        return fetched - 10


def measure_topics(engine: Engine, folder: Path, rounds: int) -> None:
    """Print the speed of a topic beside the plain client's, the time of a lone element, and the
    lead.
    """
    with engine.running(folder) as server:
        ratios, delays = [], []
        for number in range(rounds):
            plain = _plain(engine, server, f"plaintopic{number}")

            def ours(number: int = number) -> tuple[float, list[float]]:
                return trio.run(_through_topics, engine, server, f"topic{number}")

            work = [plain, ours] if number % 2 else [ours, plain]
            results = [each() for each in work]
            other, own = results if number % 2 else results[::-1]
            ratios.append((COUNT / own[0], other[0] / own[0]))
            delays.append((median(own[1]), median(other[1])))
        speed, ratio = (median(column) for column in zip(*ratios, strict=True))
        mine, its = (1_000 * median(column) for column in zip(*delays, strict=True))
        print(
            f"{engine.name}: a shared topic: {speed:,.0f} elements/s, {ratio:.2f} of the plain "
            f"client's; a lone element takes {mine:.1f} ms, {its:.1f} ms with the plain client; "
            f"{trio.run(_lead, engine, server):,} of {COUNT:,} elements are read for a subscriber "
            "that stands still",
            flush=True,
        )


async def kill_under_a_topic(engine: Engine, server: Server, kills: int, seed: int) -> int:
    """Kill the broker while a topic is published and read; return how many acknowledged elements
    the reader lost or got twice.
    """
    chance, published, seen = random.Random(seed), list[bytes](), list[bytes]()
    async with (
        _topic(engine, server, "killed") as writer,
        _topic(engine, server, "killed") as reader,
        penstock.subscribe(reader) as stream,
        trio.open_nursery() as nursery,
    ):

        async def publish() -> None:
            while True:
                await writer.publish(b"%d" % len(published))
                published.append(b"%d" % len(published))

        nursery.start_soon(publish)
        for _ in range(kills):
            seen += [await anext(stream) for _ in range(chance.randint(1, 100))]
            await trio.to_thread.run_sync(server.kill)
            await trio.to_thread.run_sync(server.start)
        # Elements from now on have come through all kills.
        wanted = len(published) + 10
        while len(seen) < wanted:
            seen.append(await anext(stream))
        nursery.cancel_scope.cancel()
    wrong = sum(left != right for left, right in zip(seen, published, strict=False))
    print(f"{engine.name}: {kills} kills under a shared topic: {wrong} of {len(seen):,} wrong")
    return wrong


async def kill_processes(engine: Engine, server: Server, kills: int, seed: int) -> int:
    """Kill a process that publishes and reads, again and again, beside two that go on. Return how
    many elements were lost, repeated or out of order: of those that it had published when it died
    and of those that its subscriber got.
    """
    chance, wrong, total, first = random.Random(seed), 0, 0, 0
    async with (
        _topic(engine, server, "processes") as one,
        _topic(engine, server, "processes") as two,
        penstock.subscribe(one) as stream,
        penstock.subscribe(two) as other,
    ):
        for _ in range(kills):
            command = [sys.executable, "-m", "campaigns.brokers._topic_process"]
            arguments = [engine.name, server.url, str(first)]
            process = await trio.lowlevel.open_process(
                [*command, *arguments], stdout=subprocess.PIPE
            )
            printed, wanted = b"", chance.randint(1, 100)
            assert process.stdout is not None
            async with process.stdout as stdout:
                async for data in stdout:
                    printed += data
                    if printed.count(b"+") >= wanted:
                        process.kill()
            await process.wait()
            lines = printed.decode().split("\n")[:-1]  # the kill may have torn the last one
            kept = [int(line[1:]) for line in lines if line[0] == "+"]
            got = [int(line[1:]) for line in lines if line[0] == "-"]
            wrong += sum(left != right for left, right in zip(got, kept, strict=False))
            # The mark comes after what the process has appended, told or not.
            mark = b"m%d" % first
            await one.publish(mark)
            for each in (stream, other):
                seen = []
                while (element := await anext(each)) != mark:
                    seen.append(int(element))
                # One more than was told may have been kept when it was killed.
                wrong += seen[: len(kept)] != kept or len(seen) > len(kept) + 1
            total, first = total + len(kept), first + len(kept) + 1
    print(
        f"{engine.name}: {kills} kills of a process beside two others: {wrong} of {total:,} wrong",
        flush=True,
    )
    return wrong
