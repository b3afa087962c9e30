"""The streams of one connection, in two tables by id: those that this side has opened, and those
that it serves; whether each side takes new ones; and the calls that the session makes to its owner.

A dialect calls the `receive_…` methods with the peer's messages about streams. An id may be in both
tables if the dialect's ids are shared.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from penstock.api import (
    ActiveExtension,
    ByteWindow,
    ConnectionLost,
    ProtocolError,
    Request,
    Role,
    Subscriber,
    Subscription,
)
from penstock.session._budgets import CANCELLED_BYTES, HANDLED, STREAM_BYTES, RequestClass
from penstock.session._cancelled_streams import CancelledStream, CancelledStreams, OpenedStreams
from penstock.session._channel import Channel
from penstock.session._deadlines import Deadlines, Watcher
from penstock.session._dialect import Fault
from penstock.session._reasons import DRAINING, ILLEGAL_DEMAND, REFUSED
from penstock.session._receiving_stream import ReceivingStream, own_copy
from penstock.session._sending_stream import SendingStream
from penstock.session._states import RECEIVING_MOVES, ReceivingEvent, ReceivingState

# A circle for type checkers alone: extensions are told of streams, and act on them.
if TYPE_CHECKING:
    from penstock.session._extensions import StreamObservers

NOTED_WITHIN: Final = 1.0
"""Seconds after a use at which the clock is looked at, at the latest."""

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_EVENT_SUBSCRIBED: Final = ReceivingEvent.SUBSCRIBED
_ASKED: Final = RECEIVING_MOVES[ReceivingState.NEW, _EVENT_SUBSCRIBED]
"""The state of a request for one value: it is made and sent in one step."""

S = TypeVar("S", bound=ReceivingStream)


class SessionDelegate(Protocol):
    """Drives a session and knows the publishers. The session calls it for each event, and it
    answers by calling the session, now or later.
    """

    # Any: the class lies in a layer above this one.
    def identify(self) -> Any:
        """Return the identity of the peer, for extensions."""

    def recognise(self, principal: Any, /) -> None:
        """Note the principal of the peer, which an extension has recognised.
        Called before `on_open`.
        """

    def await_result(
        self, awaitable: Awaitable[Any], then: Callable[[Any, Exception | None], None], /
    ) -> None:
        """Await in a task, and call `then` with the result or the exception.
        The end of the connection cancels it.
        """

    def wake(self) -> None:
        """Send: something waits in the outbox that was empty."""

    def on_open(self) -> None:
        """Note that both hellos are exchanged."""

    # Calls may come while received bytes are acted on. A delegate that cannot decide at once starts
    # a task, and answers later; until then the stream holds its demand and its place.
    def serve(self, stream: SendingStream, /) -> None:
        """Decide on a stream to `stream.target`:
        call `stream.accept` or `stream.refuse`, now or later.
        """

    def attach(self, stream: SendingStream, /) -> None:
        """Subscribe an accepted stream to its publisher."""

    def source_of(self, stream: SendingStream, /) -> Any:
        """Return the source that was found for a stream that is being accepted, or None."""

    def on_introduction(self, data: bytes, /) -> None:
        """Examine the peer's introduction:
        call `Session.admit` or `Session.close`, now or later.
        """

    def stop_publishers(self, publishers: Sequence[Subscription], /) -> None:
        """Cancel each of the publishers, soon: their streams have ended with the connection, and
        drop what they still signal.
        """

    def on_fire_and_forget(self, target: Any, /) -> None:
        """Handle a request that has no answer."""

    def on_publisher_failed(self, stream: SendingStream, error: BaseException, /) -> None:
        """Report the failure of a publisher that was served;
        the peer is told less than `error` says.
        """

    def on_stream_refused(self, stream: SendingStream, reason: str, /) -> None:
        """Note that a stream was refused, or ended because the peer broke its contract; `reason`
        says more than the peer is told.
        """

    def on_warning(self, warning: Exception, /) -> None:
        """Report an act of the peer that is allowed and deserves attention, or a failure that
        does not end the connection by itself.
        """

    def on_end(self, error: Exception, /) -> None:
        """Note that the session has ended, for this reason. Called once."""


class DrainState:
    """Whether each side still takes new streams.
    An extension tells one side of the other (`AnnouncesDrain`).
    """

    __slots__ = ("_channel", "announcers", "is_peer_draining", "on_peer_draining", "until")

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.until: float | None = None
        """When this side leaves; from now on new streams of the peer are refused.
        None if this side does not drain.
        """
        # Not among the observers of streams:
        # those are called for each stream, and this concerns none.
        self.announcers: tuple[Callable[[float], None], ...] = ()
        """Each tells the peer that this side takes no new streams,
        and in how many seconds it leaves.
        """
        self.is_peer_draining: bool = False
        """The peer takes no new streams, and has said so."""
        # An attribute and not a call of the delegate:
        # only a client that makes its connection again needs it.
        self.on_peer_draining: Callable[[], None] | None = None
        """Called once, when the peer says that it takes no new streams."""

    def begin(self, now: float, until: float) -> None:
        """Refuse new streams of the peer from now on, and tell it.
        This side leaves at the time `until`.
        """
        if self._channel.state.is_closing:
            return
        self._channel.now = now
        # An earlier end holds: the peer may be told of one at any time, and of a later one never.
        self.until = until if self.until is None else min(until, self.until)
        for announce in self.announcers:
            announce(max(0.0, self.until - now))

    def add(self, announce: Callable[[float], None]) -> None:
        """Tell the peer with `announce`; at once if this side drains already."""
        self.announcers += (announce,)
        if self.until is not None:
            announce(max(0.0, self.until - self._channel.now))

    def note_peer(self) -> None:
        """Note that the peer takes no new streams."""
        if not self.is_peer_draining:
            self.is_peer_draining = True
            if self.on_peer_draining is not None:
                self.on_peer_draining()


class ConnectionUse:
    """Tells whether a connection without a stream is in use: something was done lately, or a side
    of it publishes. Pings do not count as use: they show that a peer lives, and not that it is
    needed.

    Requests and short streams begin and end between two looks at the clock, so a look at the tables
    alone takes a busy connection for an idle one.
    """

    __slots__ = ("_deadlines", "_role", "asked", "is_noted", "keepalive", "publishes", "watcher")

    def __init__(self, role: Role, deadlines: Deadlines) -> None:
        self._role = role
        self._deadlines = deadlines
        self.asked: int = 0
        """Streams and requests that this side has begun."""
        self.is_noted: bool = True
        """Something was done since the last look at the clock. Then `note` need not be called."""
        self.watcher: Watcher | None = None
        """Asked soon after a use."""
        self.keepalive: ActiveExtension | None = None
        """The extension that notices a dead peer, if both sides have it."""
        # A call and not a value: a service may get its first publisher while the connection is
        # open. The runtime replaces it.
        self.publishes: Callable[[], bool] = bool  # False
        """Returns whether this side offers anything to the peer."""

    def note(self, now: float) -> None:
        """Note a use: the end of a stream or a request, or a message of an extension.

        `now` is the session's time. The true time is later if nothing has arrived for a while.
        """
        self.is_noted = True
        if self.watcher is not None:
            self._deadlines.hasten(self.watcher, now + NOTED_WITHIN)

    @property
    def keeps_open(self) -> bool:
        """Whether the connection is kept without any traffic: a side of it publishes, and a stream
        may begin at any time.

        This side publishes; or the peer does, which is a server or was asked before. Without a
        keepalive this is not enough: the connection of a dead peer would never be closed.
        """
        return self.keepalive is not None and (
            self._role is Role.CLIENT or self.asked > 0 or self.publishes()
        )


class StreamTables:
    """The open streams of one connection. This is the streams' `StreamOwner`."""

    __slots__ = (
        "_channel",
        "_end_error",
        "cancelled",
        "content_of",
        "delegate",
        "drain",
        "observers",
        "opened",
        "serving",
        "stopping_bytes",
        "stopping_publishers",
        "use",
    )

    def __init__(self, channel: Channel, delegate: SessionDelegate) -> None:
        self._channel = channel
        self.delegate: SessionDelegate = delegate
        # Never replaced by another dictionary: the dialect's decoder looks streams up in this one.
        self.opened: OpenedStreams = {}
        self.serving: dict[int, SendingStream] = {}
        self.cancelled: CancelledStreams = CancelledStreams(channel, self.opened)
        self.stopping_publishers: int = 0
        """Streams whose id is free, and whose publisher has not stopped:
        the delegate counts them down.
        """
        self.stopping_bytes: int = 0
        """The data that their publishers and handlers hold until they have stopped;
        the delegate counts it too.
        """
        self.drain: DrainState = DrainState(channel)
        """Whether each side still takes new streams."""
        # An attribute and not a call of the delegate, as `use.publishes` is:
        # the runtime replaces it.
        self.content_of: Callable[[Any], tuple[str, str] | None] = _no_content
        """Returns the name of the serializer and of the type that a publisher's elements have;
        None if it is not known.
        """
        self.observers: StreamObservers | None = None
        """The extensions that have to do with streams; None without such an extension."""
        self._end_error: Exception | None = None
        self.use: ConnectionUse = ConnectionUse(channel.role, channel.deadlines)
        """Tells whether a connection without a stream is in use."""

    # --- for the delegate

    def subscribe(
        self, target: Any, subscriber: Subscriber[Any], window: ByteWindow | None = None
    ) -> ReceivingStream:
        """Open a stream to the peer's publisher `target` and give `subscriber` its subscription.
        Its bytes are counted in `window`.
        """
        stream = ReceivingStream(
            self._channel, self._channel.dialect.next_id(target), subscriber, 0, window
        )
        # Before the subscribe is sent, so that demand of on_subscribe goes with it in one message.
        subscriber.on_subscribe(stream)
        # If not, it was cancelled in on_subscribe, and the peer need not hear of it.
        if stream.is_wanted:
            self._open(stream, target)
        return stream

    def ask(self, target: Any, make: Callable[[Channel, int], S]) -> S:
        """Open a stream for one element, made by `make(channel, id)`, and return it.
        Its subscriber gets no on_subscribe.

        The writer is not told of the request: the caller lets it go out.
        """
        channel = self._channel
        dialect = channel.dialect
        stream_id = dialect.next_id(target)
        stream = make(channel, stream_id)
        channel.budgets.received.requested += 1
        if channel.state.is_closing:
            stream.receive_error(self._closing_error())
        else:
            # As `_open` does, in fewer calls. The caller has looked for room, so the bound on what
            # waits need not be looked at.
            stream.state, stream.target = _ASKED, target
            self.use.asked += 1
            self.opened[stream_id] = stream
            message = dialect.subscribe(stream_id, target, 1)
            # An extension that was told of the stream may have ended the connection,
            # and nothing may follow the goodbye.
            if self.observers is None or not channel.state.is_closing:
                channel.outbox.put(message, wakes=False)
        return stream

    def fire(self, target: Any) -> None:
        """Send a request that has no answer. Raises the reason if nothing can be sent any more."""
        if self._channel.state.is_closing:
            # Raised, because no stream exists that could report it.
            raise self._closing_error()
        dialect = self._channel.dialect
        self._channel.send(dialect.fire(dialect.next_id(target), target))
        self.use.asked += 1
        self._note_use()

    def has_streams(self) -> bool:
        """Return whether a stream is open that neither side has ended or cancelled."""
        return bool(self.serving) or len(self.opened) > self.cancelled.count

    def held(self) -> int:
        """Return how many bytes the streams hold: their prices, the names and the data that they
        were opened with, unread elements.
        """
        serving = self.serving
        held = len(serving) * STREAM_BYTES + sum(
            [target_bytes(stream.target) for stream in serving.values()]
        )
        held += (
            self.stopping_publishers * STREAM_BYTES
            + self.stopping_bytes
            + self.cancelled.count * CANCELLED_BYTES
        )
        if len(self.opened) > self.cancelled.count:
            held += sum(
                [
                    stream.held()
                    for stream in self.opened.values()
                    if isinstance(stream, ReceivingStream)
                ]
            )
        return held

    def end_all(self, error: Exception) -> None:
        """End every stream, in both directions, because the connection ends.
        `error` is what requests get from now on.
        """
        self._end_error = error
        # Emptied first: each stream that ends would take itself out of the table while the loop
        # walks it.
        serving, self.serving = self.serving, {}
        self._channel.buffering_streams.clear()
        publishers = [
            upstream for each in serving.values() if (upstream := each.end_cancelled()) is not None
        ]
        # All at once, because each publisher that is cancelled wakes its task, and a thousand tasks
        # that wake in one pass hold up the run loop. The delegate gives them turns.
        if publishers:
            self.delegate.stop_publishers(publishers)
        # Copies of the tables: a subscriber may subscribe again in on_error,
        # and gets the error at once.
        for receiving in tuple(self.opened.values()):
            if isinstance(receiving, ReceivingStream):
                self.cancelled.replace(receiving)
                receiving.on_connection_end(error)

    def bound_unread(self) -> None:
        """End the stream that holds the most unread bytes,
        if all of them together hold too many.
        """
        found = self._channel.budgets.unread.largest()
        if found is not None:
            stream, unread = found
            stream.fail_unread(unread)

    def change_outgoing(self, change: Callable[[bytes], bytes]) -> None:
        """Send `change(element)` from here on."""
        self._channel.outgoing = change
        for stream in self.serving.values():
            stream.close_run()  # the elements that follow must pass through the change

    @property
    def end_error(self) -> Exception | None:
        """Why all streams were ended, or None."""
        return self._end_error

    # --- for streams: their StreamOwner

    def attach_publisher(self, stream: SendingStream, /) -> None:
        """Subscribe an accepted stream to its publisher."""
        if self.observers is not None:
            self.observers.on_begun(stream.id)
        self.delegate.attach(stream)

    def on_publisher_failed(self, stream: SendingStream, error: BaseException, /) -> None:
        """Report a publisher's failure to the delegate. The peer is told less."""
        self.delegate.on_publisher_failed(stream, error)

    def on_sending_refused(self, stream: SendingStream, reason: str, /) -> None:
        """Report a refused stream to the delegate."""
        self.delegate.on_stream_refused(stream, reason)

    def on_sending_ended(self, stream: SendingStream, /) -> None:
        """Free the id of a stream that the peer had opened."""
        if self.serving.get(stream.id) is stream:
            del self.serving[stream.id]
            if not self.use.is_noted:
                self.use.note(self._channel.now)
            if self.observers is not None:
                self.observers.on_ended(stream.id, is_served=True)

    def on_receiving_cancelled(self, stream: ReceivingStream, unfinished: int, /) -> None:
        """Tell the peer to stop, and keep the id's place until it has."""
        if self.opened.get(stream.id) is not stream:
            return  # all streams have ended with the connection
        self.cancelled.add(stream, unfinished)
        self._note_use()
        if self.observers is not None:
            self.observers.on_ended(stream.id, is_served=False)
        self._channel.send(self._channel.dialect.cancel(stream.id))
        if self.cancelled.count > self._channel.limits.retired_ids:
            self._channel.fail_connection(
                ProtocolError(
                    "too many cancelled streams whose end the peer never sent", reason="limit:ids"
                )
            )

    # --- for the dialect: messages of the peer about streams

    def receive_subscribe(
        self,
        stream_id: int,
        target: Any,
        demand: int,
        refusal: str | None = None,
        fault: Fault = Fault.REFUSED,
    ) -> None:
        """Serve a stream that the peer opens. With `refusal` the dialect refuses it with this text,
        and `fault` is why.

        Without a `target` the stream keeps its place until `serve_waiting`.
        """
        if stream_id in self.serving:
            raise ProtocolError(
                f"stream {stream_id} was opened while it is open",
                reason=f"protocol:subscribe {stream_id}",
            )
        # For a stream that is refused as well:
        # what an extension keeps for this id must not count for a later stream.
        if self.observers is not None and target is not None:
            target = self.observers.change_target(stream_id, target)
        # In the table before the decision:
        # the service may refuse or end it at once, which takes it out again.
        stream = SendingStream(self._channel, stream_id, target, demand)
        # Rule 2.5 has no place on the wire: an id that is in use cannot be opened a second time.
        self.serving[stream_id] = stream
        self._channel.budgets.requests.streams += 1
        # Refusals go out as messages on the stream, so the peer sees one end for each subscribe.
        if refusal is not None:
            stream.refuse(refusal, fault=fault)
        elif self.drain.until is not None:
            stream.refuse(DRAINING, fault=Fault.UNTOUCHED)
        # A cancelled publisher that is still cleaning up counts:
        # else a peer could start publishers faster than they stop.
        elif len(self.serving) + self.stopping_publishers > self._channel.limits.max_subscriptions:
            stream.refuse(REFUSED, fault=Fault.UNTOUCHED)
        elif target is not None and (self.observers is None or self.observers.permits(stream)):
            self.delegate.serve(stream)

    def serve_waiting(self, stream: SendingStream, target: Any) -> None:
        """Serve a stream that the peer opened before its target was known."""
        if self.observers is not None:
            target = self.observers.change_target(stream.id, target)
        stream.target = target
        if self.drain.until is not None:
            stream.refuse(DRAINING, fault=Fault.UNTOUCHED)
        elif self.observers is None or self.observers.permits(stream):
            self.delegate.serve(stream)

    def receive_fire_and_forget(self, target: Any) -> None:
        """Pass on a request that has no answer. Without room it is dropped:
        it cannot be refused.
        """
        self._note_use()
        # Below the limit and not at it: a subscribe is in the table when it is counted,
        # and this request is in no table.
        if (
            self.drain.until is None
            and len(self.serving) + self.stopping_publishers
            < self._channel.limits.max_subscriptions
        ):
            self.delegate.on_fire_and_forget(target)
        else:
            self._channel.spend_control_token()

    def receive_request(self, stream_id: int, n: int) -> None:
        """Add demand to a stream that this side serves."""
        stream = self.serving.get(stream_id)
        if stream is not None and n <= 0:
            stream.cancel_with_error(ILLEGAL_DEMAND)  # rule 3.9
        else:
            # Judged alike with its stream and without: a subscriber that requests single elements
            # has many under way when the end comes.
            kind = self._channel.budgets.requests.classify(self.serving.values())
            if kind is RequestClass.EXCESS:
                self._channel.count_oddity(reason="limit:requests")
            # A paid request costs no token: a subscriber that requests single elements would
            # otherwise meet Limits.control_rate.
            if (
                kind is RequestClass.PAID or self._channel.spend_control_token()
            ) and stream is not None:
                stream.receive_request(n)

    def receive_cancel(self, stream_id: int) -> None:
        """Cancel a stream that this side serves."""
        stream = self.serving.get(stream_id)
        if stream is None:
            # The cancel may have crossed the end: each stream is cancelled once.
            # A cancel beyond that belongs to no stream.
            if (
                not self._channel.budgets.requests.count_late_cancel()
                and self._channel.spend_control_token()
            ):
                self._channel.count_oddity()
        else:
            stream.receive_cancel()
            # Only streams that the peer ends count as churn.
            # A publisher that ends soon is this side's own doing.
            self._channel.budgets.churn.count(stream.began_at)

    def receive_accept(self, stream_id: int, element_size: int) -> None:
        """Note that the peer accepts a stream that this side has opened."""
        stream = self._known(stream_id)
        # As everywhere on the path of messages:
        # ReceivingStream has a metaclass of `typing`, and is slow to compare with.
        if not isinstance(stream, CancelledStream):
            if self.observers is not None:
                self.observers.on_accepted(stream_id, element_size)
                # An extension has ended the connection, and with it the stream.
                if self._channel.state.is_closing:
                    return
            stream.receive_accept(element_size)
        elif stream.element_size < 0:
            # Cancelled before it was accepted.
            # Late elements of a fixed size can only be delimited by this size.
            self.cancelled.resize(stream_id, element_size)
        else:
            raise ProtocolError(
                f"stream {stream_id} was accepted twice", reason=f"protocol:stream {stream_id}"
            )

    def receive_answer(self, stream_id: int, data: bytes) -> bool:
        """Deliver the only element of a request, with its end. Return False, and do nothing, if
        it needs another path. For a dialect that keeps no place of a cancelled stream.
        """
        stream: Any = self.opened.get(stream_id)
        if stream is None or not stream.receive_answer(data):
            return False
        self.opened.pop(stream_id, None)  # unless the subscriber has ended everything
        if not self.use.is_noted:
            self.use.note(self._channel.now)
        if self.observers is not None:
            self.observers.on_ended(stream_id, is_served=False)
        return True

    def receive_end(self, stream_id: int, error: Exception | None) -> None:
        """End a stream that this side has opened: well, or with `error`."""
        stream = self._known(stream_id)
        # Before the subscriber is called, which may look at the tables or subscribe again.
        del self.opened[stream_id]
        if isinstance(stream, CancelledStream):
            self.cancelled.count -= 1
            return
        self._note_use()
        if self.observers is not None:
            self.observers.on_ended(stream_id, is_served=False)
        if error is None:
            stream.receive_complete()
        else:
            stream.receive_error(error)

    # --- inside

    def _note_use(self) -> None:
        if not self.use.is_noted:
            self.use.note(self._channel.now)

    def _open(self, stream: ReceivingStream, target: Any) -> None:
        if self._channel.state.is_closing:
            stream.receive_error(self._closing_error())
            return
        stream.state = RECEIVING_MOVES[stream.state, _EVENT_SUBSCRIBED]
        # The data of a request is not kept: its stream may live for long.
        stream.target = target if isinstance(target, str) else getattr(target, "name", None)
        self.opened[stream.id] = stream
        self.use.asked += 1
        self._channel.send(self._channel.dialect.subscribe(stream.id, target, stream.outstanding))

    def _closing_error(self) -> Exception:
        # A copy: a program may go on to ask, and each of its requests raises this.
        return (
            ConnectionLost("this connection is closing; connect again")
            if self._end_error is None
            else own_copy(self._end_error)
        )

    def _known(self, stream_id: int) -> ReceivingStream | CancelledStream:
        stream = self.opened.get(stream_id)
        if stream is None:
            raise ProtocolError(
                f"a signal for stream {stream_id}, which was never opened",
                reason=f"protocol:stream {stream_id}",
            )
        return stream


def _no_content(_target: Any) -> None:
    """Know nothing of what publishers publish."""


def size_of_request(request: Request) -> int:
    """Return how many bytes a request holds: its data, and what stands beside it."""
    beside = 0 if request.metadata is None else len(request.metadata)
    return len(request.data) + beside + (0 if request.name is None else len(request.name))


def target_bytes(target: object) -> int:
    """Return how many bytes a stream holds for its target: a name, or a request with data."""
    if isinstance(target, Request):
        return HANDLED * size_of_request(target)
    # None while the data of a request is not whole.
    return len(target) if isinstance(target, str) else 0
