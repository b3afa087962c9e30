"""A group of readers as a publisher: elements go to one of its members, within the demand, and are
acknowledged when the subscriber has taken them.

Rules of this file:

* Elements are asked of the member as many as were requested, and handed over at once: none wait
  here.
* A subscriber has taken an element when it has requested as many more as it ever waited for. So a
  stream with a demand of 1 has taken an element when its reader asks for the next one.
* A subscriber gets the elements of a partition in order, and one at a time.
* A broker that is slow to acknowledge makes the group slow: nothing is fetched while more elements
  than the demand wait for it.
* What a subscriber leaves is given back before the next one gets anything: an element after it must
  not count as done in its place.
"""

import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final, Generic, Literal, NamedTuple, Self, TypeAlias

import trio

from penstock.api import (
    UNBOUNDED,
    AlreadySubscribed,
    PenstockError,
    Subscriber,
    UsageError,
    shown,
)
from penstock.brokers._member import GroupRecord, Member, Place, R
from penstock.core import CLEANUP_SECONDS, SubscriberGuard, log_violation

Acknowledgement: TypeAlias = Literal["taken", "by hand"]
"""When an element of a group is done: its subscriber has taken it, or the program says so."""

MOST_AT_ONCE: Final = 1_024
"""Elements that one call gets."""

MOST_FINISHED: Final = 64
"""Elements that wait for their acknowledgement when nothing more is fetched, beyond the demand."""

_LINES: Final = logging.getLogger("penstock")


class GroupStatistics(NamedTuple):
    """The numbers of a member of a group since it was opened."""

    delivered: int = 0
    """Elements that the subscriber got."""
    taken: int = 0
    """Those that it has taken, or that were acknowledged."""
    repeated: int = 0
    """As many of them, at most, go to a member again: their partition went to another member
    before they were taken, or their subscriber left.
    """
    divisions: int = 0
    """How often this member has got other partitions than before."""
    missing: int = 0
    """Elements that the broker had dropped before this member came to them. A `KafkaGroup` counts
    them.
    """


