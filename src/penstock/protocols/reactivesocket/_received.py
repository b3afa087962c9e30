"""The sink of the decoder: it passes each frame of the peer to the session, and ignores frames that are out of place.

Rules of this file:

* Before SETUP nothing else is taken. A second SETUP is ignored, as is every frame out of place, for a token of the oddity budget.
* The type of a frame tells the two spaces of ids apart: requests, grants and cancels name the peer's, responses and errors this side's.
* A request for one value is over with its first response, whether that says so or not. A second response belongs to no stream.
* An ERROR has a text and no code. The text may be a publisher's own words, so it decides nothing: on a stream it is `PublisherFailed`,
  and no error says that nothing was done.
"""

from typing import Final

from penstock.api import UNBOUNDED, Model, ProtocolError, PublisherFailed, Request, Role
from penstock.protocols.reactivesocket._handshake import announcement, check_setup, setup_refusal
from penstock.protocols.reactivesocket._layout import SHORTEST_BODY, FrameType
from penstock.protocols.reactivesocket._request_shapes import RequestShapes
from penstock.protocols.reactivesocket._too_long import LONGEST_SKIPPED, TooLongFrames
from penstock.session import ILLEGAL_DEMAND, ConnectionState, DialectHost, ExtensionHost, ReceivingStream, explain_stream_end

PART_NUMBER: Final = 0
"""Fragments of one stream are not interleaved, so one number is enough for the element that is under way."""

_MODELS: Final = {
    FrameType.REQUEST_FNF: Model.FIRE_AND_FORGET,
    FrameType.REQUEST_STREAM: Model.STREAM,
    FrameType.REQUEST_SUB: Model.SUBSCRIPTION,
}


