"""What a `KafkaLog` is beyond the contract of a log: partitions, keys, records, other programs."""

import ssl
from collections.abc import Mapping

import pytest
import trio
from _kafka_helpers import (
    HANGS_AFTER,
    add_partitions,
    consume,
    look_again,
    new_log,
    new_topic,
    numbered,
    open_transaction,
    produce,
    trim,
)
from penstock_kafka import KafkaAccess, KafkaLog
from penstock_kafka._fetched import MOST_FETCHED

import penstock
from campaigns._kafka import LocalKafka
from penstock.api import (
    LimitExceeded,
    LogError,
    PositionNotRetained,
    UsageError,
)
from penstock.logs import Log
from penstock.spi import Record

JAVA_KEYS: Mapping[bytes, int] = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
}
"""Hashes that Kafka's tests of its own client have."""


async def _wait_latest(log: Log, position: int) -> None:
    with trio.fail_after(HANGS_AFTER):
        while log.latest()["0"] < position:
            await log.latest(after={"0": log.latest()["0"]})


async def test_the_partitions_are_those_of_the_topic(kafka: LocalKafka) -> None:
    """Without names they are numbers, and a wrong number of names is refused."""
    topic = await new_topic(kafka, 3)
    async with KafkaLog(kafka.address, topic) as log:
        assert log.partitions == ("0", "1", "2")
        assert log.latest() == {"0": 0, "1": 0, "2": 0}
    with pytest.raises(UsageError, match="has 3 partitions, and the log was given 2 names"):
        async with KafkaLog(kafka.address, topic, partitions=["east", "west"]):
            pass


async def test_a_key_goes_where_penstock_says_and_the_record_has_it(kafka: LocalKafka) -> None:
    """The rule is that of `partition_of`, and a plain client sees the key."""
    async with new_log(kafka, 3) as log:
        for number in range(20):
            key = f"key {number}"
            before = log.latest()
            await log.append([b"x", b"y"], key=key)
            place = penstock.partition_of(key, log.partitions)
            assert log.latest()[place] == before[place] + 2
        topic = log._topic  # its name
        seen = [each for number in range(3) for each in await consume(kafka, topic, number)]
    assert sorted(each.key for each in seen) == sorted(
        [f"key {number}".encode() for number in range(20)] * 2
    )
    assert all(
        penstock.partition_of(each.key, ("0", "1", "2")) == str(each.partition) for each in seen
    )


async def test_the_rule_of_the_client_for_java_can_be_chosen(kafka: LocalKafka) -> None:
    """With keys="murmur2" a key has the partition that Kafka's client for Java gives it."""
    topic = await new_topic(kafka, 7)
    async with KafkaLog(kafka.address, topic, keys="murmur2") as log:
        for key, number in JAVA_KEYS.items():
            assert log.partition_of(key) == str((number & 0x7FFFFFFF) % 7)
        await produce(kafka, topic, [b"theirs"], key=b"customer")
        await log.append([b"ours"], key="customer")
        place = log.partition_of("customer")
        with trio.fail_after(HANGS_AFTER):
            await log.latest(after={place: 1})
        assert await penstock.collect(log.source(place, 0, 2)) == [b"theirs", b"ours"]


async def test_records_have_the_keys_and_headers_of_kafka(kafka: LocalKafka) -> None:
    """With records=True an element is a packed `Record`, in both directions."""
    topic = await new_topic(kafka, 1)
    ours = Record(b"value", b"key", (("a", b"1"), ("a", None), ("b", b"")))
    async with KafkaLog(kafka.address, topic, records=True) as log:
        await log.append([ours.pack()])
        [seen] = await consume(kafka, topic)
        assert (seen.value, seen.key, tuple(seen.headers)) == (ours.value, ours.key, ours.headers)
        await produce(kafka, topic, [b"theirs"], key=b"k", headers=[("h", b"2")])
        await _wait_latest(log, 2)
        found = await penstock.collect(log.source("0", 0, 2))
        assert [Record.unpack(each) for each in found] == [
            ours,
            Record(b"theirs", b"k", (("h", b"2"),)),
        ]
        with pytest.raises(UsageError, match="MessagePack array"):
            await log.append([b"no record"])
        assert log.latest() == {"0": 2}


async def test_elements_of_other_programs_come(kafka: LocalKafka) -> None:
    """A stream that waits at the end gets what a plain client appends."""
    topic = await new_topic(kafka, 1)
    async with (
        KafkaLog(kafka.address, topic) as log,
        penstock.subscribe(log.source(start="latest")) as stream,
    ):
        for part in (numbered(0, 3), numbered(3, 5)):
            await produce(kafka, topic, part)
            with trio.fail_after(HANGS_AFTER):
                assert [await anext(stream) for _ in part] == part


