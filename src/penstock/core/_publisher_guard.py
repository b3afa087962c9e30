"""The intake between a foreign publisher and a pipe of ours: what the pipe takes for granted is made true here.

Rules of this file:

* The pipe below sees `on_subscribe` at once; what it requests before the publisher has answered is kept and passed on then.
* An element beyond demand (before `on_subscribe` that is any), or a publisher that raises, ends the stream with a `RuleViolation` that
  names the rule.
  Only None is answered to the publisher itself, with a TypeError (rule 2.13).
* After the end, in whatever way, the publisher's signals are nothing (rules 2.4, 2.8).
"""

from typing import Generic, Protocol, TypeVar

from penstock.api import Publisher, RuleViolation, Subscriber, Subscription, add_demand, shown

T = TypeVar("T")


class ViolationSink(Protocol):
    """Who hears of a violation after which no subscriber listens any more: a `Scope`, mostly."""

    def violation(self, error: RuleViolation) -> None:
        """A foreign object broke a rule and was cut off."""


class PublisherGuard(Subscriber[T], Subscription, Generic[T]):
    """The first stage after a foreign publisher: its subscriber, and the pipe's subscription."""

    __slots__ = ("_early", "_outstanding", "_scope", "_subscriber", "_upstream")

    def __init__(self, subscriber: Subscriber[T], scope: ViolationSink) -> None:
        self._subscriber: Subscriber[T] | None = subscriber
        self._scope = scope
        self._upstream: Subscription | None = None
        self._early = 0  # requested before the publisher answered
        self._outstanding = 0  # requested of the publisher, and not yet signalled

    @classmethod
    def between(cls, publisher: Publisher[T], subscriber: Subscriber[T], scope: ViolationSink) -> None:
        """Subscribe to `publisher` on behalf of `subscriber`."""
        intake = cls(subscriber, scope)
        subscriber.on_subscribe(intake)
        if intake._subscriber is None:
            return  # cancelled inside on_subscribe: the publisher need not hear of us at all
        try:
            publisher.subscribe(intake)
        except Exception as error:  # boundary: a foreign publisher (rule 1.9)
            intake._broken("1.9", f"the publisher raised {shown(error)} in subscribe()", error)

    # --- the subscription: called by the pipe

    def request(self, n: int, /) -> None:
        if self._subscriber is None:
            return  # rule 3.6
        if self._upstream is None:
            self._early = add_demand(self._early, n)
        else:
            self._ask(self._upstream, n)

    def cancel(self, /) -> None:
        if self._subscriber is None:
            return  # rule 3.7
        self._subscriber = None
        self._release()

    # --- the subscriber: called by the foreign publisher

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if subscription is None:
            raise TypeError("on_subscribe(None): a subscription is needed (rule 2.13)")
        if subscription is self._upstream:
            self._broken("2.12", "the publisher signalled on_subscribe twice with one subscription")
            return
        if self._subscriber is None or self._upstream is not None:
            # rule 2.5: never two subscriptions; one that comes late is not needed any more
            self._cancel(subscription)
            return
        self._upstream = subscription
        if self._early:
            early, self._early = self._early, 0
            self._ask(subscription, early)

    def on_next(self, element: T, /) -> None:
        if element is None:
            raise TypeError("on_next(None): None is never an element (rule 2.13)")
        subscriber = self._subscriber
        if subscriber is None:
            return  # rule 2.8
        if self._outstanding <= 0:
            self._broken("1.1", "the publisher signalled an element that was not requested")
            return
        self._outstanding -= 1
        subscriber.on_next(element)

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

    def _end(self) -> Subscriber[T] | None:
        """Forget both sides (rule 2.4: after a terminal signal the subscription counts as cancelled)."""
        subscriber, self._subscriber = self._subscriber, None
        self._upstream = None
        return subscriber

    def _release(self) -> None:
        """Cancel the publisher's subscription and forget it (rule 2.6)."""
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            self._cancel(upstream)

    def _broken(self, rule: str, what: str, cause: Exception | None = None) -> None:
        violation = RuleViolation(
            f"{what}; that breaks rule {rule}, so its stream was cancelled. Whoever wrote the publisher must act: the test kit shows where",
            rule=rule,
        )
        violation.__cause__ = cause
        subscriber, self._subscriber = self._subscriber, None
        self._release()
        if subscriber is not None:
            subscriber.on_error(violation)
        else:
            self._scope.violation(violation)

    def _ask(self, upstream: Subscription, n: int) -> None:
        self._outstanding = add_demand(self._outstanding, n)
        try:
            upstream.request(n)
        except Exception as error:  # boundary: a foreign subscription (rule 3.16)
            self._broken("3.16", f"the publisher raised {shown(error)} in request()", error)

    def _cancel(self, upstream: Subscription) -> None:
        try:
            upstream.cancel()
        except Exception as error:  # boundary: a foreign subscription (rule 3.15)
            self._broken("3.15", f"the publisher raised {shown(error)} in cancel()", error)

    def __repr__(self) -> str:
        return f"<intake {'over' if self._subscriber is None else 'live'}, outstanding {add_demand(self._early, self._outstanding)}>"
