"""Who a decoder tells: streams take whole elements, the sink takes everything else, frame by frame, as plain calls."""

from collections.abc import Sequence
from typing import Protocol

from penstock.protocols.reactivesocket._layout import FrameType


class WireStream(Protocol):
    """A stream that this side has opened, as the decoder sees it. What it raises ends the decoding."""

    @property
    def takes_whole(self) -> bool:
        """Whether whole elements may come straight here.

        While it is false the sink gets this stream's responses: say so while an element is under way in parts (a response without
        begin and end is then one of them), and always for a request that has a single response.
        """

    def receive_element(self, element: bytes, /) -> None:
        """Take an element."""

    def receive_run(self, elements: Sequence[bytes], /) -> None:
        """Take elements that came one right behind the other."""


class ReactiveSocketSink(Protocol):
    """Receives all other frames, in the order of arrival, and judges them. What it raises ends the decoding.

    Numbers are as they stand on the wire: ids and demands of 64 bits without a sign, whether they make sense or not.
    """

    def receive_setup(self, version: int, stream_id: int, data: bytes, /) -> None:
        """Take a SETUP.

        It is the one frame that comes here with any version, so that it can be answered; one of another version comes without its data,
        as soon as its header is there, and then the decoding ends with ProtocolError.
        """

    def receive_request(self, kind: FrameType, stream_id: int, demand: int | None, data: bytes, /) -> None:
        """Take a request of one of the four kinds; `demand` is None for REQUEST_RESPONSE and REQUEST_FNF, which have none."""

    def receive_request_n(self, stream_id: int, demand: int, /) -> None:
        """Take a grant of demand."""

    def receive_cancel(self, stream_id: int, /) -> None:
        """Take a cancel."""

    def receive_response(self, stream_id: int, begin: bool, end: bool, complete: bool, data: bytes, /) -> None:  # noqa: FBT001  # on the path of elements
        """Take a response that completes, or is a part, or is for a stream that is not in the table or does not take whole ones."""

    def receive_error(self, stream_id: int, data: bytes, /) -> None:
        """Take an error; on stream 0 it is the connection's."""

    def receive_ext(self, stream_id: int, ignore: bool, ext_type: int, data: bytes, /) -> None:  # noqa: FBT001  # as the wire has it
        """Take a frame of an extension; without `ignore` who does not know it must end the connection."""

    def receive_unknown(self, frame_type: int, /) -> None:
        """Take note of a frame of a type that version 0 does not have, and that may be ignored."""