async def test_two_writers_share_a_topic(kafka: LocalKafka) -> None:
    """Each append is in one piece, and no position is given twice."""
    topic = await new_topic(kafka, 1)
    places: dict[range, list[bytes]] = {}

    async def write(log: KafkaLog, name: bytes) -> None:
        for number in range(20):
            elements = [b"%s %d %d" % (name, number, each) for each in range(10)]
            places[await log.append(elements)] = elements

    async with KafkaLog(kafka.address, topic) as one, KafkaLog(kafka.address, topic) as two:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write, one, b"one")
            nursery.start_soon(write, two, b"two")
        await _wait_latest(one, 400)
        seen = await penstock.collect(one.source("0", 0, 400))
    assert sum(map(len, places)) == len(seen) == 400
    assert all(seen[place.start : place.stop] == given for place, given in places.items())


async def test_an_append_that_no_batch_can_hold_is_refused_whole(kafka: LocalKafka) -> None:
    """The text names max.message.bytes of the topic; nothing was appended."""
    topic = await new_topic(kafka, 1, max_message_bytes="20000")
    async with KafkaLog(kafka.address, topic) as log:
        for elements in ([b"x" * 20_000], [b"x" * 100] * 300):
            with pytest.raises(LimitExceeded, match=r"max\.message\.bytes") as caught:
                await log.append(elements)
            assert caught.value.limit == "max.message.bytes"
        assert await log.append([b"x" * 100] * 100) == range(100)
        # Appends that wait together share batches, as far as they fit.
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(log.append, [b"y" * 5_000])
        assert log.latest() == {"0": 120}


async def test_what_the_broker_has_dropped_is_told_with_figures(kafka: LocalKafka) -> None:
    """A stream before the oldest element fails as in other logs, also one that is open."""
    async with new_log(kafka) as log:
        await log.append(numbered(0, 10))
        topic = log._topic  # its name
        async with penstock.subscribe(log.source("0", 0, 20), demand=0) as slow:
            slow.request(1)
            assert await anext(slow) == b"element 0"
            await trim(kafka, topic, 0, 6)
            with trio.fail_after(HANGS_AFTER):
                while log.earliest()["0"] < 6:
                    await look_again(log)
            slow.request(20)
            with pytest.raises(PositionNotRetained, match="it has 6 up to, and not with, 10"):
                async for _ in slow:
                    pass
        with pytest.raises(PositionNotRetained) as caught:
            await penstock.collect(log.source("0", 2, 10))
        assert (caught.value.position, caught.value.earliest, caught.value.latest) == (2, 6, 10)
        assert await penstock.collect(log.source("0", 6, 10)) == numbered(6, 10)


@pytest.mark.parametrize("commit", [True, False])
async def test_the_marker_of_a_transaction_is_refused(kafka: LocalKafka, commit: bool) -> None:
    """A position without an element fails the stream, which says where to go on."""
    topic = await new_topic(kafka, 1)
    async with KafkaLog(kafka.address, topic) as log:
        await log.append([b"before"])
        await produce(
            kafka, topic, [b"inside"], partition=0, transaction=f"t {commit}", commit=commit
        )
        await _wait_latest(log, 3)  # the marker comes after the answer to the producer
        await produce(kafka, topic, [b"after"], partition=0)
        await _wait_latest(log, 4)
        seen: list[bytes] = []
        with pytest.raises(LogError, match=r"Start at 3 to go on"):
            async with penstock.subscribe(log.source("0", 0, 4)) as stream:
                async for batch in stream.batches():
                    seen.extend(batch)
        assert seen == ([b"before", b"inside"] if commit else [b"before"])
        assert await penstock.collect(log.source("0", 3, 4)) == [b"after"]


async def test_an_open_transaction_of_another_program_is_no_damage(kafka: LocalKafka) -> None:
    """Readers see the end before it. This program has appended after it, and knows a later one."""
    topic = await new_topic(kafka, 1)
    async with KafkaLog(kafka.address, topic) as log:
        await log.append([b"before"])
        async with open_transaction(kafka, topic, b"inside"):
            assert await log.append([b"mine"]) == range(2, 3)
            # Longer than an append explains an end that is earlier.
            await log.latest(after={"0": 3}, timeout=2.5)
            assert await log.append([b"more"]) == range(3, 4)
        await _wait_latest(log, 5)
        assert await penstock.collect(log.source("0", 2, 4)) == [b"mine", b"more"]


