"""A function is called for each element: in order by key, again if it fails, and a poison message
becomes a dead letter.
"""

from collections import defaultdict

import pytest
import trio
from _kafka_helpers import HANGS_AFTER, new_topic
from penstock_kafka import KafkaGroup, KafkaLog, KafkaRecord, handle, send

import penstock
from campaigns._kafka import LocalKafka
from penstock.api import UsageError
from penstock.logs import Retention, RingLog
from penstock.spi import Record


class Broken(Exception):
    """What a function of the program raises."""


async def _keyed(kafka: LocalKafka, count: int) -> str:
    """Return a topic of two partitions with elements of ten keys."""
    topic = await new_topic(kafka, 2)
    records = [Record(b"%d" % number, b"key %d" % (number % 10)) for number in range(count)]
    async with KafkaLog(kafka.address, topic, records=True) as log:
        async with penstock.subscribe(penstock.from_iterable(records)) as stream:
            assert await send(stream.batches(), log) == count
    return topic


def _group(kafka: LocalKafka, topic: str) -> KafkaGroup:
    return KafkaGroup(kafka.address, topic, group="g", acknowledge="by hand")


async def test_keys_stay_in_order_and_others_do_not_wait(kafka: LocalKafka) -> None:
    """Several elements are handled at once, and those of one key one after the other."""
    topic = await _keyed(kafka, 200)
    seen: dict[bytes | None, list[int]] = defaultdict(list)
    at_once: list[int] = []
    busy: set[bytes | None] = set()

    async def take(record: KafkaRecord) -> None:
        assert record.key not in busy
        busy.add(record.key)
        at_once.append(len(busy))
        await trio.lowlevel.checkpoint()
        busy.remove(record.key)
        seen[record.key].append(int(record.value))
        if sum(map(len, seen.values())) == 200:
            scope.cancel()

    with trio.fail_after(HANGS_AFTER):
        async with _group(kafka, topic) as group:
            with trio.CancelScope() as scope:
                await handle(group, take)
    assert all(numbers == sorted(numbers) for numbers in seen.values())
    assert len(seen) == 10
    assert max(at_once) > 1


async def test_a_poison_message_becomes_a_dead_letter(kafka: LocalKafka) -> None:
    """After `attempts` calls it is kept with where it was and why, and the others go on."""
    topic = await _keyed(kafka, 30)
    dead = RingLog(retention=Retention(max_count=100))
    calls: dict[int, int] = defaultdict(int)

    async def take(record: KafkaRecord) -> None:
        number = int(record.value)
        calls[number] += 1
        if number == 7 or (number == 8 and calls[8] < 3):
            raise Broken(f"poison {number} \udc80")  # half a character: no encoding has it
        if len(calls) == 30 and dead.latest()["0"] and calls[8] == 3:
            scope.cancel()

    with trio.fail_after(HANGS_AFTER):
        async with _group(kafka, topic) as group:
            with trio.CancelScope() as scope:
                await handle(group, take, attempts=3, pause=0.01, dead_letters=dead)
    assert (calls[7], calls[8], calls[9]) == (3, 3, 1)
    [letter] = [Record.unpack(each) for each in await penstock.collect(dead.source(stop="latest"))]
    headers = dict(letter.headers)
    assert (letter.value, letter.key) == (b"7", b"key 7")
    assert headers["penstock-topic"] == topic.encode()
    assert headers["penstock-error"] == b"Broken: poison 7 ?"
    assert headers["penstock-attempts"] == b"3"


async def test_without_dead_letters_the_error_ends_it_and_the_element_comes_again(
    kafka: LocalKafka,
) -> None:
    """No element after it counts as done."""
    topic = await _keyed(kafka, 30)
    handled: list[int] = []

    async def take(record: KafkaRecord) -> None:
        if int(record.value) == 7 and len(again) == 0:
            raise Broken("poison")
        handled.append(int(record.value))
        if {*handled} == {*range(30)}:
            scope.cancel()

    again: list[int] = []
    with trio.fail_after(HANGS_AFTER):
        async with _group(kafka, topic) as group:
            with pytest.raises(Broken, match="poison"):
                await handle(group, take, attempts=2, pause=0.01)
        again.append(1)
        async with _group(kafka, topic) as group:
            with trio.CancelScope() as scope:
                await handle(group, take)
    assert {*handled} == {*range(30)}


async def test_arguments_that_are_not_possible_are_refused(kafka: LocalKafka) -> None:
    """Before the first element."""

    async def take(record: KafkaRecord) -> None:
        raise AssertionError

    group = KafkaGroup(kafka.address, "orders", group="g")
    with pytest.raises(UsageError, match="by hand"):
        await handle(group, take)
    group = _group(kafka, "orders")
    with pytest.raises(UsageError, match="attempts=0"):
        await handle(group, take, attempts=0)
    with pytest.raises(UsageError, match="give a Log"):
        await handle(group, take, dead_letters="orders.dead")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(UsageError, match="records=True"):
        await send(None, KafkaLog(kafka.address, "orders"))  # type: ignore[arg-type]  # on purpose


async def test_large_records_are_sent_in_parts(kafka: LocalKafka) -> None:
    """A batch of the stream may be larger than one of Kafka."""
    topic = await new_topic(kafka, 1, max_message_bytes="20000")
    records = [Record(b"%3d" % number + b"x" * 3_000) for number in range(40)]
    async with KafkaLog(kafka.address, topic, records=True) as log:
        async with penstock.subscribe(penstock.from_iterable(records)) as stream:
            await send(stream.batches(), log)
        found = await penstock.collect(log.source(stop="latest"))
    assert [Record.unpack(each) for each in found] == records
