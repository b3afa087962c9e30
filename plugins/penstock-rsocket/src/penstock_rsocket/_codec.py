"""The codec of RSocket 1.0: `encode` turns records into bytes, `decode` one frame into a record,
and the decoder cuts received bytes into frames, for a connection.

Rules of the encoder:

* Be strict in what you send: bits without a meaning are 0, and a number that a peer would refuse
  raises UsageError.
* `framed` means that the transport delivers messages, one frame each: the length is left out.

Rules of the decoder:

* A length is judged when its three bytes are there, and the header when it is there. A frame with a
  body above `max_frame` is announced to the sink and skipped. None of its bytes is held.
* Elements do not become records. Neighbouring elements of one stream, whole and without metadata,
  are a *run*, and are delivered together.
* The decoder checks only whether a frame is well-formed. Whether it is allowed at this point is for
  the sink to say. So is a number that is well-formed and illegal, such as a demand of 0.
* A fault of the peer raises ProtocolError, and nothing else.
"""

from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias

from penstock.api import ProtocolError, UsageError
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
from penstock_rsocket import _frames as frames
from penstock_rsocket import _layout as layout
from penstock_rsocket._layout import (
    COMPLETE,
    FLAGS_MASK,
    FOLLOWS,
    FRAMED_HEADER_SIZE,
    HEADER_SIZE,
    IGNORE,
    LARGEST_LENGTH,
    LARGEST_NUMBER,
    LARGEST_POSITION,
    LARGEST_STREAM_ID,
    LAST_PAYLOAD,
    LEASE,
    LENGTH_SIZE,
    METADATA,
    NEXT,
    PLAIN_REQUEST,
    RESPOND,
    RESUME_ENABLED,
    SHORTEST_BODY,
    TYPE_SHIFT,
    WHOLE_PAYLOAD,
    FrameType,
)

pack_header: Final = layout.HEADER.pack  # bound methods: no look-up for each frame
_read_header: Final = layout.HEADER.unpack_from
_read_number: Final = layout.NUMBER.unpack_from


class CutMetadata(ProtocolError):
    """Metadata that is longer than its frame."""


_AnyRequest: TypeAlias = (
    frames.RequestResponse | frames.RequestFnf | frames.RequestStream | frames.RequestChannel
)

# A dict instead of `FrameType(number)`: the call of an enum takes more than ten times as long.
_FRAME_TYPES: Final[dict[int, FrameType]] = {int(kind): kind for kind in FrameType}

# --- frames to bytes


def encode(frame: frames.Frame, *, framed: bool = False) -> bytes:  # noqa: C901, PLR0911, PLR0912  # a return for each kind of frame
    """Return the bytes of `frame`.
    Raises UsageError for a number that does not fit, or that may not be sent.
    """
    match frame:
        case frames.Setup():
            return _setup(frame, framed=framed)
        case frames.Lease():
            body = _number("ttl", frame.ttl, 0) + _number("requests", frame.requests, 0)
            return _frame(
                FrameType.LEASE,
                0 if frame.metadata is None else METADATA,
                0,
                body + (frame.metadata or b""),
                framed=framed,
            )
        case frames.Keepalive():
            return keepalive(
                frame.data, respond=frame.respond, position=frame.position, framed=framed
            )
        case frames.RequestResponse():
            return _request(FrameType.REQUEST_RESPONSE, frame, b"", framed=framed)
        case frames.RequestFnf():
            return _request(FrameType.REQUEST_FNF, frame, b"", framed=framed)
        case frames.RequestStream():
            demand = _number("demand", frame.demand, 1)
            return _request(FrameType.REQUEST_STREAM, frame, demand, framed=framed)
        case frames.RequestChannel():
            demand = _number("demand", frame.demand, 1)
            more = COMPLETE if frame.complete else 0
            return _request(FrameType.REQUEST_CHANNEL, frame, demand, framed=framed, flags=more)
        case frames.RequestN():
            return request_n(frame.stream_id, frame.demand, framed=framed)
        case frames.Cancel():
            return cancel(frame.stream_id, framed=framed)
        case frames.Payload():
            # Any combination of flags may be encoded, legal or not:
            # tests and tools send what a broken peer would send.
            flags = (NEXT if frame.next else 0) | (COMPLETE if frame.complete else 0)
            if frame.follows:
                flags |= FOLLOWS
            return payload(
                frame.stream_id, frame.data, flags, metadata=frame.metadata, framed=framed
            )
        case frames.Error():
            return error(frame.stream_id, frame.code, frame.data, framed=framed)
        case frames.MetadataPush():
            return _frame(FrameType.METADATA_PUSH, METADATA, 0, frame.metadata, framed=framed)
        case frames.Resume():
            return _resume(frame, framed=framed)
        case frames.ResumeOk():
            return _frame(FrameType.RESUME_OK, 0, 0, _position(frame.received), framed=framed)
        case frames.Ext():
            body = _number("extended_type", frame.extended_type, 1) + frame.data
            flags = IGNORE if frame.ignore else 0
            return _frame(FrameType.EXT, flags, frame.stream_id, body, framed=framed)
        case frames.Unknown():
            pass  # it has no body that could be written
    raise UsageError(f"{frame!r} cannot be sent; penstock_rsocket.Frame lists the records that can")


