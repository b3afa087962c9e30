"""A consumer group of Kafka as a publisher.

Rules of this file:

* The client fetches no partition anew before what it has fetched of it was asked for.
* The calls come from trio, and the consumer is on asyncio, in a thread.
"""

from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any, Final, TypeVar

import trio

from penstock.api import UsageError, shown
from penstock.brokers import Acknowledgement, BrokerGroup, GroupRecord, Member, Place
from penstock_kafka._access import (
    KafkaAccess,
    check_access,
    check_brokers,
    check_timeout,
    check_topics,
)
from penstock_kafka._asyncio_thread import AsyncioThread
from penstock_kafka._member import Consumer, Start

T = TypeVar("T")

COMMIT_EVERY: Final = 1.0
"""Seconds between two commits."""

CHECK_EVERY: Final = 5.0
"""Seconds between two looks whether the brokers answer."""

NO_ACCESS: Final = KafkaAccess()


class KafkaRecord(GroupRecord, frozen=True, gc=False):
    """An element of a topic, and what Kafka says of it. Its position is its offset."""

    is_deletion: bool = False
    """It has no value: it says that its key is gone. `value` is empty then."""

    @property
    def topic(self) -> str:
        """The name of its topic."""
        return self.name


class KafkaGroup(BrokerGroup[KafkaRecord]):
    """A member of a consumer group: a publisher of `KafkaRecord`, with one subscriber at a time.

    ::

        async with KafkaGroup("127.0.0.1:9092", "orders", group="billing") as orders:
            async with penstock.subscribe(orders, demand=1) as stream:
                async for record in stream:
                    await bill(record.value)

    The members of a group, in any number of programs, divide the partitions of `topics` among them.
    An element counts as done when the subscriber has taken it: then its position is committed,
    within a second, and before its partition goes to another member. What was not taken comes
    again: at least once. A subscriber has taken an element when it has requested as many more as it
    ever waited for; with ``acknowledge="by hand"`` the program calls `acknowledge`.

    A group that is new begins at `start`. One whose next element the broker has dropped goes on at
    the oldest one, and `statistics` counts what is missing. A topic that is deleted and made anew
    ends the stream with LogDamaged. `timeout` is how long brokers may be silent before the
    subscriber gets a LogError. Raises UsageError for arguments that are not possible. Opening it
    raises UsageError if there is no such topic, and LogError if no broker answers.
    """

    def __init__(
        self,
        brokers: str | Sequence[str],
        topics: str | Sequence[str],
        *,
        group: str,
        start: Start = "earliest",
        acknowledge: Acknowledgement = "taken",
        access: KafkaAccess = NO_ACCESS,
        timeout: float = 30.0,
    ) -> None:
        if type(group) is not str or not 0 < len(group) <= 249:
            raise UsageError(f"KafkaGroup(group={shown(group)}); give a name of 1 to 249 letters")
        if start not in ("earliest", "latest"):
            raise UsageError(f"KafkaGroup(start={shown(start)}); give 'earliest' or 'latest'")
        addresses = check_brokers(brokers)
        names = check_topics(topics)
        access = check_access(access, "KafkaGroup")
        timeout = check_timeout(timeout, "KafkaGroup")

        def make(gone: Callable[[Collection[Place]], None]) -> Consumer:
            return Consumer(
                addresses,
                names,
                group,
                start=start,
                access=access,
                timeout=timeout,
                gone=gone,
            )

        what = f"{group!r} of {', '.join(names)}"
        super().__init__(KafkaMember(make, what), acknowledge=acknowledge)


class KafkaMember(Member[KafkaRecord]):
    """A consumer of Kafka as a member of a group."""

    beat: float = COMMIT_EVERY
    in_order: bool = True

    def __init__(
        self, make: Callable[[Callable[[Collection[Place]], None]], Consumer], what: str
    ) -> None:
        self._make = make
        self._what = what
        self._thread: AsyncioThread | None = None
        self._consumer: Consumer | None = None

    def __repr__(self) -> str:
        return self._what

    @property
    def divisions(self) -> int:  # type: ignore[override]  # it is the consumer that counts
        """How often the group has divided its partitions."""
        return 0 if self._consumer is None else self._consumer.divisions

    @property
    def missing(self) -> int:  # type: ignore[override]  # as above
        """Elements that the broker had dropped before this member came to them."""
        return 0 if self._consumer is None else self._consumer.missing

    async def open(self, gone: Callable[[Collection[Place]], None], nursery: trio.Nursery) -> None:
        self._consumer = None
        thread = self._thread = AsyncioThread()
        thread.start()

        async def make() -> Consumer:
            return self._make(lambda places: thread.tell(gone, places))

        self._consumer = await thread.call(make)
        thread.at_end = self._consumer.close_connections
        await thread.call(self._consumer.open)
        self._check_at = trio.current_time() + CHECK_EVERY

    async def aclose(self) -> None:
        """Commit what was taken, and leave the group."""
        thread, self._thread = self._thread, None
        if thread is None:  # it could not be made
            await trio.lowlevel.checkpoint()
            return
        try:
            if self._consumer is not None:
                await thread.call(self._consumer.aclose)
        finally:
            await thread.aclose()

    async def fetch(self, most: int) -> Sequence[KafkaRecord]:
        found = await self._call(self._opened.get, most)
        return [_record_of(each) for each in found]

    async def acknowledge(self, records: Sequence[KafkaRecord]) -> None:
        """Note it for the next commit."""
        taken = self._opened.taken
        for record in records:
            taken[record.place] = max(taken.get(record.place, 0), record.position + 1)
        await trio.lowlevel.checkpoint()

    async def give_back(self, records: Sequence[KafkaRecord]) -> None:
        firsts: dict[Place, int] = {}
        for record in records:
            firsts[record.place] = min(record.position, firsts.get(record.place, record.position))
        await self._call(self._opened.go_back, firsts)

    async def keep(self, held: Sequence[KafkaRecord]) -> None:
        """Commit what is done, and ask the brokers now and then whether they are there: the client
        of Kafka has its own heartbeats.
        """
        await self._call(self._opened.look)
        await self._call(self._opened.commit)
        if trio.current_time() >= self._check_at:
            await self._call(self._opened.check)
            self._check_at = trio.current_time() + CHECK_EVERY

    async def _call(self, function: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
        assert self._thread is not None  # noqa: S101 (for the type checker)
        return await self._thread.call(function, *args)

    @property
    def _opened(self) -> Consumer:
        if self._consumer is None:
            raise UsageError("the member of a group is not open: use it inside of `async with`")
        return self._consumer


def _record_of(record: Any) -> KafkaRecord:
    return KafkaRecord(
        record.value or b"",
        record.key,
        tuple(record.headers),
        record.topic,
        str(record.partition),
        record.offset,
        record.timestamp / 1_000,
        is_deletion=record.value is None,
    )
