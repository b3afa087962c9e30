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
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any, Final, Generic, TypeVar

import attrs
import trio

from penstock.api import (
    UNBOUNDED,
    Publisher,
    SlowSubscriber,
    Subscriber,
    Subscription,
    UsageError,
    add_demand,
    on_next_many_of,
    shown,
)
from penstock.core import (
    Relay,
    Report,
    Scope,
    SubscriberGuard,
    check_count,
    check_hook,
    check_in_trio,
    log_violation,
)
from penstock.reader import DEFAULT_DEMAND
from penstock.streams._slow_subscribers import SlowPolicy, check_hold_up, held_up, hold_up_bound_of
from penstock.streams._source import Source

T = TypeVar("T")


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
    (10 s) for those over a network. ``math.inf``: without a bound for all.
    A topic is a source for `subscribe` and `pipe`, and also a `Publisher`, without a nursery.
    """

    __slots__ = (
        "_buffer",
        "_dropped",
        "_end",
        "_failed",
        "_full",
        "_is_delivering",
        "_membership_changed",
        "_on_violation",
        "_publish_lock",
        "_published",
        "_retained",
        "_room",
        "_slow",
        "_subscriptions",
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
        # subscriptions without room; counted as they change, so that publish need not look at each.
        self._full = 0
        self._published = 0
        self._dropped = 0
        self._failed = 0
        self._is_delivering = False
        self._end: _End | None = None
        # publishers that wait for room go on in the order in which they came.
        self._publish_lock = trio.Lock()
        self._room = TopicRoom(max_hold_up, slow)
        self._membership_changed = trio.lowlevel.ParkingLot()

    # --- publishing

    async def publish(self, element: T) -> None:
        """Give `element` to every subscriber;
        with `SlowPolicy.WAIT`, once each of them has room for it. Checkpoints.

        If it is cancelled, no subscriber has got `element`.
        Raises UsageError for None, or after `complete` or `fail`.
        """
        if element is None:
            raise UsageError("publish(None): None is never an element (rule 2.13)")
        self._check_open()
        try:
            if self._slow is SlowPolicy.WAIT:
                async with self._publish_lock:
                    if self._full:
                        await self._room.wait(self._is_held_up, self._fail_overdue)
                    self._check_open()  # the topic may have ended while this waited
                    self._deliver(element)
            else:
                # The other policies never wait, but a publisher in a loop must still let its
                # subscribers run.
                await trio.lowlevel.checkpoint()
                self._check_open()
                self._deliver(element)
        except RuntimeError:
            # trio's first await raises it outside of trio.
            # To check before each element would cost 1 % of a publish.
            check_in_trio("Topic.publish()")
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
        self._join(subscriber, scope.max_hold_up)

    @property
    def prefetch(self) -> int:
        """0 with `SlowPolicy.LATEST`:
        the buffer of the stream would hold the elements that the policy drops. Else 256.
        """
        return 0 if self._slow is SlowPolicy.LATEST else DEFAULT_DEMAND

    def _join(self, subscriber: Subscriber[T], own_bound: float) -> None:
        end = self._end
        retained = self._retained if end is None or end.error is None else ()
        subscription = _TopicSubscription(self, subscriber, retained, self._room.bound(own_bound))
        if end is None:
            # Before on_subscribe: the subscriber may call complete() inside it, and must get
            # that end.
            self._subscriptions[subscription] = None
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

    def _deliver(self, element: T) -> None:
        self._published += 1
        # Retained before it is delivered: a subscriber that joins inside on_next gets this element
        # as a retained one. It is not in the copy below, so it gets the element once.
        self._retained.append(element)
        self._is_delivering = True
        try:
            # A copy: a subscriber may cancel or subscribe inside on_next.
            for subscription in tuple(self._subscriptions):
                self._dropped += subscription.deliver(element, self._slow, self._buffer)
        finally:
            self._is_delivering = False
        if self._end is not None:
            # complete() was called inside a signal; now all subscribers have the element.
            self._signal_end(self._end)

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
        # None: a subscription to an ended topic was never in it.
        self._subscriptions.pop(subscription, None)
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
        self, is_full: Callable[[], bool], fail_overdue: Callable[[float], float]
    ) -> None:
        """Wait until `is_full` returns False.

        `fail_overdue` is called when a bound may be over, with the time at which the wait began; it
        fails the subscribers whose bound is over, and returns when the next one will be.
        """
        if self._least == inf:
            # Without a cancel scope, which costs as much as the wait itself.
            # A subscriber with a bound wakes this.
            while self._least == inf and is_full():
                await self._lot.park()
        began = trio.current_time()
        due = began + self._least
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
        "_demand",
        "_end",
        "_is_signalling",
        "_max_hold_up",
        "_moved_at",
        "_retained",
        "_subscriber",
        "_topic",
        "is_full",
    )

    def __init__(
        self,
        topic: Topic[T],
        subscriber: Subscriber[T],
        retained: "deque[T] | tuple[()]",
        max_hold_up: float,
    ) -> None:
        self._topic = topic
        self._subscriber: Subscriber[T] | None = subscriber
        self._demand = 0
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

    def has_room(self, buffer: int) -> bool:
        """Return whether an element that is published now would be signalled,
        or fit into the buffer.
        """
        return (self._demand > 0 and not self.waiting) or len(self._buffered) < buffer

    def start(self, subscriber: Subscriber[T]) -> None:
        """Signal on_subscribe. Elements that are requested inside it are signalled after it."""
        self._is_signalling = True
        try:
            subscriber.on_subscribe(self)
        finally:
            self._is_signalling = False
        self._signal_waiting()

    def deliver(self, element: T, slow: SlowPolicy, buffer: int) -> int:
        """Signal, buffer or drop an element that is being published;
        return how many elements were dropped.
        """
        subscriber = self._subscriber
        if subscriber is None:
            return 0  # cancelled inside the signal that another subscriber has just got
        dropped = 0
        # behind waiting elements it must wait too, or the order would change.
        if self._demand and not self.waiting:
            self._spend(1)
            subscriber.on_next(element)
        elif len(self._buffered) < buffer:
            if self._buffered is _EMPTY:
                self._buffered = deque()
            self._buffered.append(element)
        elif slow is SlowPolicy.FAIL:
            # Before the signal (rule 1.6): a request from inside on_error must find a subscription
            # that is over.
            self._detach()
            self._topic.count_failed()
            subscriber.on_error(_too_slow(buffer))
        else:
            dropped = 1
            # Without a buffer no older element can be dropped, so this one is dropped.
            if buffer and slow in (SlowPolicy.DROP_OLDEST, SlowPolicy.LATEST):
                self._buffered.popleft()
                self._buffered.append(element)
        self._topic.update_full(self)
        return dropped

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
        self._demand = add_demand(self._demand, n)
        self._signal_waiting()
        # The clock is asked only for a subscriber that has a bound and still holds up the topic:
        # most requests make room.
        if self.is_full and self._max_hold_up < inf:
            self._moved_at = time_or_never()

    def cancel(self, /) -> None:
        self._detach()

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
                    self._subscriber.on_next(waiting.popleft())
                else:
                    # One call for all that wait: a subscriber
                    # that has fallen behind catches up faster.
                    self._spend(count)
                    on_next_many([waiting.popleft() for _ in range(count)])
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
        self._topic.remove(self)
        return subscriber


def _list_method(subscriber: Subscriber[T]) -> Callable[[Sequence[T]], None] | None:
    # A guard would divide a list. The elements must wait in the topic instead: the subscriber may
    # end the topic with an error inside one of them, and an error overtakes those that wait.
    if isinstance(subscriber, Relay) and not subscriber.takes_lists:
        return None
    return on_next_many_of(subscriber)


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
