"""`as_modern` lets subscribers of today's rules subscribe to a publisher of the early draft, and owns what the two disagree about.

Rules of this file:

* The subscriber below gets `on_subscribe` at once (rule 1.9), whatever the publisher will answer; demand from before its answer waits.
* Nothing is called on a subscription that is over, because there the draft raises (D2.1, D3.1).
* No more than 2^63-1 elements are requested of the publisher, ever: whether it counts what is outstanding or what was requested
  in all, it never sees an overflow (D2.3).
* A request from inside a signal waits until that signal has returned. The draft's subscribers never request there (D5.2), so its
  publishers need not bound the recursion; this file does (rule 3.3).
* What the publisher does against the draft ends its stream with a `RuleViolation` that names the rule.
"""

from functools import partial
from typing import Generic, TypeVar

from penstock.api import (
    UNBOUNDED,
    DraftPublisher,
    DraftSubscriber,
    DraftSubscription,
    Publisher,
    RuleViolation,
    Subscriber,
    Subscription,
    UsageError,
    add_demand,
    shown,
)
from penstock.core._arguments import has_methods_of
from penstock.core._scope import Report, check_hook, log_violation, tell
from penstock.core._subscriber_guard import SubscriberGuard

T = TypeVar("T")


def as_modern(publisher: DraftPublisher[T], *, on_violation: Report = log_violation) -> Publisher[T]:
    """Return a publisher of the early draft as one of today's rules; it can be subscribed to and piped like any other.

    `on_violation` is told when a subscriber raises in a signal (rule 2.13), or when the publisher breaks a rule after the end.
    A subscriber that requests inside a signal has its request passed on when that signal has returned, but still on the publisher's
    stack, where the draft wants no calls (D5.2). Where the publisher minds, let a `MailboxSubscriber` subscribe.

    Raises UsageError for what is no publisher. A plain call, as is all that it returns: nothing here checkpoints.
    """
    if not has_methods_of(publisher, DraftPublisher):
        raise UsageError(f"as_modern() was given {type(publisher).__name__!r}, which has no subscribe(); give it a publisher of the draft")
    return _AsModern(publisher, check_hook(on_violation))


class _AsModern(Publisher[T]):
    """A publisher of the draft, behind an edge that keeps today's rules."""

    __slots__ = ("__weakref__", "_on_violation", "_publisher")

    def __init__(self, publisher: DraftPublisher[T], on_violation: Report) -> None:
        self._publisher = publisher
        self._on_violation = on_violation

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        SubscriberGuard.between(partial(_DraftIntake.between, self._publisher, self._on_violation), subscriber, self._on_violation)

    def __repr__(self) -> str:
        return f"<today's form of {self._publisher!r}>"


