"""A member of a group as a publisher: what ends its stream, what comes again, what is counted."""

import logging
from collections.abc import Sequence

import pytest
import trio

import penstock
from penstock.api import LogError, UsageError
from penstock.brokers import BrokerGroup, GroupRecord
from penstock.testing import ManualSubscriber
from tests.brokers._memory_member import MemoryBroker, MemoryGroup, MemoryMember


def _values(records: Sequence[GroupRecord]) -> list[bytes]:
    return [each.value for each in records]


async def test_a_failure_of_the_broker_ends_the_stream_and_not_the_member(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Its error says who must act. The next subscriber gets what was not taken."""
    broker = MemoryBroker(["0"])
    await broker.append("0", [b"1", b"2", b"3"])
    async with MemoryGroup(broker) as group:
        async with penstock.subscribe(group, demand=1) as stream:
            assert (await anext(stream)).value == b"1"
            assert (await anext(stream)).value == b"2"
            broker.failure = LogError("the broker is away: start it")
            with pytest.raises(LogError, match="start it"):
                [await anext(stream) for _ in range(3)]
        broker.failure = None
        async with penstock.subscribe(group, demand=1) as stream:
            seen = [(await anext(stream)).value]
            while seen[-1] != b"3":
                seen.append((await anext(stream)).value)
    assert seen in ([b"2", b"3"], [b"3"])


async def test_a_failure_that_no_stream_gets_is_logged_once(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a subscriber a broker that stays away does not fill the logs."""
    broker = MemoryBroker(["0"])
    with caplog.at_level(logging.ERROR, "penstock"):
        async with MemoryGroup(broker):
            broker.failure = LogError("the broker is away: start it")
            await trio.sleep(10)
            broker.failure = None
    assert [each.getMessage() for each in caplog.records] == [
        "<MemoryGroup>: the broker is away: start it"
    ]


async def test_acknowledgements_are_tried_again(autojump_clock: trio.testing.MockClock) -> None:
    """Those that failed reach the broker when it is back, at the latest when the member leaves."""
    broker = MemoryBroker(["0"])
    await broker.append("0", [b"1", b"2"])
    async with MemoryGroup(broker, acknowledge="by hand") as group:
        async with penstock.subscribe(group) as stream:
            records = [await anext(stream) for _ in range(2)]
            broker.failure = LogError("the broker is away: start it")
            group.acknowledge(records[1])
            with pytest.raises(LogError):
                await anext(stream)
        broker.failure = None
    assert broker.held["0"] == {}
    assert broker.again["0"] == []


async def test_an_element_that_this_member_holds_is_not_handed_over_again() -> None:
    """A broker that was away may give it anew. The later receipt counts."""
    broker = MemoryBroker(["0"])
    await broker.append("0", [b"1", b"2"])
    async with MemoryGroup(broker, acknowledge="by hand") as group:
        subscriber: ManualSubscriber[GroupRecord] = ManualSubscriber()
        group.subscribe(subscriber)
        subscriber.request(1)
        [first] = await subscriber.expect_elements(1)
        broker.return_all("0")
        subscriber.request(1)
        [second] = await subscriber.expect_elements(1)
        assert _values([first, second]) == [b"1", b"2"]
        assert group.statistics.delivered == 2


async def test_what_goes_to_another_member_is_counted_and_not_acknowledged() -> None:
    """The other one gets it again, and an acknowledgement that comes too late changes nothing."""
    broker = MemoryBroker(["0", "1"])
    await broker.append("1", [b"1", b"2", b"3"])
    async with MemoryGroup(broker, acknowledge="by hand") as first:
        async with penstock.subscribe(first, demand=3) as stream:
            records = [await anext(stream) for _ in range(3)]
            async with MemoryGroup(broker, acknowledge="by hand") as second:
                assert first.statistics.repeated == 3
                first.acknowledge(records[2])
                assert first.statistics.taken == 0
                async with penstock.subscribe(second) as other:
                    assert _values([await anext(other) for _ in range(3)]) == [b"1", b"2", b"3"]


async def test_a_group_that_is_closed_tells_its_stream() -> None:
    """A stream that is still open gets a UsageError, and does not wait for ever."""
    broker = MemoryBroker(["0"])
    async with MemoryGroup(broker) as group:
        subscriber: ManualSubscriber[GroupRecord] = ManualSubscriber()
        group.subscribe(subscriber)
        subscriber.request(1)
    await subscriber.expect_error(UsageError)
    assert broker.members == {}


async def test_a_subscriber_that_ends_the_program_lets_the_member_leave() -> None:
    """What `on_error` raises goes on, and nothing of the member stays."""

    class Ending(ManualSubscriber):
        def on_error(self, error: BaseException, /) -> None:
            raise KeyboardInterrupt

    broker = MemoryBroker(["0"])
    with pytest.raises(KeyboardInterrupt):
        async with MemoryGroup(broker) as group:
            group.subscribe(Ending())
    assert broker.members == {}


async def test_what_the_block_raises_goes_on_as_it_is() -> None:
    """It is in no exception group, and the member has left."""
    broker = MemoryBroker(["0"])
    with pytest.raises(KeyError, match="mistake"):
        async with MemoryGroup(broker):
            raise KeyError("mistake")
    with pytest.raises(KeyError, match="mistake"):
        async with MemoryGroup(broker):
            await trio.lowlevel.checkpoint()
            raise KeyError("mistake")
    assert broker.members == {}


async def test_a_member_that_cannot_join_leaves_nothing_behind() -> None:
    """The error is that of the broker, and the group can be opened later."""

    class Refused(MemoryMember):
        async def keep(self, held: Sequence[GroupRecord]) -> None:
            raise AssertionError

        async def open(self, *args: object) -> None:
            await trio.lowlevel.checkpoint()
            raise LogError("no broker: start it")

    group = MemoryGroup(MemoryBroker(["0"]))
    member, group._member = group._member, Refused(MemoryBroker(["0"]))
    with pytest.raises(LogError, match="start it"):
        await group.__aenter__()
    group._member = member
    async with group:
        pass


@pytest.mark.parametrize("demand", [1, 2, 8, 100])
@pytest.mark.parametrize("count", [1, 7, 250])
async def test_all_that_a_waiting_reader_has_read_is_done(
    autojump_clock: trio.testing.MockClock, demand: int, count: int
) -> None:
    """Also if nothing follows: a reader that is killed then leaves nothing that comes again."""
    broker = MemoryBroker(["0"])
    async with MemoryGroup(broker) as group:
        async with penstock.subscribe(group, demand=demand) as stream:
            await broker.append("0", [b"%d" % number for number in range(count)])
            with trio.move_on_after(60):
                while True:
                    await anext(stream)
            assert (group.statistics.taken, broker.held["0"]) == (count, {})


async def test_a_bad_way_to_acknowledge_is_refused() -> None:
    """With those that there are."""
    with pytest.raises(UsageError, match="'taken' or 'by hand'"):
        MemoryGroup(MemoryBroker(["0"]), acknowledge="never")


async def test_an_element_that_is_done_is_not_handed_over_again() -> None:
    """A broker that was away may give it anew before it knows."""
    may_answer = trio.Event()

    class Slow(MemoryMember):
        async def acknowledge(self, records: Sequence[GroupRecord]) -> None:
            await super().acknowledge(records)
            await may_answer.wait()

    broker = MemoryBroker(["0"])
    await broker.append("0", [b"1", b"2", b"3"])
    async with BrokerGroup(Slow(broker), acknowledge="by hand") as group:
        subscriber: ManualSubscriber[GroupRecord] = ManualSubscriber()
        group.subscribe(subscriber)
        subscriber.request(2)
        first, second = await subscriber.expect_elements(2)
        group.acknowledge(first)
        while 0 in broker.held["0"]:
            await trio.lowlevel.checkpoint()
        group.acknowledge(second)  # it waits for the answer to the first one
        broker.return_all("0")
        subscriber.request(1)
        assert _values(await subscriber.expect_elements(1)) == [b"3"]
        may_answer.set()
    assert group.statistics.taken == 2


async def test_nothing_is_fetched_while_many_elements_wait_for_their_acknowledgement(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A broker that takes no acknowledgement bounds what a member keeps. It goes on after that."""
    broker = MemoryBroker(["0"])
    await broker.append("0", [b"%d" % at for at in range(1_000)])
    may_answer = trio.Event()

    class Slow(MemoryMember):
        async def acknowledge(self, records: Sequence[GroupRecord]) -> None:
            await may_answer.wait()
            await super().acknowledge(records)

    async with BrokerGroup(Slow(broker)) as group:
        async with penstock.subscribe(group, demand=8) as stream:
            count = 0
            with trio.move_on_after(60):
                while True:
                    await anext(stream)
                    count += 1
            assert 64 < count < 100
            may_answer.set()
            while count < 1_000:
                await anext(stream)
                count += 1


async def test_only_a_record_is_acknowledged() -> None:
    """Its value, or another object, says nothing of what is done."""
    group = MemoryGroup(MemoryBroker(["0"]), acknowledge="by hand")
    for thing in (None, 5, b"value", ["0"]):
        with pytest.raises(UsageError, match="give a record that this group has delivered"):
            group.acknowledge(thing)  # type: ignore[arg-type]  # on purpose
