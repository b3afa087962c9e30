"""A topic is a hot publisher: whoever publishes to it reaches all that are subscribed now, each at the pace of its own demand.

Rules of this file:

* What happens to a subscriber that lags behind is declared, once, for the topic: see `Slow`.
* `publish` is all or nothing: cancelled while it waits, it has reached nobody. All subscribers see the same order.
* A subscriber that joins gets what is retained first, then what is published after it joined. What was retained waits apart from the
  buffer: a newcomer has not fallen behind.
* The end comes after the signal during which it was declared, never inside it.
* No task runs here: elements are delivered inside `publish`, or inside the `request` that permits them.
"""

import enum
from collections import deque
from typing import Any, Final, Generic, TypeVar

import attrs
import trio

from penstock.api import UNBOUNDED, Publisher, SlowSubscriber, Subscriber, Subscription, UsageError, add_demand, shown
from penstock.core._arguments import check_count
from penstock.core._scope import Report, Scope, check_hook, log_violation
from penstock.core._source import Source
from penstock.core._subscriber_guard import SubscriberGuard

T = TypeVar("T")


class SlowPolicy(enum.Enum):
    """What a topic does about a subscriber that has no demand left and no room in its buffer."""

    WAIT = "wait"
    """`publish` waits for the slowest. Nothing is lost."""

    DROP_OLDEST = "drop oldest"
    """The oldest element in its buffer makes room."""

    DROP_NEWEST = "drop newest"
    """It misses the element that is being published."""

    LATEST = "latest"
    """It keeps one element, the newest of those published since it joined."""

    FAIL = "fail"
    """It gets `on_error(SlowSubscriber)`; the others notice nothing."""


_DEFAULT_BUFFER: Final = {
    SlowPolicy.WAIT: 0,
    SlowPolicy.DROP_OLDEST: 16,
    SlowPolicy.DROP_NEWEST: 16,
    SlowPolicy.LATEST: 1,
    SlowPolicy.FAIL: 16,
}


@attrs.frozen(kw_only=True)
class TopicStatistics:
    """A moment in the life of a `Topic`."""

    subscribers: int
    published: int
    """Elements published, in all."""
    dropped: int
    """Elements that some subscriber missed, counted once for each."""
    buffered: int
    """Elements waiting for demand now, over all subscribers."""
    full: int
    """Subscribers without demand and without room now; with `SlowPolicy.WAIT` these are who `publish` waits for."""


