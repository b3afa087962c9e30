"""A stage between a publisher and its subscriber that shows each signal to a tap
and changes nothing.

It stands in both directions, so it sees requests and the cancel, too. It passes batches on whole.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from penstock.api import (
    SignalKind,
    SignalTap,
    Subscriber,
    Subscription,
    held_of,
    on_content_of,
    on_element_size_of,
    on_fact_of,
    on_next_many_of,
    on_next_packed_of,
    split_packed,
)
from penstock.core._relay import EndedSubscription
from penstock.core._signal_counter import SignalCounter

_SIZED: Final = (bytes, bytearray, memoryview)
MOST_JOINED: Final = 1024
"""Bytes of the first element above which elements are not joined to count them: the copy would
take longer than their lengths.
"""

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_REQUEST: Final = SignalKind.REQUEST

_ENDED: Final = EndedSubscription()


class TappedStream(Subscriber[Any], Subscription):
    """The stage. `begin` gives it the tap; signals before that are counted, and shown then."""

    __slots__ = ("_counter", "_early", "_is_known", "_is_subscribed", "_subscriber", "_upstream")

    def __init__(self, subscriber: Subscriber[Any]) -> None:
        self._subscriber: Subscriber[Any] | None = subscriber
        self._counter: SignalCounter | None = None
        self._is_known = False
        self._is_subscribed = False
        self._early = 0  # demand that came before `begin`
        self._upstream: Subscription = _ENDED

    def begin(self, tap: SignalTap | None) -> None:
        """Show the signals to `tap` from now on, those that have passed first; or to no tap."""
        self._is_known = True
        if tap is not None:
            self._counter = SignalCounter(tap)
            if self._is_subscribed:
                self._counter.signal(SignalKind.ON_SUBSCRIBE)
            if self._early:
                self._counter.signal(_REQUEST, self._early)

    @property
    def is_passed_by(self) -> bool:
        """True if there is no tap, so that signals need not pass through this object."""
        return self._is_known and self._counter is None

    # --- the publisher's signals

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.use(subscription)
        if self._subscriber is not None:
            self._subscriber.on_subscribe(self)

    def use(self, subscription: Subscription) -> None:
        """Pass requests on to `subscription`; the subscriber has this object already."""
        self._upstream, self._is_subscribed = subscription, True
        if self._counter is not None:
            self._counter.signal(SignalKind.ON_SUBSCRIBE)

    def on_next(self, element: Any, /) -> None:
        if self._subscriber is None:
            return
        # Most streams have no tap: their elements need no reading of the clock.
        if self._counter is None:
            self._subscriber.on_next(element)
            return
        began = self._counter.elements(1, len(element) if isinstance(element, _SIZED) else 0)
        self._subscriber.on_next(element)
        self._counter.returned(began)

    def on_content(self, serializer: str | None, schema: str, /) -> "TappedStream":
        """Pass on how the elements are serialized.
        The subscriber may put another object in its place.
        """
        on_content = on_content_of(self._subscriber)
        if on_content is not None:
            below = on_content(serializer, schema)
            if self._subscriber is not None:  # it may have cancelled, because it cannot read them
                self._subscriber = below
        return self

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        """Take elements that arrived together."""
        # The interfaces for batches are optional: a plain subscriber gets single elements.
        many = on_next_many_of(self._subscriber)
        if many is None:
            for element in elements:
                self.on_next(element)
        elif self._counter is None:
            many(elements)
        else:
            began = self._counter.elements(len(elements), size_of(elements))
            many(elements)
            self._counter.returned(began)

    def on_next_sized(self, elements: Sequence[Any], size: int, /) -> None:
        """Take elements that arrived together, and have `size` bytes: their decoder knows it,
        and they need not be added up here.
        """
        many = on_next_many_of(self._subscriber)
        if many is None or self._counter is None:
            self.on_next_many(elements)
        else:
            began = self._counter.elements(len(elements), size)
            many(elements)
            self._counter.returned(began)

    def on_fact(self, fact: object, /) -> None:
        """Pass on a fact that an extension or a source knows of the stream.
        A tap does not record facts.
        """
        on_fact = on_fact_of(self._subscriber)
        if on_fact is not None:
            on_fact(fact)

    def on_element_size(self, size: int, /) -> None:
        """Learn the size of every element."""
        on_element_size = on_element_size_of(self._subscriber)
        if on_element_size is not None:
            on_element_size(size)

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        """Take packed elements."""
        packed = on_next_packed_of(self._subscriber)
        if packed is None:
            # Counted there.
            self.on_next_many(split_packed(count, elements))
        elif self._counter is None:
            packed(count, elements)
        else:
            began = self._counter.elements(count, len(elements))
            packed(count, elements)
            self._counter.returned(began)

    def on_error(self, error: BaseException, /) -> None:
        subscriber = self._leave(SignalKind.ON_ERROR)
        if subscriber is not None:
            subscriber.on_error(error)

    def on_complete(self, /) -> None:
        subscriber = self._leave(SignalKind.ON_COMPLETE)
        if subscriber is not None:
            subscriber.on_complete()

    def held(self) -> int:
        """Return how many bytes of elements the subscriber has not read, if it can tell."""
        # Passed on, because the byte window of a stream must be the same with and without a tap.
        held = held_of(self._subscriber)
        return 0 if held is None else held()

    # --- the subscriber's signals

    def request(self, n: int, /) -> None:
        if self._counter is None:
            if not self._is_known:
                self._early += n
            self._upstream.request(n)
        else:
            began = self._counter.signal(_REQUEST, n)
            self._upstream.request(n)
            self._counter.returned(began)

    def cancel(self, /) -> None:
        # Taken before `_leave`, which drops both sides.
        upstream = self._upstream
        if self._leave(SignalKind.CANCEL) is not None:
            upstream.cancel()

    # --- inside

    def _leave(self, kind: SignalKind) -> Subscriber[Any] | None:
        """Show the last signal, and drop both sides (rules 1.6, 3.13). Return the subscriber, or
        None if the stream was over.
        """
        subscriber, self._subscriber, self._upstream = self._subscriber, None, _ENDED
        # Before the subscriber is called:
        # the signals that it causes have their rows behind this one.
        if subscriber is not None and self._counter is not None:
            self._counter.signal(kind)
        return subscriber


def size_of(elements: Sequence[Any]) -> int:
    """Return the bytes of `elements`; an object of another type counts 0."""
    if elements and type(elements[0]) is bytes and len(elements[0]) <= MOST_JOINED:
        # Joined in C, short elements take a third of the time that their lengths take,
        # and no look at their types is needed.
        with suppress(TypeError, BufferError):
            return len(b"".join(elements))
    return sum(len(element) for element in elements if isinstance(element, _SIZED))