async def test_the_mark_of_a_transaction_stays_in_its_topic(kafka: LocalKafka) -> None:
    """It is no header of an element. Copied, it would say that the transaction was published."""
    first, second = await new_topic(kafka, 1), await new_topic(kafka, 1)
    async with KafkaLog(kafka.address, first, records=True, transactions=100) as log:
        day = log.transaction("day-1")
        await day.stage([Record(b"one").pack()])
        assert await day.publish()
        [element] = await penstock.collect(log.source("0", 0, 1))
        assert Record.unpack(element) == Record(b"one")
    marked = Record(b"one", None, (("penstock-transaction", b"1/1 day-1"), ("h", b"1")))
    async with KafkaLog(kafka.address, second, records=True) as log:
        await log.append([marked.pack()])
    async with KafkaLog(kafka.address, second, records=True, transactions=100) as log:
        day = log.transaction("day-1")
        await day.stage([Record(b"two").pack()])
        assert await day.publish()
        seen = [Record.unpack(each) for each in await penstock.collect(log.source("0", 0, 2))]
    assert seen == [Record(b"one", None, (("h", b"1"),)), Record(b"two")]


@pytest.mark.parametrize(
    "mark",
    [
        None,
        b"",
        b"\xff\xfe",
        b"1/1",
        b"0/0 day",
        b"9/3 day",
        b"1/99999999999999999999 day",
        b"1" * 5_000 + b"/1 day",
        "\N{ARABIC-INDIC DIGIT ONE}/1 day".encode(),
    ],
    ids=lambda mark: repr(mark)[:20],
)
async def test_a_mark_of_another_program_is_no_part_of_a_transaction(
    kafka: LocalKafka, mark: bytes | None
) -> None:
    """The log opens, and the transaction can be published."""
    topic = await new_topic(kafka, 1)
    await produce(kafka, topic, [b"v"], headers=[("penstock-transaction", mark)])
    async with KafkaLog(kafka.address, topic, transactions=100) as log:
        day = log.transaction("day")
        await day.stage([b"e"])
        assert await day.publish()


async def test_more_headers_than_a_record_has_are_told(kafka: LocalKafka) -> None:
    """When they are read. Packed, the element could be unpacked by nobody."""
    topic = await new_topic(kafka, 1)
    await produce(kafka, topic, [b"v"], headers=[("h", b"1")] * 65)
    async with KafkaLog(kafka.address, topic, records=True) as log:
        with pytest.raises(LogError, match=r"65 headers .* at most 64"):
            await penstock.collect(log.source("0", 0, 1))
    async with KafkaLog(kafka.address, topic) as log:
        assert await penstock.collect(log.source("0", 0, 1)) == [b"v"]


