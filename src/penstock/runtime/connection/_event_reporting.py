"""Reports one connection and its streams to the observers among the plugins.

Rules of this file:

* The order is fixed: the connection is opened, its streams begin and end, the connection is closed.
  A client may subscribe before the peer has said hello. Such a stream is reported after the hello,
  and never if there is none.
* Nothing is made for a stream unless a plugin listens to streams: an idle stream must stay small.
* A stream that this side serves begins when it is accepted.
  A stream that was refused is not reported.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

import attrs

from penstock.api import (
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
from penstock.core import TappedStream, size_of
from penstock.runtime.connection._access_log import AccessLog
from penstock.runtime.connection._tapped_sending import TappedSending
from penstock.runtime.service import StreamCount
from penstock.session import SendingStream, Session
from penstock.spi import (
    ConnectionClosed,
    ConnectionOpened,
    ConnectionResumed,
    ConnectionSuspended,
    Events,
    Outcome,
    PeerIdentity,
    StreamEnded,
    StreamOpened,
)

_numbers = count(1)  # of connections in this process


@attrs.frozen
class EndedStream:
    """What is known of a stream at its end, in either direction."""

    stream: int
    publisher: str
    began_at: float
    outcome: Outcome | None
    error: BaseException | None
    elements: int
    bytes: int
    pattern: str = ""


class ConnectionEvents:
    """Reports the events of one connection."""

    def __init__(self, events: Events, *, address: str, accepted: bool) -> None:
        self._events = events
        self._address = address
        self._accepted = accepted
        self._number = 0  # until the connection is reported as open
        self._peer = PeerIdentity(address="")  # the same
        # Streams that began before that, with their taps to be; bounded by those of this side.
        self._early: dict[tuple[int, bool], tuple[str, str, TappedStream | None]] = {}
        # Both are replaced by `start`: this object is made before its session.
        self._session: Session | None = None
        self._now: Callable[[], float] = float  # returns 0.0
        # Both are bounded by the streams that the session serves.
        self._served: dict[SendingStream, StreamCount] = {}
        self._tapped: dict[SendingStream, TappedSending] = {}
        self._suspended_at = 0.0
        self.access: AccessLog | None = AccessLog.if_enabled(address, accepted=accepted)
        """The access log; None if it is off.
        It needs no plugin, and makes nothing for a stream that ends well.
        """
        self.wants_streams: bool = events.wants_streams or events.wants_signals
        """True if a plugin observes streams or their signals. Plugins are fixed when the
        registry is built, so this is looked up once.
        """
        self.counts_elements: bool = events.wants_streams
        """True if a plugin is told how many elements a stream had.
        A recorder counts them itself.
        """

    # --- the connection

    def start(self, session: Session | None, now: Callable[[], float]) -> None:
        """`session` tells, when a stream ends, whether the end of the connection has ended it;
        `now` returns the time.

        A stream that belongs to no connection is reported without a session.
        """
        self._session, self._now = session, now

    def report_opened(self, peer: PeerIdentity, dialect: str) -> None:
        """Report that both sides have said hello, and the streams that began before."""
        # Numbered here, and not at the start:
        # connections without a hello are not reported, and leave no gap.
        self._number, self._peer = next(_numbers), peer
        self._events.connection_opened(
            ConnectionOpened(
                connection=self._number,
                address=self._address,
                dialect=dialect,
                accepted=self._accepted,
                peer=peer,
            )
        )
        # Taken out first: an observer may cancel a stream from inside its hook.
        early, self._early = self._early, {}
        for (stream, outbound), (publisher, pattern, tapped) in early.items():
            self.report_stream(stream, publisher, outbound=outbound, pattern=pattern, tapped=tapped)

    @property
    def transport(self) -> str:
        """The scheme of the transport, as the URL has it: ``tcp``."""
        return self._address.partition(":")[0].rpartition("+")[2]

    @property
    def is_reported_open(self) -> bool:
        """True if both sides have said hello."""
        return self._number > 0

    def report_closed(self, reason: str, error: BaseException | None) -> None:
        """Report that nothing of the connection runs any more."""
        if self.is_reported_open:
            self._events.connection_closed(
                ConnectionClosed(connection=self._number, reason=reason, error=error)
            )

    def report_suspended(self, error: Exception) -> None:
        """Report that the link is lost, and that the connection waits for another one."""
        self._suspended_at = self._now()
        self._events.connection_suspended(
            ConnectionSuspended(
                connection=self._number,
                address=self._address,
                accepted=self._accepted,
                peer=self._peer,
                error=error,
            )
        )

    def report_resumed(self, peer: PeerIdentity) -> None:
        """Report that the connection goes on over another link, at whose other end is `peer`."""
        self._events.connection_resumed(
            ConnectionResumed(
                connection=self._number,
                address=self._address,
                accepted=self._accepted,
                peer=peer,
                seconds=self._now() - self._suspended_at,
            )
        )

    # --- streams

    def observe(self, subscriber: Subscriber[Any]) -> "ObservedStream":
        """Return a subscriber that counts what a stream of the peer delivers, and passes it on."""
        return ObservedStream(
            self, subscriber, TappedStream(subscriber) if self._events.wants_signals else None
        )

    def serve(self, stream: SendingStream, pattern: str = "") -> StreamCount:
        """Report a stream that is about to be accepted, and return the record of its outcome.
        Its end is reported too.

        `pattern` is the name under which the service offers its publisher.
        """
        # Kept by stream and not by id: an id may be used again as soon as its stream has ended.
        served = self._served[stream] = StreamCount(partial(self._report_served, stream, pattern))
        stream.when_over = served.on_stream_end
        tapped = None
        if self._events.wants_signals:
            tapped = self._tapped[stream] = TappedSending(served, stream)
        self.report_stream(
            stream.id, str(stream.target), outbound=True, pattern=pattern, tapped=tapped
        )
        return served

    def watch(self, stream: SendingStream) -> Subscriber[Any]:
        """Return the subscriber for the publisher of `stream`: one that remembers the outcome,
        if `serve` was called for the stream.
        """
        # Only a stream that is reported gets an object in front of it:
        # the others keep the shorter path.
        tapped = self._tapped.get(stream)
        if tapped is not None and not tapped.is_passed_by:
            return tapped
        served = self._served.get(stream)
        return stream if served is None else ServedStream(served, stream)

    def watch_call(self, stream: SendingStream, call: Subscription) -> Subscription:
        """Return the subscription for a request that a handler answers: `call`, or an object in
        front of it that a tap watches.
        """
        tapped = self._tapped.get(stream)
        if tapped is None or tapped.is_passed_by:
            return call
        # The row of on_subscribe: a request that a handler answers has no publisher
        # that would signal it.
        tapped.use(call)
        return tapped

    def on_failure(self, stream: SendingStream, error: BaseException) -> None:
        """Remember that the publisher of a served stream failed,
        or published what cannot be sent.
        """
        served = self._served.get(stream)
        if served is not None:
            served.fail(error)

    def report_stream(
        self,
        stream: int,
        publisher: str,
        *,
        outbound: bool,
        pattern: str = "",
        tapped: TappedStream | None = None,
    ) -> float:
        """Report that a stream has begun, and return the time;
        `outbound` streams are served by this side.

        `tapped` gets the tap of the stream, if a plugin wants to see its signals.
        """
        if self._number:
            event = StreamOpened(
                connection=self._number,
                stream=stream,
                publisher=str(publisher),
                outbound=outbound,
                pattern=pattern,
            )
            # Before the tap: its first row belongs to a stream that observers know.
            self._events.stream_opened(event)
            if tapped is not None:
                tapped.begin(self._events.tap(event))
        else:
            # Reported with the hello; if none comes, never.
            self._early[stream, outbound] = publisher, pattern, tapped
        return self._now()

    def report_end(self, ended: EndedStream, *, outbound: bool) -> None:
        """Report that a stream has ended. No outcome means a cancel, or the end of the
        connection if that is closing.
        """
        if not self._number:
            # Its beginning was not reported.
            # An observer that counts open streams would go below 0 with this end.
            self._early.pop((ended.stream, outbound), None)
            return
        outcome = ended.outcome
        # A stream that completed before the end is complete, also
        # if its connection ended in the same step.
        if (
            self._session is not None
            and self._session.state.is_closing
            and outcome is not Outcome.COMPLETED
        ):
            outcome = Outcome.LOST
        self._events.stream_ended(
            StreamEnded(
                connection=self._number,
                stream=ended.stream,
                outbound=outbound,
                outcome=outcome or Outcome.CANCELLED,
                elements=ended.elements,
                error=ended.error,
                publisher=ended.publisher,
                peer=self._peer,
                duration=self._now() - ended.began_at,
                bytes=ended.bytes,
                pattern=ended.pattern,
            )
        )

    def _report_served(self, stream: SendingStream, pattern: str, served: StreamCount) -> None:
        self._served.pop(stream, None)
        self._tapped.pop(stream, None)
        # The stream counts its elements itself, those of a run together.
        ended = EndedStream(
            stream.id,
            str(stream.target),
            stream.began_at,
            served.outcome,
            served.error,
            elements=stream.sent,
            bytes=stream.sent_bytes,
            pattern=pattern,
        )
        self.report_end(ended, outbound=True)


class ServedStream(Subscriber[Any]):
    """Remembers how the publisher of a served stream ended it. It passes everything on, and
    lends the batch of the stream.
    """

    __slots__ = ("_served", "_stream")

    def __init__(self, served: StreamCount, stream: SendingStream) -> None:
        self._served = served
        self._stream = stream

    @property
    def lender(self) -> SendingStream:
        """The stream: elements in its batch need not pass through here."""
        return self._stream

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._stream.on_subscribe(subscription)

    def on_next(self, element: Any, /) -> None:
        self._stream.on_next(element)

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        """Take elements that the publisher has at hand."""
        self._stream.on_next_many(elements)

    def on_error(self, error: BaseException, /) -> None:
        # Before the signal: the stream reports its end inside it,
        # and the outcome must be known by then.
        self._served.fail(error)
        self._stream.on_error(error)

    def on_complete(self, /) -> None:
        # As in on_error: before the signal.
        self._served.set_completed()
        self._stream.on_complete()


class ObservedStream(Subscriber[Any], Subscription):
    """Counts what a stream of the peer delivers to its subscriber here,
    and reports the end once.
    """

    __slots__ = (
        "_began_at",
        "_bytes",
        "_elements",
        "_events",
        "_id",
        "_publisher",
        "_subscriber",
        "_tapped",
        "_upstream",
    )

    _upstream: Subscription

    def __init__(
        self,
        events: ConnectionEvents,
        subscriber: Subscriber[Any],
        tapped: TappedStream | None = None,
    ) -> None:
        """`tapped` stands in front of `subscriber`, if a plugin may want to see the signals."""
        self._events = events
        self._subscriber: Subscriber[Any] | None = tapped or subscriber
        self._tapped = tapped
        self._id = -1  # until the peer was asked
        self._publisher = ""  # the same
        self._began_at = 0.0
        self._elements = 0
        self._bytes = 0

    def on_open(self, stream: int, publisher: str) -> None:
        """Report the beginning: the peer was asked. Nothing is reported if the subscriber has
        cancelled inside on_subscribe.
        """
        if self._subscriber is not None:
            self._id, self._publisher = stream, publisher
            self._began_at = self._events.report_stream(
                stream, publisher, outbound=False, tapped=self._tapped
            )

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription
        if self._subscriber is not None:
            self._subscriber.on_subscribe(self)

    def on_content(self, serializer: str | None, schema: str, /) -> Subscriber[Any]:
        """Let the subscriber below choose how elements are read. Return this object, which
        counts bytes, and so stays above it.
        """
        on_content = on_content_of(self._subscriber)
        below = None if on_content is None else on_content(serializer, schema)
        if below is not None and self._subscriber is not None:  # it may have cancelled
            self._subscriber = below
        return self

    def held(self) -> int:
        """Return how many bytes of elements the subscriber has not read, if it can tell."""
        # Passed on, because the byte window of a stream must be the same with
        # and without a plugin that listens.
        held = held_of(self._subscriber)
        return 0 if held is None else held()

    def on_next(self, element: Any, /) -> None:
        if self._subscriber is not None:
            # Counted first: the subscriber may cancel inside on_next,
            # and the report of the end must have this element.
            self._elements += 1
            self._bytes += len(element)
            self._subscriber.on_next(element)

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        """Take elements that arrived together."""
        # The interfaces for batches are optional: a plain subscriber gets single elements.
        many = on_next_many_of(self._subscriber)
        if many is None:
            for element in elements:
                self.on_next(element)
        else:
            if self._events.counts_elements:
                self._elements += len(elements)
                self._bytes += size_of(elements)
            many(elements)

    def on_next_sized(self, elements: Sequence[Any], size: int, /) -> None:
        """Take elements that arrived together, and have `size` bytes."""
        sized = getattr(self._subscriber, "on_next_sized", None)
        many = None if sized is not None else on_next_many_of(self._subscriber)
        if sized is None and many is None:
            self.on_next_many(elements)
            return
        if self._events.counts_elements:
            self._elements += len(elements)
            self._bytes += size
        if sized is not None:
            sized(elements, size)
        elif many is not None:
            many(elements)

    def on_fact(self, fact: object, /) -> None:
        """Pass on what an extension knows of the stream."""
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
            # Counted there. Counted here too, each element would be reported twice.
            self.on_next_many(split_packed(count, elements))
        else:
            self._elements += count
            self._bytes += len(elements)
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
            # Before the cancel, inside which the publisher may signal.
            self._end(None, None)
            self._upstream.cancel()

    def _end(self, outcome: Outcome | None, error: BaseException | None) -> Subscriber[Any] | None:
        # Taken out first: a second terminal signal, or a cancel from inside a hook, finds no
        # subscriber and reports nothing.
        # Without an id the peer was not asked yet:
        # the beginning was not reported, so the end is not either.
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None and self._id >= 0:
            ended = EndedStream(
                self._id,
                self._publisher,
                self._began_at,
                outcome,
                error,
                elements=self._elements,
                bytes=self._bytes,
            )
            self._events.report_end(ended, outbound=False)
        return subscriber
