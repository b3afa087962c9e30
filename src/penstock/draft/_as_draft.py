"""`as_draft` lets subscribers of the early draft subscribe to a publisher of the modern rules, and
handles the points where these differ.

Rules of this file:

* `on_subscribe` means "accepted" (D1.5), so it is signalled when the publisher's `subscribe` has
  returned. If the stream has ended by then, the end is signalled alone (D1.1, D1.3, D1.6).
* A call on a subscription that is over raises (D2.1, D3.1), and so does a demand
  that is not positive (D2.4).
  If the outstanding demand exceeds 2^63-1, the stream ends with an `InvalidStateError` (D2.3).
* The same object is refused while it is subscribed (D1.7). A refusal is an `on_error`, and no
  signal may follow an `on_error`. So the refusal also ends the first subscription, and the object
  gets one end, once.
* Completion is signalled as early as possible (D4.5). Only the pull after the last element shows
  that a generator has ended. So one element more than was requested is pulled, and held back until
  there is demand for it.
* A `PublisherGuard` separates the publisher from the draft: if the publisher breaks a modern rule,
  its stream ends and nothing else.
"""

from typing import Generic, TypeVar

from penstock.api import (
    UNBOUNDED,
    InvalidStateError,
    Publisher,
    RuleViolation,
    Subscriber,
    Subscription,
    UsageError,
    add_demand,
    check_demand,
    shown,
)
from penstock.core import (
    EndedSubscription,
    PublisherGuard,
    Report,
    check_hook,
    has_methods_of,
    log_violation,
    report,
)
from penstock.draft._interfaces import DraftPublisher, DraftSubscriber, DraftSubscription
from penstock.streams import Topic

T = TypeVar("T")


def as_draft(
    publisher: Publisher[T], *, hold_back: bool | None = None, on_violation: Report = log_violation
) -> DraftPublisher[T]:
    """Return `publisher` as a publisher of the early draft.

    `publisher` must be bound to a nursery: give ``source.publisher(nursery)``, a `Topic`, or a
    `Publisher` of another library.
    With `hold_back`, one element more than was requested is pulled and held back until there is
    demand for it, so that completion comes with the last element. By default this is done for every
    publisher except topics, because a topic signals its end without demand.
    A subscriber that is subscribed twice gets one ``on_error(InvalidStateError)``, which ends its
    first subscription as well. `on_violation` is called when a subscriber raises in a signal, or
    when the publisher breaks a rule after the end.

    Raises UsageError for an object that is not a publisher.
    Neither this call nor a method of the result checkpoints.
    """
    if not has_methods_of(publisher, Publisher):
        raise UsageError(
            f"as_draft() was given {type(publisher).__name__!r}, which has no subscribe(); "
            "bind a source to a nursery first: as_draft(source.publisher(nursery))"
        )
    ahead = not isinstance(publisher, Topic) if hold_back is None else hold_back
    return _DraftPublisherAdapter(publisher, 1 if ahead else 0, check_hook(on_violation))


class _DraftPublisherAdapter(DraftPublisher[T]):
    """A modern publisher, and the draft subscribers that are subscribed to it."""

    __slots__ = ("__weakref__", "_ahead", "_on_violation", "_publisher", "_subscriptions")

    def __init__(self, publisher: Publisher[T], ahead: int, on_violation: Report) -> None:
        self._publisher = publisher
        self._ahead = ahead
        self._on_violation = on_violation
        # By identity (D1.7): two subscribers that compare equal are two subscribers. A subscription
        # keeps its subscriber alive while the subscription is in this dict, so no other object can
        # get the same id meanwhile.
        self._subscriptions: dict[int, _DraftSubscriptionAdapter[T]] = {}

    def subscribe(self, subscriber: DraftSubscriber[T], /) -> None:
        if not has_methods_of(subscriber, DraftSubscriber):
            raise TypeError(
                f"subscribe() was given {type(subscriber).__name__!r}, which is no subscriber: "
                "it needs on_subscribe, on_next, on_error and on_complete"
            )
        # Other subscribers may compare equal or have no hash, so neither == nor a set can be used.
        present = self._subscriptions.get(id(subscriber))
        if present is not None:
            present.refuse()
            return
        adapter = _DraftSubscriptionAdapter(
            subscriber, self._subscriptions, self._ahead, self._on_violation
        )
        self._subscriptions[id(subscriber)] = adapter
        PublisherGuard.insert_between(self._publisher, adapter, self._on_violation)
        adapter.accept()

    def __repr__(self) -> str:
        return f"<draft of {self._publisher!r}: {len(self._subscriptions)} subscribed>"


