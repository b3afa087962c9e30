"""A topic of several processes: one reading of the log for each, gaps that are told, and a broker
that is away or comes back with less.
"""

import asyncio
import io
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from penstock import aio
from penstock.api import (
    LogDamaged,
    LogError,
    PublicError,
    PublisherFailed,
    SlowSubscriber,
    UsageError,
)
from penstock.logs import BrokerLog, DiskLog, Retention, RingLog
from penstock.runtime import Service, SharedTopic, connect, inspect, serve
from penstock.spi import Serializer
from penstock.streams import SlowPolicy, Stream, collect, subscribe
from penstock.testing import ManualSubscriber
from tests.logs._shelf import Shelf

KEEP = Retention(max_count=1_000_000)
LENGTHS = [b"%d:" % number * (number * 37 % 211) for number in range(1, 300)]


@dataclass
class Trade:
    symbol: str
    price: float


class Counted(Shelf):
    """Counts the reads of its logs and their bytes, which it bounds as a broker does."""

    reads = read_bytes = 0

    async def read(
        self, partition: str, position: int, stop: int, max_bytes: int
    ) -> Sequence[bytes]:
        self.reads += 1
        found = await super().read(partition, position, stop, max_bytes)
        fit = max(1, max_bytes // max(1, *map(len, found), 1))
        self.read_bytes += sum(map(len, found[:fit]))
        return found[:fit]


class Reports(list[Exception]):
    """What a topic has told its program."""


def process(shelf: Shelf, **options: Any) -> SharedTopic[Any]:
    """A topic as another process would make it: with a log of its own."""
    return SharedTopic(BrokerLog(shelf, retention=KEEP), **options)


async def some(stream: Stream[Any], count: int) -> list[Any]:
    """Read as many elements."""
    return [await anext(stream) for _ in range(count)]


async def test_all_processes_get_one_order() -> None:
    """Two publishers and three processes: each subscriber gets all elements, of any length, in the
    order of the log.
    """
    shelf = Shelf()
    async with process(shelf) as one, process(shelf) as two, process(shelf) as three:

        async def publish(topic: SharedTopic[bytes], letter: bytes) -> None:
            for element in LENGTHS:
                await topic.publish(letter + element)

        async with (
            subscribe(one) as a,
            subscribe(two) as b,
            subscribe(three) as c,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(publish, one, b"a")
            nursery.start_soon(publish, two, b"b")
            seen = [await some(each, 2 * len(LENGTHS)) for each in (a, b, c)]
    kept = [element for _, element in shelf.partitions["0"].rows]
    assert seen == [kept] * 3
    assert [each[1:] for each in kept if each[:1] == b"a"] == LENGTHS


async def test_a_process_reads_the_log_once() -> None:
    """Fifty subscribers cost as many reads as one."""
    shelf = Counted()
    async with process(shelf) as topic, AsyncExitStack() as streams:
        opened = [await streams.enter_async_context(subscribe(topic)) for _ in range(50)]
        await topic.publish_many([b"%d" % number for number in range(10)])
        assert [len(await some(each, 10)) for each in opened] == [10] * 50
        assert shelf.reads <= 10
        assert topic.statistics().published == 10
        assert topic.statistics().subscribers == 50


async def test_a_process_without_subscribers_reads_nothing() -> None:
    """One that only publishes, and one whose last subscriber has left. The next subscriber gets
    each retained element once.
    """
    shelf = Counted()
    async with process(shelf, retain=2) as topic:
        await topic.publish_many([b"%d" % number for number in range(10)])
        await wait_all_tasks_blocked()
        assert (shelf.reads, topic.lag) == (0, 0)
        async with subscribe(topic) as stream:
            await topic.publish(b"10")
            assert await some(stream, 3) == [b"8", b"9", b"10"]
        await wait_all_tasks_blocked()
        read = shelf.reads
        await topic.publish_many([b"11", b"12", b"13"])
        await wait_all_tasks_blocked()
        assert shelf.reads == read
        async with subscribe(topic) as stream:
            await topic.publish(b"14")
            assert await some(stream, 3) == [b"12", b"13", b"14"]
        assert topic.statistics().published == 6


async def test_a_subscriber_that_joins_when_the_last_one_leaves_gets_nothing_twice() -> None:
    """Also in the middle of a batch, which the one that left held up."""
    shelf = Shelf()
    async with process(shelf) as topic:
        for _ in range(20):
            async with subscribe(topic, demand=0) as leaving:
                await topic.publish_many([b"%d" % number for number in range(100)])
                leaving.request(10)
                await some(leaving, 10)
            async with subscribe(topic) as stream:
                await topic.publish(b"end")
                seen = []
                while (element := await anext(stream)) != b"end":
                    seen.append(int(element))
                assert seen == sorted(set(seen))


@pytest.mark.parametrize("slow", list(SlowPolicy))
async def test_a_subscriber_that_stands_still_slows_no_other_process(slow: SlowPolicy) -> None:
    """Nor the publisher: the log has what its own process has not read."""
    shelf = Shelf()
    async with (
        process(shelf, slow=slow) as mine,
        process(shelf, buffer=5_000) as other,
        subscribe(mine, demand=1),
        subscribe(other) as reader,
    ):
        for start in range(0, 5_000, 100):
            await other.publish_many([b"%d" % number for number in range(start, start + 100)])
        assert len(await some(reader, 5_000)) == 5_000
        await wait_all_tasks_blocked()
        # What is requested of the log while a subscriber holds up this process is bounded.
        assert mine.lag == (0 if slow is not SlowPolicy.WAIT else 5_000)


async def test_what_is_read_while_a_subscriber_holds_up_its_process_is_bounded() -> None:
    """By some mebibytes, however much the log has."""
    shelf = Counted()
    async with process(shelf) as topic, subscribe(topic, demand=0) as still:
        await topic.publish_many([bytes(100_000)] * 500)
        still.request(20)
        await some(still, 20)
        await wait_all_tasks_blocked()
        assert topic.lag >= 474
        # Given, requested at first, requested later, and read ahead.
        assert shelf.read_bytes <= (20 + 16 + 10 + 10) * 100_000


@pytest.mark.parametrize("slow", [SlowPolicy.WAIT, SlowPolicy.FAIL])
async def test_a_gap_ends_the_streams_of_its_process(
    slow: SlowPolicy, autojump_clock: MockClock
) -> None:
    """With a text that crosses a network and says how many elements are missing. A new stream gets
    what comes.
    """
    shelf, told = Counted(), Reports()
    shelf.may_answer = trio.Event()
    async with process(shelf, slow=slow, on_violation=told.append) as topic:
        async with subscribe(topic) as stream:
            rows = shelf.partitions["0"]
            rows.rows += [(0.0, b"%d" % number) for number in range(10)]
            shelf.tell(["0"])
            await wait_all_tasks_blocked()
            shelf.drop("0", 7)
            shelf.may_answer.set()
            with pytest.raises(PublicError, match=r"7 elements .* subscribe again"):
                await anext(stream)
        async with subscribe(topic) as stream:
            await topic.publish(b"later")
            assert await anext(stream) == b"later"
        assert topic.missed == 7
        assert [type(each) for each in told] == [LogError]


@pytest.mark.parametrize(
    "slow", [SlowPolicy.DROP_OLDEST, SlowPolicy.DROP_NEWEST, SlowPolicy.LATEST]
)
async def test_a_gap_is_counted_where_elements_may_be_missed(
    slow: SlowPolicy, autojump_clock: MockClock
) -> None:
    """The streams go on, and the program is told once."""
    shelf, told = Shelf(), Reports()
    shelf.may_answer = trio.Event()
    async with process(shelf, slow=slow, on_violation=told.append) as topic:
        async with subscribe(topic, demand=10) as stream:
            shelf.partitions["0"].rows += [(0.0, b"%d" % number) for number in range(10)]
            shelf.tell(["0"])
            await wait_all_tasks_blocked()
            shelf.drop("0", 7)
            shelf.may_answer.set()
            began = trio.current_time()
            assert await some(stream, 3) == [b"7", b"8", b"9"]
            # At once: a process that waited would fall back further.
            assert trio.current_time() == began
        assert (topic.missed, len(told)) == (7, 1)


async def test_retained_elements_come_from_the_log() -> None:
    """A process that starts later gives its first subscriber the newest elements."""
    shelf = Shelf()
    async with process(shelf) as publisher:
        await publisher.publish_many([b"%d" % number for number in range(10)])
        async with process(shelf, retain=3) as late:
            await wait_all_tasks_blocked()
            async with subscribe(late) as stream:
                assert await some(stream, 3) == [b"7", b"8", b"9"]
        async with process(shelf) as without, subscribe(without) as stream:
            await publisher.publish(b"new")
            assert await anext(stream) == b"new"


async def test_elements_of_another_program_are_passed_over() -> None:
    """Counted, told once for each batch with the place of the first, and nothing else falls."""
    shelf, told = Shelf(), Reports()
    async with process(shelf, type=Trade, on_violation=told.append) as topic:
        log = BrokerLog(shelf, retention=KEEP)
        async with log, subscribe(topic) as stream:
            await topic.publish(Trade("a", 1.0))
            await log.append([b"rubbish", b"null", b"[]", b'{"symbol":"b","price":2}', b"\xff"])
            await topic.publish(Trade("c", 3.0))
            assert await some(stream, 3) == [Trade("a", 1), Trade("b", 2), Trade("c", 3)]
        assert topic.refused == 4
        text = "\n".join(map(str, told))
        assert "the first one at position 1, are not of the type Trade" in text
        assert "another program writes to this log" in text


async def test_a_wrong_element_is_refused_at_the_publisher() -> None:
    """Nothing of the call is appended."""
    shelf = Shelf()
    async with process(shelf, type=Trade) as topic:
        with pytest.raises(UsageError, match="Trade"):
            await topic.publish_many([Trade("a", 1.0), "text"])
        with pytest.raises(UsageError, match=r"rule 2\.13"):
            await topic.publish(None)
        with pytest.raises(UsageError, match="position 1 is None"):
            await topic.publish_many([Trade("a", 1.0), None])
    assert not shelf.partitions["0"].rows


async def test_streams_wait_while_the_broker_is_away(autojump_clock: MockClock) -> None:
    """They go on where they were, and the program is told once."""
    shelf, told = Shelf(), Reports()
    async with process(shelf, on_violation=told.append) as topic, subscribe(topic) as stream:
        await topic.publish(b"before")
        assert await anext(stream) == b"before"
        shelf.logs[0].lost("no connection to shelf://a: start it")
        shelf.failure = LogError("no connection to shelf://a: start it")
        with pytest.raises(LogError, match="start it"):
            await topic.publish(b"lost")
        await trio.sleep(60)
        shelf.failure = None
        await topic.publish(b"after")
        assert await anext(stream) == b"after"
        assert list(map(str, told)) == ["no connection to shelf://a: start it"]
        shelf.logs[0].lost("no connection to shelf://a: start it")
        await trio.sleep(60)
        assert len(told) == 2  # the next time that it is away


async def test_a_broker_that_came_back_with_less_is_opened_again(
    autojump_clock: MockClock,
) -> None:
    """The streams end, because what they missed is not known. A new one gets what comes then."""
    shelf, told = Shelf(), Reports()
    async with process(shelf, retain=5, on_violation=told.append) as topic:
        async with subscribe(topic) as stream:
            await topic.publish_many([b"1", b"2", b"3"])
            await some(stream, 3)
            shelf.partitions["0"].rows = [(0.0, b"1")]
            shelf.failure = LogDamaged("it came back with less")
            shelf.logs[0].lost(shelf.failure)
            with pytest.raises(PublicError, match="what was missed is not known"):
                await anext(stream)
        shelf.failure = None
        with pytest.raises(LogError, match="opened again"):
            await topic.publish(b"too early")
        await trio.sleep(1)
        async with subscribe(topic) as stream:
            await topic.publish(b"4")
            assert await some(stream, 2) == [b"1", b"4"]  # it retains what the log has
        assert [type(each) for each in told] == [LogDamaged]


class Closed(Shelf):
    """Refuses each opening from the second one on, `times` times."""

    times = 3

    async def open(self, *args: Any) -> Any:
        if self.logs is not None and self.now and self.times:
            self.times -= 1
            self.logs.append(args[1])
            raise LogError("start the broker")
        return await super().open(*args)


async def test_a_log_that_does_not_open_again_is_tried_on(autojump_clock: MockClock) -> None:
    """Until it does. `publish` says why it cannot be."""
    shelf = Closed()
    async with process(shelf) as topic:
        await topic.publish(b"1")
        # Nobody reads: the publisher finds it.
        shelf.failure = LogDamaged("it was deleted")
        with pytest.raises(LogDamaged, match="it was deleted"):
            await topic.publish(b"2")
        shelf.failure = None
        await trio.sleep(0.9)
        with pytest.raises(LogError, match="start the broker"):
            await topic.publish(b"2")
        await trio.sleep(10)
        async with subscribe(topic) as stream:
            await topic.publish(b"3")
            assert await anext(stream) == b"3"


async def test_leaving_the_block_ends_the_streams() -> None:
    """And publishing: both say why."""
    shelf = Shelf()
    topic = process(shelf)
    async with subscribe(topic) as stream:
        with pytest.raises(UsageError, match="async with SharedTopic"):
            await topic.publish(b"1")
        async with topic:
            await topic.publish(b"1")
            assert await anext(stream) == b"1"
        with pytest.raises(PublicError, match="was closed in this process"):
            await anext(stream)
    with pytest.raises(LogError, match="block has been left"):
        await topic.publish(b"2")
    with pytest.raises(PublicError, match="was closed in this process"):
        await collect(topic)
    with pytest.raises(UsageError, match="make a new SharedTopic"):
        async with topic:
            pass
    assert topic.lag == 0


async def test_an_exception_of_the_block_is_unchanged() -> None:
    """It comes out alone, and the log is closed."""
    shelf = Shelf()
    with pytest.raises(ZeroDivisionError):
        async with process(shelf):
            raise ZeroDivisionError
    assert not shelf.logs


class Refusing(Shelf):
    """Cannot be opened."""

    async def open(self, *args: Any) -> Any:
        self.logs.append(args[1])
        raise LogError("no connection to shelf://a: start it")


async def test_a_log_that_cannot_be_opened_fails_the_block() -> None:
    """With the error of the log, and not in a group."""
    with pytest.raises(LogError, match="start it"):
        async with process(Refusing()):
            pass
    with pytest.raises(UsageError, match="partition='east'"):
        async with process(Shelf(), partition="east"):
            pass
    async with BrokerLog(Shelf(), retention=KEEP) as log:
        with pytest.raises(UsageError, match="is open already"):
            async with SharedTopic(log):
                pass


def test_what_is_no_log_is_refused() -> None:
    """At once, with what to give."""
    with pytest.raises(UsageError, match="give a Log that all processes can open"):
        SharedTopic("redis://127.0.0.1")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(UsageError, match="is a class; give an object"):
        SharedTopic(RingLog(retention=KEEP), serializer=Serializer)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(UsageError, match="choose one of"):
        SharedTopic(RingLog(retention=KEEP), slow="wait")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(UsageError, match="nobody"):
        SharedTopic(RingLog(retention=KEEP), serializer="nobody")


def service_of(topic: SharedTopic[Any]) -> Service:
    """Offer a topic."""
    service = Service()
    service.publish("trades", topic, type=Trade)
    return service


async def test_two_servers_serve_one_topic() -> None:
    """A client of each gets the elements of both publishers, as objects of their class."""
    shelf = Shelf()
    async with (
        process(shelf, type=Trade) as one,
        process(shelf, type=Trade) as two,
        serve(service_of(one), "memory://one"),
        serve(service_of(two), "memory://two"),
        connect("memory://one") as a,
        connect("memory://two") as b,
        a.subscribe("trades", type=Trade) as from_one,
        b.subscribe("trades", type=Trade) as from_two,
    ):
        await wait_all_tasks_blocked()
        await one.publish(Trade("a", 1.0))
        await two.publish(Trade("b", 2.0))
        wanted = [Trade("a", 1.0), Trade("b", 2.0)]
        assert [await some(each, 2) for each in (from_one, from_two)] == [wanted] * 2


async def test_a_client_is_told_of_a_gap(autojump_clock: MockClock) -> None:
    """The text crosses the network."""
    shelf = Shelf()
    shelf.may_answer = trio.Event()
    async with (
        process(shelf, type=Trade, on_violation=Reports().append) as topic,
        serve(service_of(topic), "memory://gap"),
        connect("memory://gap") as peer,
        peer.subscribe("trades", type=Trade) as stream,
    ):
        await trio.sleep(1)
        shelf.partitions["0"].rows += [(0.0, b"{}")] * 10
        shelf.tell(["0"])
        await trio.sleep(1)
        shelf.drop("0", 10)
        shelf.may_answer.set()
        with pytest.raises(PublisherFailed, match="10 elements of this topic were dropped"):
            await anext(stream)


async def test_rights_that_are_taken_away_are_told_once(autojump_clock: MockClock) -> None:
    """The streams wait, and go on when they are given back."""
    shelf, told = Shelf(), Reports()
    async with process(shelf, on_violation=told.append) as topic, subscribe(topic) as stream:
        await topic.publish(b"1")
        assert await anext(stream) == b"1"
        shelf.failure = UsageError("NOPERM: give the user of the log the right to read")
        with pytest.raises(UsageError, match="NOPERM"):
            await topic.publish(b"2")
        shelf.partitions["0"].rows.append((0.0, b"3"))
        shelf.tell(["0"])
        await trio.sleep(30)
        shelf.failure = None
        assert await anext(stream) == b"3"
        assert [type(each) for each in told] == [UsageError]


async def test_a_log_on_disk_has_one_process_that_publishes(tmp_path: Path) -> None:
    """The others open it for reading only."""
    path = tmp_path / "prices.log"
    async with (
        SharedTopic[bytes](DiskLog(path, retention=KEEP)) as writer,
        SharedTopic[bytes](DiskLog(path, read_only=True)) as reader,
        subscribe(reader) as stream,
    ):
        await writer.publish_many([b"1", b"2"])
        assert await some(stream, 2) == [b"1", b"2"]
        with pytest.raises(UsageError, match="read"):
            await reader.publish(b"3")


async def test_a_cancelled_reading_of_a_batch_repeats_nothing(autojump_clock: MockClock) -> None:
    """A subscriber that holds up its process is failed; the next one gets what comes then."""
    shelf = Shelf()
    async with process(shelf, max_hold_up=1) as topic, subscribe(topic) as reader:
        async with subscribe(topic, demand=1) as still:
            await topic.publish_many([b"%d" % number for number in range(50)])
            assert await some(reader, 50) == [b"%d" % number for number in range(50)]
            with pytest.raises(SlowSubscriber, match="requested nothing for 1 s"):
                await some(still, 50)
        assert topic.statistics().failed == 1


async def test_inspect_shows_the_reading_of_the_log() -> None:
    """With the position, and how many elements the log has from there on."""
    shelf = Shelf()
    async with process(shelf) as topic, subscribe(topic):
        await topic.publish(b"1")
        await wait_all_tasks_blocked()
        text = io.StringIO()
        inspect(text)
        assert "partition '0' from 0 on" in text.getvalue()
        assert "2 streams are read in this process" in text.getvalue()


@pytest.mark.parametrize(
    ("slow", "counted"), [(SlowPolicy.FAIL, "failed"), (SlowPolicy.DROP_NEWEST, "dropped")]
)
async def test_counts_go_on_when_streams_were_ended(
    slow: SlowPolicy, counted: str, autojump_clock: MockClock
) -> None:
    """They are those of the process since the block was entered."""
    shelf = Shelf()
    options = {"slow": slow, "buffer": 0, "on_violation": Reports().append}
    async with process(shelf, **options) as topic:
        for _ in range(2):
            async with subscribe(topic, demand=0):
                await topic.publish(b"1")
                await trio.sleep(1)
                shelf.logs[0].lost(LogDamaged("it was deleted"))
                await trio.sleep(2)
        counts = topic.statistics()
        assert (counts.published, getattr(counts, counted)) == (2, 2)


class Careless(Serializer):
    """Written by a program, and not as a serializer must be."""

    name = "careless"

    def dumps(self, element: object, /) -> bytes:
        return repr(element).encode()

    def loads(self, data: bytes, /) -> object:
        return None if data == b"0" else 1 // (int(data) - 1)


async def test_a_serializer_that_breaks_its_promise_costs_its_elements() -> None:
    """None and an exception of any type: other elements come, and the cause is told."""
    shelf, told = Shelf(), Reports()
    async with (
        process(shelf, serializer=Careless(), on_violation=told.append) as topic,
        subscribe(topic) as stream,
    ):
        await topic.publish_many([0, 2])
        await topic.publish_many([1, 2])
        assert await some(stream, 2) == [1, 1]
        assert topic.refused == 2
        assert [type(each.__cause__) for each in told] == [type(None), ZeroDivisionError]


def test_a_task_of_asyncio_publishes_and_serves() -> None:
    """The block and `publish` cross to trio as any other call does."""

    async def main() -> list[bytes]:
        topic = SharedTopic[bytes](RingLog(retention=KEEP), retain=2)
        service = aio.Service()
        service.publish("prices", topic)
        async with (
            aio.in_trio_block(topic),
            aio.serve(service, "tcp://127.0.0.1:0") as server,
            aio.connect(str(server.addresses[0])) as peer,
            peer.subscribe("prices") as stream,
        ):
            await aio.in_trio(topic.publish_many, [b"1", b"2"])
            return [await anext(stream), await anext(stream)]

    assert asyncio.run(main()) == [b"1", b"2"]


async def test_a_batch_that_is_being_published_is_not_cut_short() -> None:
    """The last subscriber leaves in the middle of a batch, and another one joins in the same pass
    of the scheduler: it gets no element twice, in whatever order the tasks run.
    """
    for _ in range(60):
        shelf = Shelf()
        async with process(shelf) as topic, trio.open_nursery() as nursery:
            leaving, joining = ManualSubscriber(), ManualSubscriber()
            topic.subscribe(leaving)
            await topic.publish_many([b"%d" % number for number in range(16)])
            leaving.subscription.request(1)
            await wait_all_tasks_blocked()
            leaves = trio.Event()

            async def join(leaves: trio.Event, joining: ManualSubscriber) -> None:
                await leaves.wait()
                topic.subscribe(joining)
                joining.subscription.request(5)

            nursery.start_soon(join, leaves, joining)
            await wait_all_tasks_blocked()
            leaving.subscription.cancel()
            leaves.set()
            await wait_all_tasks_blocked()
            joining.subscription.request(20)
            await wait_all_tasks_blocked()
            assert len(joining.elements) == len(set(joining.elements))
            joining.subscription.cancel()
