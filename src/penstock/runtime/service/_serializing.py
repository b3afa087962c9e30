"""Subscribers between a publisher and a stream of bytes: elements become bytes, and the first
element alone can be the whole answer.
"""

from collections.abc import Callable, Sequence
from typing import Any

from penstock.api import SharedBatch, Subscriber, Subscription, on_next_many_of
from penstock.spi import Serializer, dump_error, dumped_bytes


class Serializing(Subscriber[Any], Subscription):
    """Turns elements into bytes with `serializer`. It lends the batch of its subscriber to
    publishers: a `ConvertingSubscriber`.
    """

    __slots__ = ("_serializer", "_subscriber", "_type_place", "_upstream")

    _upstream: Subscription

    def __init__(
        self, subscriber: Subscriber[Any], serializer: Serializer, type_place: str
    ) -> None:
        """`type_place` is where the program gave the type of the elements, for messages;
        empty if it gave none.
        """
        self._subscriber = subscriber
        self._serializer = serializer
        self._type_place = type_place

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription
        self._subscriber.on_subscribe(self)

    def on_next(self, element: Any, /) -> None:
        try:
            data = self._serializer.dumps(element)
            if type(data) is not bytes:
                data = dumped_bytes(data, self._serializer, element)
        except Exception as error:
            # boundary: the serializer may be a plugin; its failure ends this stream only.
            # Upstream first: the publisher must not signal again while the stream fails.
            self._upstream.cancel()
            self._subscriber.on_error(dump_error(error, self._type_place))
            return
        self._subscriber.on_next(data)

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        """Take elements that the publisher has at hand."""
        dumps, dumped, failure = self._serializer.dumps, [], None
        try:
            for element in elements:
                data = dumps(element)
                dumped.append(
                    data if type(data) is bytes else dumped_bytes(data, self._serializer, element)
                )
        except Exception as error:  # boundary: as in on_next
            # Upstream first, as in on_next.
            self._upstream.cancel()
            failure = error
        # Also after a failure: the elements before the one that failed are delivered,
        # as with single calls of on_next.
        on_next_many = on_next_many_of(self._subscriber)
        # Not for an empty list: the first element may be the one that failed.
        if on_next_many is not None and dumped:
            on_next_many(dumped)
        else:
            for data in dumped:
                self._subscriber.on_next(data)
        if failure is not None:
            self._subscriber.on_error(dump_error(failure, self._type_place))

    @property
    def convert(self) -> Callable[[Any], bytes]:
        """Returns the bytes of an element."""
        return self._serializer.dumps

    @property
    def run(self) -> SharedBatch | None:
        """The open batch of the subscriber, or None if it has none, or lends none."""
        batch: SharedBatch | None = getattr(self._subscriber, "run", None)
        return batch

    def on_reservation_used(self) -> None:
        """Tell the subscriber, which has lent its batch."""
        self._subscriber.on_reservation_used()  # type: ignore[attr-defined]  # called only after an append to the subscriber's batch

    def on_error(self, error: BaseException, /) -> None:
        self._subscriber.on_error(error)

    def on_complete(self, /) -> None:
        self._subscriber.on_complete()

    def request(self, n: int, /) -> None:
        self._upstream.request(n)

    def cancel(self, /) -> None:
        self._upstream.cancel()


class FirstElementOnly(Subscriber[Any], Subscription):
    """Passes the first element on as the whole answer, and cancels the publisher then."""

    __slots__ = ("_size", "_subscriber", "_upstream")

    _upstream: Subscription

    def __init__(self, subscriber: Subscriber[Any], element_size: int) -> None:
        self._subscriber: Subscriber[Any] | None = subscriber
        self._size = element_size

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription
        if self._subscriber is not None:
            self._subscriber.on_subscribe(self)

    def on_next(self, element: Any, /) -> None:
        # Taken out first: the subscriber may cancel, or the publisher may signal again,
        # from inside on_next.
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            try:
                is_piece = self._size and isinstance(element, bytes | bytearray | memoryview)
                # A piece may hold several elements of fixed size.
                subscriber.on_next(element[: self._size] if is_piece else element)
            except Exception:
                # The publisher sees the exception, and reports it with on_error.
                self._subscriber = subscriber
                raise
            subscriber.on_complete()
            self._upstream.cancel()

    def on_error(self, error: BaseException, /) -> None:
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_error(error)

    def on_complete(self, /) -> None:
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_complete()

    def request(self, n: int, /) -> None:
        self._upstream.request(1)  # a second element would be dropped

    def cancel(self, /) -> None:
        # Before the cancel: an element that the publisher signals inside it is dropped.
        self._subscriber = None
        self._upstream.cancel()
