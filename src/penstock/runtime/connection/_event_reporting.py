"""Reports one connection and its streams to the observers among the plugins.

Rules of this file:

* The order is fixed: the connection is opened, its streams begin and end, the connection is closed. A client may subscribe before the
  peer has said hello. Such a stream is reported after the hello, and never if there is none.
* Nothing is made for a stream unless a plugin listens to streams: an idle stream must stay small.
* A stream that this side serves begins when it is accepted. A stream that was refused is not reported.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

from penstock.api import SharedBatch, Subscriber, Subscription, on_element_size_of, on_next_many_of, on_next_packed_of, split_packed
from penstock.plugins import ConnectionClosed, ConnectionOpened, Events, Outcome, PeerIdentity, StreamEnded, StreamOpened
from penstock.runtime.service import StreamCount
from penstock.session import SendingStream

_numbers = count(1)  # of connections in this process


class ConnectionEvents:
    """Reports the events of one connection."""

    def __init__(self, events: Events, *, address: str, accepted: bool) -> None:
        self._events = events
        self._address = address
        self._accepted = accepted
        self._number = 0  # until the connection is open
        self._early: dict[tuple[int, bool], str] = {}  # streams that began before that; bounded by the subscriptions of this side
        self._is_closing: Callable[[], bool] = lambda: False
        self._served: dict[SendingStream, StreamCount] = {}  # bounded by the streams that the session serves
        self.wants_streams: bool = events.wants_streams
        """True if a plugin listens to streams. Plugins are fixed when the registry is built, so this is looked up once."""

    # --- the connection

    def start(self, is_closing: Callable[[], bool]) -> None:
        """`is_closing` tells, when a stream ends, whether the end of the connection has ended it."""
        self._is_closing = is_closing

    def report_opened(self, peer: PeerIdentity, dialect: str) -> None:
        """Report that both sides have said hello, and the streams that began before."""
        # Numbered here, and not at the start: connections without a hello are not reported, and leave no gap.
        self._number = next(_numbers)
        self._events.connection_opened(
            ConnectionOpened(connection=self._number, address=self._address, dialect=dialect, accepted=self._accepted, peer=peer)
        )
        # Taken out first: an observer may cancel a stream from inside its hook.
        early, self._early = self._early, {}
        for (stream, outbound), publisher in early.items():
            self.report_stream(stream, publisher, outbound=outbound)

    def report_closed(self, reason: str, error: BaseException | None) -> None:
        """Report that nothing of the connection runs any more."""
        # 0 means that it was never reported as open.
        if self._number:
            self._events.connection_closed(ConnectionClosed(connection=self._number, reason=reason, error=error))

    # --- streams

    def observe(self, subscriber: Subscriber[Any]) -> "ObservedStream":
        """Return a subscriber that counts what a stream of the peer delivers, and passes it on."""
        return ObservedStream(self, subscriber)

    def serve(self, stream: SendingStream) -> StreamCount:
        """Report a stream that is about to be accepted, and return the record of its outcome. Its end is reported too."""
        # Kept by stream and not by id: an id may be used again as soon as its stream has ended.
        served = self._served[stream] = StreamCount(partial(self._report_served, stream))
        stream.when_over = served.on_stream_end
        self.report_stream(stream.id, str(stream.target), outbound=True)
        return served

    def watch(self, stream: SendingStream) -> Subscriber[Any]:
        """Return the subscriber for the publisher of `stream`: one that remembers the outcome, if `serve` was called for the stream."""
        served = self._served.get(stream)
        return stream if served is None else ServedStream(served, stream)

    def on_failure(self, stream: SendingStream, error: BaseException) -> None:
        """Remember that the publisher of a served stream failed, or published what cannot be sent."""
        served = self._served.get(stream)
        if served is not None:
            served.fail(error)

    def report_stream(self, stream: int, publisher: str, *, outbound: bool) -> None:
        """Report that a stream has begun; `outbound` streams are served by this side."""
        if self._number:
            self._events.stream_opened(StreamOpened(connection=self._number, stream=stream, publisher=str(publisher), outbound=outbound))
        else:
            self._early[stream, outbound] = publisher

    def report_end(self, stream: int, outcome: Outcome | None, elements: int, error: BaseException | None, *, outbound: bool) -> None:
        """Report that a stream has ended. No outcome means a cancel, or the end of the connection if that is closing."""
        if not self._number:
            self._early.pop((stream, outbound), None)
            return
        # A stream that completed before the end is complete, also if its connection ended in the same step.
        if self._is_closing() and outcome is not Outcome.COMPLETED:
            outcome = Outcome.LOST
        self._events.stream_ended(
            StreamEnded(
                connection=self._number,
                stream=stream,
                outbound=outbound,
                outcome=outcome or Outcome.CANCELLED,
                elements=elements,
                error=error,
            )
        )

    def _report_served(self, stream: SendingStream, served: StreamCount) -> None:
        self._served.pop(stream, None)
        # The stream counts its elements itself, those of a run together.
        self.report_end(stream.id, served.outcome, stream.sent, served.error, outbound=True)


class ServedStream(Subscriber[Any]):
    """Remembers how the publisher of a served stream ended it. It passes everything on, and lends the batch of the stream."""

    __slots__ = ("_served", "_stream")

    def __init__(self, served: StreamCount, stream: SendingStream) -> None:
        self._served = served
        self._stream = stream

    @property
    def run(self) -> SharedBatch | None:
        """The open batch of the stream."""
        return self._stream.run

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._stream.on_subscribe(subscription)

    def on_next(self, element: Any, /) -> None:
        self._stream.on_next(element)

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        """Take elements that the publisher has at hand."""
        self._stream.on_next_many(elements)

    def on_reservation_used(self) -> None:
        """Tell the stream that its batch has all elements that were requested."""
        self._stream.on_reservation_used()

    def on_error(self, error: BaseException, /) -> None:
        self._served.fail(error)
        self._stream.on_error(error)

    def on_complete(self, /) -> None:
        self._served.outcome = Outcome.COMPLETED
        self._stream.on_complete()


class ObservedStream(Subscriber[Any], Subscription):
    """Counts what a stream of the peer delivers to its subscriber here, and reports the end once."""

    __slots__ = ("_elements", "_events", "_id", "_size", "_subscriber", "_upstream")

    _upstream: Subscription

    def __init__(self, events: ConnectionEvents, subscriber: Subscriber[Any]) -> None:
        self._events = events
        self._subscriber: Subscriber[Any] | None = subscriber
        self._id = -1  # until the peer was asked
        self._elements = 0
        self._size = 0

    def on_open(self, stream: int, publisher: str) -> None:
        """Report the beginning: the peer was asked. Nothing is reported if the subscriber has cancelled inside on_subscribe."""
        if self._subscriber is not None:
            self._id = stream
            self._events.report_stream(stream, publisher, outbound=False)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription
        if self._subscriber is not None:
            self._subscriber.on_subscribe(self)

    def on_next(self, element: Any, /) -> None:
        if self._subscriber is not None:
            self._elements += 1
            self._subscriber.on_next(element)

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        """Take elements that arrived together."""
        # The interfaces for batches are optional: a plain subscriber gets single elements.
        many = on_next_many_of(self._subscriber)
        if many is None:
            for element in elements:
                self.on_next(element)
        else:
            self._elements += len(elements)
            many(elements)

    def on_element_size(self, size: int, /) -> None:
        """Learn the size of every element."""
        self._size = size
        on_element_size = on_element_size_of(self._subscriber)
        if on_element_size is not None:
            on_element_size(size)

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        """Take packed elements."""
        packed = on_next_packed_of(self._subscriber)
        if packed is None:
            self.on_next_many(split_packed(count, elements))
        else:
            self._elements += count
            packed(count, elements)

    def on_error(self, error: BaseException, /) -> None:
        subscriber = self._end(Outcome.FAILED, error)
        if subscriber is not None:
            subscriber.on_error(error)

    def on_complete(self, /) -> None:
        subscriber = self._end(Outcome.COMPLETED, None)
        if subscriber is not None:
            subscriber.on_complete()

    def request(self, n: int, /) -> None:
        self._upstream.request(n)

    def cancel(self, /) -> None:
        if self._subscriber is not None:
            self._end(None, None)
            self._upstream.cancel()

    def _end(self, outcome: Outcome | None, error: BaseException | None) -> Subscriber[Any] | None:
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None and self._id >= 0:
            self._events.report_end(self._id, outcome, self._elements, error, outbound=False)
        return subscriber
