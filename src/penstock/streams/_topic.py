"""A topic is a hot publisher: an element reaches all subscribers that are subscribed now,
each at the pace of its demand.

Rules of this file:

* A topic declares once what happens to a subscriber that lags behind: see `SlowPolicy`.
* `publish` is all or nothing: if it is cancelled while it waits, no subscriber has got the element.
  All subscribers see the same order.
* A new subscriber gets the retained elements first, then those that are published after it joined.
  Retained elements do not take up room in its buffer: a new subscriber has not fallen behind.
* `publish` waits for a subscriber without room for its bound at most (`TopicRoom`). Then that
  subscriber fails, and the topic goes on.
* The end is signalled after the signal during which it was declared, never inside that signal.
* No task runs here: elements are delivered inside `publish`, or inside the `request`
  that permits them.
* A subscriber that lends its batch is a *member* while it has demand and its batch is open:
  `publish` appends to the batches of all members, without a call for each, and converts an element
  once for all members of one encoding. A member that closes its batch gets the next element with a
  call, and is a member again then. So a hundred streams over a network cost a call each once in a
  turn of the run loop, and not with each element.
* Elements that the topic has itself no longer, and a subscriber still holds, count in the memory of
  the peer that does not take them (`SourceMemory`). The last `buffer` and the last `retain`
  elements are the same objects for all subscribers, and belong to the topic.
* `publish` lets other tasks run when it has to wait, up to `GRACE_PASSES` times when a subscriber
  has used up its demand and might lose elements, and after `TURN_SECONDS`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from math import inf
from time import monotonic
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

import attrs
import trio

from penstock.api import (
    UNBOUNDED,
    BatchingSubscriber,
    ConvertingSubscriber,
    PipePart,
    Publisher,
    SharedBatch,
    SlowSubscriber,
    Subscriber,
    Subscription,
    UsageError,
    add_demand,
    lender_of,
    on_next_many_of,
    shown,
    subscribers_below,
)
from penstock.core import (
    Relay,
    Report,
    Scope,
    SourceMemory,
    SubscriberGuard,
    bytes_of,
    check_count,
    check_hook,
    check_in_trio,
    log_violation,
    report,
)
from penstock.reader import DEFAULT_DEMAND, TURN_SECONDS
from penstock.streams._slow_subscribers import (
    SlowPolicy,
    check_hold_up,
    held_up,
    held_up_by_a_stranger,
    hold_up_bound_of,
)
from penstock.streams._source import Source

T = TypeVar("T")

Convert: TypeAlias = Callable[[Any], bytes]
"""Returns the bytes of an element: the encoding of a group of members."""

HOLD_UP_WARNING: Final = 1.0
"""Seconds for which a subscriber over a network holds up a topic before the topic says so, once.
A reader that keeps up requests more within some round trips."""

MOST_SIGNALS: Final = 1024
"""Signals of elements between two looks at the clock in `publish_many`, if each is a call."""

GRACE_PASSES: Final = 32
"""Scheduler passes, at most, that a publisher in a loop gives to a subscriber that has used up its
demand, or for which one more element waits now. A stream of this process has requested more after
a few, one over loopback as a rule. One that requests nothing more uses up its buffer, and costs
the publisher nothing from then on."""

MOST_NAMED: Final = 16
"""Subscribers that hold up a topic and are looked at: one of them is named."""

_NONE: Final = type(None)
_BYTES: Final = {bytes}
_TOO_LONG: Final = 1 << 62
"""The length of elements that no batch accepts."""

# 0 for WAIT, which loses nothing and so needs no buffer to work. 16 where a short delay of a
# subscriber should not lose elements yet.
_DEFAULT_BUFFER: Final = {
    SlowPolicy.WAIT: 0,
    SlowPolicy.DROP_OLDEST: 16,
    SlowPolicy.DROP_NEWEST: 16,
    SlowPolicy.LATEST: 1,
    SlowPolicy.FAIL: 16,
}


@attrs.frozen(kw_only=True)
class TopicStatistics:
    """The counts of a `Topic` at one time."""

    subscribers: int
    published: int
    """Elements published, in all."""
    dropped: int
    """Elements that a subscriber missed, counted once for each subscriber that missed them."""
    buffered: int
    """Elements that wait for demand now, over all subscribers."""
    full: int
    """Subscribers without demand and without room now;
    with `SlowPolicy.WAIT`, `publish` waits for these.
    """
    failed: int = 0
    """Subscribers that got `SlowSubscriber`, in all."""


class Topic(Source[T], Publisher[T]):
    """A hot publisher for many subscribers: ``await topic.publish(x)`` gives `x` to each of them.

    `slow` declares what happens to a subscriber that lags behind. `buffer` is how many elements
    each subscriber may lag (by default 0 with `SlowPolicy.WAIT`, else 16). `retain` is how many of
    the last elements a new subscriber gets first.
    `max_hold_up` is how many seconds `publish` waits at most, with `SlowPolicy.WAIT`, for a
    subscriber that requests nothing. Then that subscriber gets `on_error(SlowSubscriber)`, and the
    topic goes on. None: without a bound for subscribers in this process, and `Limits.max_hold_up`
    (10 s) for those over a network; `on_violation` then gets, once, a `SlowSubscriber` after 1 s of
    waiting for such a subscriber, because the others wait too. ``math.inf``: without a bound for
    all.
    A topic is a source for `subscribe` and `pipe`, and also a `Publisher`, without a nursery.
    """

    __slots__ = (
        "_buffer",
        "_dropped",
        "_end",
        "_failed",
        "_full",
        "_grace",
        "_groups",
        "_is_delivering",
        "_joined",
        "_least_limit",
        "_membership_changed",
        "_on_violation",
        "_publish_lock",
        "_published",
        "_retained",
        "_room",
        "_single",
        "_slow",
        "_subscriptions",
        "_turn_ends",
        "_warns",
        "appended",
    )

    def __init__(
        self,
        *,
        slow: SlowPolicy = SlowPolicy.WAIT,
        buffer: int | None = None,
        retain: int = 0,
        max_hold_up: float | None = None,
        on_violation: Report = log_violation,
    ) -> None:
        if not isinstance(slow, SlowPolicy):
            raise UsageError(
                f"slow={shown(slow)}; choose one of "
                f"{', '.join(f'SlowPolicy.{each.name}' for each in SlowPolicy)}"
            )
        if buffer is not None and slow is SlowPolicy.LATEST:
            raise UsageError(
                f"buffer={shown(buffer)} with SlowPolicy.LATEST, which keeps exactly one element. "
                "For more, use SlowPolicy.DROP_OLDEST"
            )
        self._slow = slow
        self._buffer = _DEFAULT_BUFFER[slow] if buffer is None else check_count(buffer, "buffer")
        self._retained: deque[T] = deque(maxlen=check_count(retain, "retain"))
        self._on_violation = check_hook(on_violation)
        # A dict and not a set: subscribers get an element in the order in which they joined,
        # the same in each run.
        self._subscriptions: dict[_TopicSubscription[T], None] = {}
        # Each subscription is in one of these two: a call with each element, or a member.
        self._single: dict[_TopicSubscription[T], None] = {}
        self._groups: dict[Convert | None, dict[_TopicSubscription[T], SharedBatch]] = {}
        # Subscribers that got retained elements, and the value of `_published` at which the topic
        # has these no longer. In the order in which they joined.
        self._joined: dict[_TopicSubscription[T], int] = {}
        self.appended: int = 0
        """Elements that were appended to the batches of members, in all."""
        # The least `limit` of a member, or less.
        self._least_limit = inf
        # subscriptions without room; counted as they change, so that publish need not look at each.
        self._full = 0
        self._published = 0
        self._dropped = 0
        self._failed = 0
        self._is_delivering = False
        # Scheduler passes that subscribers without demand still get before they lose elements.
        self._grace = 0
        self._turn_ends = 0.0  # `TURN_SECONDS` after other tasks ran
        self._end: _End | None = None
        # publishers that wait for room go on in the order in which they came.
        self._publish_lock = trio.Lock()
        self._room = TopicRoom(max_hold_up, slow)
        # A program that sets the bound knows that its topic may be held up.
        self._warns = slow is SlowPolicy.WAIT and max_hold_up is None
        self._membership_changed = trio.lowlevel.ParkingLot()

    # --- publishing

    async def publish(self, element: T) -> None:
        """Give `element` to every subscriber;
        with `SlowPolicy.WAIT`, once each of them has room for it.

        If it is cancelled, no subscriber has got `element`. It checkpoints when it waits, when a
        subscriber lags behind, and else now and then: other tasks wait some milliseconds at most
        for a task that publishes without a pause.
        Raises UsageError for None, or after `complete` or `fail`.
        """
        if element is None:
            raise UsageError("publish(None): None is never an element (rule 2.13)")
        self._check_open()
        try:
            await self._take_turn()
            if self._must_wait():
                async with self._publish_lock:
                    await self._wait_for_room()
                    self._check_open()  # the topic may have ended while this waited
                    self._deliver([element])
            else:
                self._check_open()
                self._deliver([element])
        except RuntimeError:
            # trio's first await raises it outside of trio.
            # To check before each element would cost 1 % of a publish.
            check_in_trio("Topic.publish()")
            raise

    async def publish_many(self, elements: Iterable[T], /) -> None:
        """Give each of `elements` to every subscriber, in order, as `publish` does. It costs less
        than a call of `publish` for each of them.

        If it is cancelled while it waits, each subscriber has got the same first part of them:
        `statistics` tells how many were published. Other publishers may publish between two parts.
        Raises UsageError, before anything is published, if one of them is None.
        """
        waiting = list(elements)  # a copy: the caller may change its list while this waits
        if _NONE in set(map(type, waiting)):
            raise UsageError(
                f"publish_many(): the element at position {waiting.index(None)} is None, and None "  # type: ignore[arg-type]  # T may be anything
                "is never an element (rule 2.13)"
            )
        self._check_open()
        try:
            await self._take_turn()
            begin = 0
            while begin < len(waiting):
                if begin:
                    await self._take_turn()
                self._check_open()
                if self._must_wait():
                    async with self._publish_lock:
                        await self._wait_for_room()
                        self._check_open()
                        begin += self._deliver_part(waiting, begin)
                else:
                    begin += self._deliver_part(waiting, begin)
        except RuntimeError:  # as in `publish`
            check_in_trio("Topic.publish_many()")
            raise

    async def wait_subscribers(self, *, at_least: int = 1) -> None:
        """Return when there are `at_least` subscribers. An element that is published before
        there is one reaches none. Checkpoints.
        """
        check_in_trio("Topic.wait_subscribers()")
        await trio.lowlevel.checkpoint()
        # A loop: a subscriber that joined may have left before this task runs.
        while len(self._subscriptions) < at_least:
            await self._membership_changed.park()

    async def wait_alone(self) -> None:
        """Return when the last subscriber is gone. After `complete`, each gets its waiting elements
        first. Checkpoints.
        """
        check_in_trio("Topic.wait_alone()")
        await trio.lowlevel.checkpoint()
        while self._subscriptions:
            await self._membership_changed.park()

    def complete(self) -> None:
        """End the topic: each subscriber gets its waiting elements, then `on_complete`. Later
        subscribers get what is retained first.
        """
        self._finish(_End(None))

    def fail(self, error: Exception) -> None:
        """End the topic with `error`.
        It overtakes waiting elements, and later subscribers get it at once.
        """
        if not isinstance(error, Exception):
            raise UsageError(
                f"fail() was given {shown(error)}; give it the exception that subscribers shall get"
            )
        self._finish(_End(error))

    def statistics(self) -> TopicStatistics:
        """Return the numbers of subscribers and of elements that were published, were dropped,
        or wait.
        """
        return TopicStatistics(
            subscribers=len(self._subscriptions),
            published=self._published,
            dropped=self._dropped,
            buffered=sum(subscription.waiting for subscription in self._subscriptions),
            full=self._full,
            failed=self._failed,
        )

    # --- subscribing

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        SubscriberGuard.insert_between(
            partial(self._join, own_bound=hold_up_bound_of(subscriber)),
            subscriber,
            self._on_violation,
        )

    def attach(self, subscriber: Subscriber[T], scope: Scope) -> None:
        self._join(subscriber, scope.max_hold_up, scope.memory)

    @property
    def prefetch(self) -> int:
        """0 with `SlowPolicy.LATEST`:
        the buffer of the stream would hold the elements that the policy drops. Else 256.
        """
        return 0 if self._slow is SlowPolicy.LATEST else DEFAULT_DEMAND

    def _join(
        self, subscriber: Subscriber[T], own_bound: float, memory: SourceMemory | None = None
    ) -> None:
        end = self._end
        retained = self._retained if end is None or end.error is None else ()
        subscription = _TopicSubscription(
            self, subscriber, retained, self._room.bound(own_bound), memory
        )
        if end is None:
            # Before on_subscribe: the subscriber may call complete() inside it, and must get
            # that end.
            self._subscriptions[subscription] = self._single[subscription] = None
            if retained and memory is not None:
                self._joined[subscription] = self._published + len(retained)
            self.update_full(subscription)
            self._membership_changed.unpark_all()
        subscription.start(subscriber)
        if end is not None:
            # Behind `start`: a subscriber of a completed topic gets the retained elements first.
            subscription.end(end)

    # --- inside

    def _check_open(self) -> None:
        if self._end is not None:
            raise UsageError(
                "publish() on a topic that has ended; after complete() or fail() make a new topic"
            )

    async def _take_turn(self) -> None:
        """Let other tasks run if it is time for that. Raises Cancelled if this one is cancelled."""
        await trio.lowlevel.checkpoint_if_cancelled()
        if not self._grace and monotonic() <= self._turn_ends:
            return
        await trio.lowlevel.cancel_shielded_checkpoint()
        # One whose buffer is full has had its grace before, and is not waited for again.
        while self._grace > 1 and any(each.is_lagging for each in self._single):
            self._grace -= 1
            await trio.lowlevel.cancel_shielded_checkpoint()
        self._grace = 0
        self._start_turn()

    def _start_turn(self) -> None:
        """Note that other tasks have just run."""
        self._turn_ends = monotonic() + TURN_SECONDS

    def _must_wait(self) -> bool:
        """Return whether a subscriber lacks room, or other publishers wait for room already."""
        return self._slow is SlowPolicy.WAIT and (self._full > 0 or self._publish_lock.locked())

    async def _wait_for_room(self) -> None:
        if self._full:
            look = HOLD_UP_WARNING if self._warns else inf
            await self._room.wait(self._is_held_up, self._fail_overdue, look=look)
            self._start_turn()

    def _deliver_part(self, elements: list[T], begin: int) -> int:
        """Deliver as many of `elements[begin:]` as change nothing for any subscriber before the
        last of them. Return how many.
        """
        least = min(self._least_limit - self.appended, MOST_SIGNALS // max(1, len(self._single)))
        for subscription in self._single:
            least = min(least, subscription.window(self._slow, self._buffer))
        part = elements[begin : begin + max(1, int(least))]
        self._deliver(part)
        return len(part)

    def _deliver(self, elements: list[T]) -> None:
        self._published += len(elements)
        # Retained before they are delivered: a subscriber that joins inside on_next gets these
        # elements as retained ones. It is not in the copies below, so it gets them once.
        self._retained.extend(elements)
        self._is_delivering = True
        try:
            # Copies: a subscriber may cancel or subscribe inside on_next.
            single = tuple(self._single)
            burst = Burst(elements)
            for subscription in (*self._append_to_batches(burst), *single):
                self._dropped += subscription.deliver(burst, self._slow, self._buffer)
            if self.appended >= self._least_limit:
                self._renew_members()
        finally:
            self._is_delivering = False
        if self._joined:
            self._count_retained()
        if self._end is not None:
            # complete() was called inside a signal; now all subscribers have the element.
            self._signal_end(self._end)

    def _count_retained(self) -> None:
        """Count the retained elements that only subscribers have now. The most of them that are
        not counted are those of one full `retain`.
        """
        # As many at a time as are due: a subscriber may leave while it is counted.
        while self._joined:
            subscription, due = next(iter(self._joined.items()))
            if due > self._published:
                break
            del self._joined[subscription]
            subscription.count_retained()

    def _append_to_batches(self, burst: "Burst") -> "list[_TopicSubscription[T]]":
        """Append elements to the batches of all members. Return those whose batch does not take
        them. They are members no more.
        """
        closed: list[_TopicSubscription[T]] = []
        for convert, members in self._groups.items():
            data = burst.elements if convert is None else burst.converted(convert)
            longest = _longest(data)
            for member, batch in members.items():
                if longest <= batch.longest:
                    batch.elements.extend(data or ())
                else:
                    closed.append(member)
        # Before any call of a subscriber: from here on the counts of all members are right.
        for member in closed:
            self.leave_group(member)
        self.appended += len(burst.elements)
        return closed

    def _renew_members(self) -> None:
        """Tell the members whose demand is used up, so that they request more."""
        members = [member for group in self._groups.values() for member in group]
        for member in members:
            if member.limit <= self.appended:
                self.leave_group(member)
                member.renew()
        self._least_limit = min(
            (member.limit for group in self._groups.values() for member in group), default=inf
        )

    def join_group(
        self, member: "_TopicSubscription[T]", convert: Convert | None, batch: SharedBatch
    ) -> None:
        """Append to `batch` from now on."""
        del self._single[member]
        self._groups.setdefault(convert, {})[member] = batch
        self._least_limit = min(self._least_limit, member.limit)

    def leave_group(self, member: "_TopicSubscription[T]") -> None:
        """Call the subscriber with the next element."""
        group = self._groups[member.convert]
        member.settle()
        del group[member]
        if not group:
            del self._groups[member.convert]
        member.is_member = False
        self._single[member] = None

    def note_laggard(self) -> None:
        """Let a subscriber run that has used up its demand, or for which one more waits now."""
        if self._slow is not SlowPolicy.WAIT:
            self._grace = GRACE_PASSES

    def _finish(self, end: "_End") -> None:
        if self._end is not None:
            return  # the first end counts
        self._end = end  # from here on publish() raises, and a new subscriber gets the end
        self._room.wake()
        if not self._is_delivering:
            self._signal_end(end)

    def _signal_end(self, end: "_End") -> None:
        for subscription in tuple(self._subscriptions):
            subscription.end(end)

    def remove(self, subscription: "_TopicSubscription[T]") -> None:
        """Forget a subscriber (rules 1.6, 3.13)."""
        # A subscription to an ended topic was never in it.
        if subscription in self._subscriptions:
            if subscription.is_member:
                self.leave_group(subscription)
            del self._subscriptions[subscription], self._single[subscription]
            self._joined.pop(subscription, None)
        self._membership_changed.unpark_all()
        self.update_full(subscription)

    def update_full(self, subscription: "_TopicSubscription[T]") -> None:
        """Update the count of subscribers that `publish` would have to wait for,
        and wake it when the count becomes 0.
        """
        is_full = subscription in self._subscriptions and not subscription.has_room(self._buffer)
        if is_full is not subscription.is_full:
            subscription.is_full = is_full
            self._full += 1 if is_full else -1
            if not self._full:
                self._room.wake()

    @property
    def is_waiting(self) -> bool:
        """True while a publisher waits for room."""
        return self._publish_lock.locked()

    def held_up_by(self) -> list[object]:
        """Return the subscribers that a publisher waits for now; the last one of each pipe."""
        if not self.is_waiting:
            return []
        full = (each for each in self._subscriptions if each.is_full)
        return [subscribers_below(each)[-1] for each in islice(full, MOST_NAMED)]

    def count_failed(self) -> None:
        """Count a subscriber that gets `SlowSubscriber`."""
        self._failed += 1

    def _is_held_up(self) -> bool:
        return self._full > 0 and self._end is None

    def _fail_overdue(self, began: float) -> float:
        """Fail each subscriber that has held up the publish that waits since `began` for its
        bound. Return when the next one is due.
        """
        now, due = trio.current_time(), inf
        if self._warns and any(each.is_full and each.has_bound for each in self._subscriptions):
            if now >= began + HOLD_UP_WARNING:
                self._warns = False
                report(self._on_violation, held_up_by_a_stranger(HOLD_UP_WARNING))
            else:
                due = began + HOLD_UP_WARNING
        for subscription in tuple(self._subscriptions):  # a copy: an overdue one leaves
            if subscription.is_full:
                due = min(due, subscription.fail_if_overdue(began, now))
        return due

    def __repr__(self) -> str:
        ended = "" if self._end is None else ", ended"
        count = len(self._subscriptions)
        return (
            f"<topic ({self._slow.value}): {count} subscribers, {self._published} published, "
            f"{self._dropped} dropped{ended}>"
        )


class TopicRoom:
    """Where `publish` waits for room. `wake` it when a subscriber makes room, joins, or leaves."""

    __slots__ = ("_asked", "_least", "_lot")

    def __init__(self, asked: float | None, slow: SlowPolicy) -> None:
        """`asked` is the bound that the topic sets for all of its subscribers."""
        self._asked = check_hold_up(asked, slow)
        # Of all subscribers that have ever joined:
        # a wait that ends too early costs one look at each of them.
        self._least = inf
        self._lot = trio.lowlevel.ParkingLot()

    def bound(self, own: float) -> float:
        """Return the bound of a subscriber that joins now;
        `own` is its bound if the topic sets none.
        """
        bound = own if self._asked is None else self._asked
        if bound < self._least:
            self._least = bound
            self.wake()  # a publish that waits must not wait longer for this subscriber
        return bound

    def wake(self) -> None:
        """Let a publish that waits look again."""
        self._lot.unpark_all()

    async def wait(
        self,
        is_full: Callable[[], bool],
        fail_overdue: Callable[[float], float],
        *,
        look: float = inf,
    ) -> None:
        """Wait until `is_full` returns False.

        `fail_overdue` is called when a bound may be over, and after `look` seconds, with the time
        at which the wait began; it fails the subscribers whose bound is over, and returns when it
        is to be called next.
        """
        if self._least == inf:
            # Without a cancel scope, which costs as much as the wait itself.
            # A subscriber with a bound wakes this.
            while self._least == inf and is_full():
                await self._lot.park()
        began = trio.current_time()
        due = began + min(self._least, look)
        while is_full():
            with trio.CancelScope(deadline=due) as scope:
                await self._lot.park()
            now = trio.current_time()
            # Without the deadline it was woken, perhaps by a new subscriber with a shorter bound:
            # the deadline may be nearer then.
            due = fail_overdue(began) if scope.cancelled_caught else min(due, now + self._least)


def time_or_never() -> float:
    """Return the time of trio's clock;
    before every time if trio does not run, because no publish waits then.
    """
    try:
        return trio.current_time()
    except RuntimeError:
        return -inf


_EMPTY: Final[deque[Any]] = deque(maxlen=0)
"""Shared by all subscriptions without waiting elements:
a subscriber that keeps up costs no deque.
"""


class _TopicSubscription(Subscription, Generic[T]):
    """The subscription of one subscriber to a topic:
    its demand, and the elements that wait for it.
    """

    __slots__ = (
        "_buffered",
        "_counted",
        "_demand",
        "_end",
        "_is_retained_counted",
        "_is_signalling",
        "_lender",
        "_max_hold_up",
        "_memory",
        "_moved_at",
        "_position",
        "_retained",
        "_subscriber",
        "_topic",
        "is_full",
        "is_member",
    )

    def __init__(
        self,
        topic: Topic[T],
        subscriber: Subscriber[T],
        retained: "deque[T] | tuple[()]",
        max_hold_up: float,
        memory: SourceMemory | None,
    ) -> None:
        self._topic = topic
        self._memory = memory
        self._counted = 0  # bytes of it
        self._is_retained_counted = False
        self._subscriber: Subscriber[T] | None = subscriber
        # For a member: the demand at the time when `Topic.appended` was `_position`.
        self._demand = 0
        self._position = 0
        self.is_member: bool = False
        self._lender: BatchingSubscriber | None = None  # from on_subscribe on, if there is one
        self._is_signalling = False  # on_subscribe, or the loop of _signal_waiting, is on the stack
        self._end: _End | None = None  # declared, and not yet signalled
        self._max_hold_up = max_hold_up
        # When it joined, or last requested something without making room: retained elements go
        # first. Its bound begins anew then.
        self._moved_at = -inf if max_hold_up == inf else time_or_never()
        # Bounded by the topic's `retain`; only shrinks.
        self._retained: deque[T] = deque(retained) if retained else _EMPTY
        self._buffered: deque[T] = _EMPTY  # bounded by the topic's `buffer`
        self.is_full: bool = False

    @property
    def waiting(self) -> int:
        """The number of elements that wait for demand."""
        return len(self._retained) + len(self._buffered)

    @property
    def subscriber_below(self) -> object:
        """The subscriber that is signalled next."""
        return self._subscriber

    def pipe_part(self) -> PipePart:
        """Return the part for those who look at the pipe."""
        topic = self._topic
        return PipePart(
            "topic", self.waiting, shared=topic, holds_up=self.is_full and topic.is_waiting
        )

    def has_room(self, buffer: int) -> bool:
        """Return whether an element that is published now would be signalled,
        or fit into the buffer.
        """
        return (self._demand > 0 and not self.waiting) or len(self._buffered) < buffer

    @property
    def is_lagging(self) -> bool:
        """It has no demand, and may still be given elements without losing one; for one that is
        no member.
        """
        return not self._demand and not self.is_full

    def window(self, slow: SlowPolicy, buffer: int) -> float:
        """Return how many elements may be published before it is full, or before it lags more."""
        room = buffer - len(self._buffered)
        if slow is SlowPolicy.WAIT:
            return (0 if self.waiting else self._demand) + room
        # Without demand: one for its buffer. A full buffer cannot become fuller.
        return self._demand or (1 if room else inf)

    def start(self, subscriber: Subscriber[T]) -> None:
        """Signal on_subscribe. Elements that are requested inside it are signalled after it."""
        self._is_signalling = True
        try:
            subscriber.on_subscribe(self)
        finally:
            self._is_signalling = False
        if self._subscriber is not None:
            self._lender = lender_of(subscriber)
        self._signal_waiting()

    def deliver(self, burst: "Burst", slow: SlowPolicy, buffer: int) -> int:
        """Signal, buffer or drop elements that are being published; return how many elements were
        dropped.
        """
        dropped = done = 0
        elements = burst.elements
        # It may be cancelled: inside the signal that another subscriber, or this one, has just got.
        while done < len(elements) and self._subscriber is not None:
            # behind waiting elements it must wait too, or the order would change.
            if self._demand and not self.waiting:
                done += self._signal_published(self._subscriber, burst, done)
            else:
                dropped += self._keep(self._subscriber, elements[done], slow, buffer)
                done += 1
        # With demand nothing waits: `request` signals what waits before anything is published.
        if self._lender is not None and self._demand:
            self._join_group(self._lender)
        self._topic.update_full(self)
        return dropped

    def _signal_published(self, subscriber: Subscriber[T], burst: "Burst", done: int) -> int:
        """Signal some of the elements from the position `done` on; return how many."""
        elements, lender, data = burst.elements, self._lender, None
        count = min(self._demand, len(elements) - done)
        if lender is not None and (convert := self.convert) is not None:
            data = burst.converted(convert)
        if data is not None:
            self._spend(count)
            cast("ConvertingSubscriber[T]", lender).on_converted(data[done : done + count])
        elif count > 1 and (on_next_many := _list_method(subscriber)) is not None:
            self._spend(count)
            on_next_many(elements[done : done + count])
        else:
            count = 1
            self._spend(1)
            subscriber.on_next(elements[done])
        if not self._demand:
            self._topic.note_laggard()
        return count

    def _keep(self, subscriber: Subscriber[T], element: T, slow: SlowPolicy, buffer: int) -> int:
        """Buffer or drop an element without demand; return how many elements were dropped."""
        if len(self._buffered) < buffer:
            if self._buffered is _EMPTY:
                self._buffered = deque()
            self._buffered.append(element)
            self._topic.note_laggard()
            if self._memory is not None and slow is SlowPolicy.DROP_NEWEST:
                # It may keep them for ever. With another policy they are the last of the topic.
                self._count(element)
            return 0
        if slow is SlowPolicy.FAIL:
            # Before the signal (rule 1.6): a request from inside on_error must find a subscription
            # that is over.
            self._detach()
            self._topic.count_failed()
            subscriber.on_error(_too_slow(buffer))
            return 0
        # Without a buffer no older element can be dropped, so this one is dropped.
        if buffer and slow in (SlowPolicy.DROP_OLDEST, SlowPolicy.LATEST):
            self._buffered.popleft()
            self._buffered.append(element)
        return 1

    # --- the memory of the peer

    def count_retained(self) -> None:
        """Count the retained elements that wait: the topic has dropped them."""
        self._is_retained_counted = True
        self._count(*self._retained)

    def _count(self, *elements: T) -> None:
        if self._memory is not None:
            size = sum(map(bytes_of, elements))
            self._counted += size
            # Last: the budget may close the connection, which cancels this subscription.
            self._memory.change(size)

    def _count_taken(self, waiting: object, taken: Sequence[T]) -> None:
        """Count elements no more that were taken out of those that wait."""
        if self._is_retained_counted or waiting is not self._retained:
            # An element may have changed its size meanwhile.
            size = sum(map(bytes_of, taken)) if self.waiting else self._counted
            self._forget(min(size, self._counted))

    def _forget(self, size: int) -> None:
        if size and self._memory is not None:
            self._counted -= size
            self._memory.change(-size)

    # --- a member of a group

    @property
    def convert(self) -> Convert | None:
        """The encoding of its group."""
        convert: Convert | None = getattr(self._lender, "convert", None)
        return convert

    @property
    def limit(self) -> int:
        """The value of `Topic.appended` at which its demand is used up."""
        return self._position + self._demand

    def settle(self) -> None:
        """Use up the demand for the elements that were appended to its batch."""
        appended = self._topic.appended
        self._spend(appended - self._position)
        self._position = appended

    def renew(self) -> None:
        """Tell the subscriber that its demand is used up: it may request more at once."""
        lender = self._lender
        if lender is not None:
            lender.on_reservation_used()
        if self._demand and lender is not None:  # nothing waits for a member
            self._join_group(lender)
        else:
            self._topic.note_laggard()
        self._topic.update_full(self)

    def _join_group(self, lender: BatchingSubscriber) -> None:
        """Become a member if the batch is open."""
        batch = lender.run
        # The signal may have ended the subscription.
        if batch is not None and batch.longest >= 0 and self._subscriber is not None:
            self._position = self._topic.appended
            self.is_member = True
            self._topic.join_group(self, self.convert, batch)

    def end(self, end: "_End") -> None:
        """Signal the end: an error at once, completion after the waiting elements;
        but inside a signal, after that signal.
        """
        if self._is_signalling or (end.error is None and self.waiting):
            self._end = end
            return
        subscriber = self._detach()
        if subscriber is None:
            return
        if end.error is None:
            subscriber.on_complete()
        else:
            subscriber.on_error(end.error)

    def request(self, n: int, /) -> None:
        if self._subscriber is None:
            return  # rule 3.6
        self._demand = add_demand(self._demand, n)  # that of a member is settled when it leaves
        self._signal_waiting()
        # The clock is asked only for a subscriber that has a bound and still holds up the topic:
        # most requests make room.
        if self.is_full and self._max_hold_up < inf:
            self._moved_at = time_or_never()

    def cancel(self, /) -> None:
        self._detach()

    @property
    def has_bound(self) -> bool:
        """True for a subscriber over a network, unless the topic sets the bound for all."""
        return self._max_hold_up < inf

    def fail_if_overdue(self, began: float, now: float) -> float:
        """Fail if a publish has waited since `began`, and for this subscriber alone as long as
        its bound. Return when that will be.
        """
        # The later of both: the time before this publish, or before its last request,
        # is not held against a subscriber.
        due = max(began, self._moved_at) + self._max_hold_up
        if due > now:
            return due
        subscriber = self._detach()
        self._topic.count_failed()
        if subscriber is not None:
            subscriber.on_error(held_up(self._max_hold_up))
        return inf

    def _signal_waiting(self) -> None:
        """Signal as many waiting elements as the demand permits, then an end
        that waited for them.
        """
        if self._is_signalling:
            return  # rule 3.3: a call of this method further up the stack goes on with its loop
        self._is_signalling = True
        try:
            # All four are asked for each element:
            # inside on_next the subscriber may cancel, and the program may end the topic.
            while (
                self._demand
                and self.waiting
                and self._subscriber is not None
                and not self._has_failed()
            ):
                waiting = self._retained or self._buffered
                count = min(self._demand, len(waiting))
                on_next_many = _list_method(self._subscriber) if count > 1 else None
                if on_next_many is None:
                    self._spend(1)
                    element = waiting.popleft()
                    if self._counted:
                        self._count_taken(waiting, (element,))
                    self._subscriber.on_next(element)
                else:
                    # One call for all that wait: a subscriber
                    # that has fallen behind catches up faster.
                    self._spend(count)
                    elements = [waiting.popleft() for _ in range(count)]
                    if self._counted:
                        self._count_taken(waiting, elements)
                    on_next_many(elements)
        finally:
            self._is_signalling = False
        if self._end is not None:
            self.end(self._end)
        self._topic.update_full(self)

    def _has_failed(self) -> bool:
        # An error overtakes waiting elements.
        return self._end is not None and self._end.error is not None

    def _spend(self, count: int) -> None:
        if self._demand < UNBOUNDED:  # rule 3.17: 2^63-1 is without bound, and stays so
            self._demand -= count

    def _detach(self) -> Subscriber[T] | None:
        """Forget the subscriber and its elements, and leave the topic.
        Return the subscriber, for the last signal.
        """
        subscriber, self._subscriber = self._subscriber, None
        # The subscriber may keep its subscription, and that must not keep elements.
        self._retained = self._buffered = _EMPTY
        self._forget(self._counted)
        self._topic.remove(self)
        self._lender = None
        return subscriber


def _list_method(subscriber: Subscriber[T]) -> Callable[[Sequence[T]], None] | None:
    # A guard would divide a list. The elements must wait in the topic instead: the subscriber may
    # end the topic with an error inside one of them, and an error overtakes those that wait.
    if isinstance(subscriber, Relay) and not subscriber.takes_lists:
        return None
    return on_next_many_of(subscriber)


class Burst:
    """Elements that are published together, and their bytes in each encoding that is asked for."""

    __slots__ = ("_converted", "elements")

    def __init__(self, elements: list[Any]) -> None:
        self.elements: list[Any] = elements
        self._converted: dict[Convert, list[bytes] | None] = {}

    def converted(self, convert: Convert) -> list[bytes] | None:
        """Return the bytes of all elements; None if one cannot be converted. Then each subscriber
        converts them again, and its stream reports the failure.
        """
        if convert in self._converted:
            return self._converted[convert]
        data: list[bytes] | None
        try:
            data = [convert(element) for element in self.elements]
        except Exception:  # boundary: a serializer may raise anything
            data = None
        else:
            # A plugin may have made another type.
            data = data if set(map(type, data)) == _BYTES else None
        self._converted[convert] = data
        return data


def _longest(elements: list[Any] | None) -> int:
    """Return the length of the longest element; `_TOO_LONG` if one of them is not bytes."""
    if elements is None or set(map(type, elements)) != _BYTES:
        return _TOO_LONG
    return max(map(len, elements))


def _too_slow(buffer: int) -> SlowSubscriber:
    return SlowSubscriber(
        f"this subscriber had no demand left and {buffer} elements waiting when another one was "
        "published; "
        "its topic fails a subscriber that lags further. Request more, or give the topic a larger "
        "buffer or another `slow`",
        limit="buffer",
        value=buffer,
    )


@attrs.frozen
class _End:
    """How a topic ended: with an error, or completed if `error` is None."""

    error: Exception | None
