"""Reports one connection and its streams to the observers among the plugins.

Rules of this file:

* The order is fixed: the connection is opened, its streams begin and end, the connection is closed.
  A client may subscribe before the peer has said hello. Such a stream is reported after the hello,
  and never without a hello.
* Nothing is made for a stream unless a plugin listens to streams, or taps this one: an idle stream
  must stay small.
* A stream that this side serves begins when it is accepted. A stream that was refused is not
  reported. Its elements are those that the session has counted, so no object stands before it.
"""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Final, Protocol

from penstock.api import SignalKind, SignalTap, Subscriber, Subscription
from penstock.core import SignalCounter, StreamTap, TappedRelay, Taps
from penstock.runtime.connection._access_log import AccessLog
from penstock.runtime.connection._publisher_counts import outcome_of
from penstock.runtime.connection._tapped_sending import TappedSending
from penstock.session import ReceivingStream, SendingEvent, SendingStream, Session, pass_by
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

_OUTCOMES: Final = {
    SignalKind.ON_COMPLETE: Outcome.COMPLETED,
    SignalKind.ON_ERROR: Outcome.FAILED,
    SignalKind.CANCEL: Outcome.CANCELLED,
}
"""The outcome of a stream by its last signal."""


class Watched(Protocol):
    """A stream of the peer whose tap is not known yet: a relay, or the answer to a request."""

    @property
    def is_over(self) -> bool:
        """True if the stream has ended."""

    def show(self, tap: StreamTap | None, /) -> None:
        """Show the signals to `tap` from now on, or to no tap."""


class ConnectionEvents:
    """Reports the events of one connection."""

    def __init__(self, events: Events, *, address: str, accepted: bool) -> None:
        self._events = events
        self._address = address
        self.accepted: bool = accepted
        """True if the peer has connected to this side."""
        self._number = 0  # until the connection is reported as open
        self._peer = PeerIdentity(address="")  # the same
        # Reports of streams that began before that; bounded by those of this side.
        self._early: dict[tuple[int, bool], Callable[[], object]] = {}
        # Both are replaced by `start`: this object is made before its session.
        self._session: Session | None = None
        self._now: Callable[[], float] = float  # returns 0.0
        # Both are bounded by the streams that the session serves.
        self._errors: dict[SendingStream, BaseException] = {}
        self._tapped: dict[SendingStream, TappedSending] = {}
        self._suspended_at = 0.0
        self.access: AccessLog | None = AccessLog.if_enabled(address, accepted=accepted)
        """The access log; None if it is off. It needs no plugin, and makes nothing for a stream
        that ends well."""
        # Plugins are fixed when the registry is built, so these are looked up once.
        self.wants_ends: bool = events.wants_streams
        """True if a plugin observes streams. A recorder does not: it taps some of them."""
        self.wants_streams: bool = events.wants_streams or events.wants_signals
        """True if a plugin observes streams, or may want to tap one."""

    # --- the connection

    def start(self, session: Session | None, now: Callable[[], float]) -> None:
        """`session` tells, when a stream ends, whether the end of the connection has ended it.

        `now` returns the time. A stream that belongs to no connection is reported without a
        session.
        """
        self._session, self._now = session, now

    def report_opened(self, peer: PeerIdentity, dialect: str) -> None:
        """Report that both sides have said hello, and the streams that began before."""
        # Numbered here, and not at the start: connections without a hello are not reported, and
        # leave no gap.
        self._number, self._peer = next(_numbers), peer
        self._events.connection_opened(
            ConnectionOpened(
                connection=self._number,
                address=self._address,
                dialect=dialect,
                accepted=self.accepted,
                peer=peer,
            )
        )
        # Taken out first: an observer may cancel a stream from inside its hook.
        early, self._early = self._early, {}
        for report_stream in early.values():
            report_stream()

    @property
    def transport(self) -> str:
        """The scheme of the transport, as the URL has it: ``tcp``."""
        return self._address.partition(":")[0].rpartition("+")[2]

    @property
    def number(self) -> int:
        """The number of the connection; 0 before both sides have said hello."""
        return self._number

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
                accepted=self.accepted,
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
                accepted=self.accepted,
                peer=peer,
                seconds=self._now() - self._suspended_at,
            )
        )

    # --- streams that this side serves

    def serve(self, stream: SendingStream, pattern: str) -> None:
        """Report a stream that is about to be accepted. Its end is reported too.

        `pattern` is the name under which the service offers its publisher.
        """
        tap = self._report_begin(stream.id, str(stream.target), pattern, outbound=True)
        if tap is not None:
            self._tapped[stream] = TappedSending(SignalCounter(tap), stream)
        # A stream that no plugin has tapped, and none observes, has no object here.
        if self.wants_ends or tap is not None:
            stream.when_over = partial(self._on_served_over, pattern, stream.when_over)

    def watch(self, stream: SendingStream) -> Subscriber[Any]:
        """Return the subscriber for a publisher: `stream`, or the relay of its tap."""
        return self._tapped.get(stream, stream)

    def watch_call(self, stream: SendingStream, call: Subscription) -> Subscription:
        """Return the subscription for a request with a handler: `call`, or the tap's relay."""
        tapped = self._tapped.get(stream)
        if tapped is None:
            return call
        # The row of on_subscribe: such a request has no publisher that would signal it.
        tapped.use(call)
        return tapped

    def on_failure(self, stream: SendingStream, error: BaseException) -> None:
        """Remember why a served stream failed."""
        if self.wants_ends and not stream.is_ended:
            self._errors[stream] = error

    def _on_served_over(
        self,
        pattern: str,
        then: Callable[[SendingStream, SendingEvent], None] | None,
        stream: SendingStream,
        event: SendingEvent,
    ) -> None:
        self._tapped.pop(stream, None)
        error = self._errors.pop(stream, None)
        if then is not None:
            then(stream, event)
        # The stream counts its elements itself, those of a run together.
        self.report_end(
            stream.id,
            str(stream.target),
            outbound=True,
            outcome=outcome_of(stream, event),
            error=error,
            elements=stream.sent,
            size=stream.sent_bytes,
            began_at=stream.began_at,
            pattern=pattern,
        )

    # --- streams of the peer

    def report_asked(
        self, report: "StreamReport", watched: Watched, stream: int, name: str
    ) -> None:
        """Report a stream of the peer that was asked for, and show it to those who read it."""
        report.begin(stream, name, self._now())
        self._show(report, watched)

    def _show(self, report: "StreamReport", watched: Watched) -> None:
        if not self._number:
            # With the hello; if none comes, never.
            self._early[report.stream, False] = partial(self._show, report, watched)
            return
        tap = self._report_begin(report.stream, report.name, "", outbound=False)
        # A hook may have cancelled the stream.
        if watched.is_over:
            return
        counter = None if tap is None else SignalCounter(tap)
        if self.wants_ends:
            watched.show(report if counter is None else Taps(report, counter))
        else:
            watched.show(counter)

    # --- both

    def report_begin(self, stream: int, name: str, pattern: str) -> float:
        """Report a stream that belongs to no connection, and return the time. It has no tap."""
        if self.wants_ends:
            self._events.stream_opened(
                StreamOpened(
                    connection=self._number,
                    stream=stream,
                    publisher=name,
                    outbound=True,
                    pattern=pattern,
                )
            )
        return self._now()

    def report_end(  # noqa: PLR0913  # the fields of the event
        self,
        stream: int,
        name: str,
        *,
        outbound: bool,
        outcome: Outcome,
        error: BaseException | None,
        elements: int,
        size: int,
        began_at: float,
        pattern: str = "",
    ) -> None:
        """Report that a stream has ended. `size` is the bytes of its elements."""
        if not self._number:
            # Its beginning was not reported. An observer that counts open streams would go below 0.
            self._early.pop((stream, outbound), None)
            return
        # A stream that completed before the end is complete, also if its connection ended then.
        # For one that this side serves `outcome_of` has decided.
        is_closing = self._session is not None and self._session.state.is_closing
        if is_closing and not outbound and outcome is not Outcome.COMPLETED:
            outcome = Outcome.LOST
        self._events.stream_ended(
            StreamEnded(
                connection=self._number,
                stream=stream,
                outbound=outbound,
                outcome=outcome,
                elements=elements,
                error=error,
                publisher=name,
                peer=self._peer,
                duration=self._now() - began_at,
                bytes=size,
                pattern=pattern,
            )
        )

    def _report_begin(
        self, stream: int, name: str, pattern: str, *, outbound: bool
    ) -> SignalTap | None:
        """Report that a stream has begun. Return its tap, if a plugin wants to see its signals."""
        if not self._number:
            # With the hello; if none comes, never. It has no tap then.
            self._early[stream, outbound] = lambda: self.report_begin(stream, name, pattern)
            return None
        events = self._events
        opened = StreamOpened(
            connection=self._number,
            stream=stream,
            publisher=name,
            outbound=outbound,
            pattern=pattern,
        )
        # Before the tap: its first row belongs to a stream that observers know.
        events.stream_opened(opened)
        return events.tap(opened) if events.wants_signals else None


