"""The receivers of decoded frames: a stream for whole elements, a sink for all other frames, each called once for each frame.

A call costs less than a record, so frames never become records on their way to a session.
"""

from collections.abc import Sequence
from typing import Protocol

from penstock.protocols.reactivesocket import _frames as frames
from penstock.protocols.reactivesocket._layout import FrameType


class WireStream(Protocol):
    """The part of a stream that the decoder uses, for streams that this side has opened. An exception from any method ends the decoding."""

    # wire §How the draft is read: without B and E a response is a whole element, unless an element of its stream is open in parts. The
    # decoder keeps no state for each stream, so it asks the stream.
    @property
    def takes_whole(self) -> bool:
        """Whether the decoder may deliver whole elements to this stream. While it is false, the sink gets all responses of the stream.

        It must be false while an element is open in parts, and always for a request that has a single response.
        """

    def receive_element(self, element: bytes, /) -> None:
        """Take an element."""

    def receive_run(self, elements: Sequence[bytes], /) -> None:
        """Take two or more elements that were received one directly behind the other."""


class ReactiveSocketSink(Protocol):
    """Receives all other frames, in the order of arrival, and judges them. An exception from any method ends the decoding.

    Ids and demands are passed as they are on the wire: 64 bits without a sign, legal or not.
    """

    def receive_setup(self, version: int, stream_id: int, data: bytes, /) -> None:
        """Take a SETUP. It is the only frame that is passed on with another version, so that the sink can answer it.

        A SETUP of another version is passed on as soon as its header is there, without data. Then the decoding ends with ProtocolError.
        """

    def receive_request(self, kind: FrameType, stream_id: int, demand: int | None, data: bytes, /) -> None:
        """Take a request of one of the four kinds; `demand` is None for REQUEST_RESPONSE and REQUEST_FNF, which have none."""

    def receive_request_n(self, stream_id: int, demand: int, /) -> None:
        """Take a REQUEST_N."""

    def receive_cancel(self, stream_id: int, /) -> None:
        """Take a CANCEL."""

    def receive_response(self, stream_id: int, begin: bool, end: bool, complete: bool, data: bytes, /) -> None:  # noqa: FBT001  # on the path of elements
        """Take a response that completes its stream, is a part, or is for a stream without an entry or with a false `takes_whole`."""

    def receive_error(self, stream_id: int, data: bytes, /) -> None:
        """Take an ERROR. On stream 0 it ends the connection."""

    def receive_ext(self, stream_id: int, ignore: bool, ext_type: int, data: bytes, /) -> None:  # noqa: FBT001  # as the wire has it
        """Take an EXT. If the sink does not know `ext_type` and `ignore` is false, it must end the connection."""

    def receive_unknown(self, frame_type: int, /) -> None:
        """Take note of a frame of a type that version 0 does not have, with the ignore flag. The decoder skips it."""


class FrameList:
    """Collects every frame as a record, for tests, tools and traces. Pass `streams` to the decoder."""

    def __init__(self) -> None:
        self.frames: list[frames.Frame] = []
        self.unknown_types: list[int] = []
        self.streams: dict[int, CollectedStream] = {}

    def open(self, stream_id: int) -> "CollectedStream":
        """Enter a stream into `streams`. The decoder then delivers its whole elements to it, and finds runs."""
        stream = self.streams[stream_id] = CollectedStream(self.frames, stream_id)
        return stream

    def receive_setup(self, version: int, stream_id: int, data: bytes, /) -> None:
        """Append a Setup."""
        self.frames.append(frames.Setup(version=version, stream_id=stream_id, data=data))

    def receive_request(self, kind: FrameType, stream_id: int, demand: int | None, data: bytes, /) -> None:
        """Append the record of the kind."""
        match kind:
            case FrameType.REQUEST_RESPONSE:
                self.frames.append(frames.RequestResponse(stream_id=stream_id, data=data))
            case FrameType.REQUEST_FNF:
                self.frames.append(frames.RequestFnf(stream_id=stream_id, data=data))
            case FrameType.REQUEST_STREAM:  # with a demand, as the decoder calls it; `or 0` is for the type checker
                self.frames.append(frames.RequestStream(stream_id=stream_id, demand=demand or 0, data=data))
            case _:
                self.frames.append(frames.RequestSub(stream_id=stream_id, demand=demand or 0, data=data))

    def receive_request_n(self, stream_id: int, demand: int, /) -> None:
        """Append a RequestN."""
        self.frames.append(frames.RequestN(stream_id=stream_id, demand=demand))

    def receive_cancel(self, stream_id: int, /) -> None:
        """Append a Cancel."""
        self.frames.append(frames.Cancel(stream_id=stream_id))

    def receive_response(self, stream_id: int, begin: bool, end: bool, complete: bool, data: bytes, /) -> None:  # noqa: FBT001  # as in the protocol
        """Append a Response."""
        self.frames.append(frames.Response(stream_id=stream_id, begin=begin, end=end, complete=complete, data=data))

    def receive_error(self, stream_id: int, data: bytes, /) -> None:
        """Append an Error."""
        self.frames.append(frames.Error(stream_id=stream_id, data=data))

    def receive_ext(self, stream_id: int, ignore: bool, ext_type: int, data: bytes, /) -> None:  # noqa: FBT001  # as in the protocol
        """Append an Ext."""
        self.frames.append(frames.Ext(stream_id=stream_id, ignore=ignore, ext_type=ext_type, data=data))

    def receive_unknown(self, frame_type: int, /) -> None:
        """Append the type to `unknown_types`."""
        # The decoder does not pass on the body of such a frame, so there is nothing for a record but the type.
        self.unknown_types.append(frame_type)


class CollectedStream:
    """A stream of FrameList: appends its elements to the list as records."""

    def __init__(self, into: list[frames.Frame], stream_id: int) -> None:
        self._into = into
        self._id = stream_id
        self.takes_whole = True  # also for elements without B and E: the record has B and E then

    def receive_element(self, element: bytes, /) -> None:
        self._into.append(frames.Response(stream_id=self._id, data=element))

    def receive_run(self, elements: Sequence[bytes], /) -> None:
        # One record for each element: that a run was delivered together is not visible on the wire.
        self._into += [frames.Response(stream_id=self._id, data=element) for element in elements]
