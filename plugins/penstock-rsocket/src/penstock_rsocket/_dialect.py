"""RSocket 1.0 as a dialect.

* The client's SETUP comes first and is examined; a server sends nothing before it. A client need
  not wait. No frame says that a SETUP was accepted, so the client asks with a KEEPALIVE at once.
* A frame that is out of place is ignored, for a token of the oddity budget. The connection ends
  only for frames that cannot be delimited or understood, and for limits.
* A name in penstock is a route in the metadata of a request, and a payload is its data. A request
  without a route has the data of the program.
* A code tells how a stream ended: REJECTED, that nothing was done.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final

import attrs

from penstock.api import (
    AlreadySubscribed,
    AuthRefused,
    ContentTypes,
    Credentials,
    Extension,
    Model,
    ProtocolError,
    PublisherFailed,
    Rejected,
    Request,
    Role,
    UsageError,
    WithMetadata,
)
from penstock.session import (
    AUTH,
    DRAINING,
    FALSE_START,
    ILLEGAL_DEMAND,
    LONGEST_METADATA,
    NOT_RESUMED,
    REFUSED,
    TOO_LONG,
    ChannelElements,
    ConnectionState,
    DialectHost,
    DialectSettings,
    ExtensionHost,
    Fault,
    IntroductionHandshake,
    OutgoingData,
    ReceivingStream,
    RequestData,
    Resume,
    Resuming,
    Takeover,
    connection_reason,
    explain_connection_end,
    explain_stream_end,
    no_room_refusal,
)
from penstock.spi import decode_credentials, encode_credentials
from penstock.wire import split_frames, write_apart
from penstock_rsocket import _codec as codec
from penstock_rsocket import _frames as frames
from penstock_rsocket import _metadata as metadata
from penstock_rsocket import _traces as traces
from penstock_rsocket._channels import Arriving, Channels, Opening
from penstock_rsocket._codec import (
    CutMetadata,
    RsocketDecoder,
    frame_header,
    join_metadata,
    join_run,
    pack_header,
    payload_header,
    split_metadata,
)
from penstock_rsocket._demand import CountedStream, CountedTable
from penstock_rsocket._keepalive import KeepaliveWatch
from penstock_rsocket._layout import (
    COMPLETE,
    FIRST_APPLICATION_CODE,
    FOLLOWS,
    FRAMED_HEADER_SIZE,
    IGNORE,
    LARGEST_LENGTH,
    LARGEST_NUMBER,
    LARGEST_STREAM_ID,
    LAST_APPLICATION_CODE,
    LAST_PAYLOAD,
    LENGTH_SIZE,
    MAJOR,
    METADATA,
    NEXT,
    NUMBER,
    PLAIN_REQUEST,
    POSITION_SIZE,
    RESPOND,
    TYPE_SHIFT,
    ErrorCode,
    FrameType,
)
from penstock_rsocket._leases import Leases
from penstock_rsocket._metadata import TRACING, encode_composite, find_entry
from penstock_rsocket._resume import ResumableFrames, new_token
from penstock_rsocket._setup import MetadataForm, SetupData

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_OPEN: Final = ConnectionState.OPEN
_EXAMINING: Final = ConnectionState.EXAMINING
_RESPONSE: Final = Model.RESPONSE
_PAYLOAD: Final = FrameType.PAYLOAD
_REQUEST: Final = FrameType.REQUEST_RESPONSE
_LAST: Final = NEXT | COMPLETE

DEFAULT: Final = DialectSettings()

PART_NUMBER: Final = 0
"""Fragments of one stream are not mixed, so one number is enough for the element under way."""

MILLISECONDS: Final = 1000

SMALL: Final = 4096
"""Bytes of a request that `Limits.max_subscriptions` alone bounds. The data of longer ones counts
together, against `Limits.partial_bytes`.
"""

_SETUP_WORDS: Final = (FrameType.SETUP, FrameType.RESUME)

_MODELS: Final = {
    FrameType.REQUEST_RESPONSE: Model.RESPONSE,
    FrameType.REQUEST_FNF: Model.FIRE_AND_FORGET,
    FrameType.REQUEST_STREAM: Model.STREAM,
}
_SENT: Final = frozenset(_MODELS.values()) | {Model.CHANNEL, Model.METADATA_PUSH}

NOT_RESUMABLE: Final = "protocol:resume"
"""Refuses a SETUP with a token that this side cannot resume by."""

NO_LEASE: Final = "no lease"
"""Refuses a request that the peer's lease does not permit."""

_REFUSALS: Final = frozenset(
    {
        ErrorCode.INVALID_SETUP,
        ErrorCode.UNSUPPORTED_SETUP,
        ErrorCode.REJECTED_SETUP,
        ErrorCode.REJECTED_RESUME,
    }
)
"""Codes by which a server refuses a client."""

_CODES_OF_STREAMS: Final = frozenset(
    {ErrorCode.APPLICATION_ERROR, ErrorCode.REJECTED, ErrorCode.CANCELED, ErrorCode.INVALID}
)

_CODE_OF: Final = {
    Fault.UNTOUCHED: ErrorCode.REJECTED,
    Fault.REFUSED: ErrorCode.APPLICATION_ERROR,
    Fault.FAILED: ErrorCode.APPLICATION_ERROR,
    Fault.INVALID: ErrorCode.INVALID,
}
"""REJECTED promises that nothing was done."""

_read_number: Final = NUMBER.unpack_from


@attrs.define
class Unsent:
    """A request of this side that waits for its first demand, or for a lease."""

    target: Any
    demand: int


