"""`FanOut`: the end of a processor.
It passes each element on to every subscriber, at the pace of the slowest.

Rules of this file:

* `_work` is the only place where elements and ends are signalled and elements are requested
  upstream, and it never runs inside itself. A call from inside a signal only changes the state, and
  the loop sees it afterwards. So signals stay serial (rule 1.3) and nothing recurses.
* An element is requested upstream when every subscriber has requested it, at most `WINDOW` at a
  time. Elements that are under way when a further subscriber comes are kept for it until it
  requests them. So at most `WINDOW` elements are kept.
* Completion waits for kept elements. An error does not:
  elements without demand are dropped (rule 4.2).
* A subscriber that requests nothing holds up all others, for its bound at most (`_hold_up_watch`).
* When the last subscriber has cancelled, upstream is cancelled.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from penstock.api import (
    UNBOUNDED,
    PipePart,
    Publisher,
    SlowSubscriber,
    Subscriber,
    Subscription,
    UsageError,
    add_demand,
)
from penstock.core import Report, Scope, SubscriberGuard
from penstock.streams._slow_subscribers import hold_up_bound_of
from penstock.streams.ops._hold_up_watch import HoldUpWatch
from penstock.streams.ops._stage import ENDED_UPSTREAM
from penstock.streams.ops._step import WINDOW

T = TypeVar("T")


class FanOut(Subscriber[T], Publisher[T], Generic[T]):
    """A subscriber of a pipe, and the publisher of any number of subscribers."""

    __slots__ = (
        "_branches",
        "_end",
        "_is_working",
        "_must_rerun",
        "_on_violation",
        "_outstanding",
        "_upstream",
        "_watch",
    )

    def __init__(
        self, on_violation: Report, *, scope: Scope | None = None, max_hold_up: float | None = None
    ) -> None:
        """`scope` runs the timer of `max_hold_up`. Without it no subscriber has a bound."""
        self._on_violation = on_violation
        self._watch: HoldUpWatch[_Branch[T]] = HoldUpWatch(
            "processor", max_hold_up, self._fail_branch
        )
        if scope is not None:
            self._watch.begin(scope, self._stop)
        self._upstream: Subscription = ENDED_UPSTREAM
        self._branches: dict[_Branch[T], None] = {}  # in the order in which they came
        self._outstanding = 0  # requested upstream and not yet arrived; at most WINDOW
        self._end: Callable[[Subscriber[T]], None] | None = None  # signals how the stream ended
        self._is_working = False
        self._must_rerun = False

    @property
    def is_over(self) -> bool:
        """Whether the stream has ended. A new subscriber gets that end."""
        return self._end is not None

    # --- the publisher

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        SubscriberGuard.insert_between(
            partial(self._join, max_hold_up=hold_up_bound_of(subscriber)),
            subscriber,
            self._on_violation,
        )

    def _join(self, subscriber: Subscriber[T], max_hold_up: float) -> None:
        branch = _Branch(self, subscriber)
        self._watch.add(branch, max_hold_up)
        self._branches[branch] = None
        # A request inside on_subscribe is served after it.
        outer, self._is_working = self._is_working, True
        subscriber.on_subscribe(branch)
        self._is_working = outer
        self.work()

    # --- the subscriber: called by the pipe

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription

    def on_next(self, element: T, /) -> None:
        self._outstanding -= 1
        for branch in self._branches:
            branch.kept.append(element)
        self.work()

    def on_error(self, error: BaseException, /) -> None:
        for branch in self._branches:
            branch.drop_unrequested()
        self._finish(lambda subscriber: subscriber.on_error(error))

    def on_complete(self, /) -> None:
        self._finish(_complete)

    def _finish(self, end: Callable[[Subscriber[T]], None]) -> None:
        if self._end is None:
            self._upstream, self._end = ENDED_UPSTREAM, end
            self._watch.stop()
            self.work()

    def _stop(self, error: BaseException) -> None:
        """End the stream from here: the timer cannot run."""
        upstream, self._upstream = self._upstream, ENDED_UPSTREAM
        upstream.cancel()
        self.on_error(error)

    # --- for the branches

    def forget(self, branch: "_Branch[T]") -> None:
        """Forget a subscriber that has cancelled; after the last one cancel upstream."""
        self._branches.pop(branch, None)
        self._watch.remove(branch)
        if not self._branches and self._end is None:
            self._watch.stop()
            upstream, self._upstream = self._upstream, ENDED_UPSTREAM
            self._end = _refuse
            upstream.cancel()
        self.work()

    def note_request(self, branch: "_Branch[T]") -> None:
        """Take note that a subscriber has requested something."""
        self._watch.note_request(branch)
        self.work()

    def _fail_branch(self, branch: "_Branch[T]", error: SlowSubscriber) -> None:
        self._branches.pop(branch, None)
        self._watch.remove(branch)
        branch.end(lambda subscriber: subscriber.on_error(error))
        self.work()

    def work(self) -> None:
        """Signal what is due to each subscriber, and request upstream, until nothing changes."""
        self._must_rerun = True
        if self._is_working:
            return
        self._is_working = True
        try:
            while self._must_rerun:
                self._must_rerun = False
                # A copy: a subscriber may cancel or subscribe inside a signal.
                for branch in tuple(self._branches):
                    branch.signal_kept()
                    if self._end is not None and not branch.kept:
                        self._branches.pop(branch, None)
                        branch.end(self._end)
                self._request_upstream()
        finally:
            self._is_working = False

    def _request_upstream(self) -> None:
        if self._end is not None or not self._branches:
            return
        wanted = min(branch.missing for branch in self._branches)
        missing = min(wanted, WINDOW) - self._outstanding
        # Half a window at a time: a request for each element would cost a call through every
        # operator.
        if missing >= WINDOW // 2 or (missing > 0 and not self._outstanding):
            self._outstanding += missing
            self._upstream.request(missing)
        if self._watch.is_needed and self._end is None:  # the request may have ended the stream
            self._watch.update(self._holding_up())

    def _holding_up(self) -> list["_Branch[T]"]:
        """Return the branches that have requested nothing, if nothing is under way
        and another one wants elements.
        """
        if self._outstanding or not any(branch.missing > 0 for branch in self._branches):
            return []
        return [branch for branch in self._branches if branch.missing <= 0]

    def __repr__(self) -> str:
        return (
            f"<fan-out {'live' if self._end is None else 'over'}: {len(self._branches)} "
            "subscribers>"
        )


class _Branch(Subscription, Generic[T]):
    """The subscription of one subscriber: its demand, and the elements that wait for it."""

    __slots__ = ("_demand", "_fan_out", "_subscriber", "kept")

    kept: deque[T]

    def __init__(self, fan_out: FanOut[T], subscriber: Subscriber[T]) -> None:
        self._fan_out = fan_out
        self._subscriber: Subscriber[T] | None = subscriber
        self._demand = 0
        self.kept = deque()  # bounded by WINDOW: no more is under way at a time

    def pipe_part(self) -> PipePart:
        """Return the part for those who look at the pipe."""
        return PipePart("processor", len(self.kept))

    @property
    def missing(self) -> int:
        """Elements that are requested here and have not come."""
        return self._demand - len(self.kept)

    def request(self, n: int, /) -> None:
        if self._subscriber is not None:  # rule 3.6
            self._demand = add_demand(self._demand, n)
            self._fan_out.note_request(self)

    def cancel(self, /) -> None:
        if self._detach() is not None:
            self._fan_out.forget(self)

    def signal_kept(self) -> None:
        """Signal as many kept elements as are requested."""
        while self._demand and self.kept and self._subscriber is not None:
            if self._demand < UNBOUNDED:  # rule 3.17
                self._demand -= 1
            self._subscriber.on_next(self.kept.popleft())

    def drop_unrequested(self) -> None:
        """Drop the elements that would wait for demand. Requested ones are here only until the
        loop of `work` comes to them.
        """
        while len(self.kept) > self._demand:
            self.kept.pop()

    def end(self, signal: Callable[[Subscriber[T]], None]) -> None:
        """Signal the end, unless the subscriber has cancelled."""
        subscriber = self._detach()
        if subscriber is not None:
            signal(subscriber)

    def _detach(self) -> Subscriber[T] | None:
        # The subscriber may keep its subscription, and that must not keep elements (rule 3.13).
        subscriber, self._subscriber = self._subscriber, None
        self.kept.clear()
        return subscriber


def _complete(subscriber: Subscriber[Any]) -> None:
    subscriber.on_complete()


def _refuse(subscriber: Subscriber[Any]) -> None:
    subscriber.on_error(
        UsageError(
            "this processor is over: its last subscriber has cancelled, and then it cancels its "
            "publisher. Make a new processor for another stream, or keep one subscriber subscribed"
        )
    )
