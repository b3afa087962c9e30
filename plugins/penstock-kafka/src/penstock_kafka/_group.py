"""A consumer group as a publisher: elements go to one of its members, within the demand, and are
acknowledged when the subscriber has taken them.

Rules of this file:

* Elements are asked of the client as many as were requested, and handed over at once: none wait
  here. The client fetches no partition anew before what it has fetched of it was asked for.
* A subscriber has taken an element when it has requested as many more as it ever waited for. So a
  stream with a demand of 1 has taken an element when its reader asks for the next one.
* A subscriber gets the elements of a partition in order, and one at a time.
"""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias

import msgspec
import trio

from penstock.api import (
    UNBOUNDED,
    AlreadySubscribed,
    IllegalDemand,
    PenstockError,
    Subscriber,
    UsageError,
    shown,
)
from penstock_kafka._access import KafkaAccess, check_brokers, check_topic
from penstock_kafka._asyncio_thread import AsyncioThread
from penstock_kafka._member import Member, Place, Start, merged

Acknowledgement: TypeAlias = Literal["taken", "by hand"]

MOST_AT_ONCE: Final = 1_024
"""Records that one call gets."""

COMMIT_EVERY: Final = 1.0
"""Seconds between two commits."""

CHECK_EVERY: Final = 5.0
"""Seconds between two looks whether the brokers answer."""

CLEANUP_SECONDS: Final = 5.0
"""Seconds that leaving a group may take."""

NO_ACCESS: Final = KafkaAccess()

_LINES: Final = logging.getLogger("penstock")


class KafkaRecord(msgspec.Struct, frozen=True, gc=False):
    """An element of a topic, and what Kafka says of it."""

    value: bytes
    """The element."""
    key: bytes | None
    """Records with one key are in one partition."""
    headers: tuple[tuple[str, bytes | None], ...]
    """Names and values. A name may come twice."""
    topic: str
    """The name of its topic."""
    partition: int
    """The number of its partition."""
    position: int
    """Its offset."""
    time: float
    """Seconds since 1970."""


class GroupStatistics(NamedTuple):
    """What a member of a group has done since it was opened."""

    delivered: int = 0
    """Elements that the subscriber got."""
    taken: int = 0
    """Those that it has taken, or that were acknowledged."""
    repeated: int = 0
    """At most so many of them go to another member again: their partition went to it before they
    were taken.
    """
    divisions: int = 0
    """How often the group has divided its partitions."""


class KafkaGroup:
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

    A group that is new begins at `start`. `timeout` is how long brokers may be silent before the
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
        names = [topics] if isinstance(topics, str) else list(topics)
        if type(group) is not str or not 0 < len(group) <= 249:
            raise UsageError(f"KafkaGroup(group={shown(group)}); give a name of 1 to 249 letters")
        if start not in ("earliest", "latest") or acknowledge not in ("taken", "by hand"):
            raise UsageError(
                f"KafkaGroup(start={shown(start)}, acknowledge={shown(acknowledge)}); give "
                "'earliest' or 'latest', and 'taken' or 'by hand'"
            )
        self._brokers = check_brokers(brokers)
        self._topics = [check_topic(name) for name in names]
        self._group = group
        self._start: Start = start
        self._by_hand = acknowledge == "by hand"
        self._access = access
        self._timeout = timeout
        self._open: AbstractAsyncContextManager[trio.Nursery] | None = None
        self._subscription: _Subscription | None = None
        self._member: Member | None = None
        self._wanted = trio.Event()
        self._delivered = self._taken = self._repeated = 0

    async def __aenter__(self) -> Self:
        if self._open is not None:
            raise UsageError(f"{self!r} is open already; open one object for each member")
        self._thread = AsyncioThread()
        self._thread.start()
        self._member = None
        try:
            self._member = await self._thread.call(self._make_member)
            await self._thread.call(self._member.open)
        except BaseException:
            await self._leave()
            raise
        # Not `async with`: what the block raises would leave it in a group.
        self._open = trio.open_nursery()
        self._nursery = await self._open.__aenter__()
        for task in (self._deliver, self._commit, self._check):
            self._nursery.start_soon(self._until_it_fails, task)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        opened, self._open = self._open, None
        if opened is None:
            return
        self._end(None)
        self._nursery.cancel_scope.cancel()
        await opened.__aexit__(None, None, None)
        await self._leave()

    async def _make_member(self) -> Member:
        return Member(
            self._brokers,
            self._topics,
            self._group,
            start=self._start,
            access=self._access,
            timeout=self._timeout,
            gone=lambda places: self._thread.tell(self._forget, places),
        )

    async def _leave(self) -> None:
        """Commit what was taken, and leave the group."""
        # Brokers that are silent do not hold it up: the group misses the heartbeats.
        with trio.move_on_after(CLEANUP_SECONDS, shield=True):
            if self._member is not None:
                await self._thread.call(self._member.aclose)
        await self._thread.aclose()

    # --- the publisher

    def subscribe(self, subscriber: Subscriber[KafkaRecord], /) -> None:
        """Begin to hand over the elements of this member. See `penstock.Publisher`."""
        if subscriber is None:
            raise TypeError("subscribe(None): a subscriber is needed (rule 1.9)")
        subscription = _Subscription(self, subscriber)
        subscriber.on_subscribe(subscription)
        if self._open is None:
            subscription.fail(UsageError(f"{self!r} is not open: use it inside of `async with`"))
        elif self._subscription is not None:
            subscription.fail(
                AlreadySubscribed(
                    f"{self!r} has a subscriber: open another KafkaGroup with the same group, and "
                    "its partitions are divided among them"
                )
            )
        elif not subscription.is_over:
            self._subscription = subscription
            self.wake()

    @property
    def is_by_hand(self) -> bool:
        """An element is done when `acknowledge` says so."""
        return self._by_hand

    def acknowledge(self, record: KafkaRecord) -> None:
        """Note that `record`, and all elements of its partition before it, are done.
        Raises UsageError without ``acknowledge="by hand"``.
        """
        if not self._by_hand:
            raise UsageError(
                "acknowledge() counts with KafkaGroup(acknowledge='by hand'); without it an "
                "element is done when the subscriber has taken it"
            )
        self._note(record)

    @property
    def statistics(self) -> GroupStatistics:
        """What this member has done."""
        divisions = 0 if self._member is None else self._member.divisions
        return GroupStatistics(self._delivered, self._taken, self._repeated, divisions)

    # --- for the subscription

    def wake(self) -> None:
        """Let the task go on that hands over elements."""
        self._wanted.set()

    def take(self, records: Sequence[KafkaRecord | None]) -> None:
        """Note elements that the subscriber has taken."""
        if not self._by_hand:
            for record in records:
                if record is not None:
                    self._note(record)

    def leave(self, subscription: "_Subscription") -> None:
        """Forget a subscription that is over."""
        if self._subscription is subscription:
            self._subscription = None
            self._repeated += len(subscription.waiting)

    # --- inside

    def _note(self, record: KafkaRecord) -> None:
        place, taken = (record.topic, record.partition), self._joined.taken
        taken[place] = merged(taken, place, record.position + 1)
        self._taken += 1

    @property
    def _joined(self) -> Member:
        if self._member is None:
            raise UsageError(f"{self!r} is not open: use it inside of `async with`")
        return self._member

    async def _deliver(self) -> None:
        while True:
            subscription = self._subscription
            if subscription is None or not subscription.demand:
                self._wanted = trio.Event()
                if self._subscription is subscription:
                    await self._wanted.wait()
                continue
            most = min(subscription.demand, MOST_AT_ONCE)
            found = await self._thread.call(self._joined.get, most)
            records = [_record_of(each) for each in found]
            self._delivered += len(records)
            subscription.deliver(records)

    async def _commit(self) -> None:
        while True:
            await trio.sleep(COMMIT_EVERY)
            await self._thread.call(self._joined.commit)

    async def _check(self) -> None:
        while True:
            await trio.sleep(CHECK_EVERY)
            await self._thread.call(self._joined.check)

    async def _until_it_fails(self, task: Callable[[], Awaitable[None]]) -> None:
        try:
            await task()
        except PenstockError as error:
            self._end(error)

    def _end(self, error: PenstockError | None) -> None:
        """End the stream. It may be subscribed to again."""
        subscription = self._subscription
        if subscription is None:
            if error is not None:
                _LINES.error("%r: %s", self, error)
            return
        self.leave(subscription)
        subscription.fail(error or UsageError(f"{self!r} was closed while a stream read from it"))

    def _forget(self, places: frozenset[Place]) -> None:
        """Forget the elements of partitions that went to other members."""
        if self._subscription is not None:
            self._repeated += self._subscription.forget(places)

    def __repr__(self) -> str:
        return f"<KafkaGroup {self._group!r} of {', '.join(self._topics)}>"