class _DraftSubscriptionAdapter(Subscriber[T], DraftSubscription, Generic[T]):
    """One subscription: a modern subscriber towards the publisher,
    a draft subscription towards the subscriber.
    """

    __slots__ = (
        "_ahead",
        "_demand",
        "_error",
        "_has_ended",
        "_held_back",
        "_is_accepted",
        "_is_requesting",
        "_on_violation",
        "_subscriber",
        "_subscriptions",
        "_unpulled",
        "_upstream",
    )

    def __init__(
        self,
        subscriber: DraftSubscriber[T],
        subscriptions: "dict[int, _DraftSubscriptionAdapter[T]]",
        ahead: int,
        on_violation: Report,
    ) -> None:
        self._subscriber: DraftSubscriber[T] | None = subscriber
        # Of all subscribers of the publisher; this one leaves it at the end.
        self._subscriptions = subscriptions
        self._ahead = ahead  # elements still to be pulled beyond the demand
        self._on_violation = on_violation
        self._upstream: Subscription = EndedSubscription()
        self._is_accepted = False
        self._has_ended = False
        self._error: BaseException | None = None
        self._held_back: T | None = None  # at most one element, and None is never an element
        self._demand = 0  # requested below and not yet signalled
        self._unpulled = 0  # requested below and not yet requested of the publisher
        self._is_requesting = False

    # --- accepting and refusing

    def accept(self) -> None:
        """Signal `on_subscribe`, now that the publisher's `subscribe` has returned; the end
        alone if the stream has ended already.
        """
        subscriber = self._subscriber
        if subscriber is None:
            return  # refused from inside subscribe()
        self._is_accepted = True
        if self._has_ended:
            self._finish()  # D1.1, D1.3, D1.6: the end alone
            return
        try:
            subscriber.on_subscribe(self)
        except Exception as error:  # boundary: a foreign subscriber's signal method (rule 2.13)
            self._disconnect("on_subscribe", error)

    def refuse(self) -> None:
        """End the stream because the same object was subscribed again (D1.7)."""
        self._fail(
            InvalidStateError(
                "this subscriber is subscribed to this publisher already; the draft refuses the "
                "same object while it is (D1.7), and a refusal is an end, so both subscriptions "
                "are over. Cancel the first one before subscribing again"
            )
        )

    # --- the draft's subscription: called by the foreign subscriber

    def request_more(self, n: int, /) -> None:
        if self._subscriber is None:
            raise InvalidStateError(  # D2.1
                f"request_more({shown(n)}) on a subscription that is over; after cancel(), "
                "on_complete or on_error the draft allows no call on it. Subscribe again for "
                "another stream"
            )
        check_demand(n)  # D2.4: raises IllegalDemand, which is a ValueError; the stream goes on
        if self._demand + n > UNBOUNDED:
            self._fail(
                InvalidStateError(
                    "request_more() brought the outstanding demand above 2^63-1, which the draft "
                    f"does not allow (D2.3); {self._demand} elements were outstanding already. "
                    "Request no more than can be processed"
                )
            )
            return
        self._demand += n
        self._unpulled += n
        self._request_upstream()

    def cancel(self, /) -> None:
        if self._subscriber is None:
            raise InvalidStateError(  # D3.1
                "cancel() on a subscription that is over; after cancel(), on_complete or on_error "
                "the draft allows no call on it"
            )
        self._release()

    def _request_upstream(self) -> None:
        """Signal the element that was held back,
        then request of the publisher as many elements as were requested here.
        """
        if self._is_requesting:
            return  # rule 3.3: a call of this method further up the stack goes on with its loop
        self._is_requesting = True
        try:
            while self._unpulled:
                count, self._unpulled = self._unpulled, 0
                held_back, self._held_back = self._held_back, None
                if held_back is not None:
                    self.on_next(held_back)
                    if self._has_ended:
                        self._finish()
                # The element held back was pulled ahead.
                # Requesting as many as were requested here pulls one ahead again.
                ahead, self._ahead = self._ahead, 0
                self._upstream.request(add_demand(count, ahead))
        finally:
            self._is_requesting = False

    # --- the modern subscriber: called by the guard

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription

    def on_next(self, element: T, /) -> None:
        subscriber = self._subscriber
        if subscriber is None or not self._demand:
            self._held_back = element
            return
        self._demand -= 1
        try:
            subscriber.on_next(element)
        except Exception as error:  # boundary: a foreign subscriber's signal method (rule 2.13)
            self._disconnect("on_next", error)

    def on_error(self, error: BaseException, /) -> None:
        self._has_ended, self._error = True, error
        if self._is_accepted:
            self._finish()  # an error overtakes the element that is held back (D8.4)

    def on_complete(self, /) -> None:
        self._has_ended = True
        if self._is_accepted and self._held_back is None:
            self._finish()

    # --- the end

    def _finish(self) -> None:
        subscriber = self._detach()
        if subscriber is None:
            return
        try:
            if self._error is None:
                subscriber.on_complete()
            else:
                subscriber.on_error(self._error)
        except Exception as error:  # boundary: a foreign subscriber's signal method (rule 2.13)
            self._disconnect("on_complete" if self._error is None else "on_error", error)

    def _fail(self, error: InvalidStateError) -> None:
        self._error = error
        self._upstream.cancel()  # before the signal: the subscriber may subscribe again inside it
        self._finish()

    def _disconnect(self, signal: str, error: Exception) -> None:
        """Cancel because the subscriber raised `error` in `signal`, and report it."""
        self._release()
        violation = RuleViolation(
            f"a subscriber raised {shown(error)} in {signal}; a signal method must return "
            "normally. Its subscription was cancelled; to stop on purpose, call "
            "subscription.cancel()",
            rule="2.13",
        )
        violation.__cause__ = error
        report(self._on_violation, violation)

    def _release(self) -> None:
        """Forget the subscriber, and cancel the publisher's subscription."""
        upstream = self._upstream
        # Detached first: a publisher may answer a cancel with a signal, and the subscriber must not
        # get it.
        self._detach()
        upstream.cancel()

    def _detach(self) -> DraftSubscriber[T] | None:
        """Forget both sides at once (D3.3), so that the same object may subscribe again (D3.4).
        Return the subscriber.
        """
        subscriber, self._subscriber = self._subscriber, None
        self._upstream, self._held_back = EndedSubscription(), None
        self._demand = self._unpulled = 0
        if subscriber is not None:
            del self._subscriptions[id(subscriber)]
        return subscriber

    def __repr__(self) -> str:
        return (
            f"<draft subscription {'over' if self._subscriber is None else 'live'}, demand "
            f"{self._demand}>"
        )