async def test_more_partitions_refuse_keys_until_the_log_is_opened_again(
    kafka: LocalKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key belongs to another partition then; reading, and appends by partition, go on. The log
    finds them without the metadata that its client looks up now and then.
    """
    monkeypatch.setattr("penstock_kafka._topic.METADATA_AGE", 3_600_000)
    topic = await new_topic(kafka, 1)
    async with KafkaLog(kafka.address, topic) as log:
        await log.append([b"1"], key="k")
        await add_partitions(kafka, topic, 3)
        with trio.fail_after(HANGS_AFTER):
            while log._kafka.topic.partitions == 1:
                await look_again(log)
        with pytest.raises(LogError, match="has 3 partitions now, and 1 when the log was opened"):
            await log.append([b"2"], key="k")
        assert await log.append([b"2"], partition="0") == range(1, 2)
    async with KafkaLog(kafka.address, topic) as log:
        await log.append([b"3"], key="k")
        assert sum(log.latest().values()) == 3


async def test_a_reader_that_asks_for_little_makes_few_fetches(kafka: LocalKafka) -> None:
    """The lead at the client is one fetch, and what is held is bounded."""
    async with new_log(kafka) as log:
        for _ in range(40):
            await log.append([b"x" * 1_000] * 900)
        async with penstock.subscribe(log.source(), demand=0) as stream:
            stream.request(10)
            for _ in range(10):
                await anext(stream)
            # At most one fetch beyond the demand: 1 MiB, and the batch that goes beyond it.
            assert log.fetches.requests <= 2
            assert log.fetches.elements <= 10 + 2 * 1_100
            stream.request(36_000)
            with trio.fail_after(HANGS_AFTER):
                for _ in range(35_990):
                    await anext(stream)
        assert log.fetches.elements <= 40_000
        assert log.fetches.held_bytes <= MOST_FETCHED + (1 << 20)


async def test_transactions_are_published_once_also_after_a_restart(kafka: LocalKafka) -> None:
    """The ids are found in the topic, and what was appended is not appended again."""
    topic = await new_topic(kafka, 2)
    for number in range(3):
        async with KafkaLog(kafka.address, topic, transactions=1_000) as log:
            transaction = log.transaction("batch 7")
            await transaction.stage(numbered(0, 5), partition="0")
            await transaction.stage(numbered(5, 8), partition="1")
            assert await transaction.publish() is (number == 0)
            assert log.is_published("batch 7")
            assert log.latest() == {"0": 5, "1": 3}


async def test_a_transaction_that_was_cut_in_two_is_completed(kafka: LocalKafka) -> None:
    """A program that ended between two partitions publishes the id again: the rest is appended."""
    topic = await new_topic(kafka, 2)
    mark = [("penstock-transaction", b"1/2 batch 7")]
    for value in numbered(0, 1):
        await produce(kafka, topic, [value], partition=0, headers=mark)
    async with KafkaLog(kafka.address, topic, transactions=1_000) as log:
        assert not log.is_published("batch 7")
        transaction = log.transaction("batch 7")
        await transaction.stage(numbered(0, 1), partition="0")
        await transaction.stage(numbered(1, 2), partition="1")
        assert await transaction.publish()
        assert log.latest() == {"0": 1, "1": 1}


async def test_a_large_transaction_takes_several_batches(kafka: LocalKafka) -> None:
    """64 MiB may be staged, and a batch has at most 1 MiB."""
    async with new_log(kafka, transactions=100) as log:
        elements = [bytes([number]) * 100_000 for number in range(50)]
        transaction = log.transaction("large")
        await transaction.stage(elements)
        assert await transaction.publish()
        assert await penstock.collect(log.source(stop="latest")) == elements


async def test_batches_can_be_compressed(kafka: LocalKafka) -> None:
    """Elements come back as they were appended."""
    async with new_log(kafka, compression="gzip") as log:
        await log.append([b"x" * 1_000] * 100)
        assert await penstock.collect(log.source(stop="latest")) == [b"x" * 1_000] * 100


async def test_a_topic_that_is_missing_is_named(kafka: LocalKafka) -> None:
    """It is not made, and the text says how to make it."""
    for _ in range(2):
        with pytest.raises(UsageError, match=r"do not have this topic.*kafka-topics\.sh"):
            async with KafkaLog(kafka.address, "nowhere"):
                pass


async def test_transactions_that_were_not_asked_for_name_their_argument(kafka: LocalKafka) -> None:
    """The text has what to give."""
    async with new_log(kafka) as log:
        with pytest.raises(UsageError, match=r"give KafkaLog\(transactions=100_000\)"):
            log.transaction("batch 7")


async def test_a_port_where_nobody_listens_and_one_without_tls_are_told(kafka: LocalKafka) -> None:
    """The text does not say that a time has passed."""
    with pytest.raises(LogError, match="no program listens there"):
        async with KafkaLog("127.0.0.1:1", "orders"):
            pass
    access = KafkaAccess(tls=ssl.create_default_context())
    with trio.fail_after(HANGS_AFTER):
        with pytest.raises(LogError, match=r"closes each connection.*or speak none"):
            async with KafkaLog(kafka.address, "orders", access=access):
                pass


async def test_no_broker_and_a_wrong_one_are_errors_within_the_timeout() -> None:
    """The text names the addresses, and what to check."""
    [silent] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = silent.socket.getsockname()[1]
    async with silent:
        for address in (f"127.0.0.1:{port}", "127.0.0.1:1"):
            with trio.fail_after(HANGS_AFTER), pytest.raises(LogError, match=address):
                async with KafkaLog(address, "orders", timeout=1):
                    pass


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"brokers": ""}, "addresses of some brokers"),
        ({"brokers": "tcp://127.0.0.1:9092"}, "addresses of some brokers"),
        ({"topic": "a topic"}, "a topic of Kafka has a name"),
        ({"keys": "md5"}, "'crc32' or 'murmur2'"),
        ({"transactions": -1}, "of the last elements"),
        ({"compression": "brotli"}, "'gzip', 'snappy'"),
        ({"timeout": 0}, "seconds, above 0"),
    ],
)
def test_arguments_that_are_not_possible_are_refused(options: dict[str, object], text: str) -> None:
    """Before anything is opened."""
    given = {"brokers": "127.0.0.1:9092", "topic": "orders", **options}
    with pytest.raises(UsageError, match=text):
        KafkaLog(**given)  # type: ignore[arg-type]  # on purpose


def test_half_of_a_user_is_refused() -> None:
    """A username needs a password."""
    with pytest.raises(UsageError, match="give both, or none"):
        KafkaAccess(username="alice")
