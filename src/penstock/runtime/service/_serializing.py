"""Relays between a publisher and a stream of bytes: elements become bytes, and the first element
alone can be the whole answer.
"""

from collections.abc import Callable, Sequence
from typing import Any

from penstock.api import (
    BatchingSubscriber,
    SharedBatch,
    Subscriber,
    lender_of,
    on_next_many_of,
)
from penstock.core import ElementRelay
from penstock.spi import Serializer, dump_error, dumped_bytes


class Serializing(ElementRelay[Any]):
    """Turns elements into bytes with `serializer`. It lends the batch of its subscriber to
    publishers: a `ConvertingSubscriber`.
    """

    __slots__ = ("_serializer", "_type_place")

    def __init__(
        self, subscriber: Subscriber[Any], serializer: Serializer, type_place: str
    ) -> None:
        """`type_place` is where the program gave the type of the elements, for messages;
        empty if it gave none.
        """
        super().__init__(subscriber)
        self._serializer = serializer
        self._type_place = type_place

    def on_next(self, element: Any, /) -> None:
        subscriber = self._subscriber
        if subscriber is None:
            return
        try:
            data = self._serializer.dumps(element)
            if type(data) is not bytes:
                data = dumped_bytes(data, self._serializer, element)
        except Exception as error:
            # boundary: the serializer may be a plugin; its failure ends this stream only.
            self._fail(error)
            return
        subscriber.on_next(data)

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
            failure = error
        # After a failure the elements before the failed one are also delivered, as with single
        # calls of on_next. The first element may have failed.
        if dumped:
            self.on_converted(dumped)
        if failure is not None:
            self._fail(failure)

    def on_converted(self, elements: Sequence[bytes], /) -> None:
        """Pass on elements that are bytes already."""
        on_next_many = on_next_many_of(self._subscriber)
        if on_next_many is not None:
            on_next_many(elements)
            return
        for data in elements:
            # The subscriber may cancel inside any element.
            if self._subscriber is not None:
                self._subscriber.on_next(data)

    @property
    def lender(self) -> BatchingSubscriber | None:
        """The relay itself, if the subscriber lends its batch."""
        return None if lender_of(self._subscriber) is None else self

    @property
    def convert(self) -> Callable[[Any], bytes]:
        """Returns the bytes of an element."""
        return self._serializer.dumps

    @property
    def run(self) -> SharedBatch | None:
        """The open batch of the subscriber, or None if it has none."""
        lender = lender_of(self._subscriber)
        return None if lender is None else lender.run

    def on_reservation_used(self) -> None:
        """Tell the subscriber, which has lent its batch."""
        lender = lender_of(self._subscriber)
        if lender is not None:
            lender.on_reservation_used()

    def _fail(self, error: Exception) -> None:
        upstream, subscriber = self._upstream, self._detach()
        # Upstream first: the publisher must not signal again while the stream fails.
        if upstream is not None:
            upstream.cancel()
        if subscriber is not None:
            subscriber.on_error(dump_error(error, self._type_place))


class FirstElementOnly(ElementRelay[Any]):
    """Passes the first element on as the whole answer, and cancels the publisher then."""

    __slots__ = ("_size",)

    def __init__(self, subscriber: Subscriber[Any], element_size: int) -> None:
        super().__init__(subscriber)
        self._size = element_size

    def on_next(self, element: Any, /) -> None:
        # Taken out first: the subscriber may cancel, or the publisher may signal again, from inside
        # on_next.
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is None:
            return
        try:
            is_piece = self._size and isinstance(element, bytes | bytearray | memoryview)
            # A piece may hold several elements of fixed size.
            subscriber.on_next(element[: self._size] if is_piece else element)
        except Exception:
            # The publisher sees the exception, and reports it with on_error.
            self._subscriber = subscriber
            raise
        subscriber.on_complete()
        self.cancel()

    def request(self, n: int, /) -> None:
        super().request(1)  # a second element would be dropped
