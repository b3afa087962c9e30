"""A stage stands between two neighbours of a pipe: a subscriber to what is above, a subscription to what is below.

Rules of this file:

* An operator is a blueprint, like a source: immutable, and it makes a fresh stage for each subscriber.
* A stage trusts its neighbours (see `penstock.core.Source`): demand is positive, no element is None, after `cancel()` there is silence.
  In return it keeps the same promises to them.
* Only the user's function is called inside a `try`, never a neighbour: a fault of the function ends this stream with `on_error`,
  and whatever a neighbour raises is its own affair.
* A neighbour that has gone is replaced by one that ignores everything, so that nothing reaches it any more and nothing holds it:
  a function of the user's may cancel the very stream that it is called by, and the path of an element need not look whether it did.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from penstock.api import PublisherStopped, Subscriber, Subscription
from penstock.core import EndedSubscription, Scope, Source

A = TypeVar("A")
B = TypeVar("B")
A_contra = TypeVar("A_contra", contravariant=True)
B_co = TypeVar("B_co", covariant=True)


class Operator(ABC, Generic[A_contra, B_co]):
    """A verb over streams: turns a source of A into a source of B. Compose them with `pipe`."""

    __slots__ = ()

    @abstractmethod
    def attach(self, source: Source[A_contra], subscriber: Subscriber[B_co], scope: Scope) -> None:
        """Attach `source` to `subscriber` through this operator. The rules of `Source.attach` hold."""


class StageOperator(Operator[A, B]):
    """The usual operator: one stage, made by ``stage(downstream, scope)``."""

    __slots__ = ("_make_stage", "_name")

    def __init__(self, name: str, make_stage: "Callable[[Subscriber[B], Scope], Stage[A, B]]") -> None:
        self._name = name
        self._make_stage = make_stage

    def attach(self, source: Source[A], subscriber: Subscriber[B], scope: Scope) -> None:
        source.attach(self._make_stage(subscriber, scope), scope)

    def __repr__(self) -> str:
        return f"<operator {self._name}>"


class _IgnoringSubscriber(Subscriber[Any]):
    """What stands below a stage after its subscriber has cancelled."""

    __slots__ = ()

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Do nothing."""

    def on_next(self, element: Any, /) -> None:
        """Do nothing."""

    def on_error(self, error: BaseException, /) -> None:
        """Do nothing."""

    def on_complete(self, /) -> None:
        """Do nothing."""


CANCELLED_SUBSCRIBER: Final = _IgnoringSubscriber()
"""The subscriber to what nobody listens to any more."""

ENDED_UPSTREAM: Final = EndedSubscription()
"""The subscription to what has ended: a dead one is never called again (rule 2.4)."""


class Stage(Subscriber[A], Subscription, Generic[A, B]):
    """Passes everything on; subclasses change what they are about."""

    __slots__ = ("_downstream", "_is_over", "_upstream")

    _upstream: Subscription

    def __init__(self, downstream: Subscriber[B]) -> None:
        self._downstream: Subscriber[Any] = downstream
        self._is_over = False

    # --- the subscriber: called from above

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription
        self._downstream.on_subscribe(self)

    def on_next(self, element: A, /) -> None:
        self._downstream.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        self._upstream = ENDED_UPSTREAM
        if self._mark_over():
            self._detach_downstream().on_error(error)

    def on_complete(self, /) -> None:
        self._upstream = ENDED_UPSTREAM
        if self._mark_over():
            self._detach_downstream().on_complete()

    # --- the subscription: called from below

    def request(self, n: int, /) -> None:
        self._upstream.request(n)

    def cancel(self, /) -> None:
        if self._mark_over():
            self._detach_downstream()
            self._cancel_upstream()

    # --- for subclasses

    def _release(self) -> None:
        """Drop what is held and stop what runs: called once, when the stream ends in whatever way."""

    def _mark_over(self) -> bool:
        """Mark the stream as over here; tell whether it was live until now."""
        if self._is_over:
            return False
        self._is_over = True
        self._release()
        return True

    def _complete(self) -> None:
        """End the stream here, well: nothing more is wanted from above."""
        if self._mark_over():
            self._cancel_upstream()
            self._detach_downstream().on_complete()

    def _fail(self, error: BaseException) -> None:
        """End the stream here, because of `error`."""
        if self._mark_over():
            self._cancel_upstream()
            self._detach_downstream().on_error(error)

    def _detach_downstream(self) -> Subscriber[Any]:
        """Forget the subscriber (rules 1.6, 3.13); return who it was, for the last signal."""
        downstream, self._downstream = self._downstream, CANCELLED_SUBSCRIBER
        return downstream

    def _cancel_upstream(self) -> None:
        """Cancel what is above and forget it (rule 2.6)."""
        upstream, self._upstream = self._upstream, ENDED_UPSTREAM
        upstream.cancel()

    def __repr__(self) -> str:
        return f"<stage {type(self).__name__.strip('_')}: {'over' if self._is_over else 'live'}>"


def stopped_error(what: str) -> PublisherStopped:
    """Return the error for a stream whose task was cancelled from outside while somebody still listened."""
    return PublisherStopped(
        f"{what} was stopped: the nursery that ran it was cancelled. "
        "Keep the nursery open until the subscribers are done, or cancel the subscription first"
    )
