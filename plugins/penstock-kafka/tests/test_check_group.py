"""`KafkaGroup` keeps the contract of groups."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count

from _kafka_helpers import new_topic
from penstock_kafka import KafkaGroup, KafkaLog

from campaigns._kafka import LocalKafka
from penstock.testing import GroupBench, check_group

NAMES = count()


async def test_a_kafka_group_keeps_the_contract(kafka: LocalKafka) -> None:
    """Every check passes."""

    @asynccontextmanager
    async def open_group(partitions: Sequence[str]) -> AsyncIterator[GroupBench]:
        topic, name = await new_topic(kafka, len(partitions)), f"checked {next(NAMES)}"
        async with KafkaLog(kafka.address, topic) as log:
            yield GroupBench(
                lambda partition, elements: log.append(elements, partition=partition),
                lambda way: KafkaGroup(kafka.address, topic, group=name, acknowledge=way),
            )

    await check_group(open_group)
