"""The speed of a log on a broker beside the plain client of the broker, with the same elements and
the same promise: each list is acknowledged, and kept, before the next one.

Rules of this file:

* Both run in turns, and a ratio is that of one round: a machine that does other work slows both.
* Processor time is that of the client alone.
"""

import asyncio
import random
import resource
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

import confluent_kafka
import nats
import redis
import trio
from nats.js.api import AckPolicy, ConsumerConfig

import penstock
from campaigns.brokers._engines import Engine, Server

COUNT: Final = 30_000
LIST: Final = 256
"""Elements of an append."""

FETCH: Final = 1_024
"""Elements of a read."""

BAR: Final = 0.8
"""The least speed of the log, where that of the plain client is 1."""

SIZES: Final = {"64 B": (64,), "1 KiB": (1_024,), "mixed": (16, 64, 256, 1_024, 4_096)}


def _elements(sizes: tuple[int, ...]) -> list[bytes]:
    chance = random.Random(1)
    return [bytes(chance.choice(sizes)) for _ in range(COUNT)]


def _lists(elements: list[bytes]) -> list[list[bytes]]:
    return [elements[start : start + LIST] for start in range(0, COUNT, LIST)]


def _redis_append(url: str, elements: list[bytes], key: str) -> None:
    client = redis.Redis.from_url(url)
    for each in _lists(elements):
        with client.pipeline(transaction=True) as pipeline:
            for element in each:
                pipeline.xadd(key, {"e": element}, maxlen=10_000_000)
            pipeline.execute()
    client.close()


def _redis_read(url: str, key: str) -> None:
    client, last, count = redis.Redis.from_url(url), "-", 0
    while count < COUNT:
        rows = client.xrange(key, last, "+", count=FETCH)
        count, last = count + len(rows), f"({rows[-1][0].decode()}"
    client.close()


async def _nats_append(url: str, elements: list[bytes], key: str) -> None:
    client = await nats.connect(url)
    stream = client.jetstream()
    await stream.add_stream(name=key, subjects=[key])
    for each in _lists(elements):
        await asyncio.gather(*[await stream.publish_async(key, element) for element in each])
    await client.close()


async def _nats_read(url: str, key: str) -> None:
    client, count = await nats.connect(url), 0
    config = ConsumerConfig(ack_policy=AckPolicy.NONE)
    pulled = await client.jetstream().pull_subscribe(key, stream=key, config=config)
    while count < COUNT:
        count += len(await pulled.fetch(FETCH, timeout=60))
    await client.close()


def _kafka_append(url: str, elements: list[bytes], key: str) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": url, "acks": "all", "enable.idempotence": True, "linger.ms": 0}
    )
    for each in _lists(elements):
        for element in each:
            producer.produce(key, element, partition=0)
        producer.flush()


def _kafka_read(url: str, key: str) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": url, "group.id": key})
    consumer.assign([confluent_kafka.TopicPartition(key, 0, 0)])
    count = 0
    while count < COUNT:
        count += len(
            [message.value() for message in consumer.consume(min(FETCH, COUNT - count), 60)]
        )
    consumer.close()


def _plain(
    engine: Engine, server: Server, elements: list[bytes], key: str
) -> dict[str, Callable[[], object]]:
    if engine.name == "redis":
        return {
            "append": lambda: _redis_append(server.url, elements, key),
            "read": lambda: _redis_read(server.url, key),
        }
    if engine.name == "kafka":
        return {
            "append": lambda: _kafka_append(server.url, elements, key),
            "read": lambda: _kafka_read(server.url, key),
        }
    return {
        "append": lambda: asyncio.run(_nats_append(server.url, elements, key)),
        "read": lambda: asyncio.run(_nats_read(server.url, key)),
    }


async def _append(engine: Engine, server: Server, elements: list[bytes]) -> None:
    async with engine.writer(server.url) as log:
        for each in _lists(elements):
            await log.append(each)


async def _read(engine: Engine, server: Server, start: int) -> None:
    async with engine.reader(server.url) as log:
        source = log.source(start=start, stop=start + COUNT)
        async with penstock.subscribe(source, demand=FETCH) as stream:
            assert sum([len(batch) async for batch in stream.batches()]) == COUNT


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return seconds, and those of the processor in this process."""
    before, began = resource.getrusage(resource.RUSAGE_SELF), perf_counter()
    work()
    seconds, after = perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(engine: Engine, folder: Path, rounds: int) -> int:
    """Print the speed of a log as a share of the plain client's, and return how many bars it
    misses.
    """
    missed = 0
    with engine.running(folder) as server:
        start = 0
        for name, sizes in SIZES.items():
            elements, ratios = _elements(sizes), {"append": list[tuple[float, ...]](), "read": []}
            for number in range(rounds):
                plain = _plain(engine, server, elements, f"plain{sizes[0]}{len(sizes)}{number}")
                ours = {
                    "append": lambda each=elements: trio.run(_append, engine, server, each),
                    "read": lambda at=start: trio.run(_read, engine, server, at),
                }
                for what, rows in ratios.items():
                    work = [plain[what], ours[what]]
                    times = [_timed(each) for each in (work if number % 2 else work[::-1])]
                    other, own = times if number % 2 else times[::-1]
                    rows.append((other[0] / own[0], other[1] / own[1]))
                start += COUNT
            for what, rows in ratios.items():
                speed, processor = (median(column) for column in zip(*rows, strict=True))
                missed += speed < BAR
                print(
                    f"{engine.name}: {what} of {name}: {speed:.2f} of the plain client's speed, "
                    f"{1 / processor:.2f} of its processor time",
                    flush=True,
                )
    return missed