class ReceivedFrames:
    """The frames of one connection, as the decoder delivers them."""

    def __init__(self, session: DialectHost, shapes: RequestShapes, extensions: ExtensionHost) -> None:
        self._session = session
        self._channel = session.channel
        self._streams = session.streams
        self._shapes = shapes
        self._extensions = extensions
        self._too_long = TooLongFrames(session, shapes)
        self.has_setup: bool = session.channel.role is Role.CLIENT
        """The client's SETUP has come; always true for a client."""
        self._is_accepted = session.channel.role is Role.SERVER  # for a client: the server has answered something
        # Values that came without the end. Some peers send the end in a separate frame, which then belongs to no stream.
        self._bare_ends_due = 0

    @property
    def max_skipped(self) -> int:
        """The largest body of a frame that ends its stream only. Before SETUP it ends the connection: that client is unknown."""
        return LONGEST_SKIPPED if self.has_setup else 0

    def receive_setup(self, version: int, stream_id: int, data: bytes) -> None:
        """Let the service examine the client's introduction."""
        if self.has_setup:
            self._channel.count_oddity()  # a second SETUP, or one from a server
            return
        check_setup(version, stream_id, data, self._channel.limits)
        self.has_setup = True
        if not self._channel.state.is_closing:  # this side may have closed meanwhile
            self._session.hello_sent()
            self._session.receive_introduction(data)

    def receive_request_response(self, stream_id: int, data: bytes) -> None:
        """Serve a request for one value."""
        streams = self._streams
        # The usual request passes these looks. `_may_begin` looks again, and knows what to do about one that does not.
        if not (self._channel.state is ConnectionState.OPEN and stream_id and stream_id not in streams.serving) and not self._may_begin(
            stream_id
        ):
            return
        # Before the request is served: it may be answered inside that call.
        self._shapes.answering[stream_id] = Model.RESPONSE
        streams.receive_subscribe(stream_id, Request(Model.RESPONSE, data), 1)
        if stream_id not in streams.serving:  # refused, or answered at once
            self._shapes.answering.pop(stream_id, None)

    def receive_request(self, kind: FrameType, stream_id: int, demand: int | None, data: bytes) -> None:
        """Serve a request of another kind."""
        if not self._may_begin(stream_id):
            return
        streams, request = self._streams, Request(_MODELS[kind], data)
        if request.model is Model.FIRE_AND_FORGET:
            streams.receive_fire_and_forget(request)
            return
        if request.model is not Model.STREAM:
            self._shapes.answering[stream_id] = request.model
        # The field has 64 bits; demand has 63 (rule 3.17).
        is_illegal = demand is not None and demand > UNBOUNDED
        streams.receive_subscribe(stream_id, request, 1 if demand is None else demand, ILLEGAL_DEMAND if is_illegal else None)
        if stream_id not in streams.serving:  # refused, or answered at once
            self._shapes.answering.pop(stream_id, None)

    def receive_request_n(self, stream_id: int, demand: int) -> None:
        """Add demand."""
        self._check_setup()
        if self._shapes.answering.get(stream_id) in {Model.RESPONSE, Model.NAMED}:
            self._channel.count_oddity()  # a request for one value has its demand in itself
        elif not self._channel.state.is_closing:
            self._streams.receive_request(stream_id, demand if demand <= UNBOUNDED else 0)

    def receive_cancel(self, stream_id: int) -> None:
        """Cancel a stream that this side serves."""
        self._check_setup()
        if not self._channel.state.is_closing:
            self._shapes.answering.pop(stream_id, None)
            self._streams.receive_cancel(stream_id)

    def receive_response(self, stream_id: int, begin: bool, end: bool, complete: bool, data: bytes) -> None:  # noqa: FBT001  # as in the protocol
        """Deliver an element, a fragment of one, the end, or the last element with the end."""
        # Once the connection is open, both have passed: this is the path of every answer.
        if self._channel.state is not ConnectionState.OPEN:
            self._check_setup()
            self.accept_setup()
        opened = self._streams.opened
        stream = opened.get(stream_id)
        if not isinstance(stream, ReceivingStream):
            self._receive_late(data, is_whole=end, complete=complete)
            return
        # The path of most answers: one value and the end in one frame.
        if complete and begin and end and stream_id in self._shapes.single and stream.receive_answer(data):
            self._shapes.single.discard(stream_id)
            opened.pop(stream_id, None)  # unless the subscriber has ended everything
            return
        if stream.element_size < 0:
            stream.receive_accept(0)  # from now on the decoder hands unsplit elements straight to the stream
        joining = stream.is_joining(PART_NUMBER)
        if (begin and joining) or (end and not begin and not joining):
            self._shapes.single.discard(stream_id)
            stream.fail_contract("a fragment begins within another" if joining else "a fragment ends that never began")
        elif begin == end and not joining:
            self._deliver_whole(stream, data, complete=complete)
        else:
            stream.receive_part(PART_NUMBER, data, end)
            if end and (complete or stream_id in self._shapes.single):
                self._bare_ends_due += not complete
                self._end(stream_id, None)

    def receive_error(self, stream_id: int, data: bytes) -> None:
        """End a stream with an error; on stream 0, the connection."""
        self._check_setup()
        # Cut here: the decoder bounds frames by max_frame only.
        text = data.decode("utf-8", "replace")[: self._channel.limits.max_error_text]
        if not stream_id:
            self._session.receive_goodbye(text, None if self._is_accepted else setup_refusal(text))
            return
        self.accept_setup()
        if isinstance(self._streams.opened.get(stream_id), ReceivingStream):
            self._end(stream_id, PublisherFailed(explain_stream_end(text)))
        elif not self._streams.cancelled.count_end():  # it may have crossed a CANCEL
            self._channel.count_oddity()

    def receive_ext(self, stream_id: int, ignore: bool, ext_type: int, data: bytes) -> None:  # noqa: FBT001  # as in the protocol
        """Pass a frame to its extension. A frame without a body announces the extension."""
        self._check_setup()
        extensions = self._extensions
        # A frame that may be ignored costs a token, because a flood of them is work as well.
        if ext_type not in extensions.known:
            if not ignore:
                raise ProtocolError(f"extension {ext_type} is not known here", reason=f"protocol:extension {ext_type}")
            self._channel.spend_control_token()
            return
        if extensions.open(ext_type) is not None and self._channel.role is Role.SERVER:
            self._channel.send(announcement(ext_type))
        active = extensions.active.get(ext_type)
        if data and active is not None:
            extensions.received(active, data[0], data[1:])

    def knows_ext(self, ext_type: int) -> bool:
        """Return whether this side has the extension."""
        return ext_type in self._extensions.known

    def check_ext(self, ext_type: int, code: int, length: int) -> None:
        """Let an extension refuse a message that has not arrived as a whole."""
        active = self._extensions.active.get(ext_type)
        if active is not None:
            self._extensions.check_length(active, code, length)

    def receive_unknown(self, frame_type: int) -> None:
        """Ignore a frame of an unknown type that may be ignored."""
        self._check_setup()
        self._channel.count_oddity()

    def receive_too_long(self, frame_type: int, stream_id: int, ignore: bool, refusal: ProtocolError) -> None:  # noqa: FBT001  # as in the protocol
        """Act on a frame that the decoder skips because of its length."""
        self._check_setup()
        if frame_type in {FrameType.RESPONSE, FrameType.ERROR} and stream_id:
            self.accept_setup()
        if ignore and (frame_type == FrameType.EXT or frame_type not in SHORTEST_BODY):
            self._channel.count_oddity()  # skipped like a shorter one that is not known
        elif frame_type == FrameType.EXT:
            raise refusal
        elif not self._channel.state.is_closing:
            self._too_long.receive(frame_type, stream_id, refusal)

    def accept_setup(self) -> None:
        """Open a client's session: the server has sent something that it sends only to a client that it has accepted."""
        if not self._is_accepted:
            self._is_accepted = True
            # If not, the connection is closing or over, and the late answer changes nothing.
            if self._channel.state is ConnectionState.GREETING:
                self._session.receive_hello()

    # --- inside

    def _may_begin(self, stream_id: int) -> bool:
        """Return whether a request with this id may be served."""
        self._check_setup()
        # A server that sends requests has accepted the client.
        if not self._is_accepted:
            self.accept_setup()
        if self._channel.state.is_closing:
            return False
        if stream_id and stream_id not in self._streams.serving:
            return True
        self._channel.count_oddity()
        return False

    def _check_setup(self) -> None:
        if not self.has_setup:
            raise ProtocolError("the first frame was no SETUP", reason="protocol:setup")

    def _deliver_whole(self, stream: ReceivingStream, data: bytes, *, complete: bool) -> None:
        """Deliver an unsplit element, the end, or both."""
        single = stream.id in self._shapes.single
        if data or single or not complete:
            stream.receive_element(data)
        if (complete or single) and stream.id in self._streams.opened:  # if not, the subscriber has cancelled
            self._bare_ends_due += not complete
            self._end(stream.id, None)

    def _end(self, stream_id: int, error: Exception | None) -> None:
        self._shapes.single.discard(stream_id)
        if stream_id in self._streams.opened:
            self._streams.receive_end(stream_id, error)

    def _receive_late(self, data: bytes, *, is_whole: bool, complete: bool) -> None:
        """Tolerate a response to a request that is over: it crossed the cancel, or it is a separate end after the only value."""
        cancelled, channel = self._streams.cancelled, self._channel
        if complete and not data:
            if self._bare_ends_due:
                self._bare_ends_due -= 1
            elif not cancelled.count_end():
                channel.count_oddity()
            return
        if complete:
            cancelled.count_end()
        cancelled.count_late(int(is_whole), len(data))
        # The same price as for a stream that is read: tiny fragments have no honest use.
        if not is_whole and len(data) < channel.limits.tiny_part:
            channel.count_oddity()
