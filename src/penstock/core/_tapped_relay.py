"""A relay that shows the signals of its stream to a tap: a count, a recorder's rows, or both.

It stands in both directions, so the tap sees requests and the cancel as well. Batches pass whole.
A stream whose signals are not read needs no relay: the maker of one asks first.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from penstock.api import (
    BatchingSubscriber,
    SignalKind,
    Subscriber,
    Subscription,
    on_next_many_of,
    on_next_packed_of,
)
from penstock.core._relay import Relay

_SIZED: Final = (bytes, bytearray, memoryview)
MOST_JOINED: Final = 1024
"""Bytes of the first element above which elements are not joined to count them: the copy would
take longer than their lengths."""

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_ON_SUBSCRIBE: Final = SignalKind.ON_SUBSCRIBE
_REQUEST: Final = SignalKind.REQUEST


class StreamTap(Protocol):
    """Sees the signals of one stream, each of them before it is passed on."""

    def elements(self, n: int, size: int, /) -> int:
        """See `n` elements of `size` bytes. Return the time for `returned`, or 0 for none."""

    def returned(self, began: int, /) -> None:
        """Learn that the signal that began at `began` has been passed on."""

    def signal(self, kind: SignalKind, n: int = 0, error: BaseException | None = None, /) -> int:
        """See another signal. `n` is the demand of a request, `error` is that of on_error.

        Return what `elements` returns.
        """


class Taps:
    """Two taps of one stream. The second one may measure how long a signal takes."""

    __slots__ = ("_first", "_second")

    def __init__(self, first: StreamTap, second: StreamTap) -> None:
        self._first = first
        self._second = second

    def elements(self, n: int, size: int, /) -> int:
        """Let both see elements."""
        self._first.elements(n, size)
        return self._second.elements(n, size)

    def returned(self, began: int, /) -> None:
        """Tell the second one."""
        self._second.returned(began)

    def signal(self, kind: SignalKind, n: int = 0, error: BaseException | None = None, /) -> int:
        """Let both see another signal."""
        self._first.signal(kind, n, error)
        return self._second.signal(kind, n, error)


class TappedRelay(Relay[Any]):
    """The relay. Its tap may be replaced: a reader may be known only after the stream began."""

    __slots__ = ("_early", "_tap")

    def __init__(self, subscriber: Subscriber[Any], tap: StreamTap) -> None:
        super().__init__(subscriber)
        self._tap = tap
        self._early = 0  # demand that a tap that comes later has not seen

    def show(self, tap: StreamTap) -> None:
        """Show the signals to `tap` from now on, and at once those that it has not seen."""
        self._tap = tap
        if self._upstream is not None:
            tap.signal(_ON_SUBSCRIBE)
        if self._early:
            tap.signal(_REQUEST, self._early)

    def pass_by(self) -> Subscriber[Any] | None:
        """Return the subscriber, to which signals go from now on: no tap reads them.

        This object stays its subscription, and no longer refers to it. None if the stream is over.
        """
        subscriber, self._subscriber = self._subscriber, None
        return subscriber

    @property
    def is_over(self) -> bool:
        """True if the stream has ended."""
        return self._subscriber is None

    # --- the publisher's signals

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self._subscriber is not None:
            self._tap.signal(_ON_SUBSCRIBE)
        super().on_subscribe(subscription)

    def on_next(self, element: Any, /) -> None:
        subscriber = self._subscriber
        if subscriber is None:
            return
        # Before the signal: the subscriber may cancel inside it, and the end must count this one.
        began = self._tap.elements(1, len(element) if isinstance(element, _SIZED) else 0)
        subscriber.on_next(element)
        if began:
            self._tap.returned(began)

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        """Show elements that arrived together, and pass them on."""
        # Without that method they come to `on_next`, where each is shown.
        if on_next_many_of(self._subscriber) is None:
            super().on_next_many(elements)
            return
        began = self._tap.elements(len(elements), size_of(elements))
        super().on_next_many(elements)
        if began:
            self._tap.returned(began)

    def on_next_sized(self, elements: Sequence[Any], size: int, /) -> None:
        """Do the same for elements whose bytes the decoder knows: they need not be added up."""
        many = on_next_many_of(self._subscriber)
        if many is None:
            super().on_next_many(elements)
            return
        began = self._tap.elements(len(elements), size)
        many(elements)
        if began:
            self._tap.returned(began)

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        """Show packed elements, and pass them on."""
        if on_next_packed_of(self._subscriber) is None:
            super().on_next_packed(count, elements)  # as a list, which is shown
            return
        began = self._tap.elements(count, len(elements))
        super().on_next_packed(count, elements)
        if began:
            self._tap.returned(began)

    @property
    def lender(self) -> BatchingSubscriber | None:
        """None: an element in a lent batch would not be shown."""
        return None

    def on_error(self, error: BaseException, /) -> None:
        subscriber = self._leave(SignalKind.ON_ERROR, error)
        if subscriber is not None:
            subscriber.on_error(error)

    def on_complete(self, /) -> None:
        subscriber = self._leave(SignalKind.ON_COMPLETE)
        if subscriber is not None:
            subscriber.on_complete()

    # --- the subscriber's signals

    def request(self, n: int, /) -> None:
        if self._subscriber is None:
            super().request(n)  # passed by
            return
        self._early += n
        began = self._tap.signal(_REQUEST, n)
        super().request(n)
        if began:
            self._tap.returned(began)

    def cancel(self, /) -> None:
        upstream = self._upstream
        self._leave(SignalKind.CANCEL)
        if upstream is not None:
            upstream.cancel()

    # --- inside

    def _leave(
        self, kind: SignalKind, error: BaseException | None = None
    ) -> Subscriber[Any] | None:
        """Show the last signal, and forget both sides. Return the subscriber, or None if over."""
        subscriber = self._detach()
        # Before the subscriber is called: the signals that it causes have later rows.
        if subscriber is not None:
            self._tap.signal(kind, 0, error)
        return subscriber


def size_of(elements: Sequence[Any]) -> int:
    """Return the bytes of `elements`; an object of another type counts 0."""
    if elements and type(elements[0]) is bytes and len(elements[0]) <= MOST_JOINED:
        # Joined in C, short elements take a third of the time that their lengths take, and no look
        # at their types is needed.
        with suppress(TypeError, BufferError):
            return len(b"".join(elements))
    return sum(len(element) for element in elements if isinstance(element, _SIZED))
