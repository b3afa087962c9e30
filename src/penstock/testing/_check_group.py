"""The checker of groups: it runs any implementation of `penstock.brokers.Member` through the
sentences of its contract, as a `BrokerGroup` shows them.

Rules of this file:

* Each check gets a log without elements and a group without members, and is named after the
  sentence that it checks.
* No check depends on time: each waits for what must come, and `WITHIN` ends one that waits in vain.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Final, NamedTuple, TypeAlias

import trio

from penstock.api import AlreadySubscribed, PenstockError, Subscription, UsageError
from penstock.brokers import Acknowledgement, BrokerGroup, GroupRecord, handle
from penstock.logs import Retention, RingLog
from penstock.spi import Record
from penstock.streams import collect, subscribe

PARTITIONS: Final = ("0", "1")
WITHIN: Final = 60.0


class GroupBench(NamedTuple):
    """A log, and how members of a group of it are made."""

    append: Callable[[str, Sequence[bytes]], Awaitable[object]]
    """Appends elements to a partition."""
    member: Callable[[Acknowledgement], BrokerGroup[Any]]
    """Returns a new member, which is not open, with this way to acknowledge."""


OpenGroup: TypeAlias = Callable[[Sequence[str]], AbstractAsyncContextManager[GroupBench]]
"""Returns the context of a new log with these partitions, and a new group of it."""


class GroupContractBroken(AssertionError):
    """A group does not keep its contract.
    The text names the check, and has the expected and the observed values.
    """


async def check_group(open_group: OpenGroup) -> None:
    """Check a plugin's `Member`, by the `BrokerGroup` that it makes. Raises GroupContractBroken for
    the first check that it fails, or the error that a check met.

    `open_group` takes the names of partitions, and returns the async context of a `GroupBench`; it
    is called for each check.
    """
    for check in CHECKS:
        with _named_after(check):
            async with open_group(PARTITIONS) as bench:
                with trio.move_on_after(WITHIN) as scope:
                    await check(bench)
                if scope.cancelled_caught:
                    raise GroupContractBroken(f"nothing came within {WITHIN:g} s")


@contextmanager
def _named_after(check: Callable[..., object]) -> Iterator[None]:
    """Name the check in the text of what breaks it."""
    try:
        yield
    except (GroupContractBroken, BaseExceptionGroup) as broken:
        first: BaseException = broken
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        if not isinstance(first, GroupContractBroken):
            raise
        raise GroupContractBroken(f"{check.__name__.removeprefix('_')}: {first}") from None


def _expect(expected: object, seen: object, what: str) -> None:
    if expected != seen:
        raise GroupContractBroken(f"{what}: expected {expected!r}, seen {seen!r}")


def _numbered(start: int, stop: int) -> list[bytes]:
    return [b"element %d" % number for number in range(start, stop)]


async def _read(group: BrokerGroup[Any], count: int, demand: int = 16) -> list[GroupRecord]:
    """Return the next elements of a member that is open."""
    async with subscribe(group, demand=demand) as stream:
        return [await anext(stream) for _ in range(count)]


async def _values(bench: GroupBench, count: int, demand: int = 16) -> list[bytes]:
    """Return the next elements of a new member, which then leaves."""
    async with bench.member("taken") as group:
        return [each.value for each in await _read(group, count, demand)]


class _Subscriber:
    """Requests what the check says, and keeps what it gets."""

    def __init__(self, raises_at: int | None = None) -> None:
        self.seen: list[GroupRecord] = []
        self.errors: list[BaseException] = []
        self.subscription: Subscription | None = None
        self._raises_at = raises_at
        self._changed = trio.Event()

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription

    def on_next(self, record: GroupRecord, /) -> None:
        self._change()
        if len(self.seen) == self._raises_at:
            self._raises_at = None
            self.seen.append(record)
            raise ValueError("a mistake of the subscriber")
        self.seen.append(record)

    def on_error(self, error: BaseException, /) -> None:
        self.errors.append(error)
        self._change()

    def on_complete(self, /) -> None:
        raise GroupContractBroken("a group completed")

    def request(self, count: int) -> None:
        if self.subscription is not None:
            self.subscription.request(count)

    def cancel(self) -> None:
        if self.subscription is not None:
            self.subscription.cancel()

    def _change(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    async def wait_for(self, count: int) -> list[bytes]:
        while len(self.seen) < count and not self.errors:
            await self._changed.wait()
        return [each.value for each in self.seen]


async def _elements_come_in_order_with_their_places(bench: GroupBench) -> None:
    elements = [b"", b"\0", *_numbered(0, 300)]
    await bench.append("1", elements)
    async with bench.member("taken") as group:
        seen = await _read(group, len(elements))
    _expect(elements, [each.value for each in seen], "the elements")
    _expect({"1"}, {each.partition for each in seen}, "their partition")
    _expect([*range(302)], [each.position for each in seen], "their positions")
    _expect([1] * 302, [each.deliveries for each in seen], "how often they came")
    times = [each.time for each in seen]
    _expect(sorted(times), times, "the times of the elements")


async def _no_more_are_handed_over_than_were_requested(bench: GroupBench) -> None:
    await bench.append("0", _numbered(0, 20))
    async with bench.member("by hand") as group:
        subscriber = _Subscriber()
        group.subscribe(subscriber)
        for count in (1, 4, 7):
            before = len(subscriber.seen)
            subscriber.request(count)
            await subscriber.wait_for(before + count)
            _expect(before + count, len(subscriber.seen), "the elements")
            _expect(before + count, group.statistics.delivered, "statistics.delivered")
        subscriber.cancel()


async def _an_element_that_comes_later_is_told(bench: GroupBench) -> None:
    async with bench.member("taken") as group, subscribe(group, demand=4) as stream:
        for number, partition in enumerate("0110"):
            await bench.append(partition, [b"%d" % number])
            _expect(b"%d" % number, (await anext(stream)).value, "an element of a waiting stream")


async def _what_was_taken_does_not_come_again(bench: GroupBench) -> None:
    await bench.append("0", _numbered(0, 20))
    _expect(_numbered(0, 8), await _values(bench, 8, demand=1), "the first reader")
    # With a demand of 1, the last one was not taken.
    _expect(_numbered(7, 20), await _values(bench, 13, demand=1), "the second reader")


async def _what_was_not_taken_comes_again_in_order(bench: GroupBench) -> None:
    await bench.append("0", _numbered(0, 60))
    first = await _values(bench, 30, demand=16)
    _expect(_numbered(0, 30), first, "the first reader")
    async with bench.member("taken") as group:
        seen = await _read(group, 30)
        begin = seen[0].position
        if not 14 <= begin <= 30:
            raise GroupContractBroken(f"30 were read with a demand of 16, and {begin} came again")
        _expect([*range(begin, begin + 30)], [each.position for each in seen], "the second reader")


async def _what_is_acknowledged_by_hand_is_done(bench: GroupBench) -> None:
    await bench.append("0", _numbered(0, 20))
    for begin, last in ((0, 4), (5, 9)):
        async with bench.member("by hand") as group:
            seen = await _read(group, 10)
            _expect(_numbered(begin, begin + 10), [each.value for each in seen], "a reader")
            group.acknowledge(seen[last - begin])
            group.acknowledge(seen[last - begin])  # again: it counts once
            _expect(last - begin + 1, group.statistics.taken, "statistics.taken")
    _expect(_numbered(10, 20), await _values(bench, 10), "the last reader")


async def _one_that_is_acknowledged_alone_leaves_those_before_it(bench: GroupBench) -> None:
    await bench.append("0", _numbered(0, 10))
    async with bench.member("by hand") as group:
        seen = await _read(group, 5)
        group.acknowledge(seen[1], alone=True)
        group.acknowledge(seen[0], alone=True)
        group.acknowledge(seen[4], alone=True)
    async with bench.member("taken") as group:
        first, *_, last = values = [each.value for each in await _read(group, 7)]
    _expect(b"element 2", first, "the first element of the next member")
    # One that knows only how far a partition is done gets the last one again.
    without = _numbered(2, 4) + _numbered(5, 10)
    if values not in (without, _numbered(2, 9)):
        _expect(without, values, f"the elements up to {last!r}")


async def _what_a_subscriber_leaves_goes_to_the_next_one(bench: GroupBench) -> None:
    await bench.append("0", _numbered(0, 12))
    async with bench.member("by hand") as group:
        first = _Subscriber()
        group.subscribe(first)
        first.request(6)
        await first.wait_for(6)
        group.acknowledge(first.seen[1])
        first.cancel()
        second = _Subscriber()
        group.subscribe(second)
        second.request(10)
        _expect(_numbered(2, 12), await second.wait_for(10), "the second subscriber")


async def _a_subscriber_that_raises_loses_nothing(bench: GroupBench) -> None:
    await bench.append("0", _numbered(0, 6))
    async with bench.member("taken") as group:
        first = _Subscriber(raises_at=2)
        group.subscribe(first)
        first.request(6)
        await first.wait_for(3)
        second = _Subscriber()
        group.subscribe(second)
        second.request(6)
        seen = await second.wait_for(1)
        await second.wait_for(6 - second.seen[0].position)
        begin = second.seen[0].position
        if begin > 2:
            raise GroupContractBroken(f"element 2 was not taken, and {seen[0]!r} came first")
        values = [each.value for each in second.seen]
        _expect(_numbered(begin, 6), values, "the second subscriber")


async def _members_divide_the_partitions(bench: GroupBench) -> None:
    for partition in PARTITIONS:
        await bench.append(partition, _numbered(0, 50))
    seen: list[tuple[str, GroupRecord]] = []
    readers = {"first", "second"}
    done = trio.Event()

    async def read(name: str) -> None:
        async with bench.member("taken") as group, subscribe(group, demand=1) as stream:
            async for record in stream:
                seen.append((name, record))
                if {who for who, _ in seen} == readers:
                    done.set()
                if name == "first" and len(seen) > 20:
                    # Until the other one has got something: 30 are left in each partition.
                    await done.wait()
                if len({(each.place, each.position) for _, each in seen}) == 100:
                    nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read, "first")
        nursery.start_soon(read, "second")
    for partition in PARTITIONS:
        # In order, except the elements that the other one got again.
        last = -1
        for _, record in seen:
            if record.partition == partition and record.position > last:
                _expect(last + 1, record.position, f"the next position of {partition!r}")
                last = record.position
        _expect(49, last, f"the last position of {partition!r}")


async def _a_member_that_leaves_gives_its_partitions_to_the_others(bench: GroupBench) -> None:
    async with bench.member("by hand") as first, subscribe(first, demand=4) as stream:
        async with bench.member("by hand") as second:
            other = _Subscriber()
            second.subscribe(other)
            other.request(100)
            number = 0
            while not other.seen:
                for partition in PARTITIONS:
                    await bench.append(partition, [b"%d" % number])
                number += 1
                with trio.move_on_after(0.5):
                    await other.wait_for(1)
            left = {(each.partition, each.position) for each in other.seen}
        # What it held comes to the first one, and then it has all partitions.
        seen: set[tuple[str, int]] = set()
        while not left <= seen:
            record = await anext(stream)
            seen.add((record.partition, record.position))
            first.acknowledge(record, alone=True)


async def _mistakes_are_told(bench: GroupBench) -> None:
    await bench.append("0", _numbered(0, 3))
    group = bench.member("taken")
    await _expect_error(UsageError, collect(group), "a stream of a member that is not open")
    async with group:
        async with subscribe(group) as stream:
            await _expect_error(AlreadySubscribed, collect(group), "a second subscriber")
            record = await anext(stream)
        await _expect_error(UsageError, _called(group.acknowledge, record), "acknowledge()")
        await _expect_error(UsageError, _called(group.__aenter__), "opening it a second time")


async def _poison_becomes_a_dead_letter(bench: GroupBench) -> None:
    await bench.append("0", _numbered(0, 12))
    dead = RingLog(retention=Retention(max_count=100))
    done: list[int] = []

    async def take(record: GroupRecord) -> None:
        await trio.lowlevel.checkpoint()
        if record.position == 5:
            raise ValueError("poison")
        done.append(record.position)
        if record.position == 12:  # then those before it are done
            work.cancel()
            await trio.lowlevel.checkpoint()

    async with bench.member("by hand") as group:
        await bench.append("0", [b"last"])
        with trio.CancelScope() as work:
            await handle(group, take, attempts=2, pause=0.0, dead_letters=dead)
    _expect([*range(5), *range(6, 13)], done, "what the function has done, in order")
    [letter] = [Record.unpack(each) for each in await collect(dead.source(stop="latest"))]
    _expect(b"element 5", letter.value, "the dead letter")
    # It was cancelled before it was done.
    _expect([b"last"], await _values(bench, 1), "the next member")


async def _called(function: Callable[..., Any], *args: Any) -> None:
    await trio.lowlevel.checkpoint()
    result = function(*args)
    if hasattr(result, "__await__"):
        await result


async def _expect_error(kind: type[PenstockError], call: Awaitable[object], what: str) -> None:
    try:
        await call
    except kind:
        return
    except PenstockError as error:
        raise GroupContractBroken(f"{what}: expected {kind.__name__}, seen {error!r}") from error
    raise GroupContractBroken(f"{what}: expected {kind.__name__}, and nothing was raised")


CHECKS: Final = (
    _no_more_are_handed_over_than_were_requested,
    _elements_come_in_order_with_their_places,
    _an_element_that_comes_later_is_told,
    _what_was_taken_does_not_come_again,
    _what_was_not_taken_comes_again_in_order,
    _what_is_acknowledged_by_hand_is_done,
    _one_that_is_acknowledged_alone_leaves_those_before_it,
    _what_a_subscriber_leaves_goes_to_the_next_one,
    _a_subscriber_that_raises_loses_nothing,
    _members_divide_the_partitions,
    _a_member_that_leaves_gives_its_partitions_to_the_others,
    _mistakes_are_told,
    _poison_becomes_a_dead_letter,
)
"""In the order in which they run."""
