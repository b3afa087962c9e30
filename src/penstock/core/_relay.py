"""Relays: objects between a publisher and a subscriber that pass signals down and demand up.

A subclass changes what it is about, and nothing else. Rules of this file:

* A relay passes on everything: the four signals and all of `penstock.api.OptionalMethods`. If the
  subscriber lacks an optional method, the relay uses the four signals: it turns a batch into single
  elements.
* A relay forgets both neighbours when the stream ends, before it signals the end or cancels
  (rules 1.6, 2.4, 3.13). So a neighbour that answers with another call finds a relay that does
  nothing, and no end is signalled twice.
* Calls after the end do nothing (rules 1.7, 3.6, 3.7).
* A relay trusts its neighbours, as stages of one pipe do: it checks neither demand nor elements.
  `SubscriberGuard` and `PublisherGuard` are the relays that check.
* A subclass that has to do with elements derives from `ElementRelay` or `CountingRelay`, or says
  for each method with elements what it does (a test compares). One method that was forgotten would
  let elements pass by it.
"""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from penstock.api import (
    BatchingSubscriber,
    PipePart,
    Subscriber,
    Subscription,
    held_of,
    lender_of,
    on_content_of,
    on_element_size_of,
    on_fact_of,
    on_next_many_of,
    on_next_packed_of,
    on_next_sized_of,
    split_packed,
    takes_runs_of,
)

T = TypeVar("T")


class EndedSubscription(Subscription):
    """The subscription of a stream that ended before it began."""

    __slots__ = ()

    def request(self, n: int, /) -> None:
        """Do nothing: rule 3.6."""

    def cancel(self, /) -> None:
        """Do nothing: rule 3.7."""


class Relay(Subscriber[T], Subscription, Generic[T]):
    """Passes every signal to the subscriber below, and every request to the publisher above."""

    __slots__ = ("_subscriber", "_upstream")

    def __init__(self, subscriber: Subscriber[Any]) -> None:
        self._subscriber: Subscriber[Any] | None = subscriber  # None after the end
        # None before on_subscribe, and after the end.
        self._upstream: Subscription | None = None

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

    # --- its optional methods

    def on_next_many(self, elements: Sequence[T], /) -> None:
        """Pass elements on in one call if the subscriber accepts that, else one by one."""
        on_next_many = on_next_many_of(self._subscriber)
        if on_next_many is None:
            # `on_next` looks for the subscriber each time: it may cancel inside any element.
            for element in elements:
                self.on_next(element)
        else:
            on_next_many(elements)

    def on_next_sized(self, elements: Sequence[T], size: int, /) -> None:
        """Pass elements on, with their bytes if the subscriber wants to know."""
        on_next_sized = on_next_sized_of(self._subscriber)
        if on_next_sized is None:
            self.on_next_many(elements)
        else:
            on_next_sized(elements, size)

    def on_element_size(self, size: int, /) -> None:
        """Pass on the size of every element."""
        on_element_size = on_element_size_of(self._subscriber)
        if on_element_size is not None:
            on_element_size(size)

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        """Pass packed elements on unchanged if the subscriber accepts that, else as a list."""
        on_next_packed = on_next_packed_of(self._subscriber)
        if on_next_packed is None:
            # The elements are bytes: only streams of fixed size are packed, and have no serializer.
            self.on_next_many(split_packed(count, elements))  # type: ignore[arg-type]  # T is bytes
        else:
            on_next_packed(count, elements)

    @property
    def takes_lists(self) -> bool:
        """Whether the subscriber gets a list in one call, and not each element by itself."""
        subscriber = self._subscriber
        if isinstance(subscriber, Relay):
            return subscriber.takes_lists
        return on_next_many_of(subscriber) is not None

    @property
    def takes_runs(self) -> bool:
        """Whether the subscriber takes elements that are not objects yet."""
        return takes_runs_of(self._subscriber)

    def on_content(self, serializer: str | None, schema: str, /) -> Subscriber[Any]:
        """Let the subscriber choose how its elements are read. Return this relay, which stays."""
        on_content = on_content_of(self._subscriber)
        if on_content is not None:
            below = on_content(serializer, schema)
            if below is None:  # the elements would be lost, and no request would come up
                raise TypeError("on_content() returned None; return the subscriber of the elements")
            if self._subscriber is not None:  # it may have cancelled: it cannot read them
                self._subscriber = below
        return self

    def on_fact(self, fact: object, /) -> None:
        """Pass on what an extension or a source knows of the stream."""
        on_fact = on_fact_of(self._subscriber)
        if on_fact is not None:
            on_fact(fact)

    def held(self) -> int:
        """Return the bytes that the subscriber keeps, if it can tell."""
        held = held_of(self._subscriber)
        return 0 if held is None else held()

    @property
    def lender(self) -> BatchingSubscriber | None:
        """The object below that lends its batch: the elements in it need not pass through here."""
        return lender_of(self._subscriber)

    # --- the subscription: called by the subscriber below

    def request(self, n: int, /) -> None:
        upstream = self._upstream
        if upstream is not None:
            upstream.request(n)

    def cancel(self, /) -> None:
        upstream = self._upstream
        # Detached first: a publisher that answers the cancel with a signal must not reach the
        # subscriber.
        self._detach()
        if upstream is not None:
            upstream.cancel()

    # --- for those who look at the pipe

    def pipe_part(self) -> PipePart:
        """Return the part for those who look at the pipe: a relay only passes signals on."""
        return PipePart("", upstream=(self._upstream,))

    @property
    def subscriber_below(self) -> object:
        """The next subscriber, for those who look at the pipe."""
        return self._subscriber

    # --- for subclasses

    def _detach(self) -> Subscriber[Any] | None:
        """Forget both neighbours.

        Return the subscriber for its last signal, or None if the stream had ended before.
        """
        subscriber, self._subscriber = self._subscriber, None
        self._upstream = None
        return subscriber


