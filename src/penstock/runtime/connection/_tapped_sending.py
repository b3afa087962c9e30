"""The relay of a served stream that a tap watches: between the publisher and the stream of the
session.

Publishers append most elements to the open batch of the stream, without a call. So this relay looks
at the batch that it has lent whenever something passes, and counts what was appended since.
"""

from collections.abc import Sequence
from typing import Any

from penstock.api import (
    BatchingSubscriber,
    SharedBatch,
    SignalKind,
    Subscriber,
    Subscription,
)
from penstock.core import StreamTap, TappedRelay, size_of
from penstock.session import SendingStream


class TappedSending(TappedRelay):
    """Shows the signals of a served stream to its tap, and lends the batch of the stream."""

    __slots__ = ("_lent", "_seen", "_stream")

    def __init__(self, tap: StreamTap, stream: SendingStream) -> None:
        super().__init__(stream, tap)
        self._stream = stream
        self._lent: SharedBatch | None = None
        self._seen = 0  # elements of the lent batch that were counted

    def use(self, call: Subscription) -> None:
        """Pass requests on to `call`; the stream has this object already."""
        self._upstream = call
        self._tap.signal(SignalKind.ON_SUBSCRIBE)

    @property
    def lender(self) -> BatchingSubscriber | None:
        """The relay itself: it counts what is appended."""
        return None if self._subscriber is None else self

    @property
    def run(self) -> SharedBatch | None:
        """The open batch of the stream."""
        # Asked for before elements are appended: those of before are counted now.
        self._count_lent()
        return self._lend()

    def on_next(self, element: Any, /) -> None:
        # Counted first: the elements in the batch came before this one.
        self._count_lent()
        size = self._stream.element_size
        length = size_of((element,))
        began = self._tap.elements(length // size if size else 1, length)
        # The element gets into the batch, and is counted. The stream may request more before it
        # returns, and that must not count it again.
        self._lent = None
        self._stream.on_next(element)
        self._tap.returned(began)
        self._lend_again()

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        """Take elements that the publisher has at hand."""
        self._count_lent()  # first, as in on_next
        size, element_size = size_of(elements), self._stream.element_size
        count = size // element_size if element_size else len(elements)
        began = self._tap.elements(count, size)
        self._lent = None  # as in on_next
        self._stream.on_next_many(elements)
        self._tap.returned(began)
        self._lend_again()

    def on_reservation_used(self) -> None:
        """Tell the stream that its batch has all elements that were requested."""
        self._count_lent()
        self._stream.on_reservation_used()

    def request(self, n: int, /) -> None:
        # First, so that the rows have the order of the signals.
        self._count_lent()
        super().request(n)

    def _lend(self) -> SharedBatch | None:
        batch = self._lent = self._stream.run
        self._seen = 0 if batch is None else len(batch.elements)
        return batch

    def _lend_again(self) -> None:
        """Look at the batch as it is now. If it was lent to the publisher meanwhile, only what was
        appended since then is new.
        """
        if self._lent is None:
            self._lend()
        else:
            self._count_lent()

    def _count_lent(self) -> None:
        """Count what the publisher has appended since the last look."""
        batch = self._lent
        if batch is None:
            return
        # Without a copy if all of the batch is new.
        elements, seen = batch.elements, self._seen
        if len(elements) > seen:
            self._seen = len(elements)
            new = elements[seen:] if seen else elements
            self._tap.elements(len(new), size_of(new))

    def _leave(
        self, kind: SignalKind, error: BaseException | None = None
    ) -> Subscriber[Any] | None:
        self._count_lent()
        # The stream is over: nothing is appended any more, and the batch may go.
        self._lent = None
        return super()._leave(kind, error)
