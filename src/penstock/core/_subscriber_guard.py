"""The edge between a pipe of ours and a subscriber of somebody's: every rule that the pipe may take for granted is made true here.

Rules of this file:

* The subscriber is forgotten the moment that the stream ends, in whatever way (rules 1.6, 3.13).
* After the end, every call from either side is silently nothing (rules 1.7, 3.6, 3.7).
* What the subscriber raises in a signal ends its stream, and is told to the scope; it reaches nobody else (rule 2.13).
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from penstock.api import IllegalDemand, RuleViolation, Subscriber, Subscription, check_demand, shown
from penstock.core._arguments import has_methods_of
from penstock.core._scope import Report, tell

T = TypeVar("T")


class SubscriberGuard(Subscriber[T], Subscription, Generic[T]):
    """The last stage before a foreign subscriber: its subscription, and the pipe's subscriber."""

    __slots__ = ("_greeted", "_on_violation", "_subscriber", "_upstream")

    def __init__(self, subscriber: Subscriber[T], on_violation: Report) -> None:
        self._subscriber: Subscriber[T] | None = subscriber
        self._on_violation = on_violation
        self._upstream: Subscription | None = None
        self._greeted = False

    @classmethod
    def between(cls, attach: Callable[[Subscriber[T]], None], subscriber: Subscriber[T], on_violation: Report) -> None:
        """Attach a pipe to `subscriber` as `Publisher.subscribe` must: it returns normally.

        The only error is a TypeError for what is no subscriber.
        """
        if not has_methods_of(subscriber, Subscriber):
            # rule 1.9: there is nobody to signal on_error to
            raise TypeError(
                f"subscribe() was given {type(subscriber).__name__!r}, which is no subscriber: "
                "it needs on_subscribe, on_next, on_error and on_complete (rule 1.9)"
            )
        edge = cls(subscriber, on_violation)
        try:
            attach(edge)
        except Exception as error:  # boundary: attach of a source that somebody else wrote (rule 1.9: subscribe returns normally)
            edge._fail(error)

    # --- the subscription: called by the foreign subscriber

    def request(self, n: int, /) -> None:
        if self._subscriber is None or self._upstream is None:
            return  # rule 3.6
        try:
            demand = check_demand(n)
        except IllegalDemand as illegal:
            self._fail(illegal)  # rule 3.9
            return
        self._upstream.request(demand)

    def cancel(self, /) -> None:
        self._subscriber = None
        self._drop_upstream()  # rule 3.7: the second time there is nothing left to cancel

    def _fail(self, error: Exception) -> None:
        self._drop_upstream()
        self.on_error(error)

    def _drop_upstream(self) -> None:
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.cancel()

    # --- the subscriber: called by the pipe

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription
        self._greet()

    def on_next(self, element: T, /) -> None:
        subscriber = self._subscriber
        if subscriber is None:
            return
        try:
            subscriber.on_next(element)
        except Exception as error:  # boundary: a foreign subscriber's signal method (rule 2.13)
            self.cancel()
            self._report("on_next", error)

    def on_error(self, error: BaseException, /) -> None:
        self._greet()
        subscriber = self._end()
        if subscriber is None:
            return
        try:
            subscriber.on_error(error)
        except Exception as raised:  # boundary: a foreign subscriber's signal method (rule 2.13)
            self._report("on_error", raised)

    def on_complete(self, /) -> None:
        self._greet()
        subscriber = self._end()
        if subscriber is None:
            return
        try:
            subscriber.on_complete()
        except Exception as raised:  # boundary: a foreign subscriber's signal method (rule 2.13)
            self._report("on_complete", raised)

    def _greet(self) -> None:
        """Signal on_subscribe, once, before anything else (rules 1.9, 2.12)."""
        if self._greeted or self._subscriber is None:
            return
        self._greeted = True
        try:
            self._subscriber.on_subscribe(self)
        except Exception as error:  # boundary: a foreign subscriber's signal method (rule 2.13)
            self.cancel()
            self._report("on_subscribe", error)

    def _end(self) -> Subscriber[T] | None:
        """Forget both sides (rule 1.6); return who the subscriber was."""
        subscriber, self._subscriber = self._subscriber, None
        self._upstream = None
        return subscriber

    def _report(self, signal: str, error: Exception) -> None:
        violation = RuleViolation(
            f"a subscriber raised {shown(error)} in {signal}; a signal method must return normally. "
            "Its subscription was cancelled; to stop on purpose, call subscription.cancel()",
            rule="2.13",
        )
        violation.__cause__ = error
        tell(self._on_violation, violation)

    def __repr__(self) -> str:
        return f"<edge {'over' if self._subscriber is None else 'live'}>"
