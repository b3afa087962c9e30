"""The answer to a frame whose body is above `Limits.max_frame`:
it ends the stream that it names, and nothing else.

The header says where the next frame begins, so the rest of the connection can be understood. The
decoder drops the body as it arrives. Only a frame that concerns the connection ends the connection.
"""

from typing import Final

from penstock.api import Model, ProtocolError, PublisherFailed, Request
from penstock.protocols.reactivesocket._layout import FrameType
from penstock.protocols.reactivesocket._request_shapes import RequestShapes
from penstock.session import TOO_LONG, DialectHost, ReceivingStream, explain_stream_end

LONGEST_SKIPPED: Final = 1 << 28
"""The largest body that is skipped, 256 MiB. As a length, the first bytes of TLS are 352 MiB and
those of HTTP more than 1 GiB, so a peer that speaks another protocol is still refused at once.
"""

_STREAMS: Final = {
    FrameType.REQUEST_RESPONSE: Model.RESPONSE,
    FrameType.REQUEST_STREAM: Model.STREAM,
    FrameType.REQUEST_SUB: Model.SUBSCRIPTION,
}


class TooLongFrames:
    """Acts on frames that are skipped."""

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