def payload_header(stream_id: int, length: int, flags: int = NEXT) -> bytes:
    """Return the bytes before `length` bytes of a payload without metadata, with a length."""
    return frame_header(FrameType.PAYLOAD, flags, stream_id, length)


def frame_header(kind: int, flags: int, stream_id: int, size: int) -> bytes:
    """Return a header before a body of `size` bytes, with a length.
    Raises UsageError for an id or a size that does not fit.
    """
    length = FRAMED_HEADER_SIZE + size
    if length > LARGEST_LENGTH or not 0 <= stream_id <= LARGEST_STREAM_ID:
        raise _does_not_fit(stream_id, length)
    return pack_header(length >> 16, length & 0xFFFF, stream_id, kind << TYPE_SHIFT | flags)


def payload(
    stream_id: int,
    data: bytes,
    flags: int,
    *,
    metadata: bytes | None = None,
    framed: bool = False,
) -> bytes:
    """Return a PAYLOAD. `flags` may contain NEXT, COMPLETE and FOLLOWS."""
    if metadata is not None:
        flags |= METADATA
    return _frame(FrameType.PAYLOAD, flags, stream_id, join_metadata(metadata, data), framed=framed)


def join_run(stream_id: int, elements: list[bytes], flags: int = NEXT) -> bytearray:
    """Return the frames of `elements`, each of which is one payload."""
    if len(elements) == 1:
        return bytearray(payload_header(stream_id, len(elements[0]), flags)) + elements[0]
    length = length_of_all(elements)
    if length >= 0:
        return join_same(payload_header(stream_id, length, flags), elements)
    # Everything after the length is the same in each header.
    end = payload_header(stream_id, 0, flags)[LENGTH_SIZE:]
    begins = [(FRAMED_HEADER_SIZE + size).to_bytes(LENGTH_SIZE) for size in map(len, elements)]
    return join_each(begins, [end] * len(elements), elements)


def request_n(stream_id: int, demand: int, *, framed: bool = False) -> bytes:
    """Return a REQUEST_N."""
    return _frame(FrameType.REQUEST_N, 0, stream_id, _number("demand", demand, 1), framed=framed)


def cancel(stream_id: int, *, framed: bool = False) -> bytes:
    """Return a CANCEL."""
    return _frame(FrameType.CANCEL, 0, stream_id, b"", framed=framed)


def error(stream_id: int, code: int, data: bytes, *, framed: bool = False) -> bytes:
    """Return an ERROR."""
    if not 1 <= code <= layout.LAST_APPLICATION_CODE:
        raise UsageError(f"code={code}; the code of an error is 1 to 0xFFFFFFFE")
    return _frame(FrameType.ERROR, 0, stream_id, layout.NUMBER.pack(code) + data, framed=framed)


