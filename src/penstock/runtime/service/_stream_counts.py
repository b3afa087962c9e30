"""Counts the elements of a served stream and remembers how it ended, for observers. Made only if
a plugin listens to streams.
"""

from collections.abc import Callable, Sequence
from typing import Any

from penstock.api import Subscriber, Subscription, on_next_many_of
from penstock.core import size_of
from penstock.spi import Outcome


class StreamCount:
    """The elements and the outcome of one served stream."""

    __slots__ = ("_report", "bytes", "element_size", "elements", "error", "outcome")

    def __init__(self, report: Callable[["StreamCount"], None]) -> None:
        """`report` is called once, when the stream has ended."""
        self._report = report
        self.outcome: Outcome | None = None
        """How the publisher ended the stream;
        None if the subscriber cancelled it, or the connection ended.
        """
        self.error: BaseException | None = None
        self.elements: int = 0
        self.bytes: int = 0
        self.element_size: int = 0
        """The size of each element; 0 if elements differ in size."""

    def count(self, elements: Sequence[Any]) -> None:
        """Count `elements`. On a stream of fixed size one piece may hold several elements."""
        # A publisher may signal any object.
        # The sending stream refuses one that is not bytes, and its error says so.
        size = size_of(elements)
        self.bytes += size
        self.elements += size // self.element_size if self.element_size else len(elements)

    def fail(self, error: BaseException) -> None:
        """Remember that the publisher failed."""
        self.outcome, self.error = Outcome.FAILED, error

    def set_completed(self) -> None:
        """Remember that the publisher completed."""
        self.outcome = Outcome.COMPLETED

    def on_stream_end(self) -> None:
        """Report the end."""
        self._report(self)


class CountingSubscriber(Subscriber[Any]):
    """Counts what a publisher signals, and passes it on."""

    __slots__ = ("_count", "_subscriber")

    def __init__(self, count: StreamCount, subscriber: Subscriber[Any]) -> None:
        self._count = count
        self._subscriber = subscriber

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscriber.on_subscribe(subscription)

    def on_next(self, element: Any, /) -> None:
        # Counted before it is passed on: the subscriber may end the stream with this element.
        self._count.count((element,))
        self._subscriber.on_next(element)

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        """Count and pass on elements that the publisher has at hand."""
        # All of them first, as in on_next.
        self._count.count(elements)
        many = on_next_many_of(self._subscriber)
        if many is not None:
            many(elements)
            return
        for element in elements:
            self._subscriber.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        # Before the signal: the end is reported also if the subscriber raises in it,
        # and needs the outcome then.
        self._count.fail(error)
        self._subscriber.on_error(error)

    def on_complete(self, /) -> None:
        # As in on_error: before the signal.
        self._count.set_completed()
        self._subscriber.on_complete()
