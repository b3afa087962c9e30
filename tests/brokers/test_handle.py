"""A function is called for each element: in order by key, and what ends programs is a dead letter."""

from collections import defaultdict

import pytest
import trio

import penstock
from penstock.api import LogError, UsageError
from penstock.brokers import GroupRecord, handle, send
from penstock.logs import Retention, RingLog
from penstock.spi import Record
from tests.brokers._memory_member import MemoryBroker, MemoryGroup

FEW = Retention(max_count=100)


class Ends(BaseException):
    """Ends a program in the middle of a function."""


async def test_an_element_that_ends_programs_becomes_a_dead_letter() -> None:
    """It never raises, so only its deliveries show it. After so many it is not tried any more."""
    broker, dead = MemoryBroker(["0"]), RingLog(retention=FEW)
    await broker.append("0", [b"poison", b"good"])
    calls: list[bytes] = []

    async def take(record: GroupRecord) -> None:
        await trio.lowlevel.checkpoint()
        calls.append(record.value)
        if record.value == b"poison":
            raise Ends
        scope.cancel()

    for _ in range(4):
        async with MemoryGroup(broker, acknowledge="by hand") as group:
            with trio.CancelScope() as scope:
                try:
                    await handle(group, take, deliveries=3, dead_letters=dead)
                except* Ends:
                    pass
    assert calls == [b"poison"] * 3 + [b"good"]
    [letter] = [Record.unpack(each) for each in await penstock.collect(dead.source(stop="latest"))]
    assert letter.value == b"poison"
    assert b"got it 4 times, and 3 are allowed" in (dict(letter.headers)["penstock-error"] or b"")


async def test_a_failed_element_does_not_hold_up_those_of_other_keys() -> None:
    """It is tried again after a pause, and others go on."""
    broker = MemoryBroker(["0", "1"])
    await broker.append("0", [b"slow", b"after"])
    await broker.append("1", [b"x", b"y"])
    seen: dict[str, list[bytes]] = defaultdict(list)
    may_go_on = trio.Event()

    async def take(record: GroupRecord) -> None:
        if record.value == b"slow":
            await may_go_on.wait()
        seen[record.partition].append(record.value)
        if seen["1"] == [b"x", b"y"]:
            assert not seen["0"] or may_go_on.is_set()
            may_go_on.set()
        if sum(map(len, seen.values())) == 4:
            scope.cancel()

    async with MemoryGroup(broker, acknowledge="by hand") as group:
        with trio.CancelScope() as scope:
            await handle(group, take, workers=8)
    assert seen == {"0": [b"slow", b"after"], "1": [b"x", b"y"]}


async def test_dead_letters_that_cannot_be_kept_end_it() -> None:
    """The element is not done: it comes again."""
    broker = MemoryBroker(["0"])
    await broker.append("0", [b"poison"])

    async def take(record: GroupRecord) -> None:
        raise ValueError(record.value)

    class Full(RingLog):
        async def append(self, *args: object, **options: object) -> range:
            await trio.lowlevel.checkpoint()
            raise LogError("full: make room")

    async with MemoryGroup(broker, acknowledge="by hand") as group:
        with pytest.raises(LogError, match="make room"):
            await handle(group, take, attempts=1, dead_letters=Full(retention=FEW))
    assert broker.again["0"] == [0]


async def test_arguments_that_are_not_possible_are_refused() -> None:
    """Before anything is read or written."""

    async def take(record: GroupRecord) -> None:
        raise AssertionError

    broker = MemoryBroker(["0"])
    with pytest.raises(UsageError, match=r"MemoryGroup\(acknowledge='by hand'\)"):
        await handle(MemoryGroup(broker), take)
    group = MemoryGroup(broker, acknowledge="by hand")
    for options in ({"attempts": 0}, {"workers": 1.5}, {"deliveries": True}):
        with pytest.raises(UsageError, match="give an integer from 1"):
            await handle(group, take, **options)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(UsageError, match="give a Log"):
        await handle(group, take, dead_letters="dead")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(UsageError, match="give a Log"):
        await send(None, "log")  # type: ignore[arg-type]  # on purpose


async def test_records_are_sent_to_the_partitions_of_their_keys() -> None:
    """Those of one key stay in order. Other elements are refused."""
    log = RingLog(retention=FEW, partitions=["0", "1"])
    records = [Record(b"%d" % number, b"key %d" % (number % 5)) for number in range(40)]
    async with penstock.subscribe(records) as stream:
        assert await send(stream.batches(), log) == 40
    for name in log.partitions:
        found = await penstock.collect(log.source(name, stop="latest"))
        kept = [Record.unpack(each) for each in found]
        assert kept == [each for each in records if log.partition_of(each.key or b"") == name]
    async with penstock.subscribe([b"x"]) as wrong:
        with pytest.raises(UsageError, match="give records"):
            await send(wrong.batches(), log)  # type: ignore[arg-type]  # on purpose