class BrokerGroup(Generic[R]):
    """A member of a group of readers: a publisher of records, with one subscriber at a time.

    Plugins derive theirs from it: `KafkaGroup`, `JetStreamGroup`, `RedisGroup`. `member` speaks to
    the broker. With ``acknowledge="taken"`` an element is done when the subscriber has taken it,
    with ``"by hand"`` when the program calls `acknowledge`. Opened with ``async with``.
    """

    def __init__(self, member: Member[R], *, acknowledge: Acknowledgement = "taken") -> None:
        if acknowledge not in ("taken", "by hand"):
            raise UsageError(
                f"{type(self).__name__}(acknowledge={shown(acknowledge)}); give 'taken' or "
                "'by hand'"
            )
        self._member = member
        self._by_hand = acknowledge == "by hand"
        self._open: AbstractAsyncContextManager[trio.Nursery] | None = None
        self._begin()

    def _begin(self) -> None:
        self._subscription: _Subscription[R] | None = None
        self._wanted = trio.Event()
        self._delivered = self._taken = self._repeated = 0
        # The elements of each partition that this member holds, by position, in order. Bounded by
        # the demand.
        self._held: dict[Place, OrderedDict[int, R]] = {}
        # Positions that are done, and wait for one before them. For a member with `in_order`.
        self._done: dict[Place, set[int]] = {}
        # Elements that the broker shall know as done. Bounded: see `_deliver`.
        self._finished: dict[tuple[Place, int], R] = {}
        self._has_finished = trio.Event()
        self._gives_back = False
        self._last_failure = ""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._member!r}>"

    async def __aenter__(self) -> Self:
        if self._open is not None:
            raise UsageError(f"{self!r} is open already; open one object for each member")
        self._begin()
        # Not `async with`: an exception of the block would leave it in a group.
        opened = trio.open_nursery()
        nursery = await opened.__aenter__()
        try:
            await self._member.open(self._forget, nursery)
        except BaseException:
            try:
                await self._leave(nursery)
            finally:
                await opened.__aexit__(None, None, None)
            raise
        self._open, self._nursery = opened, nursery
        self._scope, self._has_stopped = trio.CancelScope(), trio.Event()
        nursery.start_soon(self._run)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        opened, self._open = self._open, None
        if opened is None:
            return None
        try:
            try:
                self._end(None)  # it calls the subscriber, which may raise
            finally:
                self._scope.cancel()
                # Bounded: its tasks are cancelled.
                with trio.CancelScope(shield=True):
                    await self._has_stopped.wait()
                await self._leave(self._nursery)
        finally:
            try:
                is_caught = await opened.__aexit__(kind, error, traceback)
            except BaseExceptionGroup as group:
                if group.exceptions != (error,):
                    raise
                # An exception of the block goes on unchanged.
                is_caught = False
        return is_caught

    async def _leave(self, nursery: trio.Nursery) -> None:
        """Tell the broker which elements are done, and leave the group."""
        try:
            # A broker that is silent does not hold it up: the group goes on without this member.
            with trio.move_on_after(CLEANUP_SECONDS, shield=True):
                try:
                    await self._hand_in()
                finally:
                    await self._member.aclose()
        finally:
            nursery.cancel_scope.cancel()

    async def _hand_in(self) -> None:
        try:
            if self._finished:
                await self._member.acknowledge([*self._finished.values()])
            if self._held:
                await self._member.give_back(self._open_records())
        except PenstockError as failure:
            _LINES.warning("%r: what is done was not acknowledged: %s", self, failure)

    # --- the publisher

    def subscribe(self, subscriber: Subscriber[R], /) -> None:
        """Begin to hand over the elements of this member. See `penstock.Publisher`."""
        SubscriberGuard.insert_between(self._attach, subscriber, log_violation)

    def _attach(self, subscriber: Subscriber[R]) -> None:
        subscription = _Subscription(self, subscriber)
        subscriber.on_subscribe(subscription)
        if self._open is None:
            subscription.fail(UsageError(f"{self!r} is not open: use it inside of `async with`"))
        elif self._subscription is not None:
            subscription.fail(
                AlreadySubscribed(
                    f"{self!r} has a subscriber: open another {type(self).__name__} with the same "
                    "group, and its partitions are divided among them"
                )
            )
        elif not subscription.is_over:
            self._subscription = subscription
            self._gives_back = bool(self._held)
            self.wake()

    @property
    def is_by_hand(self) -> bool:
        """An element is done when `acknowledge` says so."""
        return self._by_hand

    def acknowledge(self, record: R, *, alone: bool = False) -> None:
        """Note that `record` is done, and all elements of its partition before it that this member
        got; with `alone` the record without those before it.

        Raises UsageError without ``acknowledge="by hand"``, and for what is no record. An element
        whose partition went to another member is not acknowledged: it comes again there.
        """
        if not self._by_hand:
            raise UsageError(
                f"acknowledge() counts with {type(self).__name__}(acknowledge='by hand'); without "
                "it an element is done when the subscriber has taken it"
            )
        if not isinstance(record, GroupRecord):  # users give anything
            raise UsageError(
                f"acknowledge({shown(record)}); give a record that this group has delivered"
            )
        held = self._held.get(record.place)
        if held is None or record.position not in held:
            return
        before = []
        for position in held if not alone else ():
            if position == record.position:
                break
            before.append(position)
        for position in (*before, record.position):
            self._finish(record.place, position)

    @property
    def statistics(self) -> GroupStatistics:
        """The numbers of this member."""
        return GroupStatistics(
            self._delivered,
            self._taken,
            self._repeated,
            self._member.divisions,
            self._member.missing,
        )

    # --- for the subscription

    def wake(self) -> None:
        """Let the task go on that hands over elements."""
        self._wanted.set()

    def take(self, records: Sequence[R | None]) -> None:
        """Note elements that the subscriber has taken."""
        if not self._by_hand:
            for record in records:
                if record is not None:
                    self._finish(record.place, record.position)

    def leave(self, subscription: "_Subscription[R]") -> None:
        """Forget a subscription that is over."""
        if self._subscription is subscription:
            self._subscription = None

    # --- inside

    def _finish(self, place: Place, position: int) -> None:
        held = self._held.get(place)
        if held is None or position not in held:
            return  # its partition went to another member
        self._taken += 1
        if not self._member.in_order:
            self._finished[place, position] = held.pop(position)
        else:
            done = self._done.setdefault(place, set())
            done.add(position)
            last = None
            while held and (first := next(iter(held))) in done:
                done.remove(first)
                last = held.pop(first)
            if last is None:
                return
            self._finished[place, last.position] = last
        if not held:
            del self._held[place]
        self._has_finished.set()

    def _open_records(self) -> list[R]:
        """Return the elements that are held and not done."""
        return [
            record
            for place, held in self._held.items()
            for position, record in held.items()
            if position not in self._done.get(place, ())
        ]

    async def _run(self) -> None:
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    for step in (self._deliver, self._settle, self._keep):
                        nursery.start_soon(self._repeat, step)
        finally:
            self._has_stopped.set()

    async def _deliver(self) -> None:
        subscription = self._subscription
        if (
            subscription is None
            or not subscription.demand
            or len(self._finished) > min(subscription.window, MOST_AT_ONCE) + MOST_FINISHED
        ):
            self._wanted = trio.Event()
            await self._wanted.wait()
            return
        if self._gives_back:
            left = self._open_records()
            self._repeated += len(left)
            self._held.clear()
            self._done.clear()
            await self._member.give_back(left)
            self._gives_back = False
        found = await self._member.fetch(min(subscription.demand, MOST_AT_ONCE))
        records = [record for record in found if self._hold(record)]
        # Those that it did not get are held, and given back.
        self._delivered += subscription.deliver(records)
        if self._subscription is not subscription:
            self._gives_back = bool(self._held)

    def _hold(self, record: R) -> bool:
        """Return whether the element is new here: not held, and not done. A broker that was away
        may give it again.
        """
        key = record.place, record.position
        if key in self._finished:
            self._finished[key] = record  # with the receipt that counts now
            return False
        held = self._held.setdefault(record.place, OrderedDict())
        is_new = record.position not in held
        held[record.position] = record
        return is_new

    async def _settle(self) -> None:
        if not self._finished:
            self._has_finished = trio.Event()
            await self._has_finished.wait()
        finished, self._finished = self._finished, {}
        self.wake()
        try:
            await self._member.acknowledge([*finished.values()])
        except BaseException:
            # The next call, or the leaving, tries again.
            self._finished = finished | self._finished
            raise

    async def _keep(self) -> None:
        await trio.sleep(self._member.beat)
        await self._member.keep(self._open_records())

    async def _repeat(self, step: Callable[[], Awaitable[None]]) -> None:
        """Take a step again and again. An error ends the stream, and not the member."""
        while True:
            try:
                await step()
            except PenstockError as error:
                self._end(error)
                await trio.sleep(self._member.beat)

    def _end(self, error: PenstockError | None) -> None:
        """End the stream. It may be subscribed to again."""
        subscription = self._subscription
        if subscription is None:
            # Once: the broker may be away for long.
            if error is not None and str(error) != self._last_failure:
                self._last_failure = str(error)
                _LINES.error("%r: %s", self, error)
            return
        self.leave(subscription)
        subscription.fail(error or UsageError(f"{self!r} was closed while a stream read from it"))

    def _forget(self, places: Collection[Place]) -> None:
        """Forget the elements of partitions that went to other members."""
        if self._subscription is not None:
            self._subscription.forget(places)
        for place in places:
            held, done = self._held.pop(place, ()), self._done.pop(place, ())
            self._repeated += len(held) - len(done)