def keepalive(
    data: bytes, *, respond: bool = False, position: int = 0, framed: bool = False
) -> bytes:
    """Return a KEEPALIVE."""
    flags = RESPOND if respond else 0
    return _frame(FrameType.KEEPALIVE, flags, 0, _position(position) + data, framed=framed)


def join_metadata(metadata: bytes | None, data: bytes) -> bytes:
    """Return metadata and data as the body of a request or a payload has them."""
    if metadata is None:
        return data
    if len(metadata) > LARGEST_LENGTH:
        raise UsageError(f"metadata of {len(metadata)} bytes; {LARGEST_LENGTH} is the most")
    return b"".join((len(metadata).to_bytes(LENGTH_SIZE), metadata, data))


def _request(
    kind: FrameType,
    frame: _AnyRequest,
    demand: bytes,
    *,
    framed: bool,
    flags: int = 0,
) -> bytes:
    if frame.follows:
        flags |= FOLLOWS
    if frame.metadata is not None:
        flags |= METADATA
    body = demand + join_metadata(frame.metadata, frame.data)
    return _frame(kind, flags, frame.stream_id, body, framed=framed)


def _setup(frame: frames.Setup, *, framed: bool) -> bytes:
    flags = (LEASE if frame.leases else 0) | (0 if frame.metadata is None else METADATA)
    parts = [
        _version(frame.major, frame.minor),
        _number("keepalive", frame.keepalive, 1),
        _number("lifetime", frame.lifetime, 1),
    ]
    if frame.token is not None:
        flags |= RESUME_ENABLED
        parts += [_sized("token", frame.token, 2)]
    parts += [
        _sized("metadata_type", _ascii(frame.metadata_type), 1),
        _sized("data_type", _ascii(frame.data_type), 1),
        join_metadata(frame.metadata, frame.data),
    ]
    return _frame(FrameType.SETUP, flags, 0, b"".join(parts), framed=framed)


def _resume(frame: frames.Resume, *, framed: bool) -> bytes:
    body = b"".join(
        (
            _version(frame.major, frame.minor),
            _sized("token", frame.token, 2),
            _position(frame.received),
            _position(frame.first_kept),
        )
    )
    return _frame(FrameType.RESUME, 0, 0, body, framed=framed)


def _frame(kind: int, flags: int, stream_id: int, body: bytes, *, framed: bool) -> bytes:
    if not framed:
        return frame_header(kind, flags, stream_id, len(body)) + body
    # Also where the transport delivers messages: wire §The header.
    if len(body) + FRAMED_HEADER_SIZE > LARGEST_LENGTH or not 0 <= stream_id <= LARGEST_STREAM_ID:
        raise _does_not_fit(stream_id, len(body) + FRAMED_HEADER_SIZE)
    return layout.FRAMED_HEADER.pack(stream_id, kind << TYPE_SHIFT | flags) + body


def _does_not_fit(stream_id: int, length: int) -> UsageError:
    if length > LARGEST_LENGTH:
        return UsageError(f"a frame of {length} bytes; {LARGEST_LENGTH} is the most of RSocket")
    return UsageError(f"stream_id={shown_number(stream_id)}; a stream's id is 0 to 2^31-1")


def _number(name: str, number: int, least: int) -> bytes:
    if not least <= number <= LARGEST_NUMBER:
        raise UsageError(f"{name}={shown_number(number)}; {least} to 2^31-1 may be sent here")
    return layout.NUMBER.pack(number)


def _position(position: int) -> bytes:
    if not 0 <= position <= LARGEST_POSITION:
        raise UsageError(f"a position of {shown_number(position)}; it is 0 to 2^63-1")
    return layout.POSITION.pack(position)


def _version(major: int, minor: int) -> bytes:
    # Any version, and not 1.0 alone: tools test a peer with one that it does not have.
    if not (0 <= major <= 0xFFFF and 0 <= minor <= 0xFFFF):
        raise UsageError(
            f"version {shown_number(major)}.{shown_number(minor)}; each number is 0 to 65535"
        )
    return layout.VERSION.pack(major, minor)


