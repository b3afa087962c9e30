"""ReactiveSocket version 0 as a dialect: SETUP, requests of four shapes, two spaces of ids, and
frames that may be ignored.

* The client's SETUP comes first and is examined; a server sends nothing before it. A client need
  not wait. No frame says that a SETUP was accepted: a response, a request of the server's, or
  silence for `Limits.handshake_timeout` says it.
* A frame that is out of place is ignored, for a token of the oddity budget. The connection ends
  only for frames that cannot be delimited or understood, and for limits.
* A request's shape decides how its answer ends:
  one value and the end in one frame, a separate end, or an error.
* The end of a connection has no answer but the end of the transport.
  A reason crosses as an ERROR on stream 0.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Final

from penstock.api import UNBOUNDED, Model, ProtocolError, PublisherFailed, Request, Role
from penstock.protocols.reactivesocket import _frames as frames
from penstock.protocols.reactivesocket._codec import (
    ReactiveSocketDecoder,
    encode,
    join_run,
    last_response,
    request_n,
    request_response,
    response_header,
)
from penstock.protocols.reactivesocket._handshake import (
    ANNOUNCED,
    CODE_BITS,
    CODE_MASK,
    LARGEST_ID,
    announcement,
    check_setup,
    extension_message,
    opens,
    setup_refusal,
)
from penstock.protocols.reactivesocket._layout import (
    BEGIN,
    COMPLETE,
    END,
    SHORTEST_BODY,
    WHOLE,
    FrameType,
)
from penstock.protocols.reactivesocket._silence_probe import SilenceProbe
from penstock.session import (
    DRAIN,
    DRAINING,
    ILLEGAL_DEMAND,
    KEEPALIVE,
    TOO_LONG,
    CancelledStream,
    ConnectionState,
    DialectHost,
    DialectSettings,
    ExtensionHost,
    Fault,
    IntroductionHandshake,
    ReceivingState,
    ReceivingStream,
    draining_refusal,
    explain_stream_end,
)
from penstock.wire import split_frames, write_apart

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_OPEN: Final = ConnectionState.OPEN
_EXAMINING: Final = ConnectionState.EXAMINING
_RESPONSE: Final = Model.RESPONSE

NO_VALUE: Final = "there was nothing to answer with"
"""The error of a request for one value whose publisher completed without one."""

SUBSCRIPTION_ENDED: Final = "subscription terminated"
"""The error of a subscription whose publisher completed:
the draft gives subscriptions no good end.
"""

DEFAULT: Final = DialectSettings()

LENGTH_SIZE: Final = 4

LONGEST_SKIPPED: Final = 1 << 28
"""The largest body that is skipped, 256 MiB. As a length, the first bytes of TLS are 352 MiB and
those of HTTP more than 1 GiB, so a peer that speaks another protocol is still refused at once.
"""

_STREAMS: Final = {
    FrameType.REQUEST_RESPONSE: Model.RESPONSE,
    FrameType.REQUEST_STREAM: Model.STREAM,
    FrameType.REQUEST_SUB: Model.SUBSCRIPTION,
}

PART_NUMBER: Final = 0
"""Fragments of one stream are not interleaved, so one number is enough for the element
that is under way.
"""

_MODELS: Final = {
    FrameType.REQUEST_FNF: Model.FIRE_AND_FORGET,
    FrameType.REQUEST_STREAM: Model.STREAM,
    FrameType.REQUEST_SUB: Model.SUBSCRIPTION,
}


class RequestShapes:
    """The shapes of open requests: how the answer of each ends.
    The tables of the session do not have that.
    """

    # Not in the streams: only this protocol has requests of different shapes, and
    # `penstock.session` knows no protocol.
    # Bounded by the open streams, because an entry is removed with the end of its request.
    __slots__ = ("answering", "single")

    def __init__(self) -> None:
        self.single: set[int] = set()
        """Requests for one value that this side has sent. The first response ends such a
        request, with the flag C or without it.
        """
        # Only shapes that do not end as a plain stream does:
        # a REQUEST_STREAM, the most frequent stream, has no entry.
        self.answering: dict[int, Model] = {}
        """Requests of the peer that do not end as a plain stream does. `Model.NAMED` marks one
        whose value was sent with its end.
        """


class TooLongFrames:
    """The answer to a frame whose body is above `Limits.max_frame`: it ends the stream that it
    names, and nothing else.

    The header says where the next frame begins, so the rest of the connection can be understood.
    The decoder drops the body as it arrives. Only a frame that concerns the connection ends the
    connection.
    """

    __slots__ = ("_channel", "_shapes", "_streams")

    def __init__(self, session: DialectHost, shapes: RequestShapes) -> None:
        self._channel = session.channel
        self._streams = session.streams
        self._shapes = shapes

    def receive(self, frame_type: int, stream_id: int, refusal: ProtocolError) -> None:
        """End the stream of a frame. Raise `refusal` if the frame concerns the connection."""
        if frame_type == FrameType.ERROR and not stream_id:
            raise refusal  # the peer ends the connection, and its reason cannot be read
        if frame_type in {FrameType.RESPONSE, FrameType.ERROR}:
            self._end_opened(frame_type, stream_id, refusal)
        elif frame_type in _STREAMS and stream_id and stream_id not in self._streams.serving:
            self._streams.receive_subscribe(
                stream_id, Request(_STREAMS[FrameType(frame_type)], b""), 1, TOO_LONG
            )
        elif frame_type == FrameType.CANCEL:
            # A cancel has no data: the stream ends as it would without the rest of the frame.
            self._shapes.answering.pop(stream_id, None)
            self._streams.receive_cancel(stream_id)
        elif frame_type == FrameType.REQUEST_N and stream_id in self._streams.serving:
            # The number is in the part that was skipped. Without it the stream would wait for
            # demand that the peer believes to have sent.
            self._streams.serving[stream_id].cancel_with_error(TOO_LONG)
        else:
            # The frame names no stream that could end: a second SETUP, a message without an answer,
            # a request with an id in use.
            self._channel.count_oddity()

    def _end_opened(self, frame_type: int, stream_id: int, refusal: ProtocolError) -> None:
        stream = self._streams.opened.get(stream_id)
        # The stream was cancelled here, or never opened.
        if not isinstance(stream, ReceivingStream):
            self._channel.count_oddity()
            return
        self._shapes.single.discard(stream_id)
        if frame_type == FrameType.ERROR:
            # The peer has ended the stream; only the text is lost.
            self._streams.receive_end(stream_id, PublisherFailed(explain_stream_end(TOO_LONG)))
        else:
            what = (
                f"stream {stream_id}: {refusal} (Limits.max_frame). Let the peer send elements in "
                "parts, or set a larger limit"
            )
            stream.fail_contract("", error=ProtocolError(what, reason=refusal.reason))


class ReceivedFrames:
    """The sink of the decoder: passes each frame of the peer to the session.

    * Before SETUP nothing else is taken. A second SETUP is ignored, as is every frame out of place,
      for a token of the oddity budget.
    * The type of a frame tells the two spaces of ids apart: requests, grants and cancels name the
      peer's, responses and errors this side's.
    * A request for one value is over with its first response, whether that says so or not. A second
      response belongs to no stream.
    * An ERROR has a text and no code. The text may be a publisher's own words, so it decides
      nothing: on a stream it is `PublisherFailed`, and no error says that nothing was done.
    """

    def __init__(
        self, session: DialectHost, shapes: RequestShapes, extensions: ExtensionHost
    ) -> None:
        self._session = session
        self._channel = session.channel
        self._streams = session.streams
        self._shapes = shapes
        # Tables that are never replaced. Each answer is looked up in both.
        self._opened, self._single = session.streams.opened, shapes.single
        self._extensions = extensions
        self._too_long = TooLongFrames(session, shapes)
        self.handshake: IntroductionHandshake = IntroductionHandshake(session)
        # Values that came without the end.
        # Some peers send the end in a separate frame, which then belongs to no stream.
        self._bare_ends_due = 0

    @property
    def max_skipped(self) -> int:
        """The largest body of a frame that ends its stream only. Before SETUP it ends the
        connection: that client is unknown.
        """
        return LONGEST_SKIPPED if self.handshake.has_begun else 0

    def receive_setup(self, version: int, stream_id: int, data: bytes) -> None:
        """Let the service examine the client's introduction."""
        if self.handshake.has_begun:
            self._channel.count_oddity()  # a second SETUP, or one from a server
            return
        check_setup(version, stream_id, data, self._channel.limits)
        self.handshake.receive(data, self._extensions)

    def receive_request_response(self, stream_id: int, data: bytes) -> None:
        """Serve a request for one value."""
        streams = self._streams
        # The usual request passes these looks.
        # `_may_begin` looks again, and knows what to do about one that does not.
        if not (
            self._channel.state is _OPEN and stream_id and stream_id not in streams.serving
        ) and not self._may_begin(stream_id):
            return
        # Before the request is served: it may be answered inside that call.
        self._shapes.answering[stream_id] = _RESPONSE
        change = self._channel.incoming
        streams.receive_subscribe(
            stream_id, Request(_RESPONSE, data if change is None else change(data)), 1
        )
        if stream_id not in streams.serving:  # refused, or answered at once
            self._shapes.answering.pop(stream_id, None)

    def receive_request(
        self, kind: FrameType, stream_id: int, demand: int | None, data: bytes
    ) -> None:
        """Serve a request of another kind."""
        if not self._may_begin(stream_id):
            return
        change = self._channel.incoming
        streams, request = (
            self._streams,
            Request(_MODELS[kind], data if change is None else change(data)),
        )
        if request.model is Model.FIRE_AND_FORGET:
            streams.receive_fire_and_forget(request)
            return
        if request.model is not Model.STREAM:
            self._shapes.answering[stream_id] = request.model
        # The field has 64 bits; demand has 63 (rule 3.17).
        is_illegal = demand is not None and demand > UNBOUNDED
        streams.receive_subscribe(
            stream_id,
            request,
            1 if demand is None else demand,
            ILLEGAL_DEMAND if is_illegal else None,
        )
        if stream_id not in streams.serving:  # refused, or answered at once
            self._shapes.answering.pop(stream_id, None)

    def receive_request_n(self, stream_id: int, demand: int) -> None:
        """Add demand."""
        self.handshake.check_begun()
        if self._shapes.answering.get(stream_id) in {_RESPONSE, Model.NAMED}:
            self._channel.count_oddity()  # a request for one value has its demand in itself
        elif not self._channel.state.is_closing:
            self._streams.receive_request(stream_id, demand if demand <= UNBOUNDED else 0)

    def receive_cancel(self, stream_id: int) -> None:
        """Cancel a stream that this side serves."""
        self.handshake.check_begun()
        if not self._channel.state.is_closing:
            self._shapes.answering.pop(stream_id, None)
            self._streams.receive_cancel(stream_id)

    def receive_response(
        self,
        stream_id: int,
        begin: bool,  # noqa: FBT001  # as in the protocol
        end: bool,  # noqa: FBT001  # the same
        complete: bool,  # noqa: FBT001  # the same
        data: bytes,
    ) -> None:
        """Deliver an element, a fragment of one, the end, or the last element with the end."""
        # Once the connection is open, both have passed: this is the path of every answer.
        if self._channel.state is not _OPEN:
            self.handshake.check_begun()
            self.handshake.accept()
        single = self._single
        # The path of most answers: one value and the end in one frame.
        # An id stays in `single` when the connection ends, and while an extension holds the cancel:
        # `opened` has no such stream any more.
        if (
            complete
            and begin
            and end
            and stream_id in single
            and self._streams.receive_answer(stream_id, data)
        ):
            single.discard(stream_id)
            return
        stream = self._opened.get(stream_id)
        # Compared with the other class: ReceivingStream has a metaclass of `typing`, and to compare
        # a subclass with it takes a microsecond.
        if stream is None or isinstance(stream, CancelledStream):
            self._receive_late(data, is_whole=end, complete=complete)
            return
        if stream.element_size < 0:
            if self._streams.observers is not None:
                self._streams.observers.on_accepted(stream_id, 0)
                # An extension has ended the connection, and with it the stream.
                if self._channel.state.is_closing:
                    return
            # From now on the decoder hands unsplit elements straight to the stream.
            stream.receive_accept(0)
        joining = stream.is_joining(PART_NUMBER)
        if (begin and joining) or (end and not begin and not joining):
            self._shapes.single.discard(stream_id)
            stream.fail_contract(
                "a fragment begins within another"
                if joining
                else "a fragment ends that never began"
            )
        elif begin == end and not joining:
            self._deliver_whole(stream, data, complete=complete)
        else:
            stream.receive_part(PART_NUMBER, data, end)
            if end and (complete or stream_id in self._shapes.single):
                self._bare_ends_due += not complete
                self._end(stream_id, None)

    def receive_error(self, stream_id: int, data: bytes) -> None:
        """End a stream with an error; on stream 0, the connection."""
        self.handshake.check_begun()
        # Cut here: the decoder bounds frames by max_frame only.
        text = data.decode("utf-8", "replace")[: self._channel.limits.max_error_text]
        if not stream_id:
            self._session.receive_goodbye(
                text, None if self.handshake.is_accepted else setup_refusal(text)
            )
            return
        self.handshake.accept()
        stream = self._streams.opened.get(stream_id)
        if isinstance(stream, ReceivingStream):
            is_early = stream.state is ReceivingState.REQUESTED
            draining = (
                draining_refusal(text, peer_drains=self._streams.drain.is_peer_draining)
                if is_early
                else None
            )
            self._end(stream_id, draining or PublisherFailed(explain_stream_end(text)))
        elif not self._streams.cancelled.count_end():  # it may have crossed a CANCEL
            self._channel.count_oddity()

    def receive_ext(self, stream_id: int, ignore: bool, ext_type: int, data: bytes) -> None:  # noqa: FBT001  # as in the protocol
        """Pass a frame to its extension. Any frame of an extension announces it, and one with
        the code 0 does nothing else.
        """
        self.handshake.check_begun()
        extensions, extension_id, code = (
            self._extensions,
            ext_type >> CODE_BITS,
            ext_type & CODE_MASK,
        )
        # A frame that may be ignored costs a token, because a flood of them is work as well.
        if extension_id not in extensions.known:
            if not ignore:
                raise ProtocolError(
                    f"extended type {ext_type:#x} is not known here",
                    reason=f"protocol:extension {ext_type}",
                )
            self._channel.spend_control_token()
            return
        if extensions.open(extension_id) is not None and self._channel.role is Role.SERVER:
            self._channel.send(announcement(extension_id))
        active = extensions.active.get(extension_id)
        if code != ANNOUNCED and active is not None:
            extensions.received(active, code, data)

    def knows_ext(self, ext_type: int) -> bool:
        """Return whether this side has the extension."""
        return ext_type >> CODE_BITS in self._extensions.known

    def check_ext(self, ext_type: int, length: int) -> None:
        """Let an extension refuse a message that has not arrived as a whole."""
        active = self._extensions.active.get(ext_type >> CODE_BITS)
        if active is not None:
            self._extensions.check_length(active, ext_type & CODE_MASK, length)

    def receive_unknown(self, frame_type: int) -> None:
        """Ignore a frame of an unknown type that may be ignored."""
        self.handshake.check_begun()
        self._channel.count_oddity()

    def receive_too_long(
        self,
        frame_type: int,
        stream_id: int,
        ignore: bool,  # noqa: FBT001  # as in the protocol
        refusal: ProtocolError,
    ) -> None:
        """Act on a frame that the decoder skips because of its length."""
        self.handshake.check_begun()
        if frame_type in {FrameType.RESPONSE, FrameType.ERROR} and stream_id:
            self.handshake.accept()
        if ignore and (frame_type == FrameType.EXT or frame_type not in SHORTEST_BODY):
            self._channel.count_oddity()  # skipped like a shorter one that is not known
        elif frame_type == FrameType.EXT:
            raise refusal
        elif not self._channel.state.is_closing:
            self._too_long.receive(frame_type, stream_id, refusal)

    # --- inside

    def _may_begin(self, stream_id: int) -> bool:
        """Return whether a request with this id may be served."""
        self.handshake.check_begun()
        # A server that sends requests has accepted the client.
        if not self.handshake.is_accepted:
            self.handshake.accept()
        if self._channel.state.is_closing:
            return False
        if stream_id and stream_id not in self._streams.serving:
            return True
        self._channel.count_oddity()
        return False

    def _deliver_whole(self, stream: ReceivingStream, data: bytes, *, complete: bool) -> None:
        """Deliver an unsplit element, the end, or both."""
        single = stream.id in self._shapes.single
        if data or single or not complete:
            stream.receive_element(data)
        # If not, the subscriber has cancelled.
        if (complete or single) and stream.id in self._streams.opened:
            self._bare_ends_due += not complete
            self._end(stream.id, None)

    def _end(self, stream_id: int, error: Exception | None) -> None:
        self._shapes.single.discard(stream_id)
        if stream_id in self._streams.opened:
            self._streams.receive_end(stream_id, error)

    def _receive_late(self, data: bytes, *, is_whole: bool, complete: bool) -> None:
        """Tolerate a response to a request that is over: it crossed the cancel, or it is a
        separate end after the only value.
        """
        cancelled, channel = self._streams.cancelled, self._channel
        if complete and not data:
            if self._bare_ends_due:
                self._bare_ends_due -= 1
            elif not cancelled.count_end():
                channel.count_oddity()
            return
        if complete:
            cancelled.count_end()
        cancelled.count_part(len(data), last=is_whole)


