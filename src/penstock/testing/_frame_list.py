"""A sink of the ReactiveSocket decoder that keeps each frame as a record."""

from collections.abc import Sequence

from penstock.api import ProtocolError
from penstock.protocols import reactivesocket
from penstock.testing._run_size import check_run_size


class FrameList:
    """A `ReactiveSocketSink` that keeps each frame as a record in `frames`. Pass `streams` as the
    stream table of its decoder.

    A decoder calls the sink for a stream that is not in the table, so the table may stay empty.
    `open` enters a stream.
    """

    def __init__(self) -> None:
        self.frames: list[reactivesocket.Frame] = []
        self.unknown_types: list[int] = []
        self.streams: dict[int, _RecordingStream] = {}

    def open(self, stream_id: int) -> "_RecordingStream":
        """Enter a stream into the table: its decoder then hands over whole elements in runs.
        They are kept as `Response` records too.
        """
        stream = self.streams[stream_id] = _RecordingStream(self.frames, stream_id)
        return stream

    def receive_setup(self, version: int, stream_id: int, data: bytes, /) -> None:
        """Keep a SETUP."""
        self.frames.append(reactivesocket.Setup(version=version, stream_id=stream_id, data=data))

    def receive_request_response(self, stream_id: int, data: bytes, /) -> None:
        """Keep a request for one value."""
        self.frames.append(reactivesocket.RequestResponse(stream_id=stream_id, data=data))

    def receive_request(
        self, kind: reactivesocket.FrameType, stream_id: int, demand: int | None, data: bytes, /
    ) -> None:
        """Keep a request of another kind. A demand of None becomes 0."""
        match kind:
            case reactivesocket.FrameType.REQUEST_FNF:
                self.frames.append(reactivesocket.RequestFnf(stream_id=stream_id, data=data))
            case reactivesocket.FrameType.REQUEST_STREAM:
                # The decoder always gives a demand here; `or 0` is for the type checker.
                self.frames.append(
                    reactivesocket.RequestStream(stream_id=stream_id, demand=demand or 0, data=data)
                )
            case _:
                self.frames.append(
                    reactivesocket.RequestSub(stream_id=stream_id, demand=demand or 0, data=data)
                )

    def receive_request_n(self, stream_id: int, demand: int, /) -> None:
        """Keep a REQUEST_N."""
        self.frames.append(reactivesocket.RequestN(stream_id=stream_id, demand=demand))

    def receive_cancel(self, stream_id: int, /) -> None:
        """Keep a CANCEL."""
        self.frames.append(reactivesocket.Cancel(stream_id=stream_id))

    def receive_response(
        self,
        stream_id: int,
        begin: bool,  # noqa: FBT001  # as in the protocol
        end: bool,  # noqa: FBT001  # the same
        complete: bool,  # noqa: FBT001  # the same
        data: bytes,
        /,
    ) -> None:
        """Keep a RESPONSE."""
        self.frames.append(
            reactivesocket.Response(
                stream_id=stream_id, begin=begin, end=end, complete=complete, data=data
            )
        )

    def receive_error(self, stream_id: int, data: bytes, /) -> None:
        """Keep an ERROR."""
        self.frames.append(reactivesocket.Error(stream_id=stream_id, data=data))

    def receive_ext(self, stream_id: int, ignore: bool, ext_type: int, data: bytes, /) -> None:  # noqa: FBT001  # as in the protocol
        """Keep an EXT."""
        self.frames.append(
            reactivesocket.Ext(stream_id=stream_id, ignore=ignore, ext_type=ext_type, data=data)
        )

    def knows_ext(self, ext_type: int, /) -> bool:
        """Return True: every EXT is kept with its data."""
        return True

    def check_ext(self, ext_type: int, length: int, /) -> None:
        """Accept the frame, of any length."""

    def receive_unknown(self, frame_type: int, /) -> None:
        """Keep the type of a frame that has no record."""
        # The decoder does not pass on the body of such a frame, so only the type can be kept.
        self.unknown_types.append(frame_type)

    def receive_too_long(
        self,
        frame_type: int,
        stream_id: int,
        ignore: bool,  # noqa: FBT001  # as in the sink
        refusal: ProtocolError,
        /,
    ) -> None:
        """Raise the refusal: a list of frames has no stream to end."""
        raise refusal


class _RecordingStream:
    """A `WireStream` that turns each element back into a `Response` record."""

    def __init__(self, into: list[reactivesocket.Frame], stream_id: int) -> None:
        self._into = into
        self._id = stream_id
        self.takes_whole = True  # also for elements without B and E: the record has B and E then

    def receive_element(self, element: bytes, /) -> None:
        self._into.append(reactivesocket.Response(stream_id=self._id, data=element))

    def receive_run(self, elements: Sequence[bytes], size: int = -1, /) -> None:
        check_run_size(elements, size)
        # One record for each element: that a run was delivered together is not visible on the wire.
        self._into += [
            reactivesocket.Response(stream_id=self._id, data=element) for element in elements
        ]