def _sized(name: str, data: bytes, size: int) -> bytes:
    if len(data) >= 1 << 8 * size:
        raise UsageError(f"{name} has {len(data)} bytes; {(1 << 8 * size) - 1} is the most")
    return len(data).to_bytes(size) + data


def _ascii(text: str) -> bytes:
    if not text.isascii():
        raise UsageError(f"{text[:200]!a} is no MIME type: it has characters outside of ASCII")
    return text.encode()


# --- a frame to a record


def decode(data: bytes) -> frames.Frame:
    """Return one frame, given without its length. Raises ProtocolError."""
    if len(data) < FRAMED_HEADER_SIZE:
        raise too_short(len(data), FRAMED_HEADER_SIZE)
    stream_id, word = layout.FRAMED_HEADER.unpack_from(data)
    kind = check_header(word, stream_id, len(data) - FRAMED_HEADER_SIZE)
    if kind is None:
        return frames.Unknown(stream_id=stream_id, type=word >> TYPE_SHIFT)
    return _READERS[kind](word & FLAGS_MASK, stream_id, data[FRAMED_HEADER_SIZE:])


def check_header(word: int, stream_id: int, size: int) -> FrameType | None:
    """Return the type of a frame with a body of `size` bytes; None for a type that is not known
    here and may be ignored. Raises ProtocolError.
    """
    if stream_id > LARGEST_STREAM_ID:
        raise ProtocolError(
            "the first bit of a stream's id is set; RSocket sends it as 0", reason="protocol:id"
        )
    kind = _FRAME_TYPES.get(word >> TYPE_SHIFT)
    if kind is None:
        if word & IGNORE:
            return None
        raise ProtocolError(
            f"{word >> TYPE_SHIFT:#04x} is no frame type of RSocket 1.0, and the frame may not be "
            "ignored",
            reason=f"protocol:type {word >> TYPE_SHIFT:#04x}",
        )
    least = SHORTEST_BODY[kind]
    if size < least:
        raise too_short(FRAMED_HEADER_SIZE + size, FRAMED_HEADER_SIZE + least)
    return kind


def split_metadata(flags: int, body: bytes, start: int = 0) -> tuple[bytes | None, bytes]:
    """Return the metadata and the data of a body, from `start` on. Raises ProtocolError."""
    if not flags & METADATA:
        return None, body[start:] if start else body
    begin = start + LENGTH_SIZE
    end = begin + int.from_bytes(body[start:begin])
    # The second condition finds a body that ends within the length.
    if end > len(body) or begin > len(body):
        raise CutMetadata(
            f"metadata that ends {end - len(body)} bytes after its frame",
            reason="protocol:metadata",
        )
    return body[begin:end], body[end:]


def read_setup(flags: int, body: bytes) -> frames.Setup:
    """Return a SETUP. Raises ProtocolError."""
    major, minor = layout.VERSION.unpack_from(body)
    keepalive_ms, lifetime = _read_number(body, 4)[0], _read_number(body, 8)[0]
    position, token = 12, None
    if flags & RESUME_ENABLED:
        token, position = _read_sized(body, position, 2, "protocol:setup")
    metadata_type, position = _read_sized(body, position, 1, "protocol:setup")
    data_type, position = _read_sized(body, position, 1, "protocol:setup")
    metadata, data = split_metadata(flags, body, position)
    return frames.Setup(
        major=major,
        minor=minor,
        keepalive=keepalive_ms,
        lifetime=lifetime,
        token=token,
        leases=bool(flags & LEASE),
        metadata_type=_mime_type(metadata_type),
        data_type=_mime_type(data_type),
        metadata=metadata,
        data=data,
    )