class _Subscription(Generic[R]):
    """The demand of one subscriber, and which elements it has taken."""

    def __init__(self, group: BrokerGroup[R], subscriber: Subscriber[R]) -> None:
        self._group = group
        self._subscriber: Subscriber[R] | None = subscriber
        self._requested = 0
        self._got = 0
        self.window: int = 0
        """The most elements that it ever waited for."""
        self.waiting: deque[R | None] = deque()
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
        # The guard has checked the count.
        if self._subscriber is None:
            return
        self._requested = min(self._requested + count, UNBOUNDED)
        self.window = max(self.window, self._requested - self._got)
        self._take()
        self._group.wake()

    def cancel(self, /) -> None:
        """Get no more elements."""
        self._group.leave(self)
        self._subscriber = None

    def deliver(self, records: Sequence[R]) -> int:
        """Hand over elements, within the demand, and return how many."""
        count = 0
        for record in records:
            subscriber = self._subscriber
            if subscriber is None:
                break
            self._got += 1
            count += 1
            self.waiting.append(record)
            subscriber.on_next(record)
        self._take()
        return count

    def fail(self, error: BaseException) -> None:
        """End the stream with an error."""
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_error(error)

    def forget(self, places: Collection[Place]) -> None:
        """Forget which elements of partitions are not taken."""
        # Their places stay: the subscriber takes these, too, before those after them.
        for at, each in enumerate(self.waiting):
            if each is not None and each.place in places:
                self.waiting[at] = None

    def _take(self) -> None:
        if self._requested >= UNBOUNDED:
            count = len(self.waiting)
        else:
            count = len(self.waiting) - max(0, self.window - (self._requested - self._got))
        taken = [self.waiting.popleft() for _ in range(max(0, count))]
        self._group.take(taken)