class Topic(Source[T], Publisher[T]):
    """A hot multicast publisher: ``await topic.publish(x)`` on one side, any number of subscribers on the other.

    `slow` declares what happens to a subscriber that lags behind; `buffer` is how many elements each may lag (by default none
    with `SlowPolicy.WAIT`, else 16); `retain` is how many of the last elements a newcomer gets first.
    A topic is a source for `subscribe` and `pipe`, and a `Publisher` by itself, without a nursery.
    """

    __slots__ = (
        "_buffer",
        "_comings",
        "_delivering",
        "_dropped",
        "_end",
        "_full",
        "_on_violation",
        "_published",
        "_retained",
        "_room",
        "_seats",
        "_slow",
        "_turn",
    )

    def __init__(
        self, *, slow: SlowPolicy = SlowPolicy.WAIT, buffer: int | None = None, retain: int = 0, on_violation: Report = log_violation
    ) -> None:
        if not isinstance(slow, SlowPolicy):
            raise UsageError(f"slow={shown(slow)}; choose one of {', '.join(f'SlowPolicy.{each.name}' for each in SlowPolicy)}")
        if buffer is not None and slow is SlowPolicy.LATEST:
            raise UsageError(
                f"buffer={shown(buffer)} with SlowPolicy.LATEST, which keeps exactly one element. For more, use SlowPolicy.DROP_OLDEST"
            )
        self._slow = slow
        self._buffer = _DEFAULT_BUFFER[slow] if buffer is None else check_count(buffer, "buffer")
        self._retained: deque[T] = deque(maxlen=check_count(retain, "retain"))
        self._on_violation = check_hook(on_violation)
        self._seats: dict[_TopicSubscription[T], None] = {}  # in the order of joining
        self._full = 0
        self._published = 0
        self._dropped = 0
        self._delivering = False
        self._end: _End | None = None
        self._turn = trio.Lock()
        self._room = trio.lowlevel.ParkingLot()
        self._comings = trio.lowlevel.ParkingLot()  # of subscribers, and their goings

    # --- publishing

    async def publish(self, element: T) -> None:
        """Give `element` to every subscriber; with `SlowPolicy.WAIT`, once each of them has room for it. Checkpoints.

        Cancelled, it has reached nobody. Raises UsageError for None, or after `complete` or `fail`.
        """
        if element is None:
            raise UsageError("publish(None): None is never an element (rule 2.13)")
        self._check_open()
        if self._slow is SlowPolicy.WAIT:
            async with self._turn:
                while self._full and self._end is None:
                    await self._room.park()
                self._check_open()
                self._deliver(element)
        else:
            await trio.lowlevel.checkpoint()
            self._check_open()
            self._deliver(element)

    async def wait_subscribers(self, *, at_least: int = 1) -> None:
        """Return when so many subscribers are there: what is published before that, nobody gets. Checkpoints."""
        await trio.lowlevel.checkpoint()
        while len(self._seats) < at_least:
            await self._comings.park()

    async def wait_alone(self) -> None:
        """Return when no subscriber is left, each having got, after `complete`, what waited for it. Checkpoints."""
        await trio.lowlevel.checkpoint()
        while self._seats:
            await self._comings.park()

    def complete(self) -> None:
        """End the topic: each subscriber gets what waits for it, then `on_complete`; so does whoever subscribes later."""
        self._finish(_End(None))

    def fail(self, error: Exception) -> None:
        """End the topic with `error`, which overtakes what waits; whoever subscribes later gets it, too."""
        if not isinstance(error, Exception):
            raise UsageError(f"fail() was given {shown(error)}; give it the exception that subscribers shall get")
        self._finish(_End(error))

    def statistics(self) -> TopicStatistics:
        """Return a record of this moment: who is subscribed, what was published, dropped, and waits."""
        return TopicStatistics(
            subscribers=len(self._seats),
            published=self._published,
            dropped=self._dropped,
            buffered=sum(seat.waiting for seat in self._seats),
            full=self._full,
        )

    # --- subscribing

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        SubscriberGuard.between(self._join, subscriber, self._on_violation)

    def attach(self, subscriber: Subscriber[T], scope: Scope) -> None:
        self._join(subscriber)

    def _join(self, subscriber: Subscriber[T]) -> None:
        end = self._end
        seat = _TopicSubscription(self, subscriber, self._retained if end is None or end.error is None else ())
        if end is None:
            self._seats[seat] = None
            self.note_room(seat)
            self._comings.unpark_all()
        seat.greet(subscriber)
        if end is not None:
            seat.end(end)

    # --- inside

    def _check_open(self) -> None:
        if self._end is not None:
            raise UsageError("publish() on a topic that has ended; after complete() or fail() make a new topic")

    def _deliver(self, element: T) -> None:
        self._published += 1
        self._retained.append(element)
        self._delivering = True
        try:
            for seat in tuple(self._seats):
                self._dropped += seat.offer(element, self._slow, self._buffer)
        finally:
            self._delivering = False
        if self._end is not None:
            self._tell_end(self._end)  # complete() was called from inside a signal: everybody got the element first

    def _finish(self, end: "_End") -> None:
        if self._end is not None:
            return
        self._end = end
        self._room.unpark_all()
        if not self._delivering:
            self._tell_end(end)

    def _tell_end(self, end: "_End") -> None:
        for seat in tuple(self._seats):
            seat.end(end)

    def leave(self, seat: "_TopicSubscription[T]") -> None:
        """Forget a subscriber (rules 1.6, 3.13)."""
        self._seats.pop(seat, None)
        self._comings.unpark_all()
        self.note_room(seat)

    def note_room(self, seat: "_TopicSubscription[T]") -> None:
        """Keep count of the subscribers that `publish` would have to wait for, and wake it when there are none."""
        full = seat in self._seats and not seat.has_room(self._buffer)
        if full is not seat.full:
            seat.full = full
            self._full += 1 if full else -1
            if not self._full:
                self._room.unpark_all()

    def __repr__(self) -> str:
        ended = "" if self._end is None else ", ended"
        return f"<topic ({self._slow.value}): {len(self._seats)} subscribers, {self._published} published, {self._dropped} dropped{ended}>"