def read_resume(_flags: int, body: bytes) -> frames.Resume:
    """Return a RESUME. Raises ProtocolError."""
    major, minor = layout.VERSION.unpack_from(body)
    token, position = _read_sized(body, 4, 2, "protocol:resume")
    if position + 16 > len(body):
        raise ProtocolError("a RESUME that ends before its positions", reason="protocol:resume")
    return frames.Resume(
        major=major,
        minor=minor,
        token=token,
        received=read_position(body, position),
        first_kept=read_position(body, position + 8),
    )


def _read_request_stream(flags: int, stream_id: int, body: bytes) -> frames.Frame:
    metadata, data = split_metadata(flags, body, 4)
    return frames.RequestStream(
        stream_id=stream_id,
        demand=_read_number(body)[0],
        metadata=metadata,
        data=data,
        follows=bool(flags & FOLLOWS),
    )


def _read_request_channel(flags: int, stream_id: int, body: bytes) -> frames.Frame:
    metadata, data = split_metadata(flags, body, 4)
    return frames.RequestChannel(
        stream_id=stream_id,
        demand=_read_number(body)[0],
        metadata=metadata,
        data=data,
        follows=bool(flags & FOLLOWS),
        complete=bool(flags & COMPLETE),
    )


def _read_request(
    make: type[frames.RequestResponse] | type[frames.RequestFnf],
) -> "_Reader":
    def read(flags: int, stream_id: int, body: bytes) -> frames.Frame:
        metadata, data = split_metadata(flags, body)
        return make(
            stream_id=stream_id, metadata=metadata, data=data, follows=bool(flags & FOLLOWS)
        )

    return read


def _read_payload(flags: int, stream_id: int, body: bytes) -> frames.Frame:
    metadata, data = split_metadata(flags, body)
    return frames.Payload(
        stream_id=stream_id,
        metadata=metadata,
        data=data,
        follows=bool(flags & FOLLOWS),
        complete=bool(flags & COMPLETE),
        next=bool(flags & NEXT),
    )


def _read_lease(flags: int, _stream_id: int, body: bytes) -> frames.Frame:
    return frames.Lease(
        ttl=_read_number(body)[0],
        requests=_read_number(body, 4)[0],
        # wire §LEASE: metadata has no length here, because nothing follows it.
        metadata=body[8:] if flags & METADATA else None,
    )


_Reader = Callable[[int, int, bytes], frames.Frame]
_READERS: Final[Mapping[int, _Reader]] = {
    FrameType.SETUP: lambda flags, _, body: read_setup(flags, body),
    FrameType.LEASE: _read_lease,
    FrameType.KEEPALIVE: lambda flags, _, body: frames.Keepalive(
        respond=bool(flags & RESPOND), position=read_position(body, 0), data=body[8:]
    ),
    FrameType.REQUEST_RESPONSE: _read_request(frames.RequestResponse),
    FrameType.REQUEST_FNF: _read_request(frames.RequestFnf),
    FrameType.REQUEST_STREAM: _read_request_stream,
    FrameType.REQUEST_CHANNEL: _read_request_channel,
    FrameType.REQUEST_N: lambda _, stream_id, body: frames.RequestN(
        stream_id=stream_id, demand=_read_number(body)[0]
    ),
    FrameType.CANCEL: lambda _, stream_id, _body: frames.Cancel(stream_id=stream_id),
    FrameType.PAYLOAD: _read_payload,
    FrameType.ERROR: lambda _, stream_id, body: frames.Error(
        stream_id=stream_id, code=_read_number(body)[0], data=body[4:]
    ),
    FrameType.METADATA_PUSH: lambda _, _id, body: frames.MetadataPush(metadata=body),
    FrameType.RESUME: lambda flags, _, body: read_resume(flags, body),
    FrameType.RESUME_OK: lambda _, _id, body: frames.ResumeOk(received=read_position(body, 0)),
    FrameType.EXT: lambda flags, stream_id, body: frames.Ext(
        stream_id=stream_id,
        extended_type=_read_number(body)[0],
        ignore=bool(flags & IGNORE),
        data=body[4:],
    ),
}