class _DraftIntake(DraftSubscriber[T], Subscription, Generic[T]):
    """The draft's subscriber to what is above, today's subscription to the edge below."""

    __slots__ = ("_due", "_granted", "_on_violation", "_signalling", "_subscriber", "_upstream", "_wanted")

    def __init__(self, subscriber: Subscriber[T], on_violation: Report) -> None:
        self._subscriber: Subscriber[T] | None = subscriber
        self._on_violation = on_violation
        self._upstream: DraftSubscription | None = None
        self._wanted = 0  # requested below, and not yet above
        self._granted = 0  # requested above, in all
        self._due = 0  # requested above, and not yet here
        self._signalling = False

    @classmethod
    def between(cls, publisher: DraftPublisher[T], on_violation: Report, subscriber: Subscriber[T]) -> None:
        """Subscribe to `publisher` on behalf of `subscriber`, which is an edge."""
        intake = cls(subscriber, on_violation)
        subscriber.on_subscribe(intake)
        if intake._subscriber is None:
            return  # cancelled inside on_subscribe: the publisher need not hear of us at all
        intake._signalling = True  # D5.2: what was requested waits until subscribe() has returned
        try:
            publisher.subscribe(intake)
        except Exception as error:  # boundary: a foreign publisher (D1.6: it refuses by on_error)
            intake._broken("D1.6", f"raised {shown(error)} in subscribe()", error)
        intake._signalling = False
        intake._ask()

    # --- today's subscription: called by the edge

    def request(self, n: int, /) -> None:
        self._wanted = add_demand(self._wanted, n)
        self._ask()

    def cancel(self, /) -> None:
        self._subscriber = None
        self._release()

    def _ask(self) -> None:
        """Request above what is wanted below, unless a signal is on this stack: then its end comes back here."""
        if self._signalling:
            return
        self._signalling = True
        try:
            while self._wanted and self._upstream is not None:
                n = min(self._wanted, UNBOUNDED - self._granted)  # rule 3.17: from there on it counts as without bound
                self._wanted = 0
                if n:
                    self._granted += n
                    self._due += n
                    self._request(self._upstream, n)
        finally:
            self._signalling = False

    # --- the draft's subscriber: called by the foreign publisher

    def on_subscribe(self, subscription: DraftSubscription, /) -> None:
        if subscription is None:
            raise TypeError("on_subscribe(None): a subscription is needed (rule 2.13)")
        if self._upstream is not None:
            # D7.1: an error, and the second subscription is left alone (D5.2)
            self._tell("D7.1", "called on_subscribe twice for one subscribe(); the second subscription is not used")
            return
        self._upstream = subscription
        if self._subscriber is None:
            self._release()  # D7.2: it comes too late to be of use
        else:
            self._ask()

    def on_next(self, element: T, /) -> None:
        if element is None:
            raise TypeError("on_next(None): None is never an element (rule 2.13)")
        subscriber = self._subscriber
        if subscriber is None:
            return  # D7.5
        if not self._due:
            self._broken("D4.1", "signalled an element that was not requested")
            return
        self._due -= 1
        outer, self._signalling = self._signalling, True
        try:
            subscriber.on_next(element)
        finally:
            self._signalling = outer
        self._ask()

    def on_error(self, error: BaseException, /) -> None:
        if not isinstance(error, BaseException):
            raise TypeError(f"on_error({shown(error)}): an exception is needed (rule 2.13)")
        subscriber = self._end()
        if subscriber is not None:
            subscriber.on_error(error)

    def on_complete(self, /) -> None:
        subscriber = self._end()
        if subscriber is not None:
            subscriber.on_complete()

    # --- the end

    def _end(self) -> Subscriber[T] | None:
        """Forget both sides (D6.3: after the end the subscription counts as cancelled)."""
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
        except Exception as error:  # boundary: a foreign subscription, which was live as far as anybody was told (D3.2)
            self._tell("D3.2", f"raised {shown(error)} in cancel()", error)

    def _request(self, upstream: DraftSubscription, n: int) -> None:
        try:
            upstream.request_more(n)
        except Exception as error:  # boundary: a foreign subscription, which was live as far as anybody was told (D2.2)
            self._broken("D2.2", f"raised {shown(error)} in request_more({n})", error)

    def _broken(self, rule: str, what: str, cause: Exception | None = None) -> None:
        subscriber, self._subscriber = self._subscriber, None
        self._release()
        if subscriber is None:
            self._tell(rule, what, cause)
        else:
            subscriber.on_error(_violation(rule, what, cause))

    def _tell(self, rule: str, what: str, cause: Exception | None = None) -> None:
        tell(self._on_violation, _violation(rule, what, cause))

    def __repr__(self) -> str:
        return f"<draft intake {'over' if self._subscriber is None else 'live'}, due {self._due}>"


def _violation(rule: str, what: str, cause: Exception | None) -> RuleViolation:
    violation = RuleViolation(
        f"a publisher of the draft {what}; that breaks {rule}. Whoever wrote it must act: the test kit's draft profile shows where",
        rule=rule,
    )
    violation.__cause__ = cause
    return violation
