"""`processor` makes an object that is a subscriber and a publisher of the standard,
out of operators.

Rules of this file:

* The operators are attached once, when the processor is made,
  and all subscribers get the same elements.
* A `PublisherGuard` stands behind the publisher of the processor and a `SubscriberGuard` in front
  of each subscriber, as in a pipe.
* A new subscriber is refused if the nursery has closed: the tasks of the operators cannot start
  there any more, and a publisher that belongs to the same nursery has stopped without a signal.
"""

from typing import Any, TypeVar, overload

import trio

from penstock.api import AlreadySubscribed, Processor, Subscriber, Subscription, UsageError, shown
from penstock.core import (
    CLEANUP_SECONDS,
    PublisherGuard,
    Report,
    Scope,
    check_hook,
    check_seconds,
    has_closed,
    log_violation,
)
from penstock.streams._slow_subscribers import check_hold_up
from penstock.streams._source import Operator, Source
from penstock.streams._sources import failed
from penstock.streams.ops._fan_out import FanOut
from penstock.streams.ops._pipe import pipe

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")


@overload
def processor(
    nursery: trio.Nursery,
    /,
    *,
    max_hold_up: float | None = ...,
    on_violation: Report = ...,
    cleanup_timeout: float = ...,
) -> Processor[Any, Any]: ...
@overload
def processor(
    nursery: trio.Nursery,
    a: Operator[A, B],
    /,
    *,
    max_hold_up: float | None = ...,
    on_violation: Report = ...,
    cleanup_timeout: float = ...,
) -> Processor[A, B]: ...
@overload
def processor(
    nursery: trio.Nursery,
    a: Operator[A, B],
    b: Operator[B, C],
    /,
    *,
    max_hold_up: float | None = ...,
    on_violation: Report = ...,
    cleanup_timeout: float = ...,
) -> Processor[A, C]: ...
@overload
def processor(
    nursery: trio.Nursery,
    a: Operator[A, B],
    b: Operator[B, C],
    c: Operator[C, D],
    /,
    *,
    max_hold_up: float | None = ...,
    on_violation: Report = ...,
    cleanup_timeout: float = ...,
) -> Processor[A, D]: ...
@overload
def processor(
    nursery: trio.Nursery,
    a: Operator[A, B],
    b: Operator[B, C],
    c: Operator[C, D],
    d: Operator[D, E],
    /,
    *more: Operator[Any, Any],
    max_hold_up: float | None = ...,
    on_violation: Report = ...,
    cleanup_timeout: float = ...,
) -> Processor[A, Any]: ...
def processor(
    nursery: trio.Nursery,
    /,
    *operators: Operator[Any, Any],
    max_hold_up: float | None = None,
    on_violation: Report = log_violation,
    cleanup_timeout: float = CLEANUP_SECONDS,
) -> Processor[Any, Any]:
    """Return `operators`, applied one after another, as a `Processor`: an object to give to a
    publisher, and to subscribe to.

    It subscribes to one publisher, once. It serves any number of subscribers, at the pace of the
    slowest; each gets the elements that arrive after it subscribed. The tasks of the operators run
    in `nursery`. Without an operator it passes its elements on unchanged.

    Upstream demand: that of the slowest subscriber, at most 16 ahead, as the operators translate
    it. Buffer: up to 16 elements, for a subscriber that came while they were under way, and those
    of the operators.
    Completion comes after the elements that wait.
    An error passes at once, unless an operator recovers from it.
    When the last subscriber has cancelled, the publisher is cancelled, and later subscribers get a
    UsageError. If `nursery` has closed before the stream ended, new subscribers get a UsageError,
    too.
    `max_hold_up` is how many seconds a subscriber that requests nothing may hold up others that
    want elements. Then it gets `on_error(SlowSubscriber)`. None: without a bound for subscribers in
    this process, and `Limits.max_hold_up` (10 s) for those over a network. ``math.inf``: without a
    bound for all. `on_violation` and `cleanup_timeout` are as for `Source.publisher`.

    Raises UsageError for an argument that is not a nursery or an operator. Inside a pipe no
    processor is needed: give operators to `pipe`.
    """
    if not isinstance(nursery, trio.Nursery):
        raise UsageError(
            f"processor() was given {shown(nursery)}; give the nursery that shall run the tasks of "
            "its operators first"
        )
    entrance = _Entrance()
    piped = pipe(entrance, *operators)
    seconds = check_seconds(cleanup_timeout, "cleanup_timeout", zero=True)
    scope = Scope(nursery, on_violation=check_hook(on_violation), cleanup_timeout=seconds)
    fan_out = FanOut[Any](on_violation, scope=scope, max_hold_up=check_hold_up(max_hold_up))
    piped.attach(fan_out, scope)
    return _Processor(entrance.guard, fan_out, piped, nursery)


class _Entrance(Source[Any]):
    """The source of the operators: the publisher that will subscribe the processor."""

    __slots__ = ("guard",)

    guard: PublisherGuard[Any] | None

    def __init__(self) -> None:
        self.guard = None

    def attach(self, subscriber: Subscriber[Any], scope: Scope) -> None:
        if self.guard is None:
            self.guard = PublisherGuard(subscriber, scope.on_violation)
            subscriber.on_subscribe(self.guard)
        else:
            # `retry`, for example. A processor is subscribed by its publisher,
            # and cannot subscribe again by itself.
            failed(
                AlreadySubscribed(
                    "an operator of this processor subscribed to its source again, and a "
                    "processor has one subscription. Put retry() into the pipe of the publisher, "
                    "where a new subscription can be made"
                )
            ).attach(subscriber, scope)

    def __repr__(self) -> str:
        return "<processor>"


class _Processor(Processor[A, B]):
    """The guard after a publisher, and a fan-out."""

    __slots__ = ("__weakref__", "_fan_out", "_guard", "_nursery", "_piped")

    def __init__(
        self,
        guard: PublisherGuard[A] | None,
        fan_out: FanOut[B],
        piped: Source[B],
        nursery: trio.Nursery,
    ) -> None:
        self._guard = guard  # None if the operators never subscribe to their source
        self._fan_out = fan_out
        self._piped = piped
        self._nursery = nursery

    # --- the subscriber

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self._guard is not None:
            self._guard.on_subscribe(subscription)
        else:
            subscription.cancel()

    def on_next(self, element: A, /) -> None:
        if self._guard is not None:
            self._guard.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        if self._guard is not None:
            self._guard.on_error(error)

    def on_complete(self, /) -> None:
        if self._guard is not None:
            self._guard.on_complete()

    # --- the publisher

    def subscribe(self, subscriber: Subscriber[B], /) -> None:
        if has_closed(self._nursery) and not self._fan_out.is_over:
            failed(self._nursery_closed()).publisher(self._nursery).subscribe(subscriber)
        else:
            self._fan_out.subscribe(subscriber)

    def _nursery_closed(self) -> UsageError:
        return UsageError(
            f"the nursery of {self!r} has closed, so no further subscriber can be served. "
            "Keep that nursery open for as long as the processor is used, or make a new processor "
            "in a nursery that is open"
        )

    def __repr__(self) -> str:
        return f"<processor {self._piped!r}: {self._fan_out!r}>"
