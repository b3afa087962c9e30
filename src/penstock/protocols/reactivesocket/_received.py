"""The decoder's sink: passes each frame of a ReactiveSocket peer to the session.

* Before SETUP nothing else is taken. A second SETUP is ignored, as is every frame out of place, for a token of the oddity budget.
* The type of a frame tells the two spaces of ids apart: requests, grants and cancels name the peer's, responses and errors this side's.
* A request for one value is over with its first response, whether that says so or not. A second response belongs to no stream.
* An ERROR has a text and no code. The text may be a publisher's own words, so it decides nothing: on a stream it is `PublisherFailed`, and
  no error says that nothing was done.
"""

from typing import Final

from penstock.api import UNBOUNDED, Model, ProtocolError, PublisherFailed, Rejected, Request, Role
from penstock.protocols.reactivesocket import _codec as wire
from penstock.protocols.reactivesocket._request_shapes import RequestShapes
from penstock.session import (
    ILLEGAL_DEMAND,
    ConnectionState,
    DialectHost,
    ExtensionHost,
    ReceivingStream,
    connection_reason,
    explain_connection_end,
    explain_stream_end,
)

PART_NUMBER: Final = 0
"""Fragments of one stream are not interleaved, so one number is enough for the element that is under way."""

_MODELS: Final = {
    wire.FrameType.REQUEST_RESPONSE: Model.RESPONSE,
    wire.FrameType.REQUEST_FNF: Model.FIRE_AND_FORGET,
    wire.FrameType.REQUEST_STREAM: Model.STREAM,
    wire.FrameType.REQUEST_SUB: Model.SUBSCRIPTION,
}


class ReceivedFrames:
    """Acts on the frames of one connection."""

    def __init__(self, session: DialectHost, shapes: RequestShapes, extensions: ExtensionHost) -> None:
        self._session = session
        self._channel = session.channel
        self._streams = session.streams
        self._shapes = shapes
        self._extensions = extensions
        self.has_setup: bool = session.channel.role is Role.CLIENT
        """The client's SETUP has come; always true for a client."""
        self._is_accepted = session.channel.role is Role.SERVER  # for a client: the server has answered something
        # Values that came without the end. Some peers send the end in a separate frame, which then belongs to no stream.
        self._bare_ends_due = 0

    def receive_setup(self, version: int, stream_id: int, data: bytes) -> None:
        """Let the service examine the client's introduction."""
        if self.has_setup:
            self._channel.count_oddity()  # a second SETUP, or one from a server
            return
        if version != wire.VERSION:
            raise ProtocolError(f"the client speaks version {version}, and this side version 0", reason=f"version {wire.VERSION}")
        if stream_id:
            raise ProtocolError(f"a SETUP on stream {stream_id}, which belongs on 0", reason="protocol:setup")
        # Checked here as well, because a SETUP may arrive in one chunk with the bytes after it.
        if len(wire.encode(wire.Setup(data=data))) > self._channel.limits.preauth_bytes:
            raise ProtocolError(f"a SETUP with {len(data)} bytes of data", reason="limit:hello")
        self.has_setup = True
        if not self._channel.state.is_closing:  # this side may have closed meanwhile
            self._session.hello_sent()
            self._session.receive_introduction(data)

    def receive_request(self, kind: wire.FrameType, stream_id: int, demand: int | None, data: bytes) -> None:
        """Serve a request."""
        self._check_setup()
        # A server that sends requests has accepted the client. On a server this does nothing.
        self.accept_setup()
        streams = self._streams
        if self._channel.state.is_closing:
            return
        if not stream_id or stream_id in streams.serving:
            self._channel.count_oddity()
            return
        request = Request(_MODELS[kind], data)
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
        self._check_setup()
        # Asked here, before the call: this is the path of every answer.
        if not self._is_accepted:
            self.accept_setup()
        opened = self._streams.opened
        stream = opened.get(stream_id)
        if not isinstance(stream, ReceivingStream):
            self._receive_late(bare_end=complete and not data)
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
            self._session.receive_goodbye(text, self._setup_refusal(text))
            return
        self.accept_setup()
        if isinstance(self._streams.opened.get(stream_id), ReceivingStream):
            self._end(stream_id, PublisherFailed(explain_stream_end(text)))
        else:
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

    def receive_unknown(self, frame_type: int) -> None:
        """Ignore a frame of an unknown type that may be ignored."""
        self._check_setup()
        self._channel.count_oddity()

    def accept_setup(self) -> None:
        """Open a client's session: the server has sent something that it sends only to a client that it has accepted."""
        if not self._is_accepted:
            self._is_accepted = True
            # If not, the connection is closing or over, and the late answer changes nothing.
            if self._channel.state is ConnectionState.GREETING:
                self._session.receive_hello()

    # --- inside

    def _check_setup(self) -> None:
        if not self.has_setup:
            raise ProtocolError("the first frame was no SETUP", reason="protocol:setup")

    def _setup_refusal(self, text: str) -> Rejected | None:
        """Return the error of an ERROR on stream 0 that comes before anything was answered: by its place it refuses the SETUP.

        But a server may have accepted the SETUP in silence, acted on requests, and ended the connection later. So the refusal never says
        that nothing was done. If penstock gives a reason only to clients that it has let in, the error stays ConnectionLost.
        """
        reason = connection_reason(text)
        if self._is_accepted or (reason is not None and reason.ends_accepted):
            return None
        return Rejected(
            f"the server refused this client's setup: {explain_connection_end(text)}. "
            "Requests that were sent before may have been processed"
        )

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

    def _receive_late(self, *, bare_end: bool) -> None:
        """Tolerate a response to a request that is over: it crossed the cancel, or it is a separate end after the only value."""
        if bare_end and self._bare_ends_due:
            self._bare_ends_due -= 1
        else:
            self._streams.cancelled.count_late(1)


def announcement(extension_id: int) -> bytes:
    """Encode that this side has an extension: an EXT frame without a body, which a peer without the extension ignores."""
    return wire.encode(wire.Ext(stream_id=0, ignore=True, ext_type=extension_id, data=b""))
