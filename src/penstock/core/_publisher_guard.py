"""The guard between a foreign publisher and a pipe.
It makes true what the pipe takes for granted about its publisher.

Rules of this file:

* The pipe gets `on_subscribe` at once.
  Its requests are kept until the publisher has called `on_subscribe`.
* If the publisher signals an element that was not requested, or raises, the stream ends with a
  `RuleViolation` that names the rule.
  Only None is answered to the publisher itself, with a TypeError (rule 2.13).
* After the end, signals of the publisher do nothing (rules 2.4, 2.8).
"""

from math import inf
from typing import TypeVar

from penstock.api import Publisher, RuleViolation, Subscriber, Subscription, add_demand, shown
from penstock.core._relay import ElementRelay
from penstock.core._scope import Report, report

T = TypeVar("T")


class PublisherGuard(ElementRelay[T]):
    """The first relay after a foreign publisher:
    its subscriber, and the subscription of the pipe.
    """

    __slots__ = ("_on_violation", "_outstanding", "_requested_early", "max_hold_up")

    def __init__(
        self, subscriber: Subscriber[T], on_violation: Report, *, max_hold_up: float = inf
    ) -> None:
        super().__init__(subscriber)
        self._on_violation = on_violation
        self._requested_early = 0  # requested before the publisher called on_subscribe
        self._outstanding = 0  # requested of the publisher and not yet signalled
        self.max_hold_up: float = max_hold_up
        """`Scope.max_hold_up` of the pipe, for a publisher of many subscribers."""

    @classmethod
    def insert_between(
        cls,
        publisher: Publisher[T],
        subscriber: Subscriber[T],
        on_violation: Report,
        *,
        max_hold_up: float = inf,
    ) -> None:
        """Subscribe to `publisher` with a guard before `subscriber`."""
        guard = cls(subscriber, on_violation, max_hold_up=max_hold_up)
        subscriber.on_subscribe(guard)
        if guard._subscriber is None:
            return  # cancelled inside on_subscribe: the publisher need not be called at all
        try:
            publisher.subscribe(guard)
        except Exception as error:  # boundary: a foreign publisher (rule 1.9)
            guard._end_with_violation(
                "1.9", f"the publisher raised {shown(error)} in subscribe()", error
            )

    # --- the subscription: called by the pipe

    def request(self, n: int, /) -> None:
        if self._subscriber is None:
            return  # rule 3.6
        if self._upstream is None:
            self._requested_early = add_demand(self._requested_early, n)
        else:
            self._request(self._upstream, n)

    def cancel(self, /) -> None:
        if self._subscriber is None:
            return  # rule 3.7
        self._subscriber = None
        self._cancel_upstream()

    # --- the subscriber: called by the foreign publisher

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if subscription is None:
            raise TypeError("on_subscribe(None): a subscription is needed (rule 2.13)")
        if subscription is self._upstream:
            # Rule 2.5 would have us cancel it, and that would end the first stream silently.
            self._end_with_violation(
                "2.12", "the publisher signalled on_subscribe twice with one subscription"
            )
            return
        if self._subscriber is None or self._upstream is not None:
            # rule 2.5: never two subscriptions; and after a cancel none is needed
            self._cancel(subscription)
            return
        self._upstream = subscription
        if self._requested_early:
            early, self._requested_early = self._requested_early, 0
            self._request(subscription, early)

    def on_next(self, element: T, /) -> None:
        if element is None:
            raise TypeError("on_next(None): None is never an element (rule 2.13)")
        subscriber = self._subscriber
        if subscriber is None:
            return  # rule 2.8
        if self._outstanding <= 0:  # before on_subscribe this is any element
            self._end_with_violation(
                "1.1", "the publisher signalled an element that was not requested"
            )
            return
        self._outstanding -= 1
        subscriber.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        if not isinstance(error, BaseException):
            raise TypeError(f"on_error({shown(error)}): an exception is needed (rule 2.13)")
        super().on_error(error)

    # --- the end

    def _cancel_upstream(self) -> None:
        """Cancel the publisher's subscription and forget it (rule 2.6)."""
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            self._cancel(upstream)

    def _end_with_violation(self, rule: str, what: str, cause: Exception | None = None) -> None:
        violation = RuleViolation(
            (
                f"{what}; that breaks rule {rule}, so its stream was cancelled. The author of the "
                "publisher must act: the test kit shows where"
            ),
            rule=rule,
        )
        violation.__cause__ = cause
        subscriber, self._subscriber = self._subscriber, None
        self._cancel_upstream()
        if subscriber is not None:
            subscriber.on_error(violation)
        else:
            report(self._on_violation, violation)

    def _request(self, upstream: Subscription, n: int) -> None:
        # Counted before the call: the publisher may signal the elements inside request() (rule
        # 3.10).
        self._outstanding = add_demand(self._outstanding, n)
        try:
            upstream.request(n)
        except Exception as error:  # boundary: a foreign subscription (rule 3.16)
            self._end_with_violation(
                "3.16", f"the publisher raised {shown(error)} in request()", error
            )

    def _cancel(self, upstream: Subscription) -> None:
        try:
            upstream.cancel()
        except Exception as error:  # boundary: a foreign subscription (rule 3.15)
            self._end_with_violation(
                "3.15", f"the publisher raised {shown(error)} in cancel()", error
            )

    def __repr__(self) -> str:
        outstanding = add_demand(self._requested_early, self._outstanding)
        return (
            f"<publisher guard {'over' if self._subscriber is None else 'live'}, outstanding "
            f"{outstanding}>"
        )
