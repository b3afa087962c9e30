"""A sending stream: the peer has subscribed to a publisher of this side.
The stream is the publisher's subscriber.

This file has the life of the stream; `ElementSender` has its elements. After every kind of end
nothing is sent for this id (rule 1.7), and the reference to the publisher is dropped.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from penstock.api import (
    NO_SUCH,
    NotAvailable,
    Subscriber,
    Subscription,
    UsageError,
    public_text,
    text_of,
)
from penstock.session._channel import Channel
from penstock.session._dialect import Fault
from penstock.session._element_run import CLOSED, ElementRun
from penstock.session._element_sender import UNKNOWN_SIZE, ElementSender
from penstock.session._states import SENDING_MOVES, SendingEvent, SendingState

TEXT_BYTES_PER_CHARACTER: Final = 4
"""UTF-8 takes at most four bytes a character, and `Limits.max_error_text` counts bytes."""

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_REQUESTED: Final = SendingState.REQUESTED
_AWAITING_DEMAND: Final = SendingState.AWAITING_DEMAND
_UNANNOUNCED: Final = SendingState.UNANNOUNCED
_LIVE: Final = SendingState.LIVE
_FLUSHING: Final = SendingState.FLUSHING
_ENDED: Final = SendingState.ENDED
_EVENT_QUEUED: Final = SendingEvent.QUEUED
_EVENT_ACCEPTED: Final = SendingEvent.ACCEPTED
_EVENT_DEFERRED: Final = SendingEvent.DEFERRED
_EVENT_ANNOUNCED: Final = SendingEvent.ANNOUNCED
_EVENT_ATTACHED: Final = SendingEvent.ATTACHED
_EVENT_COMPLETED: Final = SendingEvent.COMPLETED
_EVENT_FLUSHED: Final = SendingEvent.FLUSHED

# Moves of the table, looked up once: the path of a request for one value makes three moves at a
# time.
_CALLED: Final = SENDING_MOVES[SendingState.REQUESTED, SendingEvent.DEFERRED]
_ANNOUNCED: Final = SENDING_MOVES[_CALLED, SendingEvent.ANNOUNCED]
_ANSWERED: Final = SENDING_MOVES[
    SENDING_MOVES[_ANNOUNCED, SendingEvent.COMPLETED], SendingEvent.FLUSHED
]


WhenOver: TypeAlias = Callable[["SendingStream", SendingEvent], None]
"""Called once for a stream that has ended: FLUSHED if its publisher had completed, else the event
that ended it."""


class SendingStream(ElementSender, Subscriber[bytes]):
    """A stream that the peer has opened."""

    __slots__ = ("began_at", "idle_since", "target", "when_over")

    # These belong to the base, and are said again for type checkers: this constructor sets them.
    id: int
    state: SendingState
    available: int
    reserved: int
    element_size: int
    run: ElementRun | None
    sent: int
    sent_bytes: int

    # 20 attributes, because it sets those of the base as well:
    # a second constructor would cost each request 0.12 us.
    def __init__(self, channel: Channel, stream_id: int, target: Any, demand: int) -> None:
        self.id = stream_id
        self.target: Any = target
        self.state = _REQUESTED
        self.available = demand
        self.reserved = 0
        self.element_size = 0
        self.run = None
        self.sent = 0
        self.sent_bytes = 0
        self._channel = channel
        self._upstream = None
        self._longest = CLOSED
        self._gathered = 0
        self._owed = 0
        self._expected_size = UNKNOWN_SIZE
        self._large = None
        self._fixed = None
        self.began_at: float = channel.now
        self.idle_since: float | None = None
        """When the stream was first seen without demand and without anything to send.
        A request ends that.
        """
        self.when_over: WhenOver | None = None
        """Called when the stream has ended here; its publisher may still be stopping."""

    @property
    def is_connection_closing(self) -> bool:
        """Whether the connection is ending, or has ended."""
        return self._channel.state.is_closing

    @property
    def is_ended(self) -> bool:
        """Nothing more may be sent."""
        return self.state is _ENDED

    # --- for the service

    def accept(self, *, element_size: int = 0, idle_until_demand: bool = False) -> None:
        """Accept. The publisher is attached at once, or with the first demand if it is idle until
        then: an idle stream holds nothing.

        If it is idle and the demand has come already,
        the peer hears of the acceptance with the publisher's first signal.
        """
        self.element_size = element_size
        # Such a publisher decides in its own code whether the peer may have it, and
        # that code runs only now.
        if idle_until_demand and self.available:
            self.state = SENDING_MOVES[self.state, _EVENT_QUEUED]
            self.attach_waiting()
            return
        self.state = SENDING_MOVES[self.state, _EVENT_ACCEPTED]
        self._channel.send(self._channel.dialect.begin(self.id, element_size))
        # The send may have ended the connection, and with it this stream.
        if self.state is _AWAITING_DEMAND and not idle_until_demand:
            self._attach()

    def accept_call(self, call: Subscription) -> None:
        """Accept a request for one value. `call` gets a request when there is room for its
        answer, and answers with `answer`.
        """
        channel = self._channel
        if self.state is _REQUESTED:
            self.state = _CALLED
        else:  # the table names what is wrong
            self.state = SENDING_MOVES[self.state, _EVENT_DEFERRED]
        self._upstream = call
        # As `pull` does, for the usual case: the demand came with the request, and there is room.
        # It has no run and no size to look at.
        if self.available == 1 and channel.outbox.room() > 0:
            self.available, self.reserved = 0, 1
            channel.budgets.requests.requested += 1
            call.request(1)
        else:
            self.pull()

    def refuse(self, text: str, reason: str = "") -> None:
        """End the stream before it begins. The peer gets `text`;
        `reason` is for the log of this side, and may say more.
        """
        # A refusal costs this side more than the peer's subscribe cost the peer:
        # opening refused streams fast is an attack.
        self._channel.budgets.churn.count(self.began_at)
        self._end_with_text(SendingEvent.REFUSED, text, Fault.REFUSED)
        self._channel.owner.on_sending_refused(self, reason or text)

    # --- what the peer sends

    def receive_request(self, n: int) -> None:
        """Add demand."""
        self.idle_since = None
        self.grant(n)
        # With elements still reserved the publisher has enough to do: the last of them pulls again.
        if self.state is _AWAITING_DEMAND:
            self.attach_waiting()
        elif not self.reserved or (self._fixed is not None and self._fixed.unsent is not None):
            self.pull()

    def receive_cancel(self) -> None:
        """End the stream because the peer cancelled it, or the connection has ended."""
        if self.state is not _ENDED:
            upstream = self._detach(SendingEvent.CANCELLED)
            if upstream is not None:
                upstream.cancel()

    def cancel_with_error(self, text: str) -> None:
        """Cancel the publisher and send an error, because the peer broke the stream's contract."""
        upstream = self._upstream
        self._end_with_text(SendingEvent.CANCELLED, text, Fault.INVALID)
        self._channel.owner.on_sending_refused(self, text)
        if upstream is not None:
            upstream.cancel()

    # --- the publisher's subscriber

    def answer(self, element: bytes) -> None:
        """Take the only element and the end.
        They cross in one message if nothing speaks against it.
        """
        channel = self._channel
        dialect = channel.dialect
        if (
            self.state is not _UNANNOUNCED
            or type(element) is not bytes
            or channel.outgoing is not None
            or (size := len(element)) > dialect.max_unsplit
            or size > channel.limits.max_element
        ):
            self.on_next(element)
            self.on_complete()
            return
        # The short way: no run, no separate completion, and nothing to detach. It saves a third of
        # a request's cost on the serving side.
        self.state = _ANSWERED
        self._upstream, self.reserved, self.sent, self.sent_bytes = None, 0, 1, size
        if self._owed:  # the call had to wait for room, and was asked by `pull`
            self.settle()
        channel.outbox.put(dialect.answer(self.id, element))
        # As `_leave` does.
        channel.owner.on_sending_ended(self)
        when_over, self.when_over = self.when_over, None
        if when_over is not None:
            when_over(self, _EVENT_FLUSHED)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        # The peer may have cancelled while the publisher was being attached.
        if self.state is _ENDED:
            subscription.cancel()
            return
        self._upstream = subscription
        self.pull()

    def on_error(self, error: BaseException, /) -> None:
        if isinstance(error, NotAvailable):
            self._deny(error)
            return
        if self.state is _UNANNOUNCED:
            self.announce()
        if self.run is not None:
            self._count_run()  # the report below has the number of elements
        # The full error stays here. Its text may hold paths or secrets,
        # so only a PublicError's text crosses the wire.
        self._channel.owner.on_publisher_failed(self, error)
        self._end_with_text(SendingEvent.FAILED, public_text(error), Fault.FAILED)

    def on_complete(self, /) -> None:
        if self.state is _UNANNOUNCED:
            self.announce()
        if self.state is not _LIVE:
            return  # the stream has ended, or has completed before
        self.state = SENDING_MOVES[self.state, _EVENT_COMPLETED]
        if not self._large and (self._fixed is None or self._fixed.unsent is None):
            self._finish()

    # --- for ElementSender

    def attach_waiting(self) -> None:
        """Attach the publisher, which waits for demand, if there is room for its element;
        else in turn with others.
        """
        # A publisher that is attached costs 1.5 KiB, also if it is never asked.
        if self._channel.outbox.may_start():
            if self.state is SendingState.AWAITING_ROOM:
                self.state = SENDING_MOVES[self.state, _EVENT_DEFERRED]
                self._channel.owner.attach_publisher(self)
            else:
                self._attach()
        else:
            self._channel.outbox.block_unsure(self)

    def announce(self) -> None:
        """Send the acceptance, which a stream in the state UNANNOUNCED still owes to the peer."""
        self.state = SENDING_MOVES[self.state, _EVENT_ANNOUNCED]
        self._channel.send(self._channel.dialect.begin(self.id, self.element_size))

    def on_drained(self) -> None:
        """Go on: complete if the publisher has, else pull."""
        if self.state is _FLUSHING:
            self._finish()
        elif not self.reserved:
            self.pull()

    def on_written(self) -> None:
        """Go on, as `on_drained`, while the outbox is being taken."""
        if self.state is _FLUSHING:
            self._finish()
        elif not self.reserved:
            # After the parts of this take: a publisher that signals at once could put a large
            # element before small ones of this stream.
            self._channel.outbox.block(self)

    def on_bad_element(self, text: str) -> None:
        """End the stream because its publisher gave something that cannot be sent."""
        upstream = self._upstream
        self.on_error(UsageError(text))
        if upstream is not None:
            upstream.cancel()

    # --- inside

    def _deny(self, error: NotAvailable) -> None:
        """Answer as if the name did not exist.
        Behind the first element this is only the text of an error.
        """
        if self.state is _ENDED:
            return
        text = text_of(error)
        reason = f"it raised NotAvailable: {text}" if text else "it raised NotAvailable"
        self._channel.owner.on_publisher_failed(self, error)
        if self.state is _UNANNOUNCED:
            self.refuse(NO_SUCH, reason)
        else:
            self._end_with_text(SendingEvent.FAILED, NO_SUCH, Fault.FAILED)
            self._channel.owner.on_sending_refused(self, reason)

    def _attach(self) -> None:
        self.state = SENDING_MOVES[self.state, _EVENT_ATTACHED]
        self._channel.owner.attach_publisher(self)

    def _finish(self) -> None:
        """Send the completion, behind the last element."""
        self._detach(_EVENT_FLUSHED)
        self._channel.send(self._channel.dialect.complete(self.id))

    def _end_with_text(self, event: SendingEvent, text: str, fault: Fault) -> None:
        if self.state is not _ENDED:
            self._detach(event)
            most = self._channel.limits.max_error_text // TEXT_BYTES_PER_CHARACTER
            self._channel.answer(self._channel.dialect.error(self.id, text[:most], fault))

    def _detach(self, event: SendingEvent) -> Subscription | None:
        """End: forget the publisher and all waiting elements, and free the id.
        Return the publisher's subscription.
        """
        upstream, self._upstream = self._upstream, None
        channel = self._channel
        if self.run is not None or (self._fixed is not None and self._fixed.gathered):
            # The publisher signalled these elements before the end,
            # so they go out before it (rule 1.7 speaks of later ones).
            channel.outbox.buffer += self.flush()
        # The publisher has completed: what is lost of it now does not change how it ended.
        outcome = _EVENT_FLUSHED if self.state is _FLUSHING else event
        self.state = SENDING_MOVES[self.state, event]
        self._longest = CLOSED  # a late element takes the slow path, which drops it
        channel.budgets.requests.requested -= self.reserved
        if self._owed:
            self.settle()
        channel.buffering_streams.pop(self, None)
        channel.outbox.forget(self)
        # It refers to this stream: without a circle both are freed at once.
        large, self._large = self._large, None
        if large is not None:
            channel.outbox.remove_large(large)
            large.clear()
        self._fixed = None  # the same
        self._leave(outcome)
        if large is not None and not channel.state.is_closing:
            channel.outbox.ask_blocked()
        return upstream

    def _leave(self, outcome: SendingEvent) -> None:
        """Free the id, and call `when_over`."""
        self._channel.owner.on_sending_ended(self)
        # Called once, and after the id is free: the callback may look at the tables.
        when_over, self.when_over = self.when_over, None
        if when_over is not None:
            when_over(self, outcome)
