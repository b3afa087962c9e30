"""A member of a consumer group: who gets what, when it counts as taken, what comes again."""

import asyncio
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest
import trio
from _kafka_helpers import (
    HANGS_AFTER,
    commit_position,
    look_again,
    make_anew,
    new_topic,
    produce,
    trim,
)
from aiokafka.consumer.group_coordinator import GroupCoordinator
from penstock_kafka import KafkaGroup, KafkaLog, KafkaRecord

import penstock
from campaigns._kafka import LocalKafka
from penstock.api import AlreadySubscribed, IllegalDemand, LogDamaged, LogError, UsageError
from penstock.testing import ManualSubscriber

READER = Path(__file__).with_name("_reader.py")


async def _filled(kafka: LocalKafka, partitions: int, each: int) -> str:
    """Return a topic with `each` elements in each partition."""
    topic = await new_topic(kafka, partitions)
    async with KafkaLog(kafka.address, topic) as log:
        for partition in log.partitions:
            await log.append(
                [b"%s %d" % (partition.encode(), number) for number in range(each)],
                partition=partition,
            )
    return topic


async def _read(kafka: LocalKafka, topic: str, count: int, demand: int = 16) -> list[KafkaRecord]:
    """Return the next elements of the group."""
    with trio.fail_after(HANGS_AFTER):
        async with (
            KafkaGroup(kafka.address, topic, group=f"of {topic}") as group,
            penstock.subscribe(group, demand=demand) as stream,
        ):
            return [await anext(stream) for _ in range(count)]


async def test_records_have_what_kafka_says_of_them(kafka: LocalKafka) -> None:
    """Key, headers, place and time are facts of an element."""
    topic = await new_topic(kafka, 1)
    now = int(time.time() * 1_000)
    await produce(kafka, topic, [b"v"], key=b"k", headers=[("h", b"1")], timestamp_ms=now)
    [seen] = await _read(kafka, topic, 1)
    assert seen == KafkaRecord(b"v", b"k", (("h", b"1"),), topic, "0", 0, now / 1_000)


async def test_a_deletion_is_told_from_an_empty_value(kafka: LocalKafka) -> None:
    """A record without a value says that its key is gone."""
    topic = await new_topic(kafka, 1)
    await produce(kafka, topic, [b"", None], key=b"k")
    seen = await _read(kafka, topic, 2)
    assert [(each.value, each.is_deletion) for each in seen] == [(b"", False), (b"", True)]


async def test_a_reader_goes_on_after_what_it_has_taken(kafka: LocalKafka) -> None:
    """With a demand of 1 an element is taken when the reader asks for the next one: only the last
    one comes again.
    """
    topic = await _filled(kafka, 1, 20)
    first = await _read(kafka, topic, 8, demand=1)
    after = await _read(kafka, topic, 13, demand=1)
    assert [each.position for each in first] == [*range(8)]
    assert [each.position for each in after] == [*range(7, 20)]


@pytest.mark.parametrize("start", ["earliest", "latest"])
async def test_elements_that_were_dropped_are_counted_and_the_oldest_comes_next(
    kafka: LocalKafka, start: Literal["earliest", "latest"]
) -> None:
    """Also with start="latest": it is for a group that has no position yet."""
    topic = await _filled(kafka, 1, 20)
    name = f"of {topic}"
    # With a demand of 1 the position is that of the last one.
    await _read(kafka, topic, 8, demand=1)
    await trim(kafka, topic, 0, 15)
    async with KafkaGroup(kafka.address, topic, group=name, start=start) as group:
        with trio.fail_after(HANGS_AFTER):
            async with penstock.subscribe(group) as stream:
                assert [(await anext(stream)).position for _ in range(5)] == [*range(15, 20)]
        assert group.statistics.missing == 15 - 7


async def test_a_new_group_can_begin_at_the_end(kafka: LocalKafka) -> None:
    """It gets no element that was there before, and misses none that comes after its first one."""
    topic = await _filled(kafka, 1, 5)
    async with (
        KafkaLog(kafka.address, topic) as log,
        KafkaGroup(kafka.address, topic, group="g", start="latest") as group,
        penstock.subscribe(group) as stream,
    ):
        seen: list[int] = []

        async def read() -> None:
            for _ in range(5):
                seen.append((await anext(stream)).position)  # noqa: PERF401  # it is looked at
            nursery.cancel_scope.cancel()

        with trio.fail_after(HANGS_AFTER):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(read)
                while True:
                    await log.append([b"new"])
                    await look_again(log)
    assert seen[0] >= 5
    assert seen == [*range(seen[0], seen[0] + 5)]


async def test_a_group_position_after_the_end_is_told(kafka: LocalKafka) -> None:
    """Its brokers have lost elements. The text says how to go on."""
    topic = await _filled(kafka, 1, 5)
    await commit_position(kafka, topic, "g", 9)
    async with KafkaGroup(kafka.address, topic, group="g") as group:
        with trio.fail_after(HANGS_AFTER), pytest.raises(LogDamaged, match="--reset-offsets"):
            await penstock.collect(group)


