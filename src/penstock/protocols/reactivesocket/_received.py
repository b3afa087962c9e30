"""What a ReactiveSocket peer says, judged: the decoder's sink, which tells the session core what it means.

Rules of this file:

* Before SETUP nothing else is taken. A second one is ignored, as is whatever is out of place: for a glitch.
* The two spaces of ids are told apart by the type of a frame: requests, grants and cancels name the peer's, responses and errors ours.
* A request for one value is over with its first response, whether that says so or not; a second one belongs to nothing.
"""

from typing import TYPE_CHECKING, Final

from penstock.api import UNBOUNDED, Model, ProtocolError, PublisherFailed, Rejected, Request, Role
from penstock.protocols.reactivesocket import _codec as wire
from penstock.session import DRAINING, NO_SUCH, REFUSED, ConnectionState, ReceivingStream, advised, shown

if TYPE_CHECKING:
    from penstock.protocols.reactivesocket._dialect import ReactiveSocketDialect
    from penstock.session import Session

REFUSALS: Final = frozenset({REFUSED, DRAINING, NO_SUCH})
"""Errors of a stream that mean: nothing was done. They are what this side says itself; other peers may say what they like."""

ENDS_OF_THE_ACCEPTED: Final = frozenset(
    [
        "shutdown",
        "drain",
        "idle",
        "internal",
        "slow-reader",
        "limit:memory",
        "limit:partial",
        "limit:churn",
        "limit:control",
        "limit:glitches",
        "limit:requests",
    ]
)
"""What this side says to clients that it had let in: part of what they asked for may have been done, though nothing was answered."""

PART: Final = 0
"""Fragments of one stream are not interleaved: there is one element at a time."""

_MODELS: Final = {
    wire.FrameType.REQUEST_RESPONSE: Model.RESPONSE,
    wire.FrameType.REQUEST_FNF: Model.FIRE_AND_FORGET,
    wire.FrameType.REQUEST_STREAM: Model.STREAM,
    wire.FrameType.REQUEST_SUB: Model.SUBSCRIPTION,
}


