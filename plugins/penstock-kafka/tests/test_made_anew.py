"""A topic that was deleted and made anew beneath an open log: its elements are others."""

import pytest
import trio
from _kafka_helpers import HANGS_AFTER, consume, look_again, make_anew, new_topic, numbered, produce
from penstock_kafka import KafkaLog

import penstock
from campaigns._kafka import LocalKafka
from penstock.api import LogDamaged


@pytest.mark.parametrize("count", [0, 3, 30])
async def test_nothing_goes_on_with_the_new_topic(kafka: LocalKafka, count: int) -> None:
    """It has fewer elements than the old one, or more. The waiting stream, a new one, an append,
    and a look at the times fail, until the log is opened again.
    """
    topic = await new_topic(kafka, 1)
    seen: list[bytes] = []
    async with KafkaLog(kafka.address, topic, timeout=10) as log:
        await log.append(numbered(0, 10))

        async def read() -> None:
            with pytest.raises(LogDamaged, match="Open it again"):
                async with penstock.subscribe(log.source("0", 0)) as stream:
                    async for batch in stream.batches():
                        seen.extend(batch)

        with trio.fail_after(HANGS_AFTER):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(read)
                while len(seen) < 10:
                    await look_again(log)
                await make_anew(kafka, topic)
                if count:
                    await produce(kafka, topic, numbered(100, 100 + count), partition=0)
            for _ in range(2):
                with pytest.raises(LogDamaged, match="Open it again"):
                    await penstock.collect(log.source("0", 0, 10))
                with pytest.raises(LogDamaged, match="Open it again"):
                    await log.append([b"mine"])
                with pytest.raises(LogDamaged, match="Open it again"):
                    await log.position_at(0)
        assert log.fetches.held_bytes == 0
    assert seen == numbered(0, 10)
    assert [each.value for each in await consume(kafka, topic)] == numbered(100, 100 + count)
    async with KafkaLog(kafka.address, topic) as log:
        assert await log.append([b"mine"]) == range(count, count + 1)


async def test_an_append_does_not_go_to_the_new_topic(kafka: LocalKafka) -> None:
    """Also if it comes right after the topic was made anew, and no stream waits."""
    topic = await new_topic(kafka, 1)
    async with KafkaLog(kafka.address, topic, timeout=10) as log:
        await look_again(log)
        await make_anew(kafka, topic)
        with trio.fail_after(HANGS_AFTER), pytest.raises(LogDamaged, match="made anew"):
            await log.append([b"mine"])
    assert await consume(kafka, topic) == []


async def test_without_ids_the_ends_tell_a_topic_that_is_shorter(
    kafka: LocalKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers before Kafka 2.8 tell no id. An append that comes before an element that was
    appended is told, and what was fetched is not handed out any more.
    """
    monkeypatch.setattr("penstock_kafka._topic.identity_of", lambda _: (0, 0))
    topic = await new_topic(kafka, 1)
    async with KafkaLog(kafka.address, topic, timeout=10) as log:
        await log.append(numbered(0, 10))
        assert await penstock.collect(log.source("0", 0, 10)) == numbered(0, 10)
        await make_anew(kafka, topic)
        with trio.fail_after(HANGS_AFTER):
            with pytest.raises(LogDamaged, match=r"the topic was made anew, or its brokers"):
                await log.append([b"mine"])
            with pytest.raises(LogDamaged):
                await penstock.collect(log.source("0", 0, 10))
