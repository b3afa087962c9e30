"""`as_modern` lets modern subscribers subscribe to a publisher of the early draft, and handles the
points where the rules differ.

Rules of this file:

* The subscriber gets `on_subscribe` at once (rule 1.9).
  Demand waits until the publisher has called `on_subscribe`.
* No method of a subscription that is over is called, because in the draft it would raise (D2.1,
  D3.1).
* At most 2^63-1 elements are requested of the publisher in the whole life of a stream. So the
  publisher never sees an overflow, whether it counts the outstanding or all requested elements
  (D2.3).
* A request from inside a signal waits until that signal has returned. Subscribers of the draft
  never request there (D5.2), so publishers of the draft need not bound the recursion; this file
  does (rule 3.3).
* If the publisher breaks a rule of the draft, its stream ends with a `RuleViolation`
  that names the rule.
"""

from functools import partial
from typing import Generic, TypeVar

from penstock.api import (
    UNBOUNDED,
    Publisher,
    RuleViolation,
    Subscriber,
    Subscription,
    UsageError,
    add_demand,
    shown,
)
from penstock.core import Report, SubscriberGuard, check_hook, has_methods_of, log_violation, report
from penstock.draft._interfaces import DraftPublisher, DraftSubscriber, DraftSubscription

T = TypeVar("T")


def as_modern(
    publisher: DraftPublisher[T], *, on_violation: Report = log_violation
) -> Publisher[T]:
    """Return a publisher of the early draft as a modern publisher, which can be subscribed to
    and piped.

    `on_violation` is called when a subscriber raises in a signal (rule 2.13), or when the publisher
    breaks a rule after the end.
    If a subscriber requests inside a signal, the request is passed on when that signal has
    returned, but still on the publisher's stack, where the draft allows no calls (D5.2). If the
    publisher cannot handle that, subscribe a `MailboxSubscriber`.

    Raises UsageError for an object that is not a publisher.
    Neither this call nor a method of the result checkpoints.
    """
    if not has_methods_of(publisher, DraftPublisher):
        raise UsageError(
            f"as_modern() was given {type(publisher).__name__!r}, which has no subscribe(); give "
            "it a publisher of the draft"
        )
    return _ModernPublisherAdapter(publisher, check_hook(on_violation))


class _ModernPublisherAdapter(Publisher[T]):
    """A publisher of the draft, with guards that keep the modern rules."""

    __slots__ = ("__weakref__", "_on_violation", "_publisher")

    def __init__(self, publisher: DraftPublisher[T], on_violation: Report) -> None:
        self._publisher = publisher
        self._on_violation = on_violation

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        attach = partial(_DraftPublisherGuard.insert_between, self._publisher, self._on_violation)
        SubscriberGuard.insert_between(attach, subscriber, self._on_violation)

    def __repr__(self) -> str:
        return f"<modern form of {self._publisher!r}>"