class ReceivedFrames:
    """The ear of a ReactiveSocketDialect."""

    def __init__(self, session: "Session", dialect: "ReactiveSocketDialect") -> None:
        self._session = session
        self._dialect = dialect
        self.is_greeted: bool = session.role is Role.CLIENT
        """A server: the SETUP is in."""
        self._is_accepted = session.role is Role.SERVER  # a client: the server has answered something
        self._ends_due = 0
        """Values that came without the end, which some peers send in a frame of its own."""

    def receive_setup(self, version: int, stream_id: int, data: bytes) -> None:
        """The client introduces itself."""
        session = self._session
        if self.is_greeted:
            session.count_oddity()  # a second one, or one from a server
            return
        if version != wire.VERSION:
            raise ProtocolError(f"the client speaks version {version}, and this side version 0", reason=f"version {wire.VERSION}")
        if stream_id:
            raise ProtocolError(f"a SETUP on stream {stream_id}, which belongs on 0", reason="protocol:setup")
        if len(wire.encode(wire.Setup(data=data))) > session.limits.preauth_bytes:  # however it was cut on its way
            raise ProtocolError(f"a SETUP with {len(data)} bytes of data", reason="limit:hello")
        self.is_greeted = True
        if not session.is_closing:  # this side may have left meanwhile
            session.greeted()
            session.introduced(data)

    def receive_request(self, kind: wire.FrameType, stream_id: int, demand: int | None, data: bytes) -> None:
        """The peer asks for something."""
        session = self._session
        self._check_setup()
        self.accepted()
        if session.is_closing:
            return
        if not stream_id or stream_id in session.serving:
            session.count_oddity()
            return
        request = Request(_MODELS[kind], data)
        if request.model is Model.FIRE_AND_FORGET:
            session.receive_fire_and_forget(request)
            return
        if request.model is not Model.STREAM:
            self._dialect.answering[stream_id] = request.model
        is_illegal = demand is not None and demand > UNBOUNDED
        session.peer_subscribed(stream_id, request, 1 if demand is None else demand, "illegal demand" if is_illegal else None)
        if stream_id not in session.serving:
            self._dialect.answering.pop(stream_id, None)

    def receive_request_n(self, stream_id: int, demand: int) -> None:
        """The peer grants demand."""
        self._check_setup()
        if self._dialect.answering.get(stream_id) in (Model.RESPONSE, Model.NAMED):
            self._session.count_oddity()  # a single value asks for itself
        elif not self._session.is_closing:
            self._session.peer_requested(stream_id, demand if demand <= UNBOUNDED else 0)

    def receive_cancel(self, stream_id: int) -> None:
        """The peer wants no more."""
        self._check_setup()
        if not self._session.is_closing:
            self._dialect.answering.pop(stream_id, None)
            self._session.peer_cancelled(stream_id)

    def receive_response(self, stream_id: int, begin: bool, end: bool, complete: bool, data: bytes) -> None:  # noqa: FBT001  # as in the protocol
        """The peer answers: with an element, a part of one, the end, or with the last element and the end."""
        self._check_setup()
        if not self._is_accepted:
            self.accepted()
        session = self._session
        stream = session.streams.get(stream_id)
        if not isinstance(stream, ReceivingStream):
            self._late(bare_end=complete and not data)
            return
        if complete and begin and end and stream_id in self._dialect.single and stream.answered(data):
            self._forget(stream_id)
            session.streams.pop(stream_id, None)  # unless the subscriber has ended everything
            return
        if stream.element_size < 0:
            stream.begun(0)  # from now on elements come the short way
        joining = stream.is_joining(PART)
        if (begin and joining) or (end and not begin and not joining):
            self._forget(stream_id)
            stream.fault("a fragment begins within another" if joining else "a fragment ends that never began")
        elif begin == end and not joining:
            self._whole(stream, data, complete)
        else:
            stream.receive_part(PART, data, end)
            if end and (complete or stream_id in self._dialect.single):
                self._ends_due += not complete
                self._ended(stream_id, None)

    def receive_error(self, stream_id: int, data: bytes) -> None:
        """The peer ends a stream with an error; on stream 0, the connection."""
        self._check_setup()
        session = self._session
        text = data.decode("utf-8", "replace")[: session.limits.max_error_text]
        if not stream_id:
            session.receive_goodbye(text, self._rejection(text))
            return
        self.accepted()
        stream = session.streams.get(stream_id)
        if not isinstance(stream, ReceivingStream):
            session.count_oddity()
            return
        refused = text in REFUSALS
        told = advised(text)
        self._ended(stream_id, Rejected(f"the peer refused this request: {told}", processed=False) if refused else PublisherFailed(told))

    def receive_ext(self, stream_id: int, ignore: bool, ext_type: int, data: bytes) -> None:  # noqa: FBT001  # as in the protocol
        """The peer sends something of an extension's. Without a body it says that it has the extension."""
        self._check_setup()
        host = self._dialect.extensions
        if ext_type not in host.known:
            if not ignore:
                raise ProtocolError(f"extension {ext_type} is not known here", reason=f"protocol:extension {ext_type}")
            self._session.spend_control_token()
            return
        if host.open(ext_type) is not None and self._session.role is Role.SERVER:
            self._session.send(self._dialect.announcement(ext_type))
        active = host.active.get(ext_type)
        if data and active is not None:
            host.received(active, data[0], data[1:])

    def receive_unknown(self, frame_type: int) -> None:
        """The peer sends what may be ignored."""
        self._check_setup()
        self._session.count_oddity()

    # --- inside

    def _check_setup(self) -> None:
        if not self.is_greeted:
            raise ProtocolError("the first frame was no SETUP", reason="protocol:setup")

    def accepted(self) -> None:
        """The server has done what it does for a client that it has accepted."""
        if not self._is_accepted:
            self._is_accepted = True
            if self._session.state is ConnectionState.GREETING:
                self._session.welcomed()

    def _rejection(self, text: str) -> Rejected | None:
        """An error of the connection before anything was answered is a refusal; later it is what it is."""
        if self._is_accepted or text.partition(" ")[0] in ENDS_OF_THE_ACCEPTED:
            return None
        return Rejected(f"the server refused this client's setup: {shown(text)}. Nothing of what was asked was done", processed=False)

    def _whole(self, stream: ReceivingStream, data: bytes, complete: bool) -> None:  # noqa: FBT001  # as in the protocol
        """An element in one piece, the end, or both."""
        single = stream.id in self._dialect.single
        if data or single or not complete:
            stream.receive_element(data)
        if (complete or single) and stream.id in self._session.streams:
            self._ends_due += not complete
            self._ended(stream.id, None)

    def _ended(self, stream_id: int, error: Exception | None) -> None:
        self._forget(stream_id)
        if stream_id in self._session.streams:
            self._session.peer_ended(stream_id, error)

    def _forget(self, stream_id: int) -> None:
        self._dialect.single.discard(stream_id)

    def _late(self, *, bare_end: bool) -> None:
        """A response to a request that is over: it was on its way, or ends what one value has ended."""
        if bare_end and self._ends_due:
            self._ends_due -= 1
        else:
            self._session.retirement.late_elements(1)