def _read_sized(body: bytes, position: int, size: int, reason: str) -> tuple[bytes, int]:
    begin = position + size
    end = begin + int.from_bytes(body[position:begin])
    if begin > len(body) or end > len(body):
        raise ProtocolError(
            f"a field that ends {max(begin, end) - len(body)} bytes after its frame", reason=reason
        )
    return body[begin:end], end


def read_position(body: bytes, start: int) -> int:
    """Return a position. Raises ProtocolError."""
    (position,) = layout.POSITION.unpack_from(body, start)
    if position > LARGEST_POSITION:
        raise ProtocolError(
            "the first bit of a position is set; RSocket sends it as 0",
            reason="protocol:position",
        )
    return int(position)


def _mime_type(name: bytes) -> str:
    # Not refused: the specification says only that a MIME type should be ASCII.
    return name.decode("ascii", "backslashreplace")


# --- received bytes to frames


class RsocketSink(Protocol):
    """Receives all other frames, in the order of arrival, and judges them.
    An exception from any method ends the decoding.
    """

    def receive_frame(self, kind: FrameType, flags: int, stream_id: int, body: bytes, /) -> None:
        """Take a frame that is well-formed up to its fixed part."""

    def receive_last(self, stream_id: int, body: bytes, /) -> None:
        """Take a PAYLOAD with NEXT and COMPLETE alone, as `receive_frame` does."""

    def receive_request(self, stream_id: int, body: bytes, /) -> None:
        """Take a REQUEST_RESPONSE without a flag, as `receive_frame` does."""

    def receive_unknown(self, frame_type: int, /) -> None:
        """Take note of a frame of an unknown type that may be ignored. It is skipped."""

    def receive_too_long(
        self, kind: FrameType | None, stream_id: int, refusal: ProtocolError, /
    ) -> None:
        """Take note of a frame whose body is above the limit and is skipped; `kind` is None for an
        unknown type. Raise `refusal` if the connection must end.
        """


