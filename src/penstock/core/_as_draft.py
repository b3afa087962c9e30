"""`as_draft` lets subscribers of the early draft subscribe to a publisher of today's rules, and owns what the two disagree about.

Rules of this file:

* `on_subscribe` means "accepted" (D1.5): it is held back until the publisher's `subscribe` has returned. An end that came meanwhile
  goes out alone (D1.1, D1.3, D1.6).
* A call on a subscription that is over raises (D2.1, D3.1), and so does a demand that is not positive (D2.4).
  An outstanding demand above 2^63-1 ends the stream with an `InvalidStateError` (D2.3).
* The same object is refused while it is subscribed (D1.7). A refusal is an `on_error`, and nothing may follow an `on_error`:
  so the refusal ends the first subscription, too. The object hears of one end, and hears of it once.
* Completion is signalled at the earliest point (D4.5). A generator's end is seen only by the pull after its last element; so one
  element more than was requested is asked for, and waits here for demand.
* The publisher is cut off from the draft by an `Intake`: what it does against today's rules ends the stream and nothing else.
"""

from typing import Generic, TypeVar

from penstock.api import (
    UNBOUNDED,
    DraftPublisher,
    DraftSubscriber,
    DraftSubscription,
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
from penstock.core._arguments import has_methods_of
from penstock.core._publisher_guard import PublisherGuard
from penstock.core._scope import Report, check_hook, log_violation, tell
from penstock.core._sources import EndedSubscription
from penstock.core._topic import Topic

T = TypeVar("T")


def as_draft(publisher: Publisher[T], *, hold_back: bool | None = None, on_violation: Report = log_violation) -> DraftPublisher[T]:
    """Return `publisher` as a publisher of the early draft.

    It is bound already: give ``source.publisher(nursery)``, a `Topic`, or anybody's `Publisher`.
    With `hold_back` one element more than was requested is asked of it, and waits here for demand, so that completion comes with the
    last element; by default this is done for all but topics, which tell their end by themselves.
    A subscriber that is subscribed twice gets one ``on_error(InvalidStateError)``, which ends its first subscription as well.
    `on_violation` is told when a subscriber raises in a signal, or when the publisher breaks a rule after the end.

    Raises UsageError for what is no publisher. A plain call, as is all that it returns: nothing here checkpoints.
    """
    if not has_methods_of(publisher, Publisher):
        raise UsageError(
            f"as_draft() was given {type(publisher).__name__!r}, which has no subscribe(); "
            "bind a source to a nursery first: as_draft(source.publisher(nursery))"
        )
    ahead = not isinstance(publisher, Topic) if hold_back is None else hold_back
    return _AsDraft(publisher, 1 if ahead else 0, check_hook(on_violation))


class _AsDraft(DraftPublisher[T]):
    """A publisher of today's rules, and who is subscribed to it after the draft's."""

    __slots__ = ("__weakref__", "_ahead", "_lines", "_on_violation", "_publisher")

    def __init__(self, publisher: Publisher[T], ahead: int, on_violation: Report) -> None:
        self._publisher = publisher
        self._ahead = ahead
        self._on_violation = on_violation
        # By identity, as D1.7 has it: subscribers that are merely equal do not disturb each other. A line keeps its subscriber alive
        # for as long as it is in here, so no id is ever taken over by another object.
        self._lines: dict[int, _Line[T]] = {}

    def subscribe(self, subscriber: DraftSubscriber[T], /) -> None:
        if not has_methods_of(subscriber, DraftSubscriber):
            raise TypeError(
                f"subscribe() was given {type(subscriber).__name__!r}, which is no subscriber: "
                "it needs on_subscribe, on_next, on_error and on_complete"
            )
        present = self._lines.get(id(subscriber))
        if present is not None:
            present.refuse()
            return
        line = self._lines[id(subscriber)] = _Line(subscriber, self._lines, self._ahead, self._on_violation)
        PublisherGuard.between(self._publisher, line, line)
        line.open()

    def __repr__(self) -> str:
        return f"<draft of {self._publisher!r}: {len(self._lines)} subscribed>"


class _Line(Subscriber[T], DraftSubscription, Generic[T]):
    """One subscription: today's subscriber to what is above, the draft's subscription to what is below."""

    __slots__ = (
        "_ahead",
        "_demand",
        "_draining",
        "_ended",
        "_error",
        "_held",
        "_lines",
        "_on_violation",
        "_opened",
        "_owed",
        "_subscriber",
        "_upstream",
    )

    def __init__(self, subscriber: DraftSubscriber[T], lines: "dict[int, _Line[T]]", ahead: int, on_violation: Report) -> None:
        self._subscriber: DraftSubscriber[T] | None = subscriber
        self._lines = lines
        self._ahead = ahead  # what is still to be asked for beyond the demand
        self._on_violation = on_violation
        self._upstream: Subscription = EndedSubscription()
        self._opened = False
        self._ended = False
        self._error: BaseException | None = None
        self._held: T | None = None  # at most one element, and None is never one
        self._demand = 0
        self._owed = 0
        self._draining = False

    # --- opening, and refusing

    def open(self) -> None:
        """The publisher's `subscribe` has returned: accept, unless the stream has ended already."""
        subscriber = self._subscriber
        if subscriber is None:
            return  # refused from inside subscribe()
        self._opened = True
        if self._ended:
            self._finish()  # D1.1, D1.3, D1.6: the end alone
            return
        try:
            subscriber.on_subscribe(self)
        except Exception as error:  # boundary: a foreign subscriber's signal method (rule 2.13)
            self._cut_off("on_subscribe", error)

    def refuse(self) -> None:
        """The same object was subscribed again (D1.7)."""
        self._fail(
            InvalidStateError(
                "this subscriber is subscribed to this publisher already; the draft refuses the same object while it is (D1.7), "
                "and a refusal is an end, so both subscriptions are over. Cancel the first one before subscribing again"
            )
        )

    # --- the draft's subscription: called by the foreign subscriber

    def request_more(self, n: int, /) -> None:
        if self._subscriber is None:
            raise InvalidStateError(  # D2.1
                f"request_more({shown(n)}) on a subscription that is over; after cancel(), on_complete or on_error "
                "the draft allows no call on it. Subscribe again for another stream"
            )
        check_demand(n)  # D2.4: raises IllegalDemand, which is a ValueError
        if self._demand + n > UNBOUNDED:
            self._fail(
                InvalidStateError(
                    f"request_more() brought the outstanding demand above 2^63-1, which the draft does not allow (D2.3); "
                    f"{self._demand} elements were outstanding already. Request no more than can be processed"
                )
            )
            return
        self._demand += n
        self._owed += n
        self._drain()

    def cancel(self, /) -> None:
        if self._subscriber is None:
            raise InvalidStateError(  # D3.1
                "cancel() on a subscription that is over; after cancel(), on_complete or on_error the draft allows no call on it"
            )
        self._release()

    def _drain(self) -> None:
        """Hand on what was held back, then ask for as many as were requested."""
        if self._draining:
            return  # rule 3.3: the loop further up this stack goes on
        self._draining = True
        try:
            while self._owed:
                owed, self._owed = self._owed, 0
                held, self._held = self._held, None
                if held is not None:
                    self.on_next(held)
                    if self._ended:
                        self._finish()
                ahead, self._ahead = self._ahead, 0
                self._upstream.request(add_demand(owed, ahead))
        finally:
            self._draining = False

    # --- today's subscriber: called by the intake

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription

    def on_next(self, element: T, /) -> None:
        subscriber = self._subscriber
        if subscriber is None or not self._demand:
            self._held = element
            return
        self._demand -= 1
        try:
            subscriber.on_next(element)
        except Exception as error:  # boundary: a foreign subscriber's signal method (rule 2.13)
            self._cut_off("on_next", error)

    def on_error(self, error: BaseException, /) -> None:
        self._ended, self._error = True, error
        if self._opened:
            self._finish()  # an error overtakes what is held back (D8.4)

    def on_complete(self, /) -> None:
        self._ended = True
        if self._opened and self._held is None:
            self._finish()

    def violation(self, error: RuleViolation) -> None:
        """Tell the hook what the publisher did after the end; the intake calls it."""
        tell(self._on_violation, error)

    # --- the end

    def _finish(self) -> None:
        subscriber = self._let_go()
        if subscriber is None:
            return
        try:
            if self._error is None:
                subscriber.on_complete()
            else:
                subscriber.on_error(self._error)
        except Exception as error:  # boundary: a foreign subscriber's signal method (rule 2.13)
            self._cut_off("on_complete" if self._error is None else "on_error", error)

    def _fail(self, error: InvalidStateError) -> None:
        self._error = error
        self._upstream.cancel()
        self._finish()

    def _cut_off(self, signal: str, error: Exception) -> None:
        self._release()
        violation = RuleViolation(
            f"a subscriber raised {shown(error)} in {signal}; a signal method must return normally. "
            "Its subscription was cancelled; to stop on purpose, call subscription.cancel()",
            rule="2.13",
        )
        violation.__cause__ = error
        tell(self._on_violation, violation)

    def _release(self) -> None:
        """Forget the subscriber, and cancel what is above."""
        upstream = self._upstream
        self._let_go()  # first: a publisher that answers a cancel with a signal finds nobody
        upstream.cancel()

    def _let_go(self) -> DraftSubscriber[T] | None:
        """Forget both sides at once (D3.3), so that the same object may subscribe again (D3.4); return who it was."""
        subscriber, self._subscriber = self._subscriber, None
        self._upstream, self._held = EndedSubscription(), None
        self._demand = self._owed = 0
        if subscriber is not None:
            del self._lines[id(subscriber)]
        return subscriber

    def __repr__(self) -> str:
        return f"<draft subscription {'over' if self._subscriber is None else 'live'}, demand {self._demand}>"