async def test_a_topic_that_was_made_anew_ends_the_stream(kafka: LocalKafka) -> None:
    """What was taken of the old topic is not committed for the new one, whose elements come when
    the group is opened again.
    """
    topic = await _filled(kafka, 1, 5)
    async with KafkaGroup(kafka.address, topic, group="g") as group:
        with trio.fail_after(HANGS_AFTER):
            async with penstock.subscribe(group, demand=1) as stream:
                assert [(await anext(stream)).position for _ in range(5)] == [*range(5)]
                await make_anew(kafka, topic)
                await produce(kafka, topic, [b"new"] * 3, partition=0)
                with pytest.raises(LogDamaged, match="made anew"):
                    await anext(stream)
            with pytest.raises(LogDamaged, match="made anew"):
                await penstock.collect(group)
    async with KafkaGroup(kafka.address, topic, group="g") as group:
        with trio.fail_after(HANGS_AFTER):
            async with penstock.subscribe(group) as stream:
                assert [(await anext(stream)).value for _ in range(3)] == [b"new"] * 3


async def test_a_larger_demand_repeats_at_most_what_was_under_way(kafka: LocalKafka) -> None:
    """None is lost: the second reader begins at an element that the first one had."""
    topic = await _filled(kafka, 1, 100)
    await _read(kafka, topic, 50, demand=16)
    begin = (await _read(kafka, topic, 1))[0].position
    assert 50 - 16 <= begin <= 50


async def test_elements_acknowledged_by_hand_are_done(kafka: LocalKafka) -> None:
    """Others come again, whatever was requested."""
    topic = await _filled(kafka, 1, 20)
    options = {"group": "g", "acknowledge": "by hand"}
    for begin, acknowledged in ((0, 4), (5, 9)):
        async with KafkaGroup(kafka.address, topic, **options) as group:  # type: ignore[arg-type]  # a literal
            with trio.fail_after(HANGS_AFTER):
                async with penstock.subscribe(group) as stream:
                    seen = [await anext(stream) for _ in range(12)]
            assert [each.position for each in seen] == [*range(begin, begin + 12)]
            group.acknowledge(next(each for each in seen if each.position == acknowledged))
    async with KafkaGroup(kafka.address, topic, group="g") as group:
        with pytest.raises(UsageError, match="by hand"):
            group.acknowledge(seen[0])


async def test_the_members_of_a_group_divide_the_partitions(kafka: LocalKafka) -> None:
    """A second member comes in the middle: nothing is lost, each partition stays in order, and no
    more is repeated than the statistics say.
    """
    topic = await _filled(kafka, 4, 500)
    seen: list[KafkaRecord] = []
    readers: Counter[str] = Counter()
    repeated = 0
    is_under_way = trio.Event()

    async def read(name: str) -> None:
        nonlocal repeated
        async with KafkaGroup(kafka.address, topic, group="g") as group:
            async with penstock.subscribe(group, demand=8) as stream:
                async for record in stream:
                    await trio.lowlevel.checkpoint()
                    seen.append(record)
                    readers[name] += 1
                    if len(seen) == 300:
                        is_under_way.set()
                    if name == "first" and not readers["second"] and len(seen) > 300:
                        # It is asked for no more until the other one has some.
                        await has_both.wait()
                    if name == "second":
                        has_both.set()
                    if len({(int(each.partition), each.position) for each in seen}) == 2_000:
                        nursery.cancel_scope.cancel()
            repeated += group.statistics.repeated

    has_both = trio.Event()
    with trio.fail_after(HANGS_AFTER):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read, "first")
            await is_under_way.wait()
            nursery.start_soon(read, "second")
    places = [(int(each.partition), each.position) for each in seen]
    assert {*places} == {(partition, place) for partition in range(4) for place in range(500)}
    assert min(readers.values()) > 0
    # The demand of each member is 8, and it divides at most a few times.
    assert len(places) - 2_000 <= 8 * 4


async def test_a_member_that_nobody_reads_stays(kafka: LocalKafka) -> None:
    """Without demand nothing is handed over, and the first demand gets the first elements."""
    topic = await _filled(kafka, 1, 10)
    async with KafkaGroup(kafka.address, topic, group="g") as group:
        subscriber: ManualSubscriber[KafkaRecord] = ManualSubscriber(within=HANGS_AFTER)
        group.subscribe(subscriber)
        async with KafkaLog(kafka.address, topic) as log:
            await log.latest(after={"0": 2**40}, timeout=1)
        assert group.statistics.delivered == 0
        subscriber.request(3)
        with trio.fail_after(HANGS_AFTER):
            found = await subscriber.expect_elements(3)
        assert [each.position for each in found] == [0, 1, 2]


