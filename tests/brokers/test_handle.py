"""A function is called for each element: in order by key, and what ends programs is a dead letter."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from math import inf, nan
from typing import Any

import pytest
import trio
import trio.testing

import penstock
from penstock.api import LimitExceeded, LogError, UsageError
from penstock.brokers import GroupRecord, handle, send
from penstock.logs import Retention, RingLog
from penstock.spi import Record
from tests._real_time import HANGS_AFTER
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
    for pause in (-1, nan, inf, "x", True, None):
        with pytest.raises(UsageError, match=r"handle\(\): pause is .* a time in seconds"):
            await handle(group, take, pause=pause)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(UsageError, match="give a Log"):
        await handle(group, take, dead_letters="dead")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(UsageError, match="give a Log"):
        await send(None, "log")  # type: ignore[arg-type]  # on purpose


async def _takes_none() -> None:
    raise AssertionError


async def _takes_two(record: GroupRecord, more: object) -> None:
    raise AssertionError


class _TakesNone:
    async def __call__(self) -> None:
        raise AssertionError


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (None, "give a function of one record"),
        ("bill", "give a function of one record"),
        (_takes_none, "cannot be called with one record"),
        (_takes_two, "cannot be called with one record"),
        (partial(_takes_two, 1, 2), "cannot be called with one record"),
        (_TakesNone(), "cannot be called with one record"),
    ],
)
async def test_a_function_that_cannot_be_called_is_refused_at_once(
    function: Any, text: str
) -> None:
    """No element is read: each would become a dead letter."""
    group = MemoryGroup(MemoryBroker(["0"]), acknowledge="by hand")
    with pytest.raises(UsageError, match=text):
        await handle(group, function, dead_letters=RingLog(retention=FEW))


async def _note(record: GroupRecord, *, seen: list[bytes]) -> None:
    await trio.lowlevel.checkpoint()
    seen.append(record.value)


class _Notes:
    def __init__(self, seen: list[bytes]) -> None:
        self._seen = seen

    async def __call__(self, record: GroupRecord) -> None:
        await _note(record, seen=self._seen)


@pytest.mark.parametrize(
    "make",
    [
        lambda seen: partial(_note, seen=seen),
        lambda seen: lambda record: _note(record, seen=seen),
        _Notes,
        lambda seen: _Notes(seen).__call__,
    ],
)
async def test_all_that_returns_an_awaitable_is_called(
    make: Callable[[list[bytes]], Callable[[GroupRecord], Awaitable[None]]],
) -> None:
    """A partial, an object, and a plain function that calls an async one."""
    broker = MemoryBroker(["0"])
    await broker.append("0", [b"a", b"b"])
    seen: list[bytes] = []
    async with MemoryGroup(broker, acknowledge="by hand") as group:
        with trio.fail_after(HANGS_AFTER):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(handle, group, make(seen))
                while len(seen) < 2:
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
    assert seen == [b"a", b"b"]


async def _generates(record: GroupRecord) -> Any:
    yield record


@pytest.mark.parametrize("function", [lambda _: None, lambda record: record.value, _generates])
async def test_a_function_that_is_not_async_ends_it(
    function: Any, autojump_clock: trio.testing.MockClock
) -> None:
    """It is no fault of the element, which is no dead letter, and comes again."""
    broker, dead = MemoryBroker(["0"]), RingLog(retention=FEW)
    await broker.append("0", [b"a", b"b"])
    async with MemoryGroup(broker, acknowledge="by hand") as group:
        with trio.fail_after(5), pytest.raises(UsageError, match="give an async function"):
            await handle(group, function, dead_letters=dead)
    assert dead.latest()["0"] == 0
    assert broker.again["0"] == [0, 1]


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


async def _letters_of(error: Exception, dead: RingLog) -> list[Record]:
    """Return the dead letters of one element whose function raises `error`."""
    broker = MemoryBroker(["0"])
    await broker.append("0", [b"poison", b"last"])

    async def take(record: GroupRecord) -> None:
        await trio.lowlevel.checkpoint()
        if record.value == b"poison":
            raise error
        scope.cancel()

    async with MemoryGroup(broker, acknowledge="by hand") as group:
        with trio.fail_after(HANGS_AFTER), trio.CancelScope() as scope:
            await handle(group, take, attempts=1, dead_letters=dead)
    return [Record.unpack(each) for each in await penstock.collect(dead.source(stop="latest"))]


async def test_an_error_without_a_text_becomes_a_dead_letter() -> None:
    """Its `__str__` raises."""
    [letter] = await _letters_of(_Unprintable(), RingLog(retention=FEW))
    found = dict(letter.headers)["penstock-error"]
    assert found == b"_Unprintable: _Unprintable, whose __str__ raised"


class _Small(RingLog):
    """Takes elements up to `most` bytes."""

    most = 0

    async def append(self, elements: Sequence[bytes], **options: Any) -> range:
        size = sum(map(len, elements))
        if size > self.most:
            raise LimitExceeded(f"{size} bytes are too many", limit="most", value=self.most)
        return await super().append(elements, **options)


async def test_a_letter_that_does_not_fit_is_shortened() -> None:
    """What it has beside the element must not hold up the elements after it."""
    dead = _Small(retention=FEW)
    dead.most = 400
    [letter] = await _letters_of(ValueError("x" * 5_000), dead)
    error = dict(letter.headers)["penstock-error"]
    assert error == b"ValueError: " + b"x" * 88
    assert (letter.value, len(letter.headers)) == (b"poison", 5)


async def test_a_letter_that_cannot_fit_names_its_element_and_who_acts() -> None:
    """Without it each start of the program would end there, and nobody would know where."""
    with pytest.raises(LimitExceeded) as caught:
        await _letters_of(ValueError("x"), _Small(retention=FEW))
    error = caught.value
    for part in ("position 0 of partition '0' of 'memory'", "who runs that log", "larger limit"):
        assert part in str(error)
    assert "max.message.bytes" in str(error)
    assert error.limit == "most"
    assert isinstance(error.__cause__, ValueError)


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