class RsocketDecoder(FrameDecoder):
    """Cuts received bytes into frames, and calls `sink` with each.

    `streams` is the table of the streams that this side has opened, by id. Whole elements without
    metadata are delivered to them without the sink.
    """

    __slots__ = ("_sink",)

    def __init__(
        self,
        sink: RsocketSink,
        streams: Mapping[int, WireStream],
        *,
        framed: bool = False,
        max_frame: int = 1 << 20,
    ) -> None:
        """Decode for `sink`. `framed` means that the transport delivers messages, one frame each,
        without a length. `max_frame` is the largest number of bytes after a header.
        """
        super().__init__(streams, LENGTH_SIZE, framed=framed, max_frame=max_frame)
        self._sink = sink

    def _decode(self, max_messages: int) -> bool:
        if self._framed:
            return self._decode_waiting_frame()
        data, end, longest = self._data, len(self._data), self._max_body + FRAMED_HEADER_SIZE
        position = self._drop_skipped() if self._to_skip else self._position
        try:
            while max_messages and end - position >= HEADER_SIZE:
                high, low, stream_id, word = _read_header(data, position)
                length = high << 16 | low
                if not FRAMED_HEADER_SIZE <= length <= longest:
                    position = self._begin_skip(position, length, word, stream_id)
                    max_messages -= 1
                    continue
                after = position + LENGTH_SIZE + length
                if after > end:
                    break
                max_messages -= 1
                # The word of the most frequent frame comes first: it needs no check of the header,
                # because an id of a stream in the table has no first bit.
                if word == WHOLE_PAYLOAD:
                    stream = self.streams.get(stream_id)
                    if stream is not None and stream.takes_whole:
                        position = self._deliver(data, position, after, stream_id, stream)
                        continue
                # The next two need no check of the type, and have methods of their own: most
                # requests and most answers.
                if word == LAST_PAYLOAD and stream_id <= LARGEST_STREAM_ID:
                    self._sink.receive_last(stream_id, data[position + HEADER_SIZE : after])
                elif word == PLAIN_REQUEST and stream_id <= LARGEST_STREAM_ID:
                    self._sink.receive_request(stream_id, data[position + HEADER_SIZE : after])
                else:
                    self._dispatch(word, stream_id, data[position + HEADER_SIZE : after])
                position = after
        finally:
            # It is also set if the sink raises.
            self._position = position
        return self._check_incomplete(max_messages)

    def _deliver(
        self, data: bytes, position: int, after: int, stream_id: int, stream: WireStream
    ) -> int:
        """Deliver the element from `position` to `after`, and the following ones of its stream.
        Return the position after them.

        A frame with a fault, or an incomplete one, is left to the loop over single frames.
        """
        stride = after - position
        if has_equal_headers(data, position, HEADER_SIZE, stride):
            return deliver_run(data, position, HEADER_SIZE, stride, stream)
        start, elements = position, [data[position + HEADER_SIZE : after]]
        append, end, longest = elements.append, len(data), self._max_body + FRAMED_HEADER_SIZE
        # One call reads a header, which takes two thirds of the time of comparing its end and
        # reading its length. The loop over single frames does the same.
        while len(elements) < LONGEST_RUN and end - after >= HEADER_SIZE:
            high, low, next_id, word = _read_header(data, after)
            length = high << 16 | low
            behind = after + LENGTH_SIZE + length
            if (
                word != WHOLE_PAYLOAD
                or next_id != stream_id
                or not FRAMED_HEADER_SIZE <= length <= longest
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

    def _decode_frame(self, data: bytes) -> None:
        size = len(data) - FRAMED_HEADER_SIZE
        if size < 0:
            raise too_short(len(data), FRAMED_HEADER_SIZE)
        stream_id, word = layout.FRAMED_HEADER.unpack_from(data)
        if size > self._max_body:
            self._announce_skipped(word, stream_id, size)
            return
        stream = self.streams.get(stream_id) if word == WHOLE_PAYLOAD else None
        if stream is not None and stream.takes_whole:
            stream.receive_element(data[FRAMED_HEADER_SIZE:])
        elif word == LAST_PAYLOAD and stream_id <= LARGEST_STREAM_ID:
            self._sink.receive_last(stream_id, data[FRAMED_HEADER_SIZE:])
        elif word == PLAIN_REQUEST and stream_id <= LARGEST_STREAM_ID:
            self._sink.receive_request(stream_id, data[FRAMED_HEADER_SIZE:])
        else:
            self._dispatch(word, stream_id, data[FRAMED_HEADER_SIZE:])

    def _dispatch(self, word: int, stream_id: int, body: bytes) -> None:
        kind = check_header(word, stream_id, len(body))
        if kind is None:
            self._sink.receive_unknown(word >> TYPE_SHIFT)
        else:
            self._sink.receive_frame(kind, word & FLAGS_MASK, stream_id, body)

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
        if left >= HEADER_SIZE:
            high, low, stream_id, word = _read_header(data, position)
            length = high << 16 | low
            check_header(word, stream_id, length - FRAMED_HEADER_SIZE)
            self._need = LENGTH_SIZE + length
            return False
        self._need = LENGTH_SIZE
        if left >= LENGTH_SIZE:
            length = int.from_bytes(data[position : position + LENGTH_SIZE])
            if length < FRAMED_HEADER_SIZE:
                raise too_short(length, FRAMED_HEADER_SIZE)
            self._need = HEADER_SIZE
        return False

    def _begin_skip(self, position: int, length: int, word: int, stream_id: int) -> int:
        """Skip the frame at `position`, whose header is there.
        Return where the decoder goes on in `_data`.
        """
        if length < FRAMED_HEADER_SIZE:
            raise too_short(length, FRAMED_HEADER_SIZE)
        self._announce_skipped(word, stream_id, length - FRAMED_HEADER_SIZE)
        return self._skip(position, LENGTH_SIZE + length)

    def _announce_skipped(self, word: int, stream_id: int, size: int) -> None:
        kind = check_header(word, stream_id, size)
        self._sink.receive_too_long(kind, stream_id, too_long(size, self._max_body))