class _DraftPublisherGuard(DraftSubscriber[T], Subscription, Generic[T]):
    """A draft subscriber towards the publisher, a modern subscription towards the subscriber's
    guard.
    """

    __slots__ = (
        "_due",
        "_granted",
        "_is_signalling",
        "_on_violation",
        "_subscriber",
        "_upstream",
        "_wanted",
    )

    def __init__(self, subscriber: Subscriber[T], on_violation: Report) -> None:
        self._subscriber: Subscriber[T] | None = subscriber
        self._on_violation = on_violation
        self._upstream: DraftSubscription | None = None
        self._wanted = 0  # requested by the subscriber, and not yet of the publisher
        self._granted = 0  # requested of the publisher, in all
        self._due = 0  # requested of the publisher, and not yet signalled
        self._is_signalling = False  # a signal or subscribe() of the publisher is on the stack

    @classmethod
    def insert_between(
        cls, publisher: DraftPublisher[T], on_violation: Report, subscriber: Subscriber[T]
    ) -> None:
        """Subscribe to `publisher` with a guard before `subscriber`."""
        guard = cls(subscriber, on_violation)
        subscriber.on_subscribe(guard)
        if guard._subscriber is None:
            return  # cancelled inside on_subscribe: the publisher need not be called at all
        guard._is_signalling = True  # D5.2: requests wait until subscribe() has returned
        try:
            publisher.subscribe(guard)
        except Exception as error:  # boundary: a foreign publisher (D1.6: it refuses by on_error)
            guard._end_with_violation("D1.6", f"raised {shown(error)} in subscribe()", error)
        guard._is_signalling = False
        guard._request_upstream()

    # --- the modern subscription: called by the subscriber's guard

    def request(self, n: int, /) -> None:
        self._wanted = add_demand(self._wanted, n)  # the guard below has checked it
        self._request_upstream()

    def cancel(self, /) -> None:
        self._subscriber = None
        self._release()

    def _request_upstream(self) -> None:
        """Request of the publisher what the subscriber wants. If a signal is on the stack, do
        nothing: its end calls this again.
        """
        if self._is_signalling:
            return
        self._is_signalling = True
        try:
            while self._wanted and self._upstream is not None:
                # rule 3.17: from 2^63-1 on the demand counts as without bound.
                n = min(self._wanted, UNBOUNDED - self._granted)
                self._wanted = 0
                if n:
                    # Counted before the call: the publisher may signal the elements inside
                    # request_more().
                    self._granted += n
                    self._due += n
                    self._request(self._upstream, n)
        finally:
            self._is_signalling = False

    # --- the draft's subscriber: called by the foreign publisher

    def on_subscribe(self, subscription: DraftSubscription, /) -> None:
        if subscription is None:
            raise TypeError("on_subscribe(None): a subscription is needed (rule 2.13)")
        if self._upstream is not None:
            # D7.1: an error, and no method of the second subscription is called (D5.2)
            self._report(
                "D7.1",
                (
                    "called on_subscribe twice for one subscribe(); the second subscription is "
                    "not used"
                ),
            )
            return
        self._upstream = subscription
        if self._subscriber is None:
            self._release()  # D7.2: cancelled before the publisher answered
        else:
            self._request_upstream()

    def on_next(self, element: T, /) -> None:
        if element is None:
            raise TypeError("on_next(None): None is never an element (rule 2.13)")
        subscriber = self._subscriber
        if subscriber is None:
            return  # D7.5
        if not self._due:
            self._end_with_violation("D4.1", "signalled an element that was not requested")
            return
        self._due -= 1
        # The publisher may signal inside request_more(), that is, inside _request_upstream(). So
        # the former value is restored.
        outer, self._is_signalling = self._is_signalling, True
        try:
            subscriber.on_next(element)
        finally:
            self._is_signalling = outer
        self._request_upstream()

    def on_error(self, error: BaseException, /) -> None:
        if not isinstance(error, BaseException):
            raise TypeError(f"on_error({shown(error)}): an exception is needed (rule 2.13)")
        subscriber = self._detach()
        if subscriber is not None:
            subscriber.on_error(error)

    def on_complete(self, /) -> None:
        subscriber = self._detach()
        if subscriber is not None:
            subscriber.on_complete()

    # --- the end

    def _detach(self) -> Subscriber[T] | None:
        """Forget both sides (D6.3: after the end the subscription counts as cancelled).
        Return the subscriber.
        """
        subscriber, self._subscriber = self._subscriber, None
        self._upstream = None
        return subscriber

    def _release(self) -> None:
        """Cancel the publisher's subscription, once, and forget it (D7.2, D7.4)."""
        upstream, self._upstream = self._upstream, None
        if upstream is None:
            return
        try:
            upstream.cancel()
        except Exception as error:
            # boundary: a foreign subscription;
            # no end was signalled, so cancel() must return (D3.2).
            self._report("D3.2", f"raised {shown(error)} in cancel()", error)

    def _request(self, upstream: DraftSubscription, n: int) -> None:
        try:
            upstream.request_more(n)
        except Exception as error:
            # boundary: a foreign subscription;
            # no end was signalled, so request_more() must return (D2.2).
            self._end_with_violation("D2.2", f"raised {shown(error)} in request_more({n})", error)

    def _end_with_violation(self, rule: str, what: str, cause: Exception | None = None) -> None:
        subscriber, self._subscriber = self._subscriber, None
        self._release()
        if subscriber is None:
            self._report(rule, what, cause)
        else:
            subscriber.on_error(_violation(rule, what, cause))

    def _report(self, rule: str, what: str, cause: Exception | None = None) -> None:
        report(self._on_violation, _violation(rule, what, cause))

    def __repr__(self) -> str:
        return (
            f"<draft publisher guard {'over' if self._subscriber is None else 'live'}, due "
            f"{self._due}>"
        )


def _violation(rule: str, what: str, cause: Exception | None) -> RuleViolation:
    violation = RuleViolation(
        (
            f"a publisher of the draft {what}; that breaks {rule}. Its author must act: the test "
            "kit's draft profile shows where"
        ),
        rule=rule,
    )
    violation.__cause__ = cause
    return violation
