"""Bytes to frames: one loop over all that has arrived, however it was cut.

Rules of this file:

* A length is judged when its four bytes are in, version and type when the header is: nothing is waited for that would be refused.
* Elements become no records. From the second frame on with the header of the one before it, neighbours are found as a *run* and cut out
  together.
* Only framing is judged here, and what a frame must have: whether it was due is the sink's to say.
* What is wrong raises ProtocolError with the reason for the peer.
"""

from collections.abc import Callable, Mapping
from typing import Final

from penstock.api import ProtocolError
from penstock.protocols.reactivesocket import _layout as layout
from penstock.protocols.reactivesocket._layout import (
    FRAMED_HEADER_SIZE,
    HEADER_SIZE,
    LAST_RESPONSES,
    LENGTH_SIZE,
    WHOLE_RESPONSES,
    FrameType,
)
from penstock.protocols.reactivesocket._sink import ReactiveSocketSink, WireStream
from penstock.wire import SHORTEST_RUN, BufferedDecoder, deliver_run

_read_header: Final = layout.HEADER.unpack_from
_read_number: Final = layout.NUMBER.unpack_from


class ReactiveSocketDecoder(BufferedDecoder):
    """Feed it what arrives; it tells `sink` every frame that is complete.

    `streams` is the table of streams that this side has opened, by id; whole elements go straight to them. It may be exchanged at any
    time: with an empty one the sink hears of every response.
    """

    __slots__ = ("_framed", "_most_body", "_readers", "_sink", "streams")

    def __init__(
        self, sink: ReactiveSocketSink, streams: Mapping[int, WireStream], *, framed: bool = False, max_frame: int = 1 << 20
    ) -> None:
        """`framed`: the transport delimits frames, which then carry no length. `max_frame` bounds what follows the header."""
        super().__init__(need=0 if framed else LENGTH_SIZE)
        self.streams: Mapping[int, WireStream] = streams
        self._sink = sink
        self._framed = framed
        self._most_body = max_frame
        self._readers: dict[int, Callable[[int, int, bytes], None]] = {
            FrameType.SETUP: self._setup,
            FrameType.REQUEST_RESPONSE: self._request,
            FrameType.REQUEST_FNF: self._request,
            FrameType.REQUEST_STREAM: self._request_with_demand,
            FrameType.REQUEST_SUB: self._request_with_demand,
            FrameType.REQUEST_N: self._request_n,
            FrameType.CANCEL: self._cancel,
            FrameType.RESPONSE: self._response,
            FrameType.ERROR: self._error,
            FrameType.EXT: self._ext,
        }

    def feed_frame(self, data: bytes) -> None:
        """Take exactly one frame without a length, as a transport that frames delivers it. Raises ProtocolError as `feed` does.

        `feed` does so with each piece of data where the transport frames.
        """
        if self._failure is not None:
            raise self._error_again(*self._failure)
        try:
            if len(data) < FRAMED_HEADER_SIZE:
                raise _too_short(len(data), FRAMED_HEADER_SIZE)
            size = len(data) - FRAMED_HEADER_SIZE
            if size > self._most_body:
                raise _too_long(size, self._most_body)
            word, stream_id = layout.FRAMED_HEADER.unpack_from(data)
            stream = self.streams.get(stream_id) if word in WHOLE_RESPONSES else None
            if stream is not None and stream.takes_whole:
                stream.receive_element(data[FRAMED_HEADER_SIZE:])
            else:
                self._judge(word, stream_id, size)
                self._tell(word, stream_id, data[FRAMED_HEADER_SIZE:])
        except ProtocolError as broken:
            self._fail(broken)
            raise

    def _decode_frame(self) -> bool:
        """Where the transport frames, what has arrived is one frame, whole and alone."""
        data, self._data = self._data, b""
        if data:
            self.feed_frame(data)
        return False

    # --- the loop

    def _decode(self, max_messages: int) -> bool:
        if self._framed:
            return self._decode_frame()
        data, end, longest = self._data, len(self._data), self._most_body + HEADER_SIZE
        position = self._position
        before = (-1, -1, -1)  # the header of the frame before, where that was a whole element for a stream
        try:
            while max_messages and end - position >= HEADER_SIZE:
                header = length, word, stream_id = _read_header(data, position)
                if not HEADER_SIZE <= length <= longest:
                    raise self._bad_length(length)
                after = position + length
                if after > end:
                    break
                max_messages -= 1
                if word in WHOLE_RESPONSES:
                    stream = self.streams.get(stream_id)
                    if stream is not None and stream.takes_whole:
                        if header == before and end - position >= SHORTEST_RUN * length:
                            after = deliver_run(data, position, HEADER_SIZE, length, stream)
                        else:
                            stream.receive_element(data[position + HEADER_SIZE : after])
                        before = header
                        position = after
                        continue
                if word in LAST_RESPONSES:
                    self._sink.receive_response(stream_id, True, True, True, data[position + HEADER_SIZE : after])  # noqa: FBT003  # in the order of the flags
                else:
                    self._judge(word, stream_id, length - HEADER_SIZE)
                    self._tell(word, stream_id, data[position + HEADER_SIZE : after])
                position = after
        finally:
            self._position = position
        return self._rest(max_messages)

    def _rest(self, max_messages: int) -> bool:
        """Judge what there is of a frame whose end is not there, note what is needed to go on, and return whether to call again."""
        data, position = self._data, self._position
        left = len(data) - position
        if not left:
            self._data, self._position, self._need = b"", 0, LENGTH_SIZE
            return False
        if not max_messages:
            self._need = 0
            return True
        self._need = LENGTH_SIZE
        if left >= LENGTH_SIZE:
            length = int.from_bytes(data[position : position + LENGTH_SIZE])
            if not HEADER_SIZE <= length <= self._most_body + HEADER_SIZE:
                raise self._bad_length(length)
            self._need = HEADER_SIZE
            if left >= HEADER_SIZE:
                _, word, stream_id = _read_header(data, position)
                self._judge(word, stream_id, length - HEADER_SIZE)
                self._need = length
        return False

    def _judge(self, word: int, stream_id: int, size: int) -> None:
        """Refuse what its header condemns; `size` is that of the body."""
        kind = word & layout.TYPE_MASK
        version = word >> layout.VERSION_SHIFT
        if version != layout.VERSION:
            if kind == FrameType.SETUP:  # the sink may have an answer; what its data would be is the other version's to say
                self._sink.receive_setup(version, stream_id, b"")
            # The ignore bit says nothing here: where it stands is the other version's to say, too.
            raise ProtocolError(f"a frame of version {version}, and this side speaks version 0", reason="version 0")
        least = layout.SHORTEST_BODY.get(kind)
        if least is None:
            if not word >> layout.FLAGS_SHIFT & layout.IGNORE:
                raise ProtocolError(f"{kind:#06x} is no frame type that may be ignored, and none of version 0", reason=_type_reason(kind))
        elif size < least:
            header = FRAMED_HEADER_SIZE if self._framed else HEADER_SIZE
            raise _too_short(header + size, header + least)

    def _bad_length(self, length: int) -> ProtocolError:
        if length > layout.LARGEST_LENGTH:
            return ProtocolError("the reserved bit of a frame's length is set; version 0 sends it as 0", reason="protocol:reserved")
        if length < HEADER_SIZE:
            return _too_short(length, HEADER_SIZE)
        return _too_long(length - HEADER_SIZE, self._most_body)

    # --- readers: each takes a frame's word, its stream and its body, and tells the sink

    def _tell(self, word: int, stream_id: int, body: bytes) -> None:
        reader = self._readers.get(word & layout.TYPE_MASK)
        if reader is None:
            self._sink.receive_unknown(word & layout.TYPE_MASK)
        else:
            reader(word, stream_id, body)

    def _setup(self, word: int, stream_id: int, body: bytes) -> None:
        self._sink.receive_setup(layout.VERSION, stream_id, body)

    def _request(self, word: int, stream_id: int, body: bytes) -> None:
        self._sink.receive_request(_KINDS[word & layout.TYPE_MASK], stream_id, None, body)

    def _request_with_demand(self, word: int, stream_id: int, body: bytes) -> None:
        (demand,) = _read_number(body)
        self._sink.receive_request(_KINDS[word & layout.TYPE_MASK], stream_id, demand, body[layout.NUMBER.size :])

    def _request_n(self, word: int, stream_id: int, body: bytes) -> None:
        self._sink.receive_request_n(stream_id, _read_number(body)[0])

    def _cancel(self, word: int, stream_id: int, body: bytes) -> None:
        self._sink.receive_cancel(stream_id)

    def _response(self, word: int, stream_id: int, body: bytes) -> None:
        flags = word >> layout.FLAGS_SHIFT
        self._sink.receive_response(stream_id, bool(flags & layout.BEGIN), bool(flags & layout.END), bool(flags & layout.COMPLETE), body)

    def _error(self, word: int, stream_id: int, body: bytes) -> None:
        self._sink.receive_error(stream_id, body)

    def _ext(self, word: int, stream_id: int, body: bytes) -> None:
        (ext_type,) = layout.EXTENDED_TYPE.unpack_from(body)
        ignore = bool(word >> layout.FLAGS_SHIFT & layout.IGNORE)
        self._sink.receive_ext(stream_id, ignore, ext_type, body[layout.EXTENDED_TYPE.size :])


_KINDS: Final[dict[int, FrameType]] = {int(kind): kind for kind in FrameType}


def _too_short(length: int, least: int) -> ProtocolError:
    return ProtocolError(f"a frame of {length} bytes, where its header and its fixed part take {least}", reason=f"protocol:length {length}")


def _too_long(size: int, limit: int) -> ProtocolError:
    return ProtocolError(
        f"the peer announced a frame of {size} bytes behind its header, and {limit} is the most that is taken here",
        reason=f"limit:frame {size} > {limit}",
    )


def _type_reason(kind: int) -> str:
    return f"protocol:type {kind:#06x}"
