"""`share`: one subscription to a source, for many subscribers.

Rules of this file:

* A run is one subscription to the source. The first subscriber begins it. It ends with the source,
  or when its last subscriber leaves.
  The next subscriber begins a new run.
* Upstream is asked only for elements that a subscriber has requested, and `Overflow` bounds how
  many wait for a slower one.
* With `SlowPolicy.WAIT` a subscriber without room holds up all others,
  for its bound at most (`_hold_up_watch`).
* Upstream gets no request while an element is being given to the subscribers: an answer inside
  `request` would overtake it.
"""

from math import inf
from typing import Any

import trio

from penstock.api import Subscriber, Subscription, UsageError, shown
from penstock.core import Report, Scope, check_hook, log_violation
from penstock.streams._slow_subscribers import SlowPolicy, check_hold_up
from penstock.streams._source import Source
from penstock.streams.ops._hold_up_watch import HoldUpWatch
from penstock.streams.ops._operator import OperatorBase, SameTypeOperator
from penstock.streams.ops._output_queue import (
    End,
    OutputQueue,
    Overflow,
    QueueOwner,
    check_overflow,
)
from penstock.streams.ops._stage import ENDED_UPSTREAM
from penstock.streams.ops._step import WINDOW


def share(
    nursery: trio.Nursery,
    *,
    slow: SlowPolicy = SlowPolicy.WAIT,
    buffer: int | None = None,
    max_hold_up: float | None = None,
    on_violation: Report = log_violation,
) -> SameTypeOperator:
    """Subscribe to the source once, for all subscribers of the pipe. Each gets the elements that
    arrive after it has subscribed.

    The first subscriber begins a run, whose tasks `nursery` owns. When the last subscriber has
    left, the source is cancelled; the next one begins a new run. After the source has ended, each
    subscriber gets that end, and the next subscriber begins a new run too.
    If `nursery` is cancelled, each subscriber gets the error of the source,
    for example `PublisherStopped`.

    `slow` declares what happens to a subscriber that lags behind by more than `buffer` elements (by
    default 16). With `SlowPolicy.WAIT` all subscribers get the elements at the pace of the slowest.
    With every other policy the fastest sets the pace, and the others miss elements or fail, as for
    a `Topic`. With `SlowPolicy.LATEST` the buffer is 1 element.
    `max_hold_up` is how many seconds, with `SlowPolicy.WAIT`, a subscriber that has no room and
    requests nothing may hold up others that want elements. Then it gets `on_error(SlowSubscriber)`,
    and the others go on. None: without a bound for subscribers in this process, and
    `Limits.max_hold_up` (10 s) for those over a network. ``math.inf``: without a bound for all.

    Upstream demand: 1 per demand of the subscriber that has requested the most, at most 16 ahead
    (with `SlowPolicy.WAIT` at most `buffer` ahead, and no more than the slowest has room for).
    Buffer: `buffer` elements for each subscriber.
    Completion comes after the waiting elements of each subscriber. An error passes to all at once,
    and waiting elements are dropped.
    A cancel drops those of that subscriber; the last one cancels upstream.
    """
    if not isinstance(nursery, trio.Nursery):
        raise UsageError(
            f"share() was given {shown(nursery)}; give the nursery that shall run the tasks of the "
            "source"
        )
    overflow = check_overflow("share", slow, buffer)
    return _Share(nursery, overflow, check_hold_up(max_hold_up, slow), check_hook(on_violation))


class _Share(OperatorBase[Any, Any]):
    """The operator. It is the one operator with a state:
    the runs that new subscribers may join, one for each source.
    """

    __slots__ = ("_max_hold_up", "_nursery", "_on_violation", "_overflow", "_runs")

    def __init__(
        self,
        nursery: trio.Nursery,
        overflow: Overflow,
        max_hold_up: float | None,
        on_violation: Report,
    ) -> None:
        self._nursery = nursery
        self._max_hold_up = max_hold_up
        self._overflow = overflow
        self._on_violation = on_violation
        self._runs: dict[int, _Run] = {}  # by the id of the source, which the run keeps alive

    def attach(self, source: Source[Any], subscriber: Subscriber[Any], scope: Scope) -> None:
        scope.begun += 1  # the tasks of the run belong to another scope
        run = self._runs.get(id(source))
        if run is None:
            # A new scope: the run outlives the subscription of its first subscriber.
            run = self._runs[id(source)] = _Run(self, source, self._overflow, self._max_hold_up)
            run.join(subscriber, scope.max_hold_up)
            run.begin(Scope(self._nursery, on_violation=self._on_violation))
        else:
            run.join(subscriber, scope.max_hold_up)

    def forget(self, source: Source[Any], run: "_Run") -> None:
        """Let no further subscriber join `run`."""
        if self._runs.get(id(source)) is run:
            del self._runs[id(source)]

    def __repr__(self) -> str:
        return f"<operator share({self._overflow.slow.value}): {len(self._runs)} runs>"