class ReceivedFrames:
    """The sink of the decoder: passes each frame of the peer to the session.

    Both sides share one space of ids, and the parity of an id tells who has opened it. A frame
    about an id that is not open is ignored: it may have crossed the end.
    """

    def __init__(self, session: DialectHost, dialect: "RsocketDialect") -> None:
        self._session = session
        self._channel = session.channel
        self._streams = session.streams
        self._dialect = dialect
        # Tables that are never replaced.
        self._opened, self._single = session.streams.opened, dialect.single
        self.handshake: IntroductionHandshake = IntroductionHandshake(session)
        self.requests: RequestData = RequestData(session.channel, session.streams)
        """The data of the peer's requests."""
        self.beside: dict[int, list[int]] = {}
        """Elements of which fragments have come, and metadata. By stream."""
        self.form: MetadataForm = MetadataForm("")
        """How the metadata of requests is read and written."""
        # The parity of the ids of the peer.
        self._peers = 0 if session.channel.role is Role.CLIENT else 1

    # --- for the decoder

    def receive_frame(self, kind: FrameType, flags: int, stream_id: int, body: bytes) -> None:
        """Act on a frame."""
        if self._channel.state is not _OPEN and not self._may_receive(kind, flags, stream_id):
            return
        try:
            self._receivers[kind](self, flags, stream_id, body)
        except CutMetadata:
            # wire §The header: a frame with this flag may be skipped. A SETUP must be understood.
            if not flags & IGNORE or kind is FrameType.SETUP:
                raise
            self._skip(kind, stream_id)

    def _skip(self, kind: FrameType, stream_id: int) -> None:
        """Skip a frame that cannot be read. Its stream ends if an element or a request is lost with
        it.
        """
        text = "a frame was skipped, whose metadata ends after it"
        opened = self._opened.get(stream_id)
        if kind is FrameType.PAYLOAD and isinstance(opened, ReceivingStream):
            opened.fail_contract(text)
        elif kind is FrameType.PAYLOAD and self.requests.has_unfinished(stream_id):
            self._streams.serving[stream_id].refuse(text, fault=Fault.UNTOUCHED)
        else:
            self._channel.count_oddity()

    def receive_unknown(self, _frame_type: int) -> None:
        """Ignore a frame of an unknown type that may be ignored."""
        self.handshake.check_begun()
        self._channel.count_oddity()

    def receive_too_long(
        self, kind: FrameType | None, stream_id: int, refusal: ProtocolError
    ) -> None:
        """Act on a frame that is skipped: it ends the stream that it names, and nothing else."""
        self.handshake.check_begun()
        if self._channel.state.is_closing:
            return
        if not stream_id and kind is not None and kind is not FrameType.METADATA_PUSH:
            raise refusal  # it is about the connection, and cannot be read
        opened, serving = self._opened.get(stream_id), self._streams.serving.get(stream_id)
        if kind in _MODELS and kind is not FrameType.REQUEST_FNF and self._may_begin(stream_id):
            self._streams.receive_subscribe(stream_id, None, 1, TOO_LONG, Fault.UNTOUCHED)
        elif kind in (FrameType.PAYLOAD, FrameType.ERROR) and isinstance(opened, ReceivingStream):
            text = (
                f"stream {stream_id}: {refusal} (Limits.max_frame). Let the peer send elements in "
                "fragments, or set a larger limit"
            )
            opened.fail_contract("", error=ProtocolError(text, reason=refusal.reason))
        elif kind is FrameType.PAYLOAD and serving is not None:
            # A channel may have begun; a request whose fragments arrive has not.
            is_waiting = self.requests.has_unfinished(stream_id)
            serving.refuse(TOO_LONG, fault=Fault.UNTOUCHED if is_waiting else Fault.REFUSED)
        else:
            self._channel.count_oddity()

    # --- the handshake

    def _may_receive(self, kind: FrameType, flags: int, stream_id: int) -> bool:
        """Return whether a frame may be acted on in a connection that is not open."""
        if kind in _SETUP_WORDS:
            return True
        if self._dialect.is_resuming and stream_id == 0 and kind is FrameType.RESUME_OK:
            return True
        self.handshake.check_begun()
        if not (kind is FrameType.ERROR and not stream_id):
            if self._dialect.is_resuming:
                raise ProtocolError("another frame before RESUME_OK", reason="protocol:resume")
            self.handshake.accept()
            self._dialect.extensions.release(FALSE_START)
            return not self._channel.state.is_closing
        return True

    def _setup(self, flags: int, stream_id: int, body: bytes) -> None:
        if self.handshake.has_begun:
            self._channel.count_oddity()  # a second SETUP, or one from a server
            return
        setup = codec.read_setup(flags, body)
        if setup.major != MAJOR:
            raise ProtocolError(
                f"the client speaks RSocket {setup.major}.{setup.minor}, and this side 1.0",
                reason=f"version {MAJOR}",
            )
        limits = self._channel.limits
        # Checked here as well, because a SETUP may arrive in one chunk with the bytes after it.
        if len(body) + FRAMED_HEADER_SIZE > limits.preauth_bytes:
            raise ProtocolError(f"a SETUP of {len(body)} bytes", reason="limit:hello")
        if stream_id or not setup.keepalive or not setup.lifetime:
            raise ProtocolError(
                "a SETUP on a stream, or without its times", reason="protocol:setup"
            )
        if setup.token is not None and (refusal := self._dialect.adopt(setup.token)):
            raise ProtocolError(f"the client cannot be resumed: {refusal}", reason=NOT_RESUMABLE)
        self.form = MetadataForm(setup.metadata_type, setup.data_type)
        shown = self.form.credentials_of(setup.metadata)
        credentials = None if shown is None else metadata.decode_credentials(shown)
        if not self._channel.state.is_closing:  # this side may have closed meanwhile
            self._dialect.on_setup(setup)
        introduction = SetupData.received(
            setup.data,
            data_type=setup.data_type,
            metadata_type=setup.metadata_type,
            metadata=setup.metadata or b"",
            leases=setup.leases,
        )
        self.handshake.receive(
            introduction,
            self._dialect.extensions,
            b"" if credentials is None else encode_credentials(credentials),
        )

    def _resume(self, flags: int, stream_id: int, body: bytes) -> None:
        if self.handshake.has_begun:
            # wire §Positions: also for a second RESUME, whose connection has another one's bytes.
            raise ProtocolError("a RESUME after the first frame", reason="protocol:resume")
        if stream_id:
            raise ProtocolError(f"a RESUME on stream {stream_id}", reason="protocol:setup")
        self._dialect.is_resuming = True
        asked = codec.read_resume(flags, body)
        takeover = self._dialect.takeover
        # rsocket-js 1.0.0-alpha.3 writes the two halves of the version the wrong way round.
        if takeover is None or MAJOR not in (asked.major, asked.minor):
            raise ProtocolError("this side resumes no connection", reason=NOT_RESUMED)
        takeover.said, takeover.kept = (asked.token, asked.received), asked.first_kept
        takeover.send_position = self._dialect.send_resume_ok
        # The token shows who the client is, so no extension examines it.
        self.handshake.has_begun = True
        if not self._channel.state.is_closing:
            self._session.hello_sent()
            self._session.receive_hello()

    # --- requests of the peer

    def _may_begin(self, stream_id: int) -> bool:
        """Return whether a request with this id may be served."""
        streams = self._streams
        if (
            stream_id
            and stream_id & 1 == self._peers
            and stream_id not in streams.serving
            and stream_id not in streams.opened
            and stream_id not in self._dialect.channels.arriving
        ):
            return True
        self._channel.count_oddity()
        return False

    def _request(
        self, kind: FrameType, flags: int, stream_id: int, body: bytes, demand: int, start: int
    ) -> None:
        if not self._may_begin(stream_id):
            return
        content, data = split_metadata(flags, body, start)
        model, is_leased = _MODELS[kind], self._is_leased()
        if flags & FOLLOWS:
            if not is_leased:
                self._streams.receive_subscribe(stream_id, None, 1, NO_LEASE, Fault.UNTOUCHED)
                return
            if not 0 < demand <= LARGEST_NUMBER:
                self._streams.receive_subscribe(stream_id, None, 1, ILLEGAL_DEMAND, Fault.INVALID)
                return
            self.requests.begin(stream_id, demand, partial(self._target_of, stream_id, model))
            self.requests.receive_fragment(stream_id, content, data, is_last=False)
            return
        refusal, fault = self._why_refused(demand)
        if not is_leased:
            refusal, fault = NO_LEASE, Fault.UNTOUCHED
        target: Request | None = None
        try:
            target = self._target_of(stream_id, model, content, data)
        except ProtocolError as broken:
            refusal, fault = str(broken), Fault.REFUSED
        if model is Model.FIRE_AND_FORGET:
            if refusal is None:
                self._streams.receive_fire_and_forget(target)
            else:
                self._channel.count_oddity()
            return
        size = len(body)
        if not self.requests.hold(stream_id, size):
            refusal, fault = REFUSED, Fault.UNTOUCHED
        if model is _RESPONSE:
            # Before the request is served: it may be answered inside that call.
            self._dialect.answering[stream_id] = False
        self._streams.receive_subscribe(stream_id, target, demand, refusal, fault)
        if stream_id not in self._streams.serving:  # refused, or answered at once
            self._dialect.forget_served(stream_id)

    @staticmethod
    def _why_refused(demand: int) -> tuple[str | None, Fault]:
        """Return the text and the fault for an illegal demand; no text for a legal one."""
        return (None if 0 < demand <= LARGEST_NUMBER else ILLEGAL_DEMAND), Fault.INVALID

    def _is_leased(self) -> bool:
        """Count a request of the peer. Return False for one above its lease."""
        leases = self._dialect.leases
        return leases is None or leases.admit()

    def _target_of(
        self, stream_id: int, model: Model, content: bytes | None, data: bytes
    ) -> Request:
        """Return what the service is asked for. Raises ProtocolError."""
        request = self.form.request_of(model, content, data)
        # A message has no span: nothing would take its trace.
        if self.form.trace is not None and model is not Model.FIRE_AND_FORGET:
            self._dialect.receive_trace(stream_id, self.form.trace)
        return request

    def receive_request(self, stream_id: int, body: bytes) -> None:
        """Serve a REQUEST_RESPONSE without a flag: the usual request in fewer calls, if it is small
        and leases are not used.
        """
        dialect, serving = self._dialect, self._streams.serving
        if (
            self._channel.state is _OPEN
            and len(body) <= SMALL
            and dialect.leases is None
            and stream_id & 1 == self._peers
            and stream_id
            and stream_id not in serving
            and stream_id not in self._opened
            and stream_id not in dialect.channels.arriving
        ):
            # Before the request is served: it may be answered inside that call.
            dialect.answering[stream_id] = False
            request = Request(_RESPONSE, body, types=self.form.types)
            self._streams.receive_subscribe(stream_id, request, 1)
            if stream_id not in serving:  # refused, or answered at once
                dialect.answering.pop(stream_id, None)
        else:
            self.receive_frame(_REQUEST, 0, stream_id, body)

    def _request_response(self, flags: int, stream_id: int, body: bytes) -> None:
        self._request(_REQUEST, flags, stream_id, body, 1, 0)

    def _request_fnf(self, flags: int, stream_id: int, body: bytes) -> None:
        self._request(FrameType.REQUEST_FNF, flags, stream_id, body, 1, 0)

    def _request_stream(self, flags: int, stream_id: int, body: bytes) -> None:
        self._request(FrameType.REQUEST_STREAM, flags, stream_id, body, _read_number(body)[0], 4)

    def _request_channel(self, flags: int, stream_id: int, body: bytes) -> None:
        if not self._may_begin(stream_id):
            return
        (demand,) = _read_number(body)
        content, data = split_metadata(flags, body, 4)
        if not self._is_leased():
            self._streams.receive_subscribe(stream_id, None, 1, NO_LEASE, Fault.UNTOUCHED)
            return
        refusal, fault = self._why_refused(demand)
        follows = bool(flags & FOLLOWS and not flags & COMPLETE)
        if follows and refusal is None:
            self.requests.begin(stream_id, demand, partial(self._channel_of, stream_id))
            self.requests.receive_fragment(stream_id, content, data, is_last=False)
            return
        target: Request | None = None
        if not self.requests.hold(stream_id, len(body)):
            refusal, fault = REFUSED, Fault.UNTOUCHED
        try:
            target = self._channel_of(stream_id, content, data)
        except ProtocolError as broken:
            refusal, fault = str(broken), Fault.REFUSED
        else:
            self._dialect.channels.arriving[stream_id].is_complete = bool(flags & COMPLETE)
        self._streams.receive_subscribe(stream_id, target, demand, refusal, fault)
        if stream_id not in self._streams.serving:  # refused, or ended at once
            self._dialect.forget_served(stream_id)

    def _channel_of(self, stream_id: int, content: bytes | None, data: bytes) -> Request:
        """Return what the service is asked for, and keep the first element of a channel."""
        # With the first element as its data, so that its bytes count as those of any request.
        request = self._target_of(stream_id, Model.CHANNEL, content, data)
        self._dialect.channels.arriving[stream_id] = Arriving(data)
        return request

    def _request_n(self, _flags: int, stream_id: int, body: bytes) -> None:
        (demand,) = _read_number(body)
        if stream_id in self._dialect.answering:
            self._channel.count_oddity()  # a request for one value has its demand in itself
        else:
            self._streams.receive_request(stream_id, demand if demand <= LARGEST_NUMBER else 0)

    def _cancel(self, _flags: int, stream_id: int, _body: bytes) -> None:
        channels = self._dialect.channels
        if stream_id in channels.arriving:
            # From the requester: both directions.
            channels.forget(stream_id)
            if stream_id in self._opened:
                self._end(stream_id, PublisherFailed("the peer has cancelled this channel"))
        self._dialect.forget_served(stream_id)
        self._streams.receive_cancel(stream_id)

    # --- answers to this side

    def receive_last(self, stream_id: int, body: bytes) -> None:
        """Deliver a whole element with the end of its stream: the path of most answers in fewer
        calls.
        """
        if (
            self._channel.state is _OPEN
            and stream_id in self._single
            and self._streams.receive_answer(stream_id, body)
        ):
            self._dialect.forget_opened(stream_id)
        else:
            self.receive_frame(_PAYLOAD, _LAST, stream_id, body)

    def _payload(self, flags: int, stream_id: int, body: bytes) -> None:
        stream = self._opened.get(stream_id)
        content, data = split_metadata(flags, body)
        # The flag C ends a sequence of fragments (wire §Streams).
        follows = bool(flags & FOLLOWS and not flags & COMPLETE)
        arriving = self._dialect.channels.arriving
        if not isinstance(stream, ReceivingStream) or (arriving and self._holds_first(stream_id)):
            self._receive_other(flags, stream_id, content, data, follows=follows)
            return
        if stream.element_size < 0:
            if self._streams.observers is not None:
                self._streams.observers.on_accepted(stream_id, 0)
                if self._channel.state.is_closing:
                    return
            # From now on the decoder hands whole elements straight to the stream.
            stream.receive_accept(0)
        is_end = bool(flags & COMPLETE or (stream_id in self._single and not follows))
        if follows or stream.is_joining(PART_NUMBER):
            self._receive_fragment(stream, content, data, follows=follows)
        elif flags & NEXT:
            if content is None:
                stream.receive_element(data)
            else:
                stream.note_beside(len(content))
                stream.receive_element(WithMetadata(data, metadata=content))
            self._dialect.count(stream_id)
        elif not flags & COMPLETE:
            self._channel.count_oddity()  # neither an element nor the end
            return
        # If not, the subscriber has cancelled.
        if is_end and stream_id in self._opened:
            self._end(stream_id, None)

    def _receive_fragment(
        self, stream: ReceivingStream, content: bytes | None, data: bytes, *, follows: bool
    ) -> None:
        beside = self.beside
        # How many bytes of metadata have come, and how many bytes in all.
        known = beside.get(stream.id)
        part = data
        if content is not None:
            if stream.is_joining(PART_NUMBER) and (known is None or known[0] != known[1]):
                stream.fail_contract("metadata came after the data of its element")
                return
            known = beside.setdefault(stream.id, [0, 0])
            known[0] += len(content)
            if known[0] > LONGEST_METADATA:
                stream.fail_contract(
                    f"the metadata of an element has more than {LONGEST_METADATA} bytes, which is "
                    "the most in fragments"
                )
                return
            # Together: metadata counts as data does, and is the beginning of it.
            part = content + data
        if known is not None:
            known[1] += len(part)
        if follows:
            stream.receive_part(PART_NUMBER, part, False)  # noqa: FBT003  # as the decoder calls it
            return
        if known is None:
            stream.receive_part(PART_NUMBER, part, True)  # noqa: FBT003  # the same
        else:
            beside.pop(stream.id, None)
            stream.receive_last_part(PART_NUMBER, part, known[0])
        self._dialect.count(stream.id)

    def _holds_first(self, stream_id: int) -> bool:
        """Return whether the first element of a channel still waits for the service's demand."""
        arriving = self._dialect.channels.arriving.get(stream_id)
        return arriving is not None and arriving.first is not None

    def _receive_other(
        self, flags: int, stream_id: int, content: bytes | None, data: bytes, *, follows: bool
    ) -> None:
        """Take a fragment of a request, or what arrives for a stream that is over."""
        arriving = self._dialect.channels.arriving.get(stream_id)
        if arriving is not None and not self.requests.has_unfinished(stream_id):
            # The service has not requested an element: only the end may come.
            if flags & COMPLETE and not flags & NEXT and not arriving.is_complete:
                arriving.is_complete = True
            else:
                self._channel.count_oddity()
            return
        if stream_id & 1 == self._peers:
            if flags & (FOLLOWS | NEXT) or self.requests.has_unfinished(stream_id):
                self.requests.receive_fragment(stream_id, content, data, is_last=not follows)
                if flags & COMPLETE and stream_id in self._dialect.channels.arriving:
                    # The first element of a channel is its last one: as an end in its own frame.
                    self._payload(COMPLETE, stream_id, b"")
            else:
                self._channel.count_oddity()
            return
        cancelled = self._streams.cancelled
        if flags & COMPLETE and not cancelled.count_end() and not data:
            self._channel.count_oddity()
        elif flags & NEXT or data:
            cancelled.count_part(len(data), last=not follows)

    def _error(self, _flags: int, stream_id: int, body: bytes) -> None:
        (code,) = _read_number(body)
        # Cut here: the decoder bounds frames by max_frame only.
        text = body[4:].decode("utf-8", "replace")[: self._channel.limits.max_error_text]
        if not stream_id:
            if code in _REFUSALS and self._channel.role is Role.SERVER:
                self._channel.count_oddity()  # only a client may be refused
                return
            early = None if self.handshake.is_accepted else setup_refusal(code, text)
            if self._dialect.is_resuming and code != ErrorCode.REJECTED_RESUME:
                # wire §Positions: only that code says that a later attempt is useless.
                early = Rejected(f"the server did not go on: {text}", temporary=True)
            self._session.receive_goodbye(text, early, waits=code == ErrorCode.CONNECTION_CLOSE)
            return
        channels = self._dialect.channels
        if channels.knows(stream_id):
            channels.forget(stream_id)
            if stream_id in self._streams.serving:
                self._dialect.forget_served(stream_id)
                self._streams.receive_cancel(stream_id)
        if isinstance(self._opened.get(stream_id), ReceivingStream):
            peer_drains = self._streams.drain.is_peer_draining
            self._end(stream_id, stream_error(code, text, peer_drains=peer_drains))
        elif not self._streams.cancelled.count_end():  # it may have crossed a CANCEL
            self._channel.count_oddity()

    def _end(self, stream_id: int, error: Exception | None) -> None:
        self._dialect.end_arriving(stream_id)
        if stream_id in self._opened:
            self._streams.receive_end(stream_id, error)

    # --- frames about the connection

    def _keepalive(self, flags: int, _stream_id: int, body: bytes) -> None:
        resumable, size = self._dialect.resumable, len(body) - POSITION_SIZE
        if resumable is not None:
            resumable.receive_position(codec.read_position(body, 0))
        if flags & RESPOND and size > (most := self._channel.limits.outbound_control // 2):
            raise ProtocolError(
                f"a KEEPALIVE with {size:,} bytes of data, which go back in its answer; {most:,} "
                "is the most here (half of Limits.outbound_control)",
                reason=f"protocol:keepalive {size}",
            )
        if flags & RESPOND and (
            (resumable is not None and resumable.is_question_free())
            or self._channel.spend_control_token()
        ):
            position = 0 if resumable is None else resumable.counter.position
            self._channel.answer(codec.keepalive(body[POSITION_SIZE:], position=position))

    def _lease(self, _flags: int, _stream_id: int, body: bytes) -> None:
        ttl, requests = _read_number(body)[0], _read_number(body, 4)[0]
        leases = self._dialect.leases
        # Without the flag L in the SETUP no request waits for a lease.
        if self._channel.spend_control_token() and leases is not None:
            leases.receive(ttl, requests)

    def _metadata_push(self, _flags: int, stream_id: int, body: bytes) -> None:
        if stream_id:
            self._channel.count_oddity()
        elif self._channel.spend_control_token():
            request = Request(Model.METADATA_PUSH, body, types=self.form.types)
            self._streams.receive_fire_and_forget(request)

    def _resume_ok(self, _flags: int, _stream_id: int, body: bytes) -> None:
        takeover = self._dialect.takeover
        if takeover is None or takeover.question is None or takeover.said is not None:
            self._channel.count_oddity()
            return
        takeover.said = takeover.question[0], codec.read_position(body, 0)
        self.handshake.accept()

    def _ext(self, flags: int, _stream_id: int, body: bytes) -> None:
        (extended_type,) = _read_number(body)
        if not flags & IGNORE:
            raise ProtocolError(
                f"extended type {extended_type:#x} is not known here",
                reason=f"protocol:extension {extended_type}",
            )
        self._channel.spend_control_token()

    # Functions, and not the methods of one object: a table for each connection had 1 KB.
    _receivers: ClassVar[
        Mapping[FrameType, Callable[["ReceivedFrames", int, int, bytes], None]]
    ] = {
        FrameType.SETUP: _setup,
        FrameType.LEASE: _lease,
        FrameType.KEEPALIVE: _keepalive,
        FrameType.REQUEST_RESPONSE: _request_response,
        FrameType.REQUEST_FNF: _request_fnf,
        FrameType.REQUEST_STREAM: _request_stream,
        FrameType.REQUEST_CHANNEL: _request_channel,
        FrameType.REQUEST_N: _request_n,
        FrameType.CANCEL: _cancel,
        FrameType.PAYLOAD: _payload,
        FrameType.ERROR: _error,
        FrameType.METADATA_PUSH: _metadata_push,
        FrameType.RESUME: _resume,
        FrameType.RESUME_OK: _resume_ok,
        FrameType.EXT: _ext,
    }


class RsocketDialect:
    """RSocket 1.0 on one connection."""

    name: ClassVar[str] = "rsocket"
    models: ClassVar[frozenset[Model]] = _SENT
    has_routes: ClassVar[bool] = True
    splits_requests: ClassVar[bool] = True
    # Every frame has its own length, so late elements need no memory of their stream.
    delimits_cancelled: ClassVar[bool] = False
    # RSocket has no frame for it. The end of the transport is the answer.
    answers_goodbye: ClassVar[bool] = False
    takes_extensions: ClassVar[bool] = False
    resumes: ClassVar[bool] = True
    carries_metadata: ClassVar[bool] = True
    # Its messages are metadata of requests. RSocket has no place for those of other extensions.
    default_extensions: ClassVar[frozenset[int]] = frozenset({traces.EXTENSION})
    takes_encodings: ClassVar[bool] = False
    examines_peers: ClassVar[bool] = True
    has_credentials_apart: ClassVar[bool] = True
    alpn: ClassVar[str] = "rsocket/1"

    def __init__(self, session: DialectHost, settings: DialectSettings = DEFAULT) -> None:
        self._session = session
        self._channel = session.channel
        self._streams = session.streams
        self._setup = settings.setup
        self._is_framed = settings.framed
        longest = LARGEST_LENGTH - FRAMED_HEADER_SIZE
        self.max_unsplit: int = min(session.channel.limits.split_outbound_at, longest)
        self.resumable: ResumableFrames | None = None
        """Counts what can be resumed. None without resuming, or if the client does not want it."""
        self.takeover: Takeover | None = None
        """The question and the answer of a connection that goes on for a lost one."""
        usable: list[Extension] = []
        for extension in settings.extensions:
            # These two have frames of RSocket in the place of messages.
            if isinstance(extension, Resume):
                self.resumable = ResumableFrames(session, extension.owner, framed=settings.framed)
            elif isinstance(extension, Resuming):
                self.takeover = extension.takeover
            else:
                usable.append(extension)
        self.is_resuming: bool = self.takeover is not None and self.takeover.question is not None
        """This connection goes on for a lost one, or its client wants that."""
        self._trace: metadata.Trace | None = None  # of the request that is being sent
        self._rest: list[bytes] = []  # bytes for the lost connection
        self._watch: KeepaliveWatch | None = None
        self.extensions: ExtensionHost = ExtensionHost(
            session,
            usable,
            self._extension_message,
            self._on_admitted,
            has_introductions=True,
        )
        self._last_id = -1 if session.channel.role is Role.CLIENT else 0
        self._has_wrapped = False
        self.single: set[int] = set()
        """Requests for one value that this side has sent. The first element ends such a request,
        with the flag C or without it.
        """
        self.answering: dict[int, bool] = {}
        """Requests for one value of the peer; True once the value was sent, with the end."""
        # Streams of this side that the peer does not know yet: a request needs a demand.
        self._unsent: dict[int, Unsent] = {}
        self.leases: Leases | None = None
        """None on a connection without leases."""
        # Streams of this side with a demand that no frame can carry; None without one.
        self._counted: CountedTable | None = None
        self.channels: Channels = Channels()
        self._leaving = OutgoingData(session.channel, self._fragment_header)
        self._received = ReceivedFrames(session, self)
        self._decoder = RsocketDecoder(
            self._received,
            session.streams.opened,
            framed=settings.framed,
            max_frame=session.channel.limits.max_frame,
        )

    @property
    def preauth_bytes(self) -> int:
        """How many bytes may come before a SETUP is complete."""
        return self._received.handshake.preauth_bytes

    @property
    def content_types(self) -> ContentTypes:
        """The MIME types of the SETUP."""
        return self._received.form.types

    # --- the handshake

    def start(self, now: float) -> None:
        """Send a client's SETUP. A server waits for it."""
        if self.takeover is not None and self.takeover.question is not None:
            token, received = self.takeover.question
            self._session.hello_sent()
            self._channel.send(
                codec.encode(
                    frames.Resume(token=token, received=received, first_kept=self.takeover.kept)
                )
            )
            return
        self._watch = KeepaliveWatch(self._session, self._keepalive_frame)
        if self._channel.role is Role.SERVER:
            return
        self._session.hello_sent()
        self._channel.send(codec.encode(self._client_setup()))
        # A server answers it only if it has accepted the SETUP, and no other frame does so at once.
        self._channel.send(codec.keepalive(b"", respond=True))
        # What makes spans knows a connection when it is open: requests wait for that.
        if any(
            each.id in self.extensions.active and getattr(each, "no_false_start", False)
            for each in self.extensions.known.values()
        ):
            self.extensions.withhold(FALSE_START)

    def _client_setup(self) -> frames.Setup:
        given = self._setup
        setup = given if isinstance(given, SetupData) else SetupData(given)
        self._received.form = MetadataForm(setup.metadata_type, setup.data_type)
        self._open_traces()
        if setup.leases:
            self.leases = Leases(self._session, self._send_leased)
        limits, content = self._channel.limits, setup.metadata
        found = decode_credentials(self.extensions.introduction() or b"\0\0")
        if found is not None and found != (b"", b""):
            credentials = metadata.encode_credentials(Credentials(found[0].decode(), found[1]))
            content += metadata.encode_composite([(metadata.AUTHENTICATION, credentials)])
        interval = int(limits.keepalive * MILLISECONDS)
        lifetime = interval + int(limits.keepalive_timeout * MILLISECONDS)
        token = None
        if self.resumable is not None:
            token = new_token()
            self.resumable.begin(token)
        return frames.Setup(
            token=token,
            keepalive=min(max(interval, 1), LARGEST_NUMBER),
            lifetime=min(max(lifetime, 1), LARGEST_NUMBER),
            leases=setup.leases,
            metadata_type=setup.metadata_type,
            data_type=setup.data_type,
            metadata=content or None,
            data=bytes(setup),
        )

    def adopt(self, token: bytes) -> str:
        """Let a client's token lead here. Return why it cannot, or an empty text."""
        if self.resumable is None:
            return "this side resumes no connection"
        return self.resumable.adopt(token)

    def on_setup(self, setup: frames.Setup) -> None:
        """Note what a client wants."""
        if setup.token is None:
            self.resumable = None
        self._open_traces()
        if setup.leases:
            self.leases = Leases(self._session, self._send_leased)

    def overdue(self) -> None:
        """End the handshake."""
        self._received.handshake.overdue()
        self.extensions.release(FALSE_START)

    def release(self) -> None:
        """Drop what refers to this object: the session is over, or speaks another protocol."""
        self.extensions.end()
        self._counted = self.leases = self.resumable = self.takeover = self._watch = None
        del (
            self._decoder,
            self._received,
            self._leaving,
            self._session,
            self._channel,
            self._streams,
            self.extensions,
        )

    # --- traces

    def _open_traces(self) -> None:
        """Begin with traces, if this side makes them and their metadata has a place."""
        if self._received.form.is_composite:
            self.extensions.open(traces.EXTENSION)

    def _extension_message(self, extension: Extension, code: int, body: bytes) -> bytes:
        """Keep the trace for the request that follows, and encode nothing."""
        if (extension.id, code) == (traces.EXTENSION, traces.MESSAGE):
            self._trace = traces.trace_of(body)
        return b""

    def _traced(self, target: str | Request) -> str | Request:
        """Return the request with the trace that was kept. Return it unchanged if the program has
        given a trace itself, or if the metadata would be too long.
        """
        trace, self._trace = self._trace, None
        request = target
        if isinstance(request, str):
            request = Request(Model.STREAM, b"", name=request)
        if trace is None or find_entry(request.metadata or b"", TRACING) is not None:
            return target
        entry = encode_composite([(TRACING, metadata.encode_trace(trace))])
        traced = replace(request, metadata=(request.metadata or b"") + entry)
        try:
            self._check_metadata(traced)
        except UsageError:
            return target
        return traced

    def receive_trace(self, stream_id: int, content: bytes) -> None:
        """Give the trace of a request to what makes spans. One that cannot be read is ignored."""
        active = self.extensions.active.get(traces.EXTENSION)
        if active is None:
            return
        try:
            message = traces.message_of(stream_id, metadata.decode_trace(content))
        except ProtocolError:
            return
        if message is not None:
            self.extensions.received(active, traces.MESSAGE, message)

    # --- resuming

    @property
    def received_position(self) -> int:
        """The position up to which this side has received."""
        return 0 if self.resumable is None else self.resumable.counter.position

    def send_resume_ok(self, received: int) -> None:
        """Let the client go on."""
        self._channel.send(codec.encode(frames.ResumeOk(received=received)))

    def on_next_link(self) -> None:
        """Go on over another link. What had come of a frame comes again, as a whole."""
        self._decoder.drop_incomplete()
        if self.resumable is not None:
            self.resumable.counter.drop_incomplete()
        if self.leases is not None:
            self.leases.restart()
        if self._watch is not None:
            self._watch.restart()

    def take_rest(self) -> list[bytes]:
        """Return what has come for the lost connection."""
        rest, self._rest = self._rest, []
        return rest

    @property
    def _is_asked(self) -> bool:
        return self.takeover is not None and self.takeover.said is not None

    def _keepalive_frame(self) -> bytes:
        position = 0 if self.resumable is None else self.resumable.counter.position
        return codec.keepalive(b"", respond=True, position=position)

    def _on_admitted(self) -> None:
        self._received.handshake.on_admitted()

    # --- sending requests

    def next_id(self, target: Any) -> int:
        """Return the id of a new request. Raises UsageError for one that cannot be sent."""
        if target.__class__ is Request:
            if target.model is Model.METADATA_PUSH:
                return 0
            # Here, because a request that is refused must not take an id or a place.
            if target.name is not None or target.metadata:
                self._check_metadata(target)
        elif target.__class__ is not ChannelElements:  # a name
            self._check_metadata(target)
        elif (joined := self.channels.join(target)) is not None:
            return joined
        self._last_id += 2
        if self._last_id > LARGEST_STREAM_ID:
            self._last_id, self._has_wrapped = 2 - self._last_id % 2, True
        if self._has_wrapped:
            while self._last_id in self._streams.opened or self._last_id in self._streams.serving:
                self._last_id += 2
        return self._last_id

    def subscribe(self, stream_id: int, target: Any, demand: int) -> bytes:
        """Encode a request. A text as `target` is a name."""
        if target.__class__ is ChannelElements:
            return self._join(stream_id, demand)
        observers = self._streams.observers
        if observers is not None:
            target = observers.before_subscribe(stream_id, target)
            if self._trace is not None:
                target = self._traced(target)
        # The usual request in fewer calls: what `_send_request` would return.
        elif (
            self.leases is None
            and demand
            and target.__class__ is Request
            and target.model is _RESPONSE
            and target.name is None
            and target.metadata is None
            and len(target.data) <= self.max_unsplit
        ):
            self.single.add(stream_id)
            data = target.data
            # As `frame_header` does: the id and the length were checked.
            length = FRAMED_HEADER_SIZE + len(data)
            return pack_header(length >> 16, length & 0xFFFF, stream_id, PLAIN_REQUEST) + data
        if not demand or not self._has_lease(stream_id):
            # Without demand it waits for the first one: a request without demand does not exist.
            self._unsent[stream_id] = Unsent(target, demand)
            return b""
        return self._send_request(stream_id, target, demand)

    def _has_lease(self, stream_id: int) -> bool:
        """Return whether a request may be sent now; if not, it waits for its lease."""
        leases = self.leases
        if leases is None or leases.take():
            return True
        leases.wait(stream_id)
        return False

    def _send_leased(self, stream_id: int) -> None:
        """Send a request that has waited for a lease."""
        unsent = self._unsent.pop(stream_id, None)
        if unsent is not None:
            self._channel.send(self._send_request(stream_id, unsent.target, unsent.demand))

    def _send_request(self, stream_id: int, target: Any, demand: int) -> bytes:
        if target.__class__ is Request:
            if target.model is Model.CHANNEL:
                # The first element of this side sends it.
                self.channels.opening[stream_id] = Opening(target, demand)
                self.channels.own.add(stream_id)
                self._streams.receive_subscribe(stream_id, target, 1)
                return b""
            if target.model is Model.FIRE_AND_FORGET:
                return self._encode_request(FrameType.REQUEST_FNF, stream_id, target, b"")
            if target.model is _RESPONSE:
                # The only request whose end this side must know:
                # its first element ends it, with or without the flag C.
                self.single.add(stream_id)
                return self._encode_request(FrameType.REQUEST_RESPONSE, stream_id, target, b"")
        granted = demand if demand <= LARGEST_NUMBER else self._grant_large(stream_id, demand)
        return self._encode_request(
            FrameType.REQUEST_STREAM, stream_id, target, NUMBER.pack(granted)
        )

    def fire(self, stream_id: int, target: Any) -> bytes:
        """Encode a request that has no answer, or metadata about the connection."""
        if not stream_id:
            return codec.encode(frames.MetadataPush(metadata=target.data))
        if not self._has_lease(stream_id):
            self._unsent[stream_id] = Unsent(target, 0)
            return b""
        return self._send_request(stream_id, target, 0)

    def request(self, stream_id: int, n: int) -> bytes:
        """Encode more demand. A request for one value has its demand in itself."""
        unsent = self._unsent.get(stream_id) if self._unsent else None
        if unsent is not None:
            had_demand, unsent.demand = unsent.demand, unsent.demand + n
            if had_demand or not self._has_lease(stream_id):
                return b""  # it waits for its lease
            del self._unsent[stream_id]
            return self._send_request(stream_id, unsent.target, unsent.demand)
        if stream_id in self.single:
            return b""
        if self.channels.opening and stream_id in self.channels.opening:
            self.channels.opening[stream_id].demand += n
            return b""
        arriving = self.channels.arriving.get(stream_id) if self.channels.arriving else None
        if arriving is not None and arriving.first is not None:
            return self._begin_arriving(stream_id, arriving, n)
        return self._encode_demand(stream_id, n)

    def _encode_demand(self, stream_id: int, n: int) -> bytes:
        counted = self._counted
        if n > LARGEST_NUMBER or (counted is not None and stream_id in counted):
            n = self._grant_large(stream_id, n)
        else:
            stream: Any = self._streams.opened.get(stream_id)
            # The sum may be more than a peer can count (wire §Demand).
            if stream is not None and stream.outstanding > LARGEST_NUMBER:
                n = self._grant_large(stream_id, n, before=stream.outstanding - n)
        return codec.request_n(stream_id, n) if n else b""

    def cancel(self, stream_id: int) -> bytes:
        """Encode a cancel; nothing for a request that was not sent."""
        was_unsent = stream_id in self._unsent
        if stream_id in self.channels.own:
            # Both directions: the elements of this side end as well.
            was_unsent = stream_id in self.channels.opening
            self.channels.forget(stream_id)
            if stream_id in self._streams.serving:
                self._streams.receive_cancel(stream_id)
        self.end_arriving(stream_id)
        return b"" if was_unsent else codec.cancel(stream_id)

    # --- channels

    def _join(self, stream_id: int, demand: int) -> bytes:
        """Let the elements of a channel of the peer arrive: the service has subscribed to them."""
        arriving = self.channels.arriving.get(stream_id)
        if arriving is None or not arriving.is_open:
            self._streams.receive_end(
                stream_id,
                AlreadySubscribed(
                    "the elements of this channel are gone: they had a subscriber, or the peer "
                    "has ended the channel"
                ),
            )
            return b""
        self._streams.receive_accept(stream_id, 0)
        return self._begin_arriving(stream_id, arriving, demand) if demand else b""

    def _begin_arriving(self, stream_id: int, arriving: Arriving, demand: int) -> bytes:
        """Deliver the first element of a channel of the peer, and request the others."""
        first, arriving.first = arriving.first, None
        stream: Any = self._streams.opened[stream_id]
        stream.receive_element(first)
        if arriving.is_complete:
            if stream_id in self._streams.opened:
                self.end_arriving(stream_id)
                self._streams.receive_end(stream_id, None)
            return b""
        # The service may have cancelled when it got the element.
        is_wanted = demand > 1 and stream_id in self._streams.opened
        return self._encode_demand(stream_id, demand - 1) if is_wanted else b""

    def end_arriving(self, stream_id: int) -> None:
        """Forget the direction towards this side: it is over."""
        self.forget_opened(stream_id)
        arriving = self.channels.arriving.get(stream_id)
        if arriving is not None:
            arriving.is_open, arriving.first = False, None
            if stream_id not in self._streams.serving:
                self.channels.forget(stream_id)

    def _end_leaving(self, stream_id: int) -> bytes:
        """Forget the direction away from this side, which is complete. Return the frame that tells
        the peer that its elements are not taken.
        """
        arriving = self.channels.arriving.get(stream_id)
        if arriving is None:
            return b""
        if arriving.is_taken and arriving.is_open:
            return b""  # the service goes on reading
        is_unread = arriving.is_open and not arriving.is_complete
        self.channels.forget(stream_id)
        return codec.cancel(stream_id) if is_unread else b""

    def _fail_channel(self, stream_id: int, text: str) -> bool:
        """End the direction towards this side, because the other one has failed. Return whether
        the peer knows the channel.
        """
        was_sent = stream_id not in self.channels.opening
        self.channels.forget(stream_id)
        if stream_id in self._streams.opened:
            self.forget_opened(stream_id)
            self._streams.receive_end(stream_id, PublisherFailed(text))
        return was_sent

    def _open_channel(self, stream_id: int, first: int, flags: int, beside: bytes = b"") -> bytes:
        """Encode what stands before the first element of a channel of this side, or before the
        first part of it, which has `first` bytes. `beside` is the metadata of the element.
        """
        opening = self.channels.opening.pop(stream_id)
        demand = max(opening.demand, 1)
        if demand > LARGEST_NUMBER:
            demand = self._grant_large(stream_id, demand)
        content, _ = self._metadata_and_data(opening.request)
        if beside:
            content = (content or b"") + beside
        head = NUMBER.pack(demand) + join_metadata(content, b"")
        flags |= 0 if content is None else METADATA
        return frame_header(FrameType.REQUEST_CHANNEL, flags, stream_id, len(head) + first) + head

    def _check_metadata(self, target: str | Request) -> None:
        content = self._metadata_and_data(target)[0]
        most = self.max_unsplit - 64  # the rest of a frame: its header, the demand, the lengths
        if content is not None and len(content) > most:
            raise UsageError(
                f"the metadata of a request has {len(content)} bytes; {most} is the most here "
                "(Limits.split_outbound_at)"
            )

    def _metadata_and_data(self, target: str | Request) -> tuple[bytes | None, bytes]:
        form = self._received.form
        if isinstance(target, str):
            return form.with_route(target, None), b""
        if target.name is None:
            return target.metadata, target.data
        return form.with_route(target.name, target.metadata), target.data

    def _encode_request(
        self, kind: FrameType, stream_id: int, target: str | Request, demand: bytes
    ) -> bytes:
        content, data = self._metadata_and_data(target)
        flags = 0 if content is None else METADATA
        size = len(demand) + len(data) + (0 if content is None else LENGTH_SIZE + len(content))
        if size > self.max_unsplit:
            # The rest goes in fragments, in turn with large elements.
            room = self.max_unsplit - (size - len(data))
            self._leaving.add(stream_id, data[room:])
            data = data[:room]
            flags |= FOLLOWS
        body = demand + join_metadata(content, data)
        return frame_header(kind, flags, stream_id, len(body)) + body

    def _fragment_header(self, stream_id: int, size: int, last: bool) -> bytes:  # noqa: FBT001  # as the sender calls it
        return payload_header(stream_id, size, NEXT if last else NEXT | FOLLOWS)

    def _grant_large(self, stream_id: int, n: int, *, before: int = 0) -> int:
        """Count the demand of a stream from now on. Return how much to grant now."""
        if self._counted is None:
            self._counted = CountedTable(self._streams.opened)
            # From now on the decoder looks there first: only such streams pay for the count.
            self._decoder.streams = self._counted
        counted = self._counted.counted(stream_id)
        if counted is None:
            stream: Any = self._streams.opened[stream_id]
            counted = CountedStream(stream, partial(self._grant, stream_id))
            counted.demand.open = min(before, LARGEST_NUMBER)
            self._counted[stream_id] = counted
        return counted.demand.add(n)

    def _grant(self, stream_id: int, n: int) -> None:
        if stream_id in self._streams.opened:
            self._channel.send(codec.request_n(stream_id, n))

    def count(self, stream_id: int) -> None:
        """Count an element that came past the table of the decoder."""
        counted = None if self._counted is None else self._counted.counted(stream_id)
        if counted is not None:
            counted.count(1)

    def forget_opened(self, stream_id: int) -> None:
        """Forget a stream of this side: it is over."""
        self.single.discard(stream_id)
        if self._received.beside:
            self._received.beside.pop(stream_id, None)
        unsent = self._unsent
        if unsent and unsent.pop(stream_id, None) is not None and self.leases is not None:
            self.leases.forget(stream_id)
        if self._leaving.senders:
            self._leaving.forget(stream_id)
        counted = self._counted
        if counted is not None and counted.pop(stream_id, None) is not None and not counted:
            self._counted, self._decoder.streams = None, self._streams.opened
        own = self.channels.own
        if own and stream_id in own and stream_id not in self._streams.serving:
            self.channels.forget(stream_id)

    # --- sending answers

    def begin(self, stream_id: int, element_size: int) -> bytes:
        """Encode nothing: no frame accepts a stream, and every frame has its own length."""
        observers = self._streams.observers
        if observers is not None:
            observers.before_accept(stream_id, element_size)
        return b""

    def join_run(self, stream_id: int, elements: list[bytes]) -> bytearray:
        """Encode elements, each in one frame."""
        if self.channels.opening and stream_id in self.channels.opening:
            # One element: a channel that was not sent has a demand of 1.
            [first] = elements
            beside = first.metadata if isinstance(first, WithMetadata) else b""
            return bytearray(self._open_channel(stream_id, len(first), 0, beside)) + first
        if len(elements) == 1 and isinstance(element := elements[0], WithMetadata):
            flags = NEXT | self._end_flag(stream_id)
            return bytearray(codec.payload(stream_id, element, flags, metadata=element.metadata))
        return join_run(stream_id, elements, NEXT | self._end_flag(stream_id))

    def answer(self, stream_id: int, element: bytes) -> bytes:
        """Encode the only element of a request for one value, with its end in the same frame."""
        # As `forget_served` does, for an id that is not of a channel.
        self.answering.pop(stream_id, None)
        if self._received.requests.sizes:
            self._received.requests.release(stream_id)
        observers = self._streams.observers
        if observers is not None:
            observers.before_accept(stream_id, 0)
        # As `frame_header` does: an element above `max_unsplit` does not come here.
        length = FRAMED_HEADER_SIZE + len(element)
        return pack_header(length >> 16, length & 0xFFFF, stream_id, LAST_PAYLOAD) + element

    def write_packed(self, into: bytearray, stream_id: int, size: int, elements: bytearray) -> None:
        """Write each element in one frame, or in several if it is large."""
        write_apart(into, elements, size, self.max_unsplit, partial(self.part, stream_id))

    def part(self, stream_id: int, element: int, length: int, first: bool, last: bool) -> bytes:  # noqa: FBT001  # as in the protocol
        """Encode the header of a fragment."""
        if first and self.channels.opening and stream_id in self.channels.opening:
            return self._open_channel(stream_id, length, 0 if last else FOLLOWS)
        return payload_header(
            stream_id, length, NEXT | self._end_flag(stream_id) if last else NEXT | FOLLOWS
        )

    def complete(self, stream_id: int) -> bytes:
        """Encode a good end: nothing if a value was sent with its end."""
        was_sent = self.answering.get(stream_id, False)
        if self.channels.knows(stream_id):
            if stream_id in self.channels.opening:
                # Not one element: the peer never hears of the channel.
                self.channels.forget(stream_id)
                if stream_id in self._streams.opened:
                    self._streams.receive_end(stream_id, None)
                return b""
            self.forget_served(stream_id)
            return payload_header(stream_id, 0, COMPLETE) + self._end_leaving(stream_id)
        self.forget_served(stream_id)
        return b"" if was_sent else payload_header(stream_id, 0, COMPLETE)

    def error(self, stream_id: int, text: str, fault: Fault) -> bytes:
        """Encode an ERROR with the code for `fault`."""
        return self._encode_error(stream_id, _CODE_OF[fault], text)

    def coded_error(self, stream_id: int, text: str, fault: Fault, code: int) -> bytes:
        """Encode an ERROR with the code of the program, or with that for `fault` in the place of
        one that a stream cannot have.
        """
        if code in _CODES_OF_STREAMS or FIRST_APPLICATION_CODE <= code <= LAST_APPLICATION_CODE:
            return self._encode_error(stream_id, code, text)
        return self.error(stream_id, text, fault)

    def _encode_error(self, stream_id: int, code: int, text: str) -> bytes:
        self.forget_served(stream_id)
        what = "the peer has broken the contract of the channel"
        if code != ErrorCode.INVALID:
            what = "the elements of this side failed"
        if self.channels.knows(stream_id) and not self._fail_channel(stream_id, f"{what}: {text}"):
            return b""
        return codec.error(stream_id, code, text.encode(errors="replace"))

    def goodbye(self, reason: str) -> bytes:
        """Encode the reason as an ERROR on stream 0, if there is one."""
        if not reason:
            return b""
        if self.is_resuming and reason.startswith((NOT_RESUMED, "protocol", "version")):
            return codec.error(0, ErrorCode.REJECTED_RESUME, reason.encode(errors="replace"))
        is_open = self._channel.role is Role.CLIENT or self._channel.deadlines.is_open
        if is_open or self.is_resuming:
            known = connection_reason(reason)
            is_good = known is not None and known.ends_accepted and not self._session.cuts_streams
            code = ErrorCode.CONNECTION_CLOSE if is_good else ErrorCode.CONNECTION_ERROR
        # The service itself words the refusal of a SETUP that could be read.
        elif self._received.handshake.has_begun:
            code = ErrorCode.REJECTED_SETUP
        else:
            code = _refusal_code(reason)
        return codec.error(0, code, reason.encode(errors="replace"))

    def split(self, data: bytearray) -> Iterator[memoryview]:
        """Cut between frames, and leave their lengths out: a framed transport knows them."""
        return split_frames(data, LENGTH_SIZE, LENGTH_SIZE)

    def forget_served(self, stream_id: int) -> None:
        """Forget a stream of the peer: it is over."""
        self.answering.pop(stream_id, None)
        own = self.channels.own
        if own and stream_id in own and stream_id not in self._streams.opened:
            self.channels.forget(stream_id)
        if self._received.requests.sizes:
            self._received.requests.release(stream_id)

    def _end_flag(self, stream_id: int) -> int:
        """Return the flag of an element that ends its stream:
        the only value of a request for one.
        """
        if self.answering and stream_id in self.answering:
            self.answering[stream_id] = True
            return COMPLETE
        return 0

    # --- clients that are not served

    @staticmethod
    def refusal(reason: str, *, framed: bool = False) -> bytes:
        """Encode the refusal of a client that is not let in."""
        text = reason.encode(errors="replace")
        return codec.error(0, _refusal_code(reason), text, framed=framed)

    @staticmethod
    def recognises(first: bytes, framed: bool) -> bool | None:  # noqa: FBT001  # as in the protocol
        """Return whether a client begins with a SETUP or a RESUME."""
        # The upper byte of the length of such a frame is 0 as well.
        start = 0 if framed else LENGTH_SIZE
        if any(first[:1] if not framed else b"") or any(first[start : start + 4]):
            return False
        if len(first) <= start + 4:
            return None
        return first[start + 4] >> (TYPE_SHIFT - 8) in _SETUP_WORDS

    # --- receiving

    def feed(self, data: bytes, most: int) -> bool:
        """Decode bytes and act on their frames.
        Frames after the SETUP wait until the service has examined it.
        """
        if data and self.extensions.hearing:
            self.extensions.heard()
        if self.takeover is not None and self._is_asked:
            self._keep(data)
            return False
        if self.is_resuming:
            more = self._decoder.feed(data, max_messages=1)
            return self._keep_rest() and more
        if self.resumable is not None:
            self.resumable.counter.feed(data)
        if self._channel.state is _EXAMINING:
            self._decoder.feed(data, max_messages=0)
            return False
        if self._received.handshake.has_begun:
            return self._decoder.feed(data, max_messages=most)
        # One frame: if it is a SETUP, the requests after it must wait for the service's decision.
        more = self._decoder.feed(data, max_messages=1)
        if not self._keep_rest():
            return False
        is_open = self._channel.state is _OPEN
        return more and is_open and self._decoder.feed(b"", max_messages=most)

    def _keep_rest(self) -> bool:
        """Keep what follows the first frame, if it is for a lost connection. Return whether this
        connection goes on itself.
        """
        if not self._is_asked:
            return True
        self._keep(self._decoder.take_rest())
        return False

    def _keep(self, data: bytes) -> None:
        """Keep bytes for the connection that goes on."""
        if not data:
            return
        # A client waits for RESUME_OK. Kept without a bound, its bytes could fill the memory while
        # the lost connection is looked for.
        if self._channel.role is Role.SERVER:
            raise ProtocolError("a frame before RESUME_OK", reason="protocol:resume")
        self._rest.append(data)

    def held(self) -> int:
        """Return how many bytes of an incomplete frame wait, or for a lost connection."""
        return self._decoder.held + sum(map(len, self._rest))


def _refusal_code(reason: str) -> ErrorCode:
    """Return the code that refuses a client for a reason of penstock."""
    is_invalid = reason.startswith(
        ("protocol:setup", "protocol:metadata", "protocol:length", "version")
    )
    return ErrorCode.INVALID_SETUP if is_invalid else ErrorCode.REJECTED_SETUP


def setup_refusal(code: int, text: str) -> Rejected | None:
    """Return the error of an ERROR on stream 0 that comes before anything was answered; None for
    a code that does not refuse the SETUP.
    """
    if code not in _REFUSALS:
        return None
    if text == AUTH:
        return AuthRefused(f"the server did not let this client in: {explain_connection_end(text)}")
    # By its code nothing was done, also for requests that were sent after the SETUP.
    return no_room_refusal(text, processed=False) or Rejected(
        f"the server refused this client's setup ({ErrorCode(code).name}): "
        f"{explain_connection_end(text)}",
        processed=False,
    )


def stream_error(code: int, text: str, *, peer_drains: bool = False) -> Exception:
    """Return the error of a stream that the peer has ended with a code."""
    shown = explain_stream_end(text)
    if code == ErrorCode.REJECTED:
        return Rejected(
            f"the peer refused this stream: {shown}",
            processed=False,
            temporary=peer_drains or text == DRAINING,
            code=code,
        )
    if code in (ErrorCode.CANCELED, ErrorCode.INVALID):
        return Rejected(
            f"the peer refused this stream ({ErrorCode(code).name}): {shown}", code=code
        )
    # A number of the application means something to its programs.
    return PublisherFailed(
        shown if code < FIRST_APPLICATION_CODE else f"{shown} (code {code:#x})", code=code
    )
