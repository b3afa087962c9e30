"""A session is the conversation on one connection: streams in both directions, demand, and the end. It does no I/O and reads no clock.

Its owner feeds it bytes and the time, takes bytes from it, and is told what happens by plain calls. What belongs to one protocol alone
is in its dialect; the core here is true of all of them.

Rules of this file:

* Three answers to bad input, and no fourth. *Fatal*: goodbye with a fixed reason, everything ends. *One stream*: an error or a cancel
  on that id. *Tolerated*: ignored, for a token of the glitch budget; when that is empty it is fatal.
* What the peer opened is in `serving`, what this side opened in `streams`. An id may be in both,
  where the dialect's ids are shared.
* After the session is over nothing is sent and nobody is told of anything more.
"""

from collections.abc import Callable, Iterable
from typing import Any

from penstock.api import ConnectionLost, Limits, PenstockError, ProtocolError, Role, Subscriber
from penstock.session._advice import DRAINING, REFUSED
from penstock.session._cancelled_streams import CancelledStreams
from penstock.session._dialect import Dialect
from penstock.session._handshake_guard import Choose, HandshakeGuard
from penstock.session._idle_timeouts import IdleTimeouts
from penstock.session._message_age import MessageAge
from penstock.session._outbox import Outbox
from penstock.session._partial_element_timeouts import PartialElementTimeouts
from penstock.session._receiving_stream import CancelledStream, ReceivingStream
from penstock.session._request_ratio import RequestClass, RequestRatio
from penstock.session._sending_stream import SendingStream
from penstock.session._session_delegate import SessionDelegate
from penstock.session._states import NEXT_STATE, ConnectionState, Move
from penstock.session._stream_churn import StreamChurn
from penstock.session._token_bucket import TokenBucket
from penstock.session._words import CUT, CUT_EARLY, shown


