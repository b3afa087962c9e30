"""Publishers upstream of the implementation under test: one that counts, without a task, for
each generation, and one that intercepts.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from penstock.api import (
    UNBOUNDED,
    IllegalDemand,
    InvalidStateError,
    Publisher,
    Subscription,
    add_demand,
    check_demand,
)


class CountingPublisher(Publisher[int]):
    """Signals 0 to `count` - 1, or what `element` makes of them, inside request(). It completes
    with the last one, or fails with `error`.

    A subscriber that raises in a signal counts as cancelled,
    and `on_violation` gets the exception (rule 2.13).
    """

    def __init__(
        self,
        count: int,
        error: BaseException | None = None,
        *,
        element: Callable[[int], Any] = int,
        on_violation: Callable[[Exception], object] = lambda _: None,
    ) -> None:
        self._element = element
        self._count = count
        self._error = error
        self._on_violation = on_violation

    def subscribe(self, subscriber: Any, /) -> None:
        """Serve one more subscriber, from 0 on."""
        if subscriber is None:
            raise TypeError("subscribe() was called with None (rule 1.9)")
        self._begin(
            _CountingSubscription(
                subscriber, self._count, self._error, self._element, self._on_violation
            )
        )

    def _begin(self, line: "_CountingSubscription") -> None:
        line.signal("on_subscribe", line)
        line.pump()


class InterceptedPublisher:
    """A publisher that gives access to its subscribers: `before` gets each one before on_subscribe,
    `after` directly after subscribe().

    So a check can reach an object that subscribes by itself,
    and can act before its subscriber's tasks run.
    """

    def __init__(
        self,
        publisher: Any,
        *,
        before: Callable[[Any], object] = lambda _: None,
        after: Callable[[Any], object] = lambda _: None,
    ) -> None:
        self._publisher = publisher
        self._before = before
        self._after = after
        self.subscription: Any = None
        """From here a check gets the subscriber, as it does from a `ManualPublisher`."""

    def subscribe(self, subscriber: Any, /) -> None:
        """Subscribe it, and call `before` and `after`."""
        self.subscription = SimpleNamespace(subscriber=subscriber)
        self._before(subscriber)
        self._publisher.subscribe(subscriber)
        self._after(subscriber)


class LatePublisher:
    """A publisher that answers a subscriber later:
    `arrive()` subscribes to `publisher` those that have come.
    """

    def __init__(self, publisher: Any) -> None:
        self._publisher = publisher
        # Bounded: a processor subscribes once.
        self._waiting: list[Any] = []

    def subscribe(self, subscriber: Any, /) -> None:
        """Keep the subscriber."""
        self._waiting.append(subscriber)

    def arrive(self) -> None:
        """Subscribe all that wait."""
        waiting, self._waiting = self._waiting, []
        for subscriber in waiting:
            self._publisher.subscribe(subscriber)


class _CountingSubscription(Subscription):
    def __init__(
        self,
        subscriber: Any,
        count: int,
        error: BaseException | None,
        element: Callable[[int], Any],
        on_violation: Callable[[Exception], object],
    ) -> None:
        self._element = element
        # rule 3.13: None after the end, so that this object does not keep the subscriber.
        self._subscriber = subscriber
        self._count = count
        self._error = error
        self._on_violation = on_violation
        self._next = 0
        self._demand = 0
        # rule 3.2: nothing is signalled before on_subscribe has returned,
        # so the pump counts as running.
        self._pumping = True

    def request(self, n: int, /) -> None:
        """Add `n` to the demand and signal."""
        if self._subscriber is None:
            return
        try:
            self._demand = add_demand(self._demand, check_demand(n))
        except IllegalDemand as error:
            self._end("on_error", error)
            return
        if not self._pumping:
            self.pump()

    def cancel(self) -> None:
        """Stop."""
        self._subscriber = None

    def pump(self) -> None:
        """Signal while there is demand. A loop, not a recursion (rule 3.3): a request inside
        on_next only raises the demand.
        """
        self._pumping = True
        while self._subscriber is not None and self._next < self._count and self._demand:
            self._demand -= 1
            self._next += 1
            self.signal("on_next", self._element(self._next - 1))
        self._pumping = False
        if self._subscriber is not None and self._next == self._count:
            self._end("on_error", self._error) if self._error is not None else self._end(
                "on_complete"
            )

    def _end(self, signal: str, *arguments: Any) -> None:
        subscriber, self._subscriber = self._subscriber, None
        self._deliver(subscriber, signal, *arguments)

    def signal(self, name: str, *arguments: Any) -> None:
        """Signal to the subscriber."""
        self._deliver(self._subscriber, name, *arguments)

    def _deliver(self, subscriber: Any, name: str, *arguments: Any) -> None:
        try:
            getattr(subscriber, name)(*arguments)
        except Exception as error:  # boundary: the subscriber's code runs here; rule 2.13
            self._subscriber = None
            self._on_violation(error)


class DraftCountingPublisher(CountingPublisher):
    """The same by the draft: a known end is signalled without on_subscribe,
    and calls on an ended subscription raise.
    """

    def subscribe(self, subscriber: Any, /) -> None:
        """Serve one more subscriber, from 0 on, or signal it the end."""
        if subscriber is None:
            raise TypeError("subscribe() was called with None")
        if self._count:
            self._begin(
                _DraftCountingSubscription(
                    subscriber, self._count, self._error, self._element, self._on_violation
                )
            )
        elif self._error is None:
            subscriber.on_complete()
        else:
            subscriber.on_error(self._error)


class _DraftCountingSubscription(_CountingSubscription):
    def request_more(self, n: int, /) -> None:
        """Add `n` to the demand and signal."""
        self._refuse_when_over("request_more")
        if self._demand + check_demand(n) > UNBOUNDED:
            self._end("on_error", InvalidStateError("the total demand is above 2^63-1 (D2.3)"))
            return
        self.request(n)

    def cancel(self) -> None:
        """Stop."""
        self._refuse_when_over("cancel")
        super().cancel()

    def _refuse_when_over(self, method: str) -> None:
        if self._subscriber is None:
            raise InvalidStateError(
                f"{method} was called on a subscription that has ended (D2.1, D3.1)"
            )
