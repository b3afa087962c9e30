"""The codec of ReactiveSocket version 0: `encode` turns records into bytes, and the decoder turns
bytes into calls of a stream, for whole elements, or of a sink, for all other frames: one call for
each frame. A call costs less than a record, so frames never become records on their way to a
session.

Rules of the encoder:

* Be strict in what you send: reserved bits are 0, and a number
  that a peer would refuse raises UsageError.
* `framed` means that the transport delivers messages, one frame each: the length is left out.
* Elements are not copied here: `response_header` returns the bytes before an element.

Rules of the decoder, which is one loop over the received bytes,
with one method for each type of frame:

* A length is checked when its four bytes are there; version and type when the header is there (wire
  §Refused frames). A peer cannot make the decoder wait for bytes that it would refuse, or hold
  them.
* Elements do not become records. Neighbouring elements of one stream, of any lengths, are a *run*,
  and are delivered together.
* A frame with a body above `max_frame` is refused, or, up to `max_skipped`, announced to the sink
  and skipped. None of its bytes is held.
* A frame to ignore is announced when its header is there (an EXT:
  its extended type), and its body is skipped as it arrives.
* The decoder checks only whether a frame is well-formed.
  Whether it is allowed at this point is for the sink to say.
* A fault of the peer raises ProtocolError with the reason for the ERROR on stream 0.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar, Final, Protocol

from penstock.api import ProtocolError, UsageError
from penstock.protocols.reactivesocket import _frames as frames
from penstock.protocols.reactivesocket import _layout as layout
from penstock.protocols.reactivesocket._layout import (
    FRAMED_HEADER_SIZE,
    HEADER_SIZE,
    LARGEST_LENGTH,
    LARGEST_STREAM_ID,
    LAST_RESPONSES,
    LENGTH_SIZE,
    PLAIN_REQUEST,
    WHOLE_RESPONSES,
    FrameType,
)
from penstock.wire import (
    LONGEST_RUN,
    FrameDecoder,
    WireStream,
    deliver_run,
    has_equal_headers,
    join_each,
    join_same,
    length_of_all,
    shown_number,
    too_long,
    too_short,
)

# --- the receivers of decoded frames


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


# --- frames to bytes

_pack_header: Final = layout.HEADER.pack  # a bound method: no look-up of the Struct for each frame
_pack_length: Final = layout.LENGTH.pack


class _Lengths(dict[int, bytes]):
    """The lengths before frames with an element of a length, made when they are first used:
    a look-up takes 29 ns, and packing 69.
    """

    def __missing__(self, size: int) -> bytes:
        length = _pack_length(HEADER_SIZE + size)
        # Bounded: longer elements cost more than their header does.
        if size < MOST_LENGTHS:
            self[size] = length
        return length


MOST_LENGTHS: Final = 0x4000
_length_of: Final = _Lengths().__getitem__

# The words of the two most frequent frames, without flags.
_RESPONSE: Final = layout.VERSION << layout.VERSION_SHIFT | FrameType.RESPONSE
_LAST: Final = layout.WHOLE | layout.COMPLETE
_LAST_RESPONSE: Final = _LAST << layout.FLAGS_SHIFT | _RESPONSE
_REQUEST_RESPONSE: Final = layout.VERSION << layout.VERSION_SHIFT | FrameType.REQUEST_RESPONSE


def encode(frame: frames.Frame, *, framed: bool = False) -> bytes:  # noqa: PLR0911  # a return for each kind of frame
    """Return the bytes of `frame`.
    Raises UsageError for a number that does not fit, or that may not be sent.
    """
    match frame:
        case frames.Setup():
            return _setup(frame, framed=framed)
        case frames.RequestResponse():
            return request_response(frame.stream_id, frame.data, framed=framed)
        case frames.RequestFnf():
            return _frame(FrameType.REQUEST_FNF, frame.stream_id, frame.data, framed=framed)
        case frames.RequestStream():
            return _frame(
                FrameType.REQUEST_STREAM,
                frame.stream_id,
                _demand(frame.demand, least=0) + frame.data,
                framed=framed,
            )
        case frames.RequestSub():
            return _frame(
                FrameType.REQUEST_SUB,
                frame.stream_id,
                _demand(frame.demand, least=0) + frame.data,
                framed=framed,
            )
        case frames.RequestN():
            return request_n(frame.stream_id, frame.demand, framed=framed)
        case frames.Cancel():
            return _frame(FrameType.CANCEL, frame.stream_id, b"", framed=framed)
        case frames.Response():
            # Any combination of flags may be encoded, legal or not:
            # tests and tools send what a broken peer would send.
            return (
                response_header(
                    frame.stream_id, len(frame.data), _response_flags(frame), framed=framed
                )
                + frame.data
            )
        case frames.Error():
            return _frame(FrameType.ERROR, frame.stream_id, frame.data, framed=framed)
        case frames.Ext():
            return _ext(frame, framed=framed)
    # Reached at run time only, by a program that mypy has not checked.
    raise UsageError(
        f"{frame!r} is no frame of ReactiveSocket; penstock.protocols.reactivesocket.Frame lists "
        "the records"
    )


def response_header(
    stream_id: int, length: int, flags: int = layout.WHOLE, *, framed: bool = False
) -> bytes:
    """Return the bytes before `length` bytes of a response.
    `flags` may contain BEGIN, END and COMPLETE.
    """
    whole = HEADER_SIZE + length
    # One condition for all that is unusual;
    # `_header` finds out what it is, and raises or encodes it.
    if framed or whole > LARGEST_LENGTH or not 0 <= stream_id <= LARGEST_STREAM_ID:
        return _header(FrameType.RESPONSE, flags, stream_id, length, framed=framed)
    return _pack_header(whole, flags << layout.FLAGS_SHIFT | _RESPONSE, stream_id)


def last_response(stream_id: int, element: bytes) -> bytes:
    """Return the only response of a request for one value, with its end."""
    length = HEADER_SIZE + len(element)
    if length > LARGEST_LENGTH or not 0 <= stream_id <= LARGEST_STREAM_ID:
        return _frame(FrameType.RESPONSE, stream_id, element, framed=False, flags=_LAST)
    return _pack_header(length, _LAST_RESPONSE, stream_id) + element


def join_run(stream_id: int, elements: list[bytes], flags: int = layout.WHOLE) -> bytearray:
    """Return the frames of `elements`, each of which is one response."""
    if len(elements) == 1:
        return bytearray(response_header(stream_id, len(elements[0]), flags)) + elements[0]
    length = length_of_all(elements)
    if length >= 0:
        return join_same(response_header(stream_id, length, flags), elements)
    # Everything behind the length is the same in each header.
    end = response_header(stream_id, 0, flags)[LENGTH_SIZE:]
    return join_each(list(map(_length_of, map(len, elements))), [end] * len(elements), elements)


def request_n(stream_id: int, demand: int, *, framed: bool = False) -> bytes:
    """Return a REQUEST_N, the control frame that is sent most. Without a record it takes two
    fifths of the time (487 ns, not 1,284).
    """
    return _frame(FrameType.REQUEST_N, stream_id, _demand(demand, least=1), framed=framed)


def request_response(stream_id: int, data: bytes, *, framed: bool = False) -> bytes:
    """Return a request for one value, the request that is sent most."""
    # A short path, as in response_header: 177 ns instead of 403 by way of _frame.
    length = HEADER_SIZE + len(data)
    if framed or length > LARGEST_LENGTH or not 0 <= stream_id <= LARGEST_STREAM_ID:
        return _frame(FrameType.REQUEST_RESPONSE, stream_id, data, framed=framed)
    return _pack_header(length, _REQUEST_RESPONSE, stream_id) + data


def _setup(frame: frames.Setup, *, framed: bool) -> bytes:
    # Any version of one byte, and not 0 alone:
    # tools test a peer with a version that it does not have.
    if not 0 <= frame.version <= layout.LARGEST_VERSION:
        raise UsageError(f"version={frame.version}; the version is one byte, 0 to 255")
    if frame.stream_id:
        # wire §The beginning and the end of a connection: a server refuses it with protocol:setup.
        raise UsageError(
            f"stream_id={frame.stream_id}; a SETUP is about the connection, whose id is 0"
        )
    return (
        _header(FrameType.SETUP, 0, 0, len(frame.data), framed=framed, version=frame.version)
        + frame.data
    )


def _ext(frame: frames.Ext, *, framed: bool) -> bytes:
    if not 0 <= frame.ext_type <= layout.LARGEST_EXTENDED_TYPE:
        raise UsageError(f"ext_type={frame.ext_type}; the extended type has 32 bits")
    body = layout.EXTENDED_TYPE.pack(frame.ext_type) + frame.data
    return _frame(
        FrameType.EXT,
        frame.stream_id,
        body,
        framed=framed,
        flags=layout.IGNORE if frame.ignore else 0,
    )


def _response_flags(frame: frames.Response) -> int:
    flags = layout.BEGIN if frame.begin else 0
    if frame.end:
        flags |= layout.END
    return flags | layout.COMPLETE if frame.complete else flags


def _demand(demand: int, *, least: int) -> bytes:
    if not least <= demand <= layout.LARGEST_DEMAND:
        # rule 3.9: the peer would answer with an error. `least` is 0 for the initial demand of a
        # request (wire §How the draft is read).
        raise UsageError(f"demand={shown_number(demand)}; {least} to 2^63-1 may be requested here")
    return layout.NUMBER.pack(demand)


def _frame(kind: FrameType, stream_id: int, body: bytes, *, framed: bool, flags: int = 0) -> bytes:
    # The body is copied. That is cheap for control frames; responses have response_header.
    return _header(kind, flags, stream_id, len(body), framed=framed) + body


def _header(
    kind: int, flags: int, stream_id: int, size: int, *, framed: bool, version: int = layout.VERSION
) -> bytes:
    word = version << layout.VERSION_SHIFT | flags << layout.FLAGS_SHIFT | kind
    if not 0 <= stream_id <= LARGEST_STREAM_ID:
        raise UsageError(f"stream_id={shown_number(stream_id)}; a stream's id has 64 bits")
    length = HEADER_SIZE + size
    # Also where the transport delivers messages:
    # another connection of the peer may need the length.
    if length > LARGEST_LENGTH:
        raise UsageError(
            f"a frame of {length} bytes; its length can be 2^31-1 at most, because the top bit is "
            "reserved"
        )
    return (
        layout.FRAMED_HEADER.pack(word, stream_id)
        if framed
        else layout.HEADER.pack(length, word, stream_id)
    )


# Bound methods: a look-up less for each frame.
_read_header: Final = layout.HEADER.unpack_from
_read_number: Final = layout.NUMBER.unpack_from


class ReactiveSocketDecoder(FrameDecoder):
    """Decodes received bytes and calls `sink` with each complete frame."""

    __slots__ = ("_sink", "max_skipped")

    def __init__(
        self,
        sink: ReactiveSocketSink,
        streams: Mapping[int, WireStream],
        *,
        framed: bool = False,
        max_frame: int = 1 << 20,
    ) -> None:
        """Decode for `sink`. `framed` means that the transport delivers messages, one frame each,
        without a length.

        `max_frame` is the largest number of bytes after a header.
        """
        super().__init__(streams, LENGTH_SIZE, framed=framed, max_frame=max_frame)
        self._sink = sink
        self.max_skipped: int = 0
        """The largest body of a frame that is skipped;
        one that is above this and above `max_frame` is refused.
        """

    def _decode_frame(self, data: bytes) -> None:
        if len(data) < FRAMED_HEADER_SIZE:
            raise too_short(len(data), FRAMED_HEADER_SIZE)
        size = len(data) - FRAMED_HEADER_SIZE
        word, stream_id = layout.FRAMED_HEADER.unpack_from(data)
        if size > self._max_body:
            self._announce_skipped(word, stream_id, size)
            return
        stream = self.streams.get(stream_id) if word in WHOLE_RESPONSES else None
        if stream is not None and stream.takes_whole:
            stream.receive_element(data[FRAMED_HEADER_SIZE:])
        else:
            self._check_header(word, stream_id, size)
            self._dispatch(word, stream_id, data[FRAMED_HEADER_SIZE:])

    # --- the loop

    def _decode(self, max_messages: int) -> bool:
        if self._framed:
            return self._decode_waiting_frame()
        data, end, longest = self._data, len(self._data), self._max_body + HEADER_SIZE
        position = self._drop_skipped() if self._to_skip else self._position
        try:
            while max_messages and end - position >= HEADER_SIZE:
                length, word, stream_id = _read_header(data, position)
                if not HEADER_SIZE <= length <= longest:
                    position = self._begin_skip(position, length, word, stream_id)
                    max_messages -= 1
                    continue
                after = position + length
                if after > end:
                    break
                max_messages -= 1
                # The words of the three most frequent frames come first: they need no check of
                # version and type, because their words contain both.
                if word in WHOLE_RESPONSES:
                    stream = self.streams.get(stream_id)
                    if stream is not None and stream.takes_whole:
                        # Everything behind the length must be the same:
                        # most chunks with mixed streams fail here.
                        if not data.startswith(
                            data[position + LENGTH_SIZE : position + HEADER_SIZE],
                            after + LENGTH_SIZE,
                        ):
                            stream.receive_element(data[position + HEADER_SIZE : after])
                            position = after
                        else:
                            position = self._deliver_run(data, position, after, stream)
                        continue
                if word in LAST_RESPONSES:
                    self._sink.receive_response(
                        stream_id,
                        True,  # noqa: FBT003  # in the order of the flags
                        True,  # noqa: FBT003  # the same
                        True,  # noqa: FBT003  # the same
                        data[position + HEADER_SIZE : after],
                    )
                elif word == PLAIN_REQUEST:
                    self._sink.receive_request_response(
                        stream_id, data[position + HEADER_SIZE : after]
                    )
                else:
                    self._check_header(word, stream_id, length - HEADER_SIZE)
                    self._dispatch(word, stream_id, data[position + HEADER_SIZE : after])
                position = after
        finally:
            # It is also set if the sink raises. In the loop a local variable is enough, because
            # nothing else reads the position.
            self._position = position
        return self._check_incomplete(max_messages)

    def _deliver_run(self, data: bytes, position: int, after: int, stream: WireStream) -> int:
        """Deliver the element from `position` to `after`,
        and the following ones with the same word and stream.

        Return the position after them.
        A frame with a fault, or an incomplete one, is left to the loop over single frames.
        """
        if has_equal_headers(data, position, HEADER_SIZE, after - position):
            return deliver_run(data, position, HEADER_SIZE, after - position, stream)
        start, elements = position, [data[position + HEADER_SIZE : after]]
        append, end, longest = elements.append, len(data), self._max_body + HEADER_SIZE
        _, word, stream_id = _read_header(data, position)
        while len(elements) < LONGEST_RUN and end - after >= HEADER_SIZE:
            length, next_word, next_id = _read_header(data, after)
            behind = after + length
            if (
                next_id != stream_id
                or next_word != word
                or not HEADER_SIZE <= length <= longest
                or behind > end
            ):
                break
            append(data[after + HEADER_SIZE : behind])
            after = behind
        if len(elements) == 1:
            stream.receive_element(elements[0])
        else:
            stream.receive_run(elements, after - start - len(elements) * HEADER_SIZE)
        return after

    def _check_incomplete(self, max_messages: int) -> bool:
        """Check the part of the next frame that is there, set `_need`,
        and return what `feed` returns.
        """
        data, position = self._data, self._position
        left = len(data) - position
        if not left:
            self._data, self._position = b"", 0  # an idle connection must not keep its last chunk
            # Bytes to skip are dropped at once, in any number.
            self._need = 0 if self._to_skip else LENGTH_SIZE
            return False
        if not max_messages:
            self._need = 0  # `feed(b"")` must call _decode: complete frames may be there
            return True
        # Three stages, so that each check is made when its bytes are there and no earlier:
        # length, header, all of the frame.
        self._need = LENGTH_SIZE
        if left >= LENGTH_SIZE:
            length = int.from_bytes(data[position : position + LENGTH_SIZE])
            if not HEADER_SIZE <= length <= self._max_body + HEADER_SIZE and not self._may_skip(
                length
            ):
                raise self._bad_length(length)
            self._need = HEADER_SIZE
            # A frame that is skipped does not get here with its header: the loop has announced it.
            if left >= HEADER_SIZE:
                _, word, stream_id = _read_header(data, position)
                self._check_header(word, stream_id, length - HEADER_SIZE)
                self._need = length
                self._check_body(length, word, stream_id)
        return False

    def _check_body(self, length: int, word: int, stream_id: int) -> None:
        """Check the body of the incomplete frame at `_position`, and drop it
        if the frame is one to ignore.
        """
        kind = word & layout.TYPE_MASK
        if kind not in self._readers:  # with the ignore flag: _check_header has refused all others
            self._sink.receive_unknown(kind)
            self._skip_incomplete(length)
        elif kind == FrameType.EXT:
            self._check_ext(length, word, stream_id)

    def _check_ext(self, length: int, word: int, stream_id: int) -> None:
        """Let the sink refuse the extension's message at `_position`, or skip it if the sink
        does not know the extension.
        """
        start, head = self._position + HEADER_SIZE, layout.EXTENDED_TYPE.size
        if len(self._data) < start + head:
            self._need = min(length, HEADER_SIZE + head)
            return
        (ext_type,) = layout.EXTENDED_TYPE.unpack_from(self._data, start)
        if self._sink.knows_ext(ext_type):
            self._sink.check_ext(ext_type, length - HEADER_SIZE - head)
        else:
            # Without the ignore flag the sink raises.
            self._sink.receive_ext(
                stream_id, bool(word >> layout.FLAGS_SHIFT & layout.IGNORE), ext_type, b""
            )
            self._skip_incomplete(length)

    def _skip_incomplete(self, length: int) -> None:
        """Drop the frame of `length` bytes at `_position`, now and as it arrives: held until it
        is complete, it would cost `max_frame`.
        """
        self._skip(self._position, length)
        self._data, self._position, self._need = b"", 0, 0

    def _check_header(self, word: int, stream_id: int, size: int) -> None:
        """Raise ProtocolError if the version, the type, or `size`, the size of the body,
        is wrong.
        """
        kind = word & layout.TYPE_MASK
        version = word >> layout.VERSION_SHIFT
        if version != layout.VERSION:
            # wire §How the draft is read: of a frame of another version only the header is read,
            # because its format is not known here. So a SETUP is passed on without data, and the
            # ignore flag has no meaning.
            if kind == FrameType.SETUP:
                self._sink.receive_setup(version, stream_id, b"")
            raise ProtocolError(
                f"a frame of version {version}, and this side speaks version 0", reason="version 0"
            )
        least = layout.SHORTEST_BODY.get(kind)
        if least is None:
            # wire §Refused frames: with the ignore flag the frame is skipped by its length.
            # Such a frame reaches _dispatch.
            if not word >> layout.FLAGS_SHIFT & layout.IGNORE:
                raise ProtocolError(
                    (
                        f"{kind:#06x} is not a frame type of version 0, and the frame has no "
                        "ignore flag"
                    ),
                    reason=f"protocol:type {kind:#06x}",
                )
        elif size < least and not (
            kind == FrameType.EXT and word >> layout.FLAGS_SHIFT & layout.IGNORE
        ):
            # The reason has the length of the whole frame, as the peer wrote it,
            # not the size of the body.
            header = FRAMED_HEADER_SIZE if self._framed else HEADER_SIZE
            raise too_short(header + size, header + least)

    def _may_skip(self, length: int) -> bool:
        return self._max_body < length - HEADER_SIZE <= self.max_skipped

    def _begin_skip(self, position: int, length: int, word: int, stream_id: int) -> int:
        """Skip the frame at `position`, whose header is there.
        Return where the decoder goes on in `_data`.
        """
        if not self._may_skip(length):
            raise self._bad_length(length)
        self._announce_skipped(word, stream_id, length - HEADER_SIZE)
        return self._skip(position, length)

    def _announce_skipped(self, word: int, stream_id: int, size: int) -> None:
        """Tell the sink of a frame whose body is too long.
        Raise ProtocolError if the frame may not be skipped.
        """
        if size > self.max_skipped:
            raise too_long(size, self._max_body)
        self._check_header(word, stream_id, size)
        is_ignorable = bool(word >> layout.FLAGS_SHIFT & layout.IGNORE)
        self._sink.receive_too_long(
            word & layout.TYPE_MASK, stream_id, is_ignorable, too_long(size, self._max_body)
        )

    def _bad_length(self, length: int) -> ProtocolError:
        # The reserved bit first: with it the length is above every limit, and `limit:frame` would
        # name a number that the peer never meant.
        if length > LARGEST_LENGTH:
            return ProtocolError(
                "the reserved bit of a frame's length is set; version 0 sends it as 0",
                reason="protocol:reserved",
            )
        if length < HEADER_SIZE:
            return too_short(length, HEADER_SIZE)
        return too_long(length - HEADER_SIZE, self._max_body)

    # --- readers: each takes the word, the stream id and the body of a frame, and calls the sink

    def _dispatch(self, word: int, stream_id: int, body: bytes) -> None:
        reader = self._readers.get(word & layout.TYPE_MASK)
        # An unknown type with the ignore flag: _check_header has refused all others.
        if reader is None:
            self._sink.receive_unknown(word & layout.TYPE_MASK)
        else:
            reader(self, word, stream_id, body)

    def _setup(self, word: int, stream_id: int, body: bytes) -> None:
        # A SETUP of another version does not reach this method:
        # _check_header has passed it on and raised.
        self._sink.receive_setup(layout.VERSION, stream_id, body)

    def _request_response(self, word: int, stream_id: int, body: bytes) -> None:
        self._sink.receive_request_response(stream_id, body)

    def _request(self, word: int, stream_id: int, body: bytes) -> None:
        # None, and not 0: this request has no demand field, while 0 is a stream
        # that waits for REQUEST_N.
        self._sink.receive_request(_FRAME_TYPES[word & layout.TYPE_MASK], stream_id, None, body)

    def _request_with_demand(self, word: int, stream_id: int, body: bytes) -> None:
        # The body is long enough: _check_header has compared it with SHORTEST_BODY.
        (demand,) = _read_number(body)
        self._sink.receive_request(
            _FRAME_TYPES[word & layout.TYPE_MASK], stream_id, demand, body[layout.NUMBER.size :]
        )

    def _request_n(self, word: int, stream_id: int, body: bytes) -> None:
        # wire §Frames: bytes behind the demand are ignored. An illegal demand is passed on:
        # it is an error of one stream.
        self._sink.receive_request_n(stream_id, _read_number(body)[0])

    def _cancel(self, word: int, stream_id: int, body: bytes) -> None:
        self._sink.receive_cancel(stream_id)

    def _response(self, word: int, stream_id: int, body: bytes) -> None:
        flags = word >> layout.FLAGS_SHIFT
        self._sink.receive_response(
            stream_id,
            bool(flags & layout.BEGIN),
            bool(flags & layout.END),
            bool(flags & layout.COMPLETE),
            body,
        )

    def _error(self, word: int, stream_id: int, body: bytes) -> None:
        # As bytes: the limit of such a text is the session's,
        # and the rest of a longer text is cut off, not refused.
        self._sink.receive_error(stream_id, body)

    def _ext(self, word: int, stream_id: int, body: bytes) -> None:
        # wire §The header: the only type of version 0 for which the ignore flag has a meaning.
        ignore = bool(word >> layout.FLAGS_SHIFT & layout.IGNORE)
        # With the ignore flag; without it _check_header has refused the frame.
        if len(body) < layout.EXTENDED_TYPE.size:
            self._sink.receive_unknown(FrameType.EXT)
            return
        (ext_type,) = layout.EXTENDED_TYPE.unpack_from(body)
        self._sink.receive_ext(stream_id, ignore, ext_type, body[layout.EXTENDED_TYPE.size :])

    # Functions, and not the methods of one decoder: a table for each connection had 1 KB.
    _readers: ClassVar[Mapping[int, Callable[["ReactiveSocketDecoder", int, int, bytes], None]]] = {
        FrameType.SETUP: _setup,
        FrameType.REQUEST_RESPONSE: _request_response,
        FrameType.REQUEST_FNF: _request,
        FrameType.REQUEST_STREAM: _request_with_demand,
        FrameType.REQUEST_SUB: _request_with_demand,
        FrameType.REQUEST_N: _request_n,
        FrameType.CANCEL: _cancel,
        FrameType.RESPONSE: _response,
        FrameType.ERROR: _error,
        FrameType.EXT: _ext,
    }


# A dict instead of `FrameType(number)`: the call of an enum takes more than ten times as long.
_FRAME_TYPES: Final[dict[int, FrameType]] = {int(kind): kind for kind in FrameType}
