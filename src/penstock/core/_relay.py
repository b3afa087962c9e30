"""Relays: objects between a publisher and a subscriber that pass signals down and demand up, and
change what a subclass is about.

Rules of this file:

* A relay forgets both neighbours when the stream ends, before it signals the end or cancels (rules
  1.6, 2.4, 3.13). So a neighbour that answers with another call finds a relay that does nothing,
  and no end is signalled twice.
* Calls after the end do nothing (rules 1.7, 3.6, 3.7).
* A relay trusts its neighbours, as stages of one pipe do: it checks neither demand nor elements.
  `SubscriberGuard` and `PublisherGuard` are the relays that check.
"""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from penstock.api import (
    Subscriber,
    Subscription,
    on_element_size_of,
    on_next_many_of,
    on_next_packed_of,
    split_packed,
)

T = TypeVar("T")


class Relay(Subscriber[T], Subscription, Generic[T]):
    """Passes every signal to the subscriber below, and every request to the publisher above."""

    __slots__ = ("_subscriber", "_upstream")

    def __init__(self, subscriber: Subscriber[Any]) -> None:
        self._subscriber: Subscriber[Any] | None = subscriber  # None after the end
        self._upstream: Subscription | None = None  # None before on_subscribe, and after the end

    # --- the subscriber: called by the publisher above

    def on_subscribe(self, subscription: Subscription, /) -> None:
        subscriber = self._subscriber
        if subscriber is None:
            subscription.cancel()  # cancelled before the publisher answered
            return
        self._upstream = subscription
        subscriber.on_subscribe(self)

    def on_next(self, element: T, /) -> None:
        subscriber = self._subscriber
        if subscriber is not None:
            subscriber.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        subscriber = self._detach()
        if subscriber is not None:
            subscriber.on_error(error)

    def on_complete(self, /) -> None:
        subscriber = self._detach()
        if subscriber is not None:
            subscriber.on_complete()

    # --- the subscription: called by the subscriber below

    def request(self, n: int, /) -> None:
        upstream = self._upstream
        if upstream is not None:
            upstream.request(n)

    def cancel(self, /) -> None:
        upstream = self._upstream
        # First: a publisher that answers the cancel with a signal must not reach the subscriber.
        self._detach()
        if upstream is not None:
            upstream.cancel()

    # --- for subclasses

    def _detach(self) -> Subscriber[Any] | None:
        """Forget both neighbours.
        Return the subscriber for its last signal, or None if the stream had ended before.
        """
        subscriber, self._subscriber = self._subscriber, None
        self._upstream = None
        return subscriber


class BatchRelay(Relay[T]):
    """A relay that also passes on elements in batches,
    and tells its subclass how many elements pass.
    """

    __slots__ = ()

    def _on_elements(self, count: int) -> None:
        """Called before `count` elements are passed on together.
        A subclass counts here, or renews a deadline.
        """

    def on_next(self, element: T, /) -> None:
        subscriber = self._subscriber
        if subscriber is not None:
            self._on_elements(1)
            subscriber.on_next(element)

    def on_next_many(self, elements: Sequence[T], /) -> None:
        """Pass `elements` on in one call if the subscriber accepts that, else one by one."""
        on_next_many = on_next_many_of(self._subscriber)
        if on_next_many is None:
            for element in elements:
                # looks for the subscriber each time: it may cancel inside any element.
                self.on_next(element)
        else:
            self._on_elements(len(elements))
            on_next_many(elements)

    def on_element_size(self, size: int, /) -> None:
        """Pass on the size of every element."""
        on_element_size = on_element_size_of(self._subscriber)
        if on_element_size is not None:
            on_element_size(size)

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        """Pass packed elements on as they are if the subscriber accepts that, else as a list."""
        on_next_packed = on_next_packed_of(self._subscriber)
        if on_next_packed is None:
            # The elements are bytes: only streams of fixed size are packed,
            # and those have no serializer.
            self.on_next_many(split_packed(count, elements))  # type: ignore[arg-type]  # T is bytes here
        else:
            self._on_elements(count)
            on_next_packed(count, elements)
