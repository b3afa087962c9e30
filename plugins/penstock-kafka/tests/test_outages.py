"""A broker that is killed, or that stops: what is lost, what is repeated, what is told."""

import pytest
import trio
from _kafka_helpers import HANGS_AFTER, consume, new_topic, numbered
from penstock_kafka import KafkaLog

import penstock
from campaigns._kafka import LocalKafka
from penstock.api import LogError


@pytest.mark.heavy
async def test_a_killed_broker_loses_and_repeats_nothing(own_kafka: LocalKafka) -> None:
    """With kill -9 in the middle of appends: all that were acknowledged are there, each once, and a
    stream goes on at its position when the broker is back.
    """
    topic = await new_topic(own_kafka, 1)
    appended: list[bytes] = []
    seen: list[bytes] = []
    is_under_way = trio.Event()

    async def write(log: KafkaLog) -> None:
        for number in range(400):
            elements = [b"%d %d" % (number, each) for each in range(5)]
            place = await log.append(elements)
            assert place == range(5 * number, 5 * number + 5)
            appended.extend(elements)

    async def read(log: KafkaLog) -> None:
        async with penstock.subscribe(log.source("0", 0, 2_000)) as stream:
            async for batch in stream.batches():
                seen.extend(batch)
                if len(seen) >= 500:
                    is_under_way.set()

    with trio.fail_after(2 * HANGS_AFTER):
        async with KafkaLog(own_kafka.address, topic) as log, trio.open_nursery() as nursery:
            nursery.start_soon(write, log)
            nursery.start_soon(read, log)
            await is_under_way.wait()
            await trio.to_thread.run_sync(own_kafka.kill)
            await trio.to_thread.run_sync(own_kafka.start)
    assert seen == appended
    assert [each.value for each in await consume(own_kafka, topic)] == appended


async def test_a_stalled_broker_is_told_within_the_timeout(own_kafka: LocalKafka) -> None:
    """An append says that it is not known whether its elements were taken; they are there once,
    and in order, when the broker goes on. A stream that waits fails, and the log works again.
    """
    topic = await new_topic(own_kafka, 1)
    async with KafkaLog(own_kafka.address, topic, timeout=2) as log:
        await log.append(numbered(0, 2))
        own_kafka.pause()
        try:
            with trio.fail_after(HANGS_AFTER):
                with pytest.raises(LogError, match="may have been appended"):
                    await log.append(numbered(2, 4))
                with pytest.raises(LogError, match="were not appended"):
                    await log.append([b"never"])
                with pytest.raises(LogError, match="no broker has answered"):
                    await penstock.collect(log.source("0", 2))
        finally:
            own_kafka.go_on()
        with trio.fail_after(HANGS_AFTER):
            place = await log.append(numbered(4, 6))
            assert place == range(4, 6)
            assert await penstock.collect(log.source("0", 0, 6)) == numbered(0, 6)


@pytest.mark.heavy
async def test_a_transaction_that_is_published_again_waits_for_what_was_sent(
    own_kafka: LocalKafka,
) -> None:
    """While the broker has stopped, one call gives up, another one is cancelled. The third call
    appends nothing twice: not the part that was sent, and not the one that was not.
    """
    topic = await new_topic(own_kafka, 2)
    async with KafkaLog(own_kafka.address, topic, timeout=2, transactions=100) as log:
        await log.append([b"before"], partition="0")

        async def publish() -> bool:
            transaction = log.transaction("batch 7")
            await transaction.stage(numbered(0, 3), partition="0")
            await transaction.stage(numbered(3, 5), partition="1")
            return await transaction.publish()

        own_kafka.pause()
        try:
            with trio.fail_after(HANGS_AFTER):
                with pytest.raises(LogError, match="may have been appended"):
                    await publish()
                with trio.move_on_after(0.2):
                    await publish()
        finally:
            own_kafka.go_on()
        with trio.fail_after(HANGS_AFTER):
            assert await publish()
            assert not await publish()
            for partition, elements in (("0", [b"before", *numbered(0, 3)]), ("1", numbered(3, 5))):
                assert await penstock.collect(log.source(partition, stop="latest")) == elements
    assert [each.value for each in await consume(own_kafka, topic)] == [b"before", *numbered(0, 3)]


@pytest.mark.heavy
async def test_a_part_that_waits_behind_others_is_dropped_and_made_anew(
    own_kafka: LocalKafka,
) -> None:
    """A part that gave up before it was sent is appended by the next call, once."""
    topic = await new_topic(own_kafka, 1)
    async with KafkaLog(own_kafka.address, topic, timeout=2, transactions=100) as log:
        await log.append([b"before"])
        own_kafka.pause()
        try:
            with trio.fail_after(HANGS_AFTER):
                with pytest.raises(LogError, match="may have been appended"):
                    await log.append([b"sent"])
                transaction = log.transaction("batch 7")
                await transaction.stage(numbered(0, 3))
                with pytest.raises(LogError, match="were not appended"):
                    await transaction.publish()
        finally:
            own_kafka.go_on()
        with trio.fail_after(HANGS_AFTER):
            again = log.transaction("batch 7")
            await again.stage(numbered(0, 3))
            assert await again.publish()
    assert [each.value for each in await consume(own_kafka, topic)] == [
        b"before",
        b"sent",
        *numbered(0, 3),
    ]


@pytest.mark.heavy
async def test_a_log_that_is_closed_while_the_broker_is_gone_ends(own_kafka: LocalKafka) -> None:
    """Leaving the block does not wait for the broker."""
    topic = await new_topic(own_kafka, 1)
    with trio.fail_after(HANGS_AFTER):
        async with KafkaLog(own_kafka.address, topic) as log:
            await log.append([b"x"])
            own_kafka.kill()
            with trio.move_on_after(0.5):
                await log.append([b"y"])