class _Run(Subscriber[Any], QueueOwner):
    """One subscription to the source, and the queues of its subscribers."""

    __slots__ = (
        "_delivering",
        "_operator",
        "_outstanding",
        "_overflow",
        "_queues",
        "_source",
        "_upstream",
        "_watch",
    )

    def __init__(
        self, operator: _Share, source: Source[Any], overflow: Overflow, max_hold_up: float | None
    ) -> None:
        self._operator = operator
        self._source = source
        self._overflow = overflow
        # A dict: subscribers get an element in the order in which they joined.
        self._queues: dict[OutputQueue[Any], None] = {}
        self._upstream: Subscription = ENDED_UPSTREAM
        self._outstanding = 0  # requested from upstream and not yet arrived
        self._delivering = 0  # calls of on_next and join on the stack
        self._watch: HoldUpWatch[OutputQueue[Any]] = HoldUpWatch(
            "share", max_hold_up, lambda queue, error: queue.end(End(error))
        )

    def join(self, subscriber: Subscriber[Any], max_hold_up: float) -> None:
        """Add a subscriber. `max_hold_up` is its bound if the operator sets none."""
        queue: OutputQueue[Any] = OutputQueue(self, self._overflow)
        self._queues[queue] = None
        # Only with WAIT does a subscriber hold up another one.
        self._watch.add(queue, max_hold_up if self._overflow.slow is SlowPolicy.WAIT else inf)
        self._delivering += 1
        try:
            queue.start(subscriber)
        finally:
            self._delivering -= 1
        self._request_missing()

    def begin(self, scope: Scope) -> None:
        """Subscribe to the source, unless the first subscriber has cancelled inside
        on_subscribe.
        """
        if self._queues:
            self._watch.begin(scope, self._stop)
            try:
                self._source.attach(self, scope)
            except Exception as error:  # boundary: the source may be user code
                self.on_error(error)

    # --- the subscriber: called by the source

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if not self._queues:
            subscription.cancel()
            return
        self._upstream = subscription
        self._request_missing()

    def on_next(self, element: Any, /) -> None:
        self._outstanding -= 1
        self._delivering += 1
        try:
            for queue in tuple(self._queues):
                queue.push(element)
        finally:
            self._delivering -= 1
        # half of it at a time: one call for each element would be slower.
        self._request_missing(least=(self._most_ahead() + 1) // 2)

    def on_error(self, error: BaseException, /) -> None:
        self._end(End(error))

    def on_complete(self, /) -> None:
        self._end(End(None))

    def _stop(self, error: BaseException) -> None:
        """End the run from here: the timer cannot run."""
        upstream, self._upstream = self._upstream, ENDED_UPSTREAM
        upstream.cancel()
        self.on_error(error)

    def _end(self, end: End) -> None:
        self._upstream = ENDED_UPSTREAM
        self._watch.stop()
        self._operator.forget(self._source, self)
        for queue in tuple(self._queues):
            queue.end(end)

    # --- the owner: called by the queues

    def on_queue_demand(self, queue: OutputQueue[Any]) -> None:
        self._watch.note_request(queue)
        self._request_missing()

    def on_queue_closed(self, queue: OutputQueue[Any]) -> None:
        del self._queues[queue]
        self._watch.remove(queue)
        if self._queues:
            self._request_missing()  # it may have been the slowest
            return
        self._watch.stop()
        self._operator.forget(self._source, self)
        upstream, self._upstream = self._upstream, ENDED_UPSTREAM
        upstream.cancel()

    # --- demand

    def _most_ahead(self) -> int:
        # With WAIT nothing may be dropped. A new subscriber has room for `buffer` elements, so no
        # more than that may be under way.
        return self._overflow.buffer if self._overflow.slow is SlowPolicy.WAIT else WINDOW

    def _request_missing(self, *, least: int = 1) -> None:
        """Request what is missing, if it is at least `least` elements or if none is outstanding."""
        if self._delivering or not self._queues or self._upstream is ENDED_UPSTREAM:
            return
        wanted = min(self._most_ahead(), max(queue.demand for queue in self._queues))
        if self._overflow.slow is SlowPolicy.WAIT:
            wanted = min(wanted, *(queue.room for queue in self._queues))
        missing = wanted - self._outstanding
        if missing >= least or (missing > 0 and not self._outstanding):
            self._outstanding += missing
            self._upstream.request(missing)
        # The request may have ended the run.
        if self._watch.is_needed and self._upstream is not ENDED_UPSTREAM:
            self._watch.update(self._holding_up())

    def _holding_up(self) -> list[OutputQueue[Any]]:
        """Return the queues without room, if nothing is under way
        and another subscriber wants elements.
        """
        if self._outstanding or not any(queue.demand for queue in self._queues):
            return []
        return [queue for queue in self._queues if queue.room <= 0]
