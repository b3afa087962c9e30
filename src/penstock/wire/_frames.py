"""Frames with a length, as ReactiveSocket and RSocket have them: the base of their decoders, which
delivers whole elements to a table of streams and skips frames that are too long, and the parts of
their encoders that are alike.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from penstock.api import ProtocolError
from penstock.wire._buffered_decoder import BufferedDecoder


class WireStream(Protocol):
    """The part of a stream that the decoder uses, for streams that this side has opened. An
    exception from any method ends the decoding.
    """

    # A frame of an element is a whole element, unless an element of its stream is open in parts.
    # The decoder keeps no state for each stream, so it asks the stream.
    @property
    def takes_whole(self) -> bool:
        """Whether the decoder may deliver whole elements to this stream. While it is false, the
        sink gets all elements of the stream.

        It must be false while an element is open in parts, and always for a request
        that has a single response.
        """

    def receive_element(self, element: bytes, /) -> None:
        """Take an element."""

    def receive_run(self, elements: Sequence[bytes], size: int = -1, /) -> None:
        """Take two or more elements that were received one directly behind the other.

        Together they have `size` bytes. A size below 0 is not known: their lengths are added up.
        """


class FrameDecoder(BufferedDecoder):
    """Decodes received bytes. A subclass has the loop over the frames, and the sink.

    `streams` is the table of the streams that this side has opened, by id. Whole elements are
    delivered to them without the sink. The table may be replaced at any time, also from within a
    call of the sink; with an empty table the sink gets every element.
    """

    __slots__ = ("_framed", "_least", "_max_body", "_to_skip", "streams")

    def __init__(
        self, streams: Mapping[int, WireStream], need: int, *, framed: bool, max_frame: int
    ) -> None:
        """`framed` means that the transport delivers messages, one frame each, without a length;
        if not, `need` is the size of a length. `max_frame` is the largest number of bytes after a
        header.
        """
        # Where the transport delivers messages, each call of `feed` is a frame, even an empty one,
        # which is refused for its length.
        self._least = 0 if framed else need
        super().__init__(need=self._least)
        self.streams: Mapping[int, WireStream] = streams
        self._framed = framed
        self._max_body = max_frame
        self._to_skip = 0  # bytes of a frame that is being skipped and that have not arrived

    def feed_frame(self, data: bytes) -> None:
        """Decode `data`, one frame without a length. Raises ProtocolError as `feed` does.

        `feed` has the same effect if the decoder was made with `framed`, and takes twice the time.
        """
        if self._failure is not None:
            raise self._error_again(*self._failure)
        try:
            self._decode_frame(data)
        except ProtocolError as broken:
            self._fail(broken)
            raise

    def _decode_waiting_frame(self) -> bool:
        """Decode `_data` as one frame: a decoder that was made with `framed` was fed."""
        data, self._data = self._data, b""
        if data:  # without data, `feed` was called to go on, and there is nothing left
            self._decode_frame(data)
        return False

    @abstractmethod
    def _decode_frame(self, data: bytes) -> None:
        """Decode one frame without a length."""

    def drop_incomplete(self) -> None:
        """Hold nothing, and skip nothing: the peer sends the frame that has come in part again."""
        self.take_rest()
        self._need, self._to_skip = self._least, 0

    def _skip(self, position: int, size: int) -> int:
        """Skip `size` bytes from `position` on, now and as they arrive. Return where the decoder
        goes on in `_data`.
        """
        self._position, self._to_skip = position, size
        return self._drop_skipped()

    def _drop_skipped(self) -> int:
        """Drop the bytes of a skipped frame that are there. Return the position after them."""
        position = min(self._position + self._to_skip, len(self._data))
        self._to_skip -= position - self._position
        return position


def too_short(length: int, least: int) -> ProtocolError:
    """Return the error of a frame that is shorter than its header and its fixed part."""
    return ProtocolError(
        f"a frame of {length} bytes; its header and its fixed part take {least}",
        reason=f"protocol:length {length}",
    )


def too_long(size: int, limit: int) -> ProtocolError:
    """Return the error of a frame with `size` bytes after its header."""
    return ProtocolError(
        f"the peer announced a frame of {size} bytes behind its header; the limit of this side "
        f"is {limit}",
        reason=f"limit:frame {size} > {limit}",
    )


def shown_number(number: int) -> str:
    """Return a number for the text of an error."""
    # Python refuses to print integers of more than 4,300 digits:
    # the ValueError would hide the UsageError.
    return str(number) if number.bit_length() <= 64 else f"an integer of {number.bit_length()} bits"


def split_frames(data: bytearray, length_size: int, uncounted: int = 0) -> Iterator[memoryview]:
    """Cut between frames, and leave their lengths out: a framed transport knows them. A length
    does not count `uncounted` bytes of its frame.
    """
    # A view: the frames of one turn of the writer are cut without a copy.
    view, start = memoryview(data), 0
    while start < len(data):
        begin = start + length_size
        end = start + uncounted + int.from_bytes(view[start:begin])
        yield view[begin:end]
        start = end


def write_apart(
    into: bytearray,
    elements: bytearray,
    size: int,
    most: int,
    header: Callable[[int, int, bool, bool], bytes],
) -> None:
    """Write elements of `size` bytes, which lie one behind the other, each in one frame, or in
    several of `most` bytes. `header` encodes what stands before a part: from the number of the
    element, the length of the part, and whether it is the first and the last one.
    """
    view = memoryview(elements)
    for start in range(0, len(elements), size):
        for at in range(start, start + size, most):
            piece = view[at : min(at + most, start + size)]
            # Elements of one stream are not mixed, so one number is enough.
            into += header(0, len(piece), at == start, at + len(piece) == start + size)
            into += piece