class ReactiveSocketDialect:
    """ReactiveSocket version 0 on one connection."""

    name: ClassVar[str] = "reactivesocket"
    models: ClassVar[frozenset[Model]] = frozenset(Model)
    has_routes: ClassVar[bool] = False
    splits_requests: ClassVar[bool] = False
    # Every frame has its own length, so late elements need no memory of their stream.
    delimits_cancelled: ClassVar[bool] = False
    # The draft has no frame for it. The end of the transport is the answer.
    answers_goodbye: ClassVar[bool] = False
    takes_extensions: ClassVar[bool] = False
    # Keepalive and drain alone: a peer without them skips their frames, and each other extension
    # would cost each connection one more.
    default_extensions: ClassVar[frozenset[int]] = frozenset({KEEPALIVE, DRAIN})
    takes_encodings: ClassVar[bool] = False
    examines_peers: ClassVar[bool] = True
    alpn: ClassVar[str] = "reactivesocket/0"

    def __init__(self, session: DialectHost, settings: DialectSettings = DEFAULT) -> None:
        self._session = session
        self._channel = session.channel
        self._setup = settings.setup
        self.max_unsplit: int = session.channel.limits.split_outbound_at
        # An id that does not fit into an extended type cannot be announced.
        usable = [extension for extension in settings.extensions if extension.id <= LARGEST_ID]
        self._extensions = ExtensionHost(
            session, usable, extension_message, self._on_admitted, has_introductions=True
        )
        # Odd ids from the client and even ones from the server, because a dump reads better. The
        # two spaces are apart in any case.
        self._next_id = -1 if session.channel.role is Role.CLIENT else 0
        self._shapes = RequestShapes()
        # Each request needs these two.
        self._streams, self._single = session.streams, self._shapes.single
        if session.channel.role is Role.CLIENT:
            SilenceProbe(session)
        self._is_framed = settings.framed
        self._received = ReceivedFrames(session, self._shapes, self._extensions)
        self._decoder = ReactiveSocketDecoder(
            self._received,
            session.streams.opened,
            framed=settings.framed,
            max_frame=session.channel.limits.max_frame,
        )
        self._decoder.max_skipped = self._received.max_skipped

    @property
    def preauth_bytes(self) -> int:
        """How many bytes may come before a SETUP is complete."""
        return self._received.handshake.preauth_bytes

    # --- sending

    def start(self, now: float) -> None:
        """Send a client's SETUP. A server waits for it."""
        if self._channel.role is Role.CLIENT:
            self._session.hello_sent()
            self._channel.send(
                encode(frames.Setup(data=self._setup or self._extensions.introduction()))
            )
            # Without waiting: a server without the extension ignores the frame,
            # because its flag permits that.
            for extension_id in self._extensions.announced:
                self._channel.send(announcement(extension_id))

    def overdue(self) -> None:
        """End the handshake."""
        self._received.handshake.overdue()

    def release(self) -> None:
        """Drop what refers to this object: the session is over, or speaks another protocol."""
        self._extensions.end()
        del (
            self._decoder,
            self._received,
            self._session,
            self._channel,
            self._streams,
            self._extensions,
        )

    def next_id(self, target: Any) -> int:
        """Return the id of a new request. Ids are never used again:
        a late response is told from another one by its id.
        """
        self._next_id += 2
        return self._next_id

    def subscribe(self, stream_id: int, target: Any, demand: int) -> bytes:
        """Encode a request. A text as `target` is the name of a publisher."""
        observers, change = self._streams.observers, self._channel.outgoing
        if observers is not None:
            target = observers.before_subscribe(stream_id, target)
        request = target if isinstance(target, Request) else Request(Model.STREAM, target.encode())
        data = request.data if change is None else change(request.data)
        if request.model is _RESPONSE:
            # The only shape whose end this side must know:
            # its first response ends it, with or without the flag C.
            self._single.add(stream_id)
            return request_response(stream_id, data)
        kind = frames.RequestSub if request.model is Model.SUBSCRIPTION else frames.RequestStream
        return encode(kind(stream_id=stream_id, demand=demand, data=data))

    def fire(self, stream_id: int, target: Any) -> bytes:
        """Encode a request that has no answer."""
        change = self._channel.outgoing
        return encode(
            frames.RequestFnf(
                stream_id=stream_id, data=target.data if change is None else change(target.data)
            )
        )

    def request(self, stream_id: int, n: int) -> bytes:
        """Encode more demand. A request for one value has its demand in itself."""
        return b"" if stream_id in self._shapes.single else request_n(stream_id, n)

    def cancel(self, stream_id: int) -> bytes:
        """Encode a cancel."""
        self._shapes.single.discard(stream_id)
        return encode(frames.Cancel(stream_id=stream_id))

    def begin(self, stream_id: int, element_size: int) -> bytes:
        """Encode nothing: no frame accepts a stream, and every frame has its own length."""
        observers = self._session.streams.observers
        if observers is not None:
            observers.before_accept(stream_id, element_size)
        return b""

    def join_run(self, stream_id: int, elements: list[bytes]) -> bytearray:
        """Encode elements, each in one frame."""
        return join_run(stream_id, elements, WHOLE | self._end_flag(stream_id))

    def answer(self, stream_id: int, element: bytes) -> bytes:
        """Encode the only element of a request for one value, with its end in the same frame."""
        self._shapes.answering.pop(stream_id, None)
        observers = self._session.streams.observers
        if observers is not None:
            observers.before_accept(stream_id, 0)
        return last_response(stream_id, element)

    def write_packed(self, into: bytearray, stream_id: int, size: int, elements: bytearray) -> None:
        """Write each element in one frame, or in several if it is large."""
        # The draft has no packed elements.
        write_apart(into, elements, size, self.max_unsplit, partial(self.part, stream_id))

    def part(self, stream_id: int, element: int, length: int, first: bool, last: bool) -> bytes:  # noqa: FBT001  # as in the protocol
        """Encode the header of a fragment."""
        flags = (BEGIN if first else 0) | (END | self._end_flag(stream_id) if last else 0)
        return response_header(stream_id, length, flags)

    def complete(self, stream_id: int) -> bytes:
        """Encode a good end: nothing if a value was sent with its end, an error for a
        subscription, which has no good end.
        """
        model = self._shapes.answering.pop(stream_id, Model.STREAM)
        if model is Model.NAMED:
            return b""
        if model is Model.STREAM:
            return response_header(stream_id, 0, COMPLETE)
        return self.error(
            stream_id, NO_VALUE if model is _RESPONSE else SUBSCRIPTION_ENDED, Fault.FAILED
        )

    def error(self, stream_id: int, text: str, fault: Fault) -> bytes:
        """Encode an ERROR. The draft has a text for it and no code."""
        self._shapes.answering.pop(stream_id, None)
        if text == DRAINING and fault is not Fault.UNTOUCHED:
            # A word of the program: a client that was told of the drain takes the bare word for a
            # refusal.
            text += "."
        return encode(frames.Error(stream_id=stream_id, data=text.encode(errors="replace")))

    def goodbye(self, reason: str) -> bytes:
        """Encode the reason as an ERROR on stream 0, if there is one."""
        # An ERROR without a text would look like a failure, so a good end sends nothing:
        # the transport ends.
        return (
            encode(frames.Error(stream_id=0, data=reason.encode(errors="replace")))
            if reason
            else b""
        )

    def split(self, data: bytearray) -> Iterator[memoryview]:
        """Cut between frames, and leave their lengths out: a framed transport knows them."""
        return split_frames(data, LENGTH_SIZE)

    @staticmethod
    def refusal(reason: str, *, framed: bool = False) -> bytes:
        """Encode an ERROR on stream 0 for a client that is not let in."""
        return encode(frames.Error(stream_id=0, data=reason.encode()), framed=framed)

    # --- receiving

    @staticmethod
    def recognises(first: bytes, framed: bool) -> bool | None:  # noqa: FBT001  # as in the protocol
        """Return whether a client begins with a SETUP, or with a frame that belongs after one and
        is refused.
        """
        return opens(first, framed=framed)

    def feed(self, data: bytes, most: int) -> bool:
        """Decode bytes and act on their frames.
        Frames behind the SETUP wait until the service has examined it.
        """
        state = self._channel.state
        if data and self._extensions.hearing:
            self._extensions.heard()
        if state is _EXAMINING:
            self._decoder.feed(data, max_messages=0)
            return False
        if self._received.handshake.has_begun:
            if self._is_framed and data:
                self._decoder.feed_frame(data)  # feed() does the same, and takes twice as long
                return False
            return self._decoder.feed(data, max_messages=most)
        # One frame: if it is a SETUP, the requests after it must wait for the service's decision.
        more = self._decoder.feed(data, max_messages=1)
        self._decoder.max_skipped = self._received.max_skipped
        # If not, the SETUP is still examined, or was refused.
        is_open = self._channel.state is _OPEN
        return more and is_open and self._decoder.feed(b"", max_messages=most)

    def held(self) -> int:
        """Return how many bytes of an incomplete frame wait."""
        return self._decoder.held

    # --- inside

    def _on_admitted(self) -> None:
        self._received.handshake.on_admitted()

    def _end_flag(self, stream_id: int) -> int:
        """Return the flag of an element that ends its stream:
        the only value of a request for one.
        """
        if self._shapes.answering.get(stream_id) is not _RESPONSE:
            return 0
        # answered: the completion that follows was sent with the value.
        self._shapes.answering[stream_id] = Model.NAMED
        return COMPLETE