_NONE: Final[deque[Any]] = deque(maxlen=0)
"""What holds nothing, for all who hold nothing."""


class _TopicSubscription(Subscription, Generic[T]):
    """One subscriber's place in a topic: its demand, and what waits for it."""

    __slots__ = ("_backlog", "_demand", "_draining", "_ending", "_retained", "_subscriber", "_topic", "full")

    def __init__(self, topic: Topic[T], subscriber: Subscriber[T], retained: "deque[T] | tuple[()]") -> None:
        self._topic = topic
        self._subscriber: Subscriber[T] | None = subscriber
        self._demand = 0
        self._draining = False
        self._ending: _End | None = None
        # Made when first needed: a subscriber that keeps up costs no containers.
        self._retained: deque[T] = deque(retained) if retained else _NONE  # bounded by the topic's `retain`; only ever shrinks
        self._backlog: deque[T] = _NONE  # bounded by the topic's `buffer`
        self.full: bool = False

    @property
    def waiting(self) -> int:
        """How many elements wait for demand."""
        return len(self._retained) + len(self._backlog)

    def has_room(self, buffer: int) -> bool:
        """Tell whether an element published now would be delivered, or fit into the buffer."""
        return (self._demand > 0 and not self.waiting) or len(self._backlog) < buffer

    def greet(self, subscriber: Subscriber[T]) -> None:
        """Signal on_subscribe; what is requested inside it is answered after it."""
        self._draining = True
        try:
            subscriber.on_subscribe(self)
        finally:
            self._draining = False
        self._drain()

    def offer(self, element: T, slow: SlowPolicy, buffer: int) -> int:
        """Take an element that is being published; return how many were dropped for it."""
        subscriber = self._subscriber
        if subscriber is None:
            return 0  # cancelled from inside a neighbour's signal, a moment ago
        dropped = 0
        if self._demand and not self.waiting:
            self._spend()
            subscriber.on_next(element)
        elif len(self._backlog) < buffer:
            if self._backlog is _NONE:
                self._backlog = deque()
            self._backlog.append(element)
        elif slow is SlowPolicy.FAIL:
            self._let_go()
            subscriber.on_error(_too_slow(buffer))
        else:
            dropped = 1
            if buffer and slow in (SlowPolicy.DROP_OLDEST, SlowPolicy.LATEST):
                self._backlog.popleft()
                self._backlog.append(element)
        self._topic.note_room(self)
        return dropped

    def end(self, end: "_End") -> None:
        """Signal the end: an error at once, completion after what waits; inside a signal, after that signal."""
        if self._draining or (end.error is None and self.waiting):
            self._ending = end
            return
        subscriber = self._let_go()
        if subscriber is None:
            return
        if end.error is None:
            subscriber.on_complete()
        else:
            subscriber.on_error(end.error)

    def request(self, n: int, /) -> None:
        if self._subscriber is None:
            return  # rule 3.6
        self._demand = add_demand(self._demand, n)
        self._drain()

    def cancel(self, /) -> None:
        self._let_go()

    def _drain(self) -> None:
        if self._draining:
            return  # rule 3.3: the loop further up this stack goes on
        self._draining = True
        try:
            while self._demand and self.waiting and self._subscriber is not None and not self._failed():
                self._spend()
                self._subscriber.on_next((self._retained or self._backlog).popleft())
        finally:
            self._draining = False
        if self._ending is not None:
            self.end(self._ending)
        self._topic.note_room(self)

    def _failed(self) -> bool:
        return self._ending is not None and self._ending.error is not None

    def _spend(self) -> None:
        if self._demand < UNBOUNDED:  # rule 3.17: 2^63-1 is without bound, and stays so
            self._demand -= 1

    def _let_go(self) -> Subscriber[T] | None:
        subscriber, self._subscriber = self._subscriber, None
        self._retained = self._backlog = _NONE
        self._topic.leave(self)
        return subscriber


def _too_slow(buffer: int) -> SlowSubscriber:
    return SlowSubscriber(
        f"this subscriber had no demand left and {buffer} elements waiting when another one was published; "
        "its topic fails whoever lags further. Request more, or give the topic a larger buffer or another `slow`",
        limit="buffer",
        value=buffer,
    )


@attrs.frozen
class _End:
    """How a topic ended: with an error, or well."""

    error: Exception | None