class ElementRelay(Relay[T]):
    """A relay whose subclass looks at each element: all of them come through `on_next`."""

    __slots__ = ()

    @property
    def takes_lists(self) -> bool:
        return False

    def on_next_many(self, elements: Sequence[T], /) -> None:
        """Take the elements one by one."""
        for element in elements:
            self.on_next(element)

    def on_next_sized(self, elements: Sequence[T], _size: int, /) -> None:
        """Take the elements one by one."""
        self.on_next_many(elements)

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        """Take the elements one by one."""
        self.on_next_many(split_packed(count, elements))  # type: ignore[arg-type]  # T is bytes

    @property
    def takes_runs(self) -> bool:
        """False: a run would have to be taken apart here."""
        return False

    @property
    def lender(self) -> BatchingSubscriber | None:
        """None: an element in a lent batch would pass by this relay."""
        return None


class CountingRelay(Relay[T]):
    """A relay that tells its subclass how many elements pass."""

    __slots__ = ()

    def _on_elements(self, count: int) -> None:
        """Called before `count` elements are passed on together. A subclass counts here."""

    def on_next(self, element: T, /) -> None:
        subscriber = self._subscriber
        if subscriber is not None:
            self._on_elements(1)
            subscriber.on_next(element)

    def on_next_many(self, elements: Sequence[T], /) -> None:
        """Pass elements on in one call if the subscriber accepts that, else one by one."""
        if on_next_many_of(self._subscriber) is not None:
            self._on_elements(len(elements))
        super().on_next_many(elements)  # single elements are counted by `on_next`

    def on_next_sized(self, elements: Sequence[T], size: int, /) -> None:
        """Pass elements on, with their bytes if the subscriber wants to know."""
        if on_next_sized_of(self._subscriber) is not None:
            self._on_elements(len(elements))
        super().on_next_sized(elements, size)  # without that method they come to `on_next_many`

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        """Pass packed elements on unchanged if the subscriber accepts that, else as a list."""
        if on_next_packed_of(self._subscriber) is not None:
            self._on_elements(count)
        super().on_next_packed(count, elements)

    @property
    def lender(self) -> BatchingSubscriber | None:
        """None: an element in a lent batch would not be counted."""
        return None
