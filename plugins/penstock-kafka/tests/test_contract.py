"""`KafkaLog` keeps the contract of a log."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import trio
from _kafka_helpers import HANGS_AFTER, new_topic
from penstock_kafka import KafkaLog

from campaigns._kafka import LocalKafka
from penstock.logs import Log, Retention
from penstock.testing import check_log

ALWAYS = ("acknowledged", "max_count", "readers")


async def test_it_keeps_the_contract_without_transactions(kafka: LocalKafka) -> None:
    """Each sentence of the contract but those of what it refuses holds, and it refuses that."""

    @asynccontextmanager
    async def open_log(partitions: Sequence[str], keeps: Retention) -> AsyncIterator[Log]:
        topic = await new_topic(kafka, len(partitions))
        async with KafkaLog(kafka.address, topic, partitions=partitions, retention=keeps) as log:
            yield log

    with trio.fail_after(HANGS_AFTER):
        await check_log(open_log, refuses=(*ALWAYS, "transactions"))


async def test_it_keeps_the_contract_with_transactions(kafka: LocalKafka) -> None:
    """With `transactions` those of `Log.transaction` hold as well."""

    @asynccontextmanager
    async def open_log(partitions: Sequence[str], keeps: Retention) -> AsyncIterator[Log]:
        topic = await new_topic(kafka, len(partitions))
        options = {"partitions": partitions, "transactions": 1_000, "retention": keeps}
        async with KafkaLog(kafka.address, topic, **options) as log:
            yield log

    with trio.fail_after(HANGS_AFTER):
        await check_log(open_log, refuses=ALWAYS)