class Session:
    """One side of a conversation."""

    def __init__(
        self,
        owner: SessionDelegate,
        make_dialect: "Callable[[Session], Dialect]",
        *,
        role: Role,
        limits: Limits,
        random: Callable[[], float],
        choose: Choose | None = None,
    ) -> None:
        """With `choose`, what the peer says first chooses the dialect: it gets the first bytes until it returns one, or raises."""
        self.owner: SessionDelegate = owner
        self.role: Role = role
        self.limits: Limits = limits
        self.random: Callable[[], float] = random
        self.state: ConnectionState = ConnectionState.FRESH
        self.now: float = 0.0
        self.streams: dict[int, ReceivingStream | CancelledStream] = {}
        self.serving: dict[int, SendingStream] = {}
        self.buffering_streams: dict[SendingStream, None] = {}
        """Those of `serving` with bytes of their own that wait, and perhaps some that had."""
        self.proportion: RequestRatio = RequestRatio()
        self.stopping_publishers: int = 0
        """Streams whose id is free already, and whose publisher has not stopped yet: the owner counts them down."""
        self.is_closing: bool = False
        """Nothing may be sent any more, and what arrives is discarded."""
        self.is_draining: bool = False
        self.is_parted: bool = False
        """Both sides have said goodbye."""
        self.was_answered: bool = False
        """This side said it first, or both at once: nothing more comes from the peer."""
        self.close_reason: tuple[str, Exception | None] = ("closed", None)
        """Why it ends: a token, or what the peer gave as its reason; and the fault, where it is no plain goodbye."""
        self.is_paused: bool = False
        """The peer's introduction is being examined: until `admit` nothing that arrives is looked at, and little should be read."""
        self.retirement: CancelledStreams = CancelledStreams(self)
        self.partials: int = 0
        self.partial_bytes: int = 0
        self.outgoing: Callable[[bytes], bytes] | None = None
        self.incoming: Callable[[bytes], bytes] | None = None
        self.outbox: Outbox = Outbox(limits, owner.wake)
        self._most_waiting = limits.outbound_high + limits.max_element + limits.outbound_control
        self.on_buffered: Callable[[int], object] = lambda _: None
        """Told of bytes that are about to wait here: with a whole helping of elements, not with each."""
        self.dialect: Dialect = make_dialect(self)
        self.max_unsplit: int = self.dialect.max_unsplit
        self.unfinished: PartialElementTimeouts = PartialElementTimeouts(limits)
        self.foreign_refusal: bytes = b""
        """What to say instead of a goodbye to a peer that speaks no protocol of ours."""
        self._glitches = TokenBucket(limits.glitch_burst, limits.glitch_rate)
        self._controls = TokenBucket(limits.control_burst, limits.control_rate)
        self._churn = StreamChurn(limits)
        self._reason: Exception | None = None
        self._left_at: float | None = None
        self._prelude = HandshakeGuard(self, choose)
        self._idleness = IdleTimeouts(self)
        self._drip = MessageAge(self)
        self._is_hearing = self._ends_by_itself = False

    # --- for the owner: bytes and time

    def start(self, now: float) -> None:
        """Begin to talk; where the peer's first bytes choose the dialect, later."""
        self.now = now
        self._prelude.start(now)

    def receive(self, data: bytes, now: float, *, most: int = 1 << 62) -> bool:
        """Take what arrived and act on it; return whether there is more to do, for which call again with no data."""
        self.now = now
        if self.state is ConnectionState.OVER:
            return False
        size, was_open, self._is_hearing = len(data), self.state is ConnectionState.OPEN, True
        try:
            if not was_open:
                data = self._prelude.heard(data)
            more = self.dialect.feed(data, most)
        except ProtocolError as error:
            self.close_protocol_error(error)
            return False
        finally:
            self._is_hearing = False
        if self._churn.is_too_much(now):
            self.close_protocol_error(ProtocolError("streams are opened and ended faster than is taken here", reason="limit:churn"))
            return False
        self._drip.fed(size, self.dialect.held())
        return more if was_open else not self._prelude.is_too_long() and more

    def end_of_input(self, error: Exception | None = None) -> None:
        """The transport has ended, in whatever way: the way of `error`, if that is known."""
        if self.state is not ConnectionState.OVER:
            is_early = self.state in (ConnectionState.FRESH, ConnectionState.GREETING)
            end = self._reason or error or ConnectionLost(CUT_EARLY if is_early else CUT)
            if not self.is_closing:
                self.close_reason = "lost", end
            self._end(Move.CUT, end)

    def take(self) -> bytearray:
        """Return what shall be sent now, perhaps nothing."""
        return self.outbox.take()

    @property
    def expects_answer(self) -> bool:
        """A goodbye of this side's will be answered by one; if not, the transport's end is all that comes."""
        return self.dialect.answers_goodbye

    def split(self, data: bytearray) -> Iterable[bytes | bytearray | memoryview]:
        """Cut what was taken into the messages that a framed transport carries."""
        return (data,) if self.foreign_refusal else self.dialect.split(data)

    def tick(self, now: float) -> float | None:
        """Do what is due, and return when to be called again, if at all."""
        self.now = now
        if self.state is ConnectionState.LEAVING:
            # Counted from here: `leave` is called between two readings of the clock, and `self.now` may be hours ago.
            self._left_at = now if self._left_at is None else self._left_at
            due = now if self._ends_by_itself and self.outbox.is_empty else self._left_at + self.limits.goodbye_timeout
            if now >= due:
                self._end(Move.CUT, self._reason or ConnectionLost("the peer did not answer the goodbye in time"))
                return None
            return due
        if self.state is not ConnectionState.OPEN:
            return None if self.state is ConnectionState.OVER else self._prelude.tick(now)
        dues = (self.unfinished.tick(now, self._drip.heard), self._drip.tick(now), *self._idleness.tick(now), self.dialect.tick(now))
        if self.is_closing:
            return self.tick(now)  # what was due has ended the conversation: now the goodbye has a deadline
        return min((each for each in dues if each is not None), default=None)

    # --- for the owner: streams

    def subscribe(self, target: Any, subscriber: Subscriber[Any]) -> ReceivingStream:
        """Open a stream to the peer's publisher `target` and give `subscriber` its subscription."""
        stream = ReceivingStream(self, self.dialect.next_id(target), subscriber)
        subscriber.on_subscribe(stream)
        if stream.is_wanted:  # or it was cancelled inside on_subscribe: the peer need not hear of it
            self._open(stream, target)
        return stream

    def ask(self, target: Any, subscriber: Subscriber[Any]) -> ReceivingStream:
        """Open a stream for one element, and return it; `subscriber` is told what comes of it, perhaps at once, and not that it begins."""
        stream = ReceivingStream(self, self.dialect.next_id(target), subscriber, 1)
        self._open(stream, target)
        return stream

    def fire(self, target: Any) -> None:
        """Say something that has no answer. Raises why nothing can be said any more."""
        if self.is_closing:
            raise self._reason or ConnectionLost("this connection is closing; connect again")
        self.send(self.dialect.fire(self.dialect.next_id(target), target))

    def close(self, reason: str, error: Exception | None = None) -> None:
        """Say goodbye: every stream ends now, in both directions, and nothing more is sent after it."""
        if self.is_closing:
            return
        self.close_reason = reason or "closed", error
        self._ends_by_itself = self.state is ConnectionState.OPEN and not self.expects_answer  # before that a refusal may be on its way
        self._move(Move.LEFT)
        self.is_paused = False
        self._end_streams(error or ConnectionLost(f"this side closed the connection{f': {reason}' if reason else ''}"))
        self.outbox.close()
        self.outbox.put(self.foreign_refusal or self.dialect.goodbye(reason))

    def close_protocol_error(self, error: ProtocolError) -> None:
        """End the connection because of what the peer sent."""
        self.close(error.reason, ConnectionLost(f"the connection was ended because the peer broke the protocol: {error}"))

    def close_internal_error(self, error: PenstockError) -> None:
        """End the connection because of a fault on this side; the peer learns no more than that."""
        self.close("internal", error)

    def admit(self) -> None:
        """Accept the peer that has introduced itself."""
        self.is_paused = False
        if self.state is ConnectionState.GREETING:
            self.welcomed()

    def stopping(self) -> None:
        """The publisher of an ended stream still runs: its place stays taken, until `stopped`."""
        self.stopping_publishers += 1

    def stopped(self) -> None:
        """It has stopped."""
        self.stopping_publishers -= 1

    # --- for streams

    def send(self, message: bytes) -> None:
        """Queue a message, if anything may still be sent."""
        if self.is_closing or not message:  # a dialect has nothing to say of some things
            return
        self.outbox.put(message)
        if len(self.outbox.buffer) > self._most_waiting:
            self.outbox.clear()
            self.close_protocol_error(ProtocolError("answers pile up because the peer does not read", reason="slow-reader"))

    def answer(self, message: bytes) -> None:
        """Queue a message; one that the peer has caused may not wait beside too many others."""
        self.send(message)
        if self._is_hearing and not self.is_closing and not self.outbox.count_answer(len(message)):
            self.outbox.clear()
            self.close_protocol_error(ProtocolError("answers pile up because the peer does not read", reason="slow-reader"))

    def held(self) -> int:
        """Return how many bytes this connection holds, in all its buffers."""
        for stream in [stream for stream in self.buffering_streams if not stream.weight]:
            del self.buffering_streams[stream]
        return self.outbox.waiting + self.partial_bytes + self.dialect.held() + sum(stream.weight for stream in self.buffering_streams)

    def request(self, stream: ReceivingStream, n: int) -> None:
        """Tell the peer of demand, once it knows the stream."""
        if stream.id in self.streams:
            self.send(self.dialect.request(stream.id, n))

    def retire(self, stream: ReceivingStream) -> None:
        """Tell the peer to stop, and keep its id until it has."""
        if self.streams.get(stream.id) is not stream:
            return  # the peer never heard of it
        self.retirement.take(stream)
        self.unfinished.forget(stream)
        self.send(self.dialect.cancel(stream.id))
        if self.retirement.count > self.limits.retired_ids:
            self.close_protocol_error(ProtocolError("too many cancelled streams whose end the peer never told", reason="limit:ids"))

    def change_outgoing(self, change: Callable[[bytes], bytes]) -> None:
        """From here on send `change(element)`."""
        self.outgoing = change
        for stream in self.serving.values():
            stream.forget_header()

    def release_id(self, stream: SendingStream) -> None:
        """Free the id of a stream that the peer had opened."""
        if self.serving.get(stream.id) is stream:
            del self.serving[stream.id]

    def count_short_stream(self, stream: SendingStream) -> None:
        """A stream was refused, or the peer has cancelled it. What a publisher of ours ends is its own affair."""
        self._churn.ended(stream.began)

    def publisher_failed(self, stream: SendingStream, error: BaseException) -> None:
        """Tell the owner what the peer is not told."""
        self.owner.publisher_failed(stream, error)

    def count_oddity(self, weight: int = 1, *, reason: str = "limit:glitches") -> None:
        """Tolerate something odd, as long as the budget lasts."""
        if not self._glitches.spend(weight, self.now):
            self.close_protocol_error(ProtocolError("too many oddities in too short a time", reason=reason))

    # --- for the dialect: what the peer said

    def greeted(self) -> None:
        """Our hello is queued."""
        self._move(Move.GREETED)

    def introduced(self, data: bytes) -> None:
        """The peer has introduced itself, in a dialect in which that may be refused."""
        self.is_paused = True
        self.owner.introduced(data)

    def welcomed(self) -> None:
        """The peer's hello is in, and is to our liking."""
        self._move(Move.WELCOMED)
        self.owner.opened()

    def peer_subscribed(self, stream_id: int, target: Any, demand: int, refusal: str | None = None) -> None:
        """The peer opens a stream."""
        if stream_id in self.serving:
            raise ProtocolError(f"stream {stream_id} was opened while it is open", reason=f"protocol:subscribe {stream_id}")
        stream = SendingStream(self, stream_id, target, demand)
        self.serving[stream_id] = stream
        self.proportion.streams += 1
        if refusal is not None:
            stream.refuse(refusal)
        elif self.is_draining:
            stream.refuse(DRAINING)
        elif len(self.serving) + self.stopping_publishers > self.limits.max_subscriptions:
            stream.refuse(REFUSED)
        else:
            self.owner.serve(stream)

    def receive_fire_and_forget(self, target: Any) -> None:
        """The peer says something that has no answer. There is no way to refuse it but to drop it."""
        if not self.is_draining and len(self.serving) + self.stopping_publishers < self.limits.max_subscriptions:
            self.owner.fired(target)
        else:
            self.spend_control_token()

    def spend_control_token(self) -> bool:
        """Count a message that costs the peer little and us some work; return whether it may still be acted on."""
        if self._controls.spend(1, self.now):
            return True
        self.close_protocol_error(ProtocolError("requests, cancels and pings come faster than is taken here", reason="limit:control"))
        return False

    def peer_requested(self, stream_id: int, n: int) -> None:
        """The peer grants demand."""
        stream = self.serving.get(stream_id)
        if stream is None:
            self._too_late()
        elif n <= 0:
            # rule 3.9
            stream.cancelled_with("illegal demand")
        else:
            weight = self.proportion.weigh(self.serving.values())
            if weight is RequestClass.EXCESS:
                self.count_oddity(reason="limit:requests")
            if weight is RequestClass.PAID or self.spend_control_token():
                stream.granted(n)

    def peer_cancelled(self, stream_id: int) -> None:
        """The peer wants no more of a stream."""
        stream = self.serving.get(stream_id)
        if stream is None:
            self._too_late()
        else:
            stream.cancelled()
            self.count_short_stream(stream)

    def peer_began(self, stream_id: int, element_size: int) -> None:
        """The peer accepts a stream that this side opened."""
        stream = self._known(stream_id)
        if isinstance(stream, ReceivingStream):
            stream.begun(element_size)
        elif stream.element_size < 0:
            self.retirement.resize(stream_id, element_size)
        else:
            raise ProtocolError(f"stream {stream_id} was accepted twice", reason=f"protocol:stream {stream_id}")

    def peer_ended(self, stream_id: int, error: Exception | None) -> None:
        """The peer ended a stream that this side opened."""
        stream = self._known(stream_id)
        del self.streams[stream_id]
        if not isinstance(stream, ReceivingStream):
            self.retirement.count -= 1
            return
        self.unfinished.forget(stream)
        if error is None:
            stream.completed()
        else:
            stream.failed(error)

    def receive_goodbye(self, reason: str, error: Exception | None = None) -> None:
        """The peer said goodbye; `error` where the dialect knows better what that means."""
        if self.state is ConnectionState.OVER:
            return  # a second one, which arrived together with the first
        answer = self.state is not ConnectionState.LEAVING  # one goodbye of each side is enough: crossing ones answer each other
        self.is_parted, self.was_answered = True, not answer
        if answer:
            self.close_reason = ascii(reason[:200])[1:-1] or "closed", None
        error = error or self._reason or ConnectionLost(f"the peer closed the connection: {shown(reason)}")
        self._end(Move.TOLD_TO_LEAVE, error, farewell=self.dialect.goodbye("") if answer else b"")

    # --- inside

    def _open(self, stream: ReceivingStream, target: Any) -> None:
        if self.is_closing:
            stream.failed(self._reason or ConnectionLost("this connection is closing; connect again"))
        else:
            self.streams[stream.id] = stream
            self.send(self.dialect.subscribe(stream.id, target, stream.outstanding))

    def _too_late(self) -> None:
        """The peer says something of a stream that has just ended, or never was."""
        if not self.proportion.crosses() and self.spend_control_token():
            self.count_oddity()

    def _known(self, stream_id: int) -> ReceivingStream | CancelledStream:
        stream = self.streams.get(stream_id)
        if stream is None:
            raise ProtocolError(f"a signal for stream {stream_id}, which was never opened", reason=f"protocol:stream {stream_id}")
        return stream

    def _move(self, move: Move) -> None:
        self.state = NEXT_STATE[self.state, move]
        self.is_closing = self.state in (ConnectionState.LEAVING, ConnectionState.OVER)

    def _end_streams(self, error: Exception) -> None:
        self._reason = error  # for whoever asks for something from now on
        serving, self.serving = self.serving, {}
        self.buffering_streams.clear()
        for served in serving.values():
            served.cancelled()
        for stream in tuple(self.streams.values()):
            if isinstance(stream, ReceivingStream):
                self.retirement.replace(stream)
                stream.lost(error)

    def _end(self, move: Move, error: Exception, *, farewell: bytes = b"") -> None:
        self._move(move)
        self.is_paused = False
        self._end_streams(error)
        self.outbox.clear()
        if farewell:
            self.outbox.put(farewell)
        self.owner.over(error)
