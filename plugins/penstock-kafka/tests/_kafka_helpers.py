"""Topics for tests, and what a plain client of Kafka does with them."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, TypeVar

import trio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from penstock_kafka import KafkaLog

from campaigns._kafka import LocalKafka

T = TypeVar("T")

HANGS_AFTER = 60.0
"""Seconds after which a test fails in place of waiting for ever."""

_numbers = count()


async def on_asyncio(function: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
    """Run a coroutine function in a loop of asyncio, in a thread."""
    return await trio.to_thread.run_sync(lambda: asyncio.run(function(*args)))


async def new_topic(
    kafka: LocalKafka, partitions: int = 2, *, name: str = "", **settings: str
) -> str:
    """Make a topic, with settings whose ``_`` are dots, and return its name."""
    name = name or f"topic-{next(_numbers)}"
    configs = {key.replace("_", "."): value for key, value in settings.items()}

    async def make() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka.address)
        await admin.start()
        try:
            topic = NewTopic(name, partitions, 1, topic_configs=configs)
            await admin.create_topics([topic])
            # A broker knows of it a little later.
            while (await admin.describe_topics([name]))[0]["error_code"]:  # noqa: ASYNC110  # no event
                await asyncio.sleep(0.05)
        finally:
            await admin.close()

    await on_asyncio(make)
    return name


async def add_partitions(kafka: LocalKafka, topic: str, total: int) -> None:
    """Give a topic more partitions."""

    async def add() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka.address)
        await admin.start()
        try:
            await admin.create_partitions({topic: NewPartitions(total)})
        finally:
            await admin.close()

    await on_asyncio(add)


async def make_anew(kafka: LocalKafka, topic: str, partitions: int = 1) -> None:
    """Delete a topic, and make another one of its name."""

    async def delete() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka.address)
        await admin.start()
        try:
            await admin.delete_topics([topic])
        finally:
            await admin.close()

    await on_asyncio(delete)
    await new_topic(kafka, partitions, name=topic)


async def trim(kafka: LocalKafka, topic: str, partition: int, before: int) -> None:
    """Let the broker drop the elements before a position."""

    async def delete() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka.address)
        await admin.start()
        try:
            place = TopicPartition(topic, partition)
            await admin.delete_records({place: RecordsToDelete(before)})
        finally:
            await admin.close()

    await on_asyncio(delete)


async def produce(
    kafka: LocalKafka,
    topic: str,
    values: Sequence[bytes | None],
    *,
    transaction: str | None = None,
    commit: bool = True,
    **options: Any,
) -> None:
    """Let a plain client append values, in a transaction if it is named."""

    async def send() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=kafka.address, transactional_id=transaction)
        await producer.start()
        try:
            if transaction is not None:
                await producer.begin_transaction()
            for value in values:
                await producer.send_and_wait(topic, value, **options)
            if transaction is not None and commit:
                await producer.commit_transaction()
            elif transaction is not None:
                await producer.abort_transaction()
        finally:
            await producer.stop()

    await on_asyncio(send)


@asynccontextmanager
async def open_transaction(kafka: LocalKafka, topic: str, value: bytes) -> AsyncIterator[None]:
    """Let a plain client have a transaction with one element open for the length of a block."""
    is_open, is_over = trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()

    async def send() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=kafka.address, transactional_id=topic)
        await producer.start()
        try:
            async with producer.transaction():
                await producer.send_and_wait(topic, value)
                token.run_sync_soon(is_open.set)
                await asyncio.to_thread(is_over.wait)
        finally:
            await producer.stop()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(on_asyncio, send)
        await is_open.wait()
        try:
            yield
        finally:
            is_over.set()


async def commit_position(kafka: LocalKafka, topic: str, group: str, position: int) -> None:
    """Let a plain client set the position of a group in partition 0."""

    async def commit() -> None:
        consumer = AIOKafkaConsumer(bootstrap_servers=kafka.address, group_id=group)
        await consumer.start()
        try:
            place = TopicPartition(topic, 0)
            consumer.assign([place])
            await consumer.commit({place: position})
        finally:
            await consumer.stop()

    await on_asyncio(commit)


async def consume(kafka: LocalKafka, topic: str, partition: int = 0) -> list[Any]:
    """Return all records of a partition, as a plain client reads them."""

    async def read() -> list[Any]:
        consumer = AIOKafkaConsumer(bootstrap_servers=kafka.address)
        await consumer.start()
        try:
            place = TopicPartition(topic, partition)
            consumer.assign([place])
            await consumer.seek_to_beginning(place)
            end = (await consumer.end_offsets([place]))[place]
            found: list[Any] = []
            while await consumer.position(place) < end:
                for records in (await consumer.getmany(place, timeout_ms=1_000)).values():
                    found += records
            return found
        finally:
            await consumer.stop()

    return await on_asyncio(read)


@asynccontextmanager
async def new_log(
    kafka: LocalKafka, partitions: int = 1, **options: Any
) -> AsyncIterator[KafkaLog]:
    """Open a log on a new topic."""
    async with KafkaLog(kafka.address, await new_topic(kafka, partitions), **options) as log:
        yield log


async def look_again(log: KafkaLog) -> None:
    """Let some time pass in which the log may learn something."""
    await log.latest(after={"0": 2**40}, timeout=0.05)


def numbered(start: int, stop: int) -> list[bytes]:
    """Return elements that have their numbers."""
    return [b"element %d" % number for number in range(start, stop)]