@pytest.mark.heavy
async def test_a_killed_subscriber_loses_nothing(kafka: LocalKafka) -> None:
    """Programs that are killed with kill -9 in the middle: each element was handled, and at most
    one element for each kill a second time, because each has a demand of 1.
    """
    topic = await _filled(kafka, 1, 300)
    handled: list[int] = []
    command = [sys.executable, str(READER), kafka.address, topic]
    kills = 0
    with trio.fail_after(2 * HANGS_AFTER):
        while len({*handled}) < 300:
            process = await trio.lowlevel.open_process(command, stdout=-1)
            assert process.stdout is not None
            text, begin = b"", len(handled)
            async for part in process.stdout:
                text += part
                lines = text.split(b"\n")
                handled[begin:] = [int(line) for line in lines[:-1]]
                # A commit takes up to a second: a kill right after the start would never end.
                if len(handled) - begin >= 100 and kills < 3 and process.returncode is None:
                    os.kill(process.pid, signal.SIGKILL)
                    kills += 1
                    break
                if len({*handled}) == 300:
                    process.kill()
                    break
            await process.wait()
            await process.stdout.aclose()
    assert {*handled} == {*range(300)}
    assert kills == 3


async def test_mistakes_are_told(kafka: LocalKafka) -> None:
    """A second subscriber, a demand of 0, a topic that is missing, a group that is not open."""
    topic = await _filled(kafka, 1, 3)
    group = KafkaGroup(kafka.address, topic, group="g")
    with pytest.raises(UsageError, match="is not open"):
        await penstock.collect(group)
    async with group:
        async with penstock.subscribe(group) as stream:
            with pytest.raises(AlreadySubscribed, match="open another KafkaGroup"):
                await penstock.collect(group)
            with trio.fail_after(HANGS_AFTER):
                await anext(stream)
        wrong: ManualSubscriber[KafkaRecord] = ManualSubscriber(within=HANGS_AFTER)
        group.subscribe(wrong)
        assert wrong.subscription is not None
        wrong.subscription.request(0)
        await wrong.expect_error(IllegalDemand)
    with pytest.raises(UsageError, match="do not have this topic"):
        async with KafkaGroup(kafka.address, "nowhere", group="g"):
            pass
    with pytest.raises(UsageError, match="'earliest' or 'latest'"):
        KafkaGroup(kafka.address, topic, group="g", start="now")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(UsageError, match="a name of 1 to 249"):
        KafkaGroup(kafka.address, topic, group="")


@pytest.mark.heavy
async def test_brokers_that_are_silent_end_the_stream(own_kafka: LocalKafka) -> None:
    """After `timeout` the text says who must act."""
    topic = await _filled(own_kafka, 1, 3)
    async with KafkaGroup(own_kafka.address, topic, group="g", timeout=3) as group:
        async with penstock.subscribe(group) as stream:
            with trio.fail_after(HANGS_AFTER):
                assert [(await anext(stream)).position for _ in range(3)] == [0, 1, 2]
                own_kafka.kill()
                with pytest.raises(LogError, match="no broker has answered"):
                    await anext(stream)


async def test_what_came_after_the_beginning_at_the_end_comes_again(kafka: LocalKafka) -> None:
    """The first member of a new group with ``start="latest"`` is done with nothing. The next one
    begins where it began, and not at the end of now.
    """
    topic = await _filled(kafka, 2, 3)

    def member() -> KafkaGroup:
        return KafkaGroup(kafka.address, topic, group="late", start="latest", acknowledge="by hand")

    async with KafkaLog(kafka.address, topic, partitions=["0", "1"]) as log:
        with trio.fail_after(HANGS_AFTER):
            async with member() as group, penstock.subscribe(group) as stream:
                while group.statistics.divisions == 0:
                    await look_again(log)
                await log.append([b"new"], partition="0")
                assert (await anext(stream)).value == b"new"
            # Nobody is there, and one partition had nothing.
            for partition in ("0", "1"):
                await log.append([b"newer"], partition=partition)
            async with member() as group, penstock.subscribe(group) as stream:
                seen = [await anext(stream) for _ in range(3)]
    assert sorted((each.partition, each.value) for each in seen) == [
        ("0", b"new"),
        ("0", b"newer"),
        ("1", b"newer"),
    ]


async def test_a_goodbye_without_an_answer_leaves_no_connection(
    kafka: LocalKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The member has left, and nobody else would close them."""

    async def silent(_: GroupCoordinator) -> None:
        await asyncio.sleep(HANGS_AFTER)

    topic = await _filled(kafka, 1, 3)
    monkeypatch.setattr(GroupCoordinator, "close", silent)
    async with KafkaGroup(kafka.address, topic, group="goodbye") as group:
        async with penstock.subscribe(group) as stream:
            await anext(stream)
        connections = group._member._consumer._client._conns  # type: ignore[attr-defined]  # to look
        made = [*connections.values()]
        assert any(each.connected() for each in made)
    assert not any(each.connected() for each in made)