class StreamReport:
    """The tap that counts what a stream of the peer delivers, and reports its end once."""

    __slots__ = ("_began_at", "_bytes", "_elements", "_events", "name", "stream")

    def __init__(self, events: ConnectionEvents) -> None:
        self._events = events
        self.stream: int = -1
        """The id of the stream; -1 until the peer was asked. Until then nothing is reported."""
        self.name: str = ""
        """The name of the publisher."""
        self._began_at = 0.0
        self._elements = 0
        self._bytes = 0

    def begin(self, stream: int, name: str, now: float) -> None:
        """Note that the peer was asked."""
        self.stream, self.name, self._began_at = stream, name, now

    def elements(self, n: int, size: int, /) -> int:
        """Count elements."""
        self._elements += n
        self._bytes += size
        return 0

    def returned(self, began: int, /) -> None:
        """Do nothing: this tap measures no time."""

    def signal(self, kind: SignalKind, n: int = 0, error: BaseException | None = None, /) -> int:
        """Report the end, if this is one."""
        outcome = _OUTCOMES.get(kind)
        if outcome is not None and self.stream >= 0:
            self._events.report_end(
                self.stream,
                self.name,
                outbound=False,
                outcome=outcome,
                error=error,
                elements=self._elements,
                size=self._bytes,
                began_at=self._began_at,
            )
        return 0


class ObservedStream(TappedRelay):
    """The relay of a stream of the peer. If no tap reads the stream, signals pass by it."""

    __slots__ = ()

    def show(self, tap: StreamTap | None) -> None:
        if tap is not None:
            super().show(tap)
            return
        stream, subscriber = self._upstream, self.pass_by()
        if isinstance(stream, ReceivingStream) and subscriber is not None:
            pass_by(stream, self, subscriber)
