"""What observers among the plugins are told of one connection and its streams, and when.

Rules of this file:

* Told in order: a connection is opened, its streams begin and end, the connection is closed. A client may subscribe before the peer has
  said hello; such a stream is told of once it has, and never if it never does.
* Nothing is made for a stream unless somebody listens to streams: an idle one must stay small.
* A stream that this side serves begins when it is accepted; one that was refused was never there.
"""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from penstock.api import Subscriber, Subscription
from penstock.plugins import ConnectionClosed, ConnectionOpened, Events, Outcome, PeerIdentity, StreamEnded, StreamOpened
from penstock.session import SendingStream

_numbers = count(1)


class ConnectionEvents:
    """One connection, as observers see it."""

    def __init__(self, events: Events, *, address: str, accepted: bool) -> None:
        self._events = events
        self._address = address
        self._accepted = accepted
        self._number = 0  # until it is open
        self._early: dict[tuple[int, bool], str] = {}  # streams that began before that; bounded by what this side subscribed to
        self._is_lost: Callable[[], bool] = lambda: False
        self._served: dict[SendingStream, ServedStream] = {}

    @property
    def wants_streams(self) -> bool:
        """Whether anybody listens to streams."""
        return self._events.wants_streams

    # --- the connection

    def begin(self, is_lost: Callable[[], bool]) -> None:
        """`is_lost` tells, when a stream ends, whether its connection has ended it."""
        self._is_lost = is_lost

    def opened(self, peer: PeerIdentity, dialect: str) -> None:
        """Both sides have said hello."""
        self._number = next(_numbers)
        self._events.connection_opened(
            ConnectionOpened(connection=self._number, address=self._address, dialect=dialect, accepted=self._accepted, peer=peer)
        )
        early, self._early = self._early, {}
        for (stream, outbound), publisher in early.items():
            self._began(stream, publisher, outbound=outbound)

    def closed(self, reason: str, error: BaseException | None) -> None:
        """Nothing of the connection runs any more."""
        if self._number:
            self._events.connection_closed(ConnectionClosed(connection=self._number, reason=reason, error=error))

    # --- streams

    def subscribing(self, subscriber: Subscriber[Any]) -> "ObservedStream":
        """Return what stands between a stream of the peer's and its subscriber here, and counts."""
        return ObservedStream(self, subscriber)

    def serving(self, stream: SendingStream) -> None:
        """A stream that the peer has opened is about to be accepted."""
        if self.wants_streams:
            served = self._served[stream] = ServedStream(self, stream)
            stream.when_over = served.over
            self._began(stream.id, str(stream.target), outbound=True)

    def counted(self, stream: SendingStream, subscriber: Subscriber[Any]) -> Subscriber[Any]:
        """Return what its publisher shall signal to, so that elements are counted."""
        served = self._served.get(stream)
        return subscriber if served is None else CountingSubscriber(served, subscriber)

    def failed(self, stream: SendingStream, error: BaseException) -> None:
        """The publisher of a stream that this side serves has failed."""
        served = self._served.get(stream)
        if served is not None:
            served.outcome, served.error = Outcome.FAILED, error

    def forget(self, stream: SendingStream) -> None:
        """It is over."""
        self._served.pop(stream, None)

    def began(self, stream: int, publisher: str) -> None:
        """A stream of the peer's has begun."""
        self._began(stream, publisher, outbound=False)

    def _began(self, stream: int, publisher: str, *, outbound: bool) -> None:
        if self._number:
            self._events.stream_opened(StreamOpened(connection=self._number, stream=stream, publisher=str(publisher), outbound=outbound))
        else:
            self._early[stream, outbound] = publisher

    def ended(self, stream: int, outcome: Outcome | None, elements: int, error: BaseException | None, *, outbound: bool) -> None:
        """A stream is over; without an outcome somebody cancelled it, the connection if that has ended."""
        if not self._number:
            self._early.pop((stream, outbound), None)
            return
        if self._is_lost() and outcome is not Outcome.COMPLETED:
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


class ServedStream:
    """One stream that this side serves."""

    __slots__ = ("_stream", "_watch", "elements", "error", "outcome")

    def __init__(self, watch: ConnectionEvents, stream: SendingStream) -> None:
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None
        self.elements: int = 0
        self._watch = watch
        self._stream = stream

    def count(self, element: Any) -> None:
        """Count an element, or a piece of several of fixed size."""
        self.elements += len(element) // self._stream.element_size if self._stream.element_size else 1

    def over(self) -> None:
        """It has ended here."""
        self._watch.forget(self._stream)
        self._watch.ended(self._stream.id, self.outcome, self.elements, self.error, outbound=True)


class CountingSubscriber(Subscriber[Any]):
    """Between our publisher and its stream: counts what passes."""

    __slots__ = ("_served", "_subscriber")

    def __init__(self, served: ServedStream, subscriber: Subscriber[Any]) -> None:
        self._served = served
        self._subscriber = subscriber

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscriber.on_subscribe(subscription)

    def on_next(self, element: Any, /) -> None:
        self._served.count(element)
        self._subscriber.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        self._subscriber.on_error(error)  # the conversation is told of it by the session, as of every failure

    def on_complete(self, /) -> None:
        self._served.outcome = Outcome.COMPLETED
        self._subscriber.on_complete()


class ObservedStream(Subscriber[Any], Subscription):
    """Between a stream of the peer's and its subscriber here: counts, and tells of the end, once."""

    __slots__ = ("_elements", "_id", "_size", "_subscriber", "_upstream", "_watch")

    _upstream: Subscription

    def __init__(self, watch: ConnectionEvents, subscriber: Subscriber[Any]) -> None:
        self._watch = watch
        self._subscriber: Subscriber[Any] | None = subscriber
        self._id = -1
        self._elements = 0
        self._size = 0

    def began(self, stream: int, publisher: str) -> None:
        """The peer was asked; not if the subscriber has cancelled at once."""
        if self._subscriber is not None:
            self._id = stream
            self._watch.began(stream, publisher)

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
        many = getattr(self._subscriber, "on_next_many", None)
        if many is None:
            for element in elements:
                self.on_next(element)
        else:
            self._elements += len(elements)
            many(elements)

    def on_element_size(self, size: int, /) -> None:
        """Every element has this size."""
        self._size = size
        told = getattr(self._subscriber, "on_element_size", None)
        if told is not None:
            told(size)

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        """Take packed elements."""
        packed = getattr(self._subscriber, "on_next_packed", None)
        if packed is None:
            size = self._size
            self.on_next_many([elements[at : at + size] for at in range(0, count * size, size)])
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
            self._watch.ended(self._id, outcome, self._elements, error, outbound=False)
        return subscriber
