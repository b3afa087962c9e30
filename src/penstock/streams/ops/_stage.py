"""`Stage`: the part of an operator that runs for one subscriber. It subscribes to its upstream and
is the subscription of its downstream.

Rules of this file:

* An operator is immutable, like a source. It makes a new stage for each subscriber.
* A stage trusts its two neighbours (see `penstock.streams.Source`): demand is positive, no element
  is None, no signal follows `cancel()`.
  It keeps the same promises to them.
* Only the user's function is called inside a `try`, never a neighbour. If the function raises, this
  stream ends with `on_error`.
  An error that a neighbour raises goes on to the caller.
* After the end, each neighbour is replaced by an object that ignores every call
  (`CANCELLED_SUBSCRIBER`, `ENDED_UPSTREAM`). Therefore the path of an element needs no check for a
  user's function that has cancelled its own stream, and no reference stays behind.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from penstock.api import PipePart, PublisherStopped, Subscriber, Subscription
from penstock.core import EndedSubscription, Scope
from penstock.streams._source import Source
from penstock.streams.ops._operator import OperatorBase

A = TypeVar("A")
B = TypeVar("B")


class StageOperator(OperatorBase[Any, Any]):
    """An operator with one stage, which ``make_stage(downstream, scope)`` makes for each
    subscriber.
    """

    __slots__ = ("_make_stage", "_name", "_prefetch")

    def __init__(
        self,
        name: str,
        make_stage: "Callable[[Subscriber[Any], Scope], Stage[Any, Any]]",
        *,
        prefetch: int | None = None,
    ) -> None:
        """`prefetch` is the operator's own, if it is not that of its source."""
        self._name = name
        self._make_stage = make_stage
        self._prefetch = prefetch

    def attach(self, source: Source[Any], subscriber: Subscriber[Any], scope: Scope) -> None:
        source.attach(self._make_stage(subscriber, scope), scope)

    def prefetch(self, upstream: int) -> int:
        return upstream if self._prefetch is None else self._prefetch

    def __repr__(self) -> str:
        return f"<operator {self._name}>"


class _IgnoringSubscriber(Subscriber[Any]):
    """The downstream of a stage whose stream is over.
    It holds nothing, so one object serves all stages.
    """

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
"""Replaces the subscriber of a stage that is over. Signals to it have no effect (rule 1.8)."""

ENDED_UPSTREAM: Final = EndedSubscription()
"""Replaces the subscription of a stage whose source has ended:
a subscription must not be called after its end (rule 2.4).
"""


class Stage(Subscriber[A], Subscription, Generic[A, B]):
    """A stage that passes on every signal and request unchanged.
    Subclasses override the methods that they need.
    """

    __slots__ = ("_downstream", "_is_over", "_upstream")

    _upstream: Subscription

    def __init__(self, downstream: Subscriber[B]) -> None:
        self._downstream: Subscriber[Any] = downstream
        self._is_over = False

    # --- Subscriber: called by upstream

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription
        self._downstream.on_subscribe(self)

    def on_next(self, element: A, /) -> None:
        self._downstream.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        # Before the signal: the subscriber may call cancel() inside it (rule 2.4).
        self._upstream = ENDED_UPSTREAM
        if self._mark_over():
            self._detach_downstream().on_error(error)

    def on_complete(self, /) -> None:
        self._upstream = ENDED_UPSTREAM
        if self._mark_over():
            self._detach_downstream().on_complete()

    # --- Subscription: called by downstream

    def request(self, n: int, /) -> None:
        self._upstream.request(n)

    def cancel(self, /) -> None:
        if self._mark_over():
            self._detach_downstream()
            self._cancel_upstream()

    # --- for subclasses

    def _release(self) -> None:
        """Drop held elements and cancel running tasks. Called once:
        on completion, error or cancel.
        """

    def _mark_over(self) -> bool:
        """Mark the stream as over and release it. Return False if it was over before."""
        if self._is_over:
            return False
        self._is_over = True
        self._release()
        return True

    def _complete(self) -> None:
        """Complete the stream from here: cancel upstream, then signal `on_complete`."""
        if self._mark_over():
            # Before the signal, so that upstream is cancelled even if the subscriber raises.
            self._cancel_upstream()
            self._detach_downstream().on_complete()

    def _fail(self, error: BaseException) -> None:
        """Fail the stream from here: cancel upstream, then signal `error`."""
        if self._mark_over():
            self._cancel_upstream()
            self._detach_downstream().on_error(error)

    def _detach_downstream(self) -> Subscriber[Any]:
        """Drop the reference to the subscriber (rules 1.6, 3.13)
        and return it for the last signal.
        """
        downstream, self._downstream = self._downstream, CANCELLED_SUBSCRIBER
        return downstream

    def _cancel_upstream(self) -> None:
        """Cancel the upstream subscription and drop the reference to it (rule 2.6)."""
        upstream, self._upstream = self._upstream, ENDED_UPSTREAM
        upstream.cancel()

    # --- for those who look at the pipe

    @property
    def _held_count(self) -> int:
        """How many elements are held here."""
        return 0

    @property
    def _part_label(self) -> str:
        """The name of the operator."""
        return operator_name(type(self))

    def pipe_part(self) -> PipePart:
        """Return the part for those who look at the pipe."""
        return PipePart(self._part_label, self._held_count, (getattr(self, "_upstream", None),))

    @property
    def subscriber_below(self) -> object:
        """The next subscriber, for those who look at the pipe."""
        return self._downstream

    def __repr__(self) -> str:
        return f"<stage {type(self).__name__.strip('_')}: {'over' if self._is_over else 'live'}>"


def operator_name(stage: type) -> str:
    """Return the name of the operator that makes stages of this class: ``with_latest``."""
    words = stage.__name__.strip("_").removesuffix("Stage")
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in words).strip("_")


def stopped_error(label: str) -> PublisherStopped:
    """Return the error for a stream whose task was cancelled from outside, with its nursery,
    while the stream was live.
    """
    return PublisherStopped(
        f"{label} was stopped: the nursery that ran it was cancelled. "
        "Keep the nursery open until the subscribers are done, or cancel the subscription first"
    )
