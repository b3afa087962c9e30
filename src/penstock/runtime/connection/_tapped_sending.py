"""A served stream that a tap watches: between the publisher and the stream of the session.

Publishers append most elements to the open batch of the stream, without a call. So this object
looks at the batch that it has lent whenever something passes, and counts what was appended since.
"""

from collections.abc import Sequence
from typing import Any, Self

from penstock.api import SharedBatch, SignalKind, Subscriber
from penstock.core import TappedStream, size_of
from penstock.runtime.service import StreamCount
from penstock.session import SendingStream


class TappedSending(TappedStream):
    """Shows the signals of a served stream to its tap, and lends the batch of the stream."""

    __slots__ = ("_element_size", "_lent", "_seen", "_served", "_stream")

    def __init__(self, served: StreamCount, stream: SendingStream) -> None:
        """`served` remembers the outcome of the stream."""
        super().__init__(stream)
        self._served = served
        self._stream = stream
        self._lent: SharedBatch | None = None
        self._seen = 0  # elements of the lent batch that were counted

    @property
    def lender(self) -> Self:
        """The relay itself: it counts what is appended."""
        return self

    @property
    def run(self) -> SharedBatch | None:
        """The open batch of the stream."""
        # Asked for before elements are appended: those of before are counted now.
        if self._counter is not None:
            self._count_lent()
        return self._lend()

    def on_next(self, element: Any, /) -> None:
        counter = self._counter
        if counter is None:
            self._stream.on_next(element)
            return
        # First: the elements in the batch came before this one.
        self._count_lent()
        size = self._stream.element_size
        began = counter.elements(len(element) // size if size else 1, len(element))
        self._stream.on_next(element)
        counter.returned(began)
        self._lend()  # the element may be in the batch, and is counted

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        """Take elements that the publisher has at hand."""
        counter = self._counter
        if counter is None:
            self._stream.on_next_many(elements)
            return
        # As in on_next.
        self._count_lent()
        size, element_size = size_of(elements), self._stream.element_size
        began = counter.elements(size // element_size if element_size else len(elements), size)
        self._stream.on_next_many(elements)
        counter.returned(began)
        self._lend()

    def on_reservation_used(self) -> None:
        """Tell the stream that its batch has all elements that were requested."""
        if self._counter is not None:
            self._count_lent()
        self._stream.on_reservation_used()

    def on_error(self, error: BaseException, /) -> None:
        # Before the signal: the stream reports its end inside it,
        # and the outcome must be known by then.
        self._served.fail(error)
        super().on_error(error)

    def on_complete(self, /) -> None:
        # As in on_error: before the signal.
        self._served.set_completed()
        super().on_complete()

    def request(self, n: int, /) -> None:
        if self._counter is not None:
            # First, so that the rows have the order of the signals.
            self._count_lent()
        super().request(n)

    def _lend(self) -> SharedBatch | None:
        batch = self._lent = self._stream.run
        self._seen = 0 if batch is None else len(batch.elements)
        return batch

    def _count_lent(self) -> None:
        """Count what the publisher has appended since the last look."""
        batch, counter = self._lent, self._counter
        if batch is None or counter is None:
            return
        # Without a copy if all of the batch is new.
        elements, seen = batch.elements, self._seen
        if len(elements) > seen:
            self._seen = len(elements)
            counter.elements(len(elements) - seen, size_of(elements[seen:] if seen else elements))

    def _leave(self, kind: SignalKind) -> Subscriber[Any] | None:
        self._count_lent()
        # The stream is over: nothing is appended any more, and the batch may go.
        self._lent = None
        return super()._leave(kind)