class _Subscription:
    """The demand of one subscriber, and which elements it has taken."""

    def __init__(self, group: KafkaGroup, subscriber: Subscriber[KafkaRecord]) -> None:
        self._group = group
        self._subscriber: Subscriber[KafkaRecord] | None = subscriber
        self._requested = 0
        self._got = 0
        self._window = 0
        self.waiting: deque[KafkaRecord | None] = deque()
        """Elements that were handed over, and are not taken; None for one whose partition went to
        another member. Bounded by the demand.
        """

    @property
    def is_over(self) -> bool:
        """The subscriber gets nothing any more."""
        return self._subscriber is None

    @property
    def demand(self) -> int:
        """Elements that are requested and not handed over."""
        return 0 if self._subscriber is None else self._requested - self._got

    def request(self, count: int, /) -> None:
        """Request more elements."""
        if self._subscriber is None:
            return
        if type(count) is not int or count < 1:
            self._group.leave(self)
            self.fail(IllegalDemand(f"request({shown(count)}): give an integer from 1 (rule 3.9)"))
            return
        self._requested = min(self._requested + count, UNBOUNDED)
        self._window = max(self._window, self._requested - self._got)
        self._take()
        self._group.wake()

    def cancel(self, /) -> None:
        """Get no more elements."""
        self._group.leave(self)
        self._subscriber = None

    def deliver(self, records: Sequence[KafkaRecord]) -> None:
        """Hand over elements, within the demand."""
        for record in records:
            subscriber = self._subscriber
            if subscriber is None:
                return
            self._got += 1
            self.waiting.append(record)
            subscriber.on_next(record)
        self._take()

    def fail(self, error: BaseException) -> None:
        """End the stream with an error."""
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_error(error)

    def forget(self, places: frozenset[Place]) -> int:
        """Forget which elements of partitions are not taken. Return how many."""
        count = 0
        # Their places stay: the subscriber takes these, too, before those after them.
        for at, each in enumerate(self.waiting):
            if each is not None and (each.topic, each.partition) in places:
                self.waiting[at] = None
                count += 1
        return count

    def _take(self) -> None:
        if self._requested >= UNBOUNDED:
            count = len(self.waiting)
        else:
            count = len(self.waiting) - max(0, self._window - (self._requested - self._got))
        taken = [self.waiting.popleft() for _ in range(max(0, count))]
        self._group.take(taken)


def _record_of(record: Any) -> KafkaRecord:
    return KafkaRecord(
        record.value or b"",
        record.key,
        tuple(record.headers),
        record.topic,
        record.partition,
        record.offset,
        record.timestamp / 1_000,
    )
