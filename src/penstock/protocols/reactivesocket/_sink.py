"""The receivers of decoded frames: a stream for whole elements, a sink for all other frames, each
called once for each frame.

A call costs less than a record, so frames never become records on their way to a session.
"""

from collections.abc import Sequence
from typing import Protocol

from penstock.api import ProtocolError
from penstock.protocols.reactivesocket._layout import FrameType


class WireStream(Protocol):
    """The part of a stream that the decoder uses, for streams that this side has opened. An
    exception from any method ends the decoding.
    """

    # wire §How the draft is read: without B and E a response is a whole element, unless an element
    # of its stream is open in parts. The decoder keeps no state for each stream, so it asks the
    # stream.
    @property
    def takes_whole(self) -> bool:
        """Whether the decoder may deliver whole elements to this stream. While it is false, the
        sink gets all responses of the stream.

        It must be false while an element is open in parts, and always for a request
        that has a single response.
        """

    def receive_element(self, element: bytes, /) -> None:
        """Take an element."""

    def receive_run(self, elements: Sequence[bytes], size: int = -1, /) -> None:
        """Take two or more elements that were received one directly behind the other.

        Together they have `size` bytes. A size below 0 is not known: their lengths are added up.
        """


class ReactiveSocketSink(Protocol):
    """Receives all other frames, in the order of arrival, and judges them.
    An exception from any method ends the decoding.

    Ids and demands are passed unchanged: 64 bits without a sign, legal or not.
    """

    def receive_setup(self, version: int, stream_id: int, data: bytes, /) -> None:
        """Take a SETUP. It is the only frame that is passed on with another version, so
        that the sink can answer it.

        A SETUP of another version is passed on as soon as its header is there, without data. Then
        the decoding ends with ProtocolError.
        """

    def receive_request_response(self, stream_id: int, data: bytes, /) -> None:
        """Take a request for one value, the most frequent request."""

    def receive_request(
        self, kind: FrameType, stream_id: int, demand: int | None, data: bytes, /
    ) -> None:
        """Take a request of another kind; `demand` is None for REQUEST_FNF, which has no demand."""

    def receive_request_n(self, stream_id: int, demand: int, /) -> None:
        """Take a REQUEST_N."""

    def receive_cancel(self, stream_id: int, /) -> None:
        """Take a CANCEL."""

    def receive_response(
        self,
        stream_id: int,
        begin: bool,  # noqa: FBT001  # on the path of elements
        end: bool,  # noqa: FBT001  # the same
        complete: bool,  # noqa: FBT001  # the same
        data: bytes,
        /,
    ) -> None:
        """Take a response that completes its stream, is a part, or is for a stream without an
        entry or with a false `takes_whole`.
        """

    def receive_error(self, stream_id: int, data: bytes, /) -> None:
        """Take an ERROR. On stream 0 it ends the connection."""

    def receive_ext(self, stream_id: int, ignore: bool, ext_type: int, data: bytes, /) -> None:  # noqa: FBT001  # as the wire has it
        """Take an EXT. If the sink does not know `ext_type` and `ignore` is false,
        it must end the connection.

        `data` may be missing if `knows_ext` is false.
        """

    def knows_ext(self, ext_type: int, /) -> bool:
        """Return whether the sink reads messages of this extension. If not, the decoder passes
        an incomplete one on without its data.
        """

    def check_ext(self, ext_type: int, length: int, /) -> None:
        """Refuse a message of an extension that has not arrived as a whole,
        for the length of its body.
        """

    def receive_unknown(self, frame_type: int, /) -> None:
        """Take note of a frame of a type that version 0 does not have, with the ignore flag.
        The decoder skips it.
        """

    def receive_too_long(
        self,
        frame_type: int,
        stream_id: int,
        ignore: bool,  # noqa: FBT001  # as the wire has it
        refusal: ProtocolError,
        /,
    ) -> None:
        """Take note of a frame whose body is above the limit and is skipped.
        Raise `refusal` if the connection must end.
        """
