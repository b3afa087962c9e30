"""The messages of RS.io in protocol buffers: the type, the length of the body, the body (wire
§Encodings of the reference).

Rules of this file:

* Fields that are 0 or empty are left out, as proto3 does it.
* The element is the last field, so what stands before it is a header.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

from penstock.protocols.rsio import (
    COMPACT,
    FIELDS,
    Encoding,
    ExtensionMessage,
    FieldKind,
    Message,
    RsioSink,
    WireLimits,
    WireStream,
    encode_varint,
    fields_of,
)
from penstock.wire import join_same, length_of_all
from penstock_protobuf._decoder import ProtobufDecoder

_ON_NEXT: Final = b"\x21"
_SUBSCRIBER: Final = b"\x08"  # field 1, a varint
_ELEMENT: Final = b"\x12"  # field 2, bytes
_THIRD: Final = b"\x1a"  # field 3, bytes

MOST_LENGTHS: Final = 2048


class _Ends(dict[int, bytes]):
    """The bytes directly before an element, by its length; each made when it is first used."""

    def __missing__(self, length: int) -> bytes:
        end = _ELEMENT + encode_varint(length) if length else b""
        # Bounded: longer elements cost more than their header does.
        if length < MOST_LENGTHS:
            self[length] = end
        return end


class _Begins(dict[int, bytes]):
    """The type and the length of a message with an element of a length,
    for one length of the field of the stream.
    """

    def __init__(self, field: int) -> None:
        super().__init__()
        self._field = field

    def __missing__(self, length: int) -> bytes:
        begin = _ON_NEXT + encode_varint(self._field + len(_ENDS[length]) + length)
        if length < MOST_LENGTHS:
            self[length] = begin
        return begin


_ENDS: Final = _Ends()
_BEGINS: Final = tuple(_Begins(field) for field in range(11))


class ProtobufEncoding(Encoding):
    """The encoding ``protobuf``, id 17."""

    name: ClassVar[str] = "protobuf"

    def encode_number(self, number: int, /) -> bytes:
        return encode_varint(number)

    def encode(self, message: Message, /) -> bytes:
        if isinstance(message, ExtensionMessage):
            return COMPACT.encode(message)
        code, fields = fields_of(message)
        parts = []
        for number, (kind, field) in enumerate(zip(FIELDS[code], fields, strict=True), 1):
            if kind is FieldKind.NUMBER:
                parts.append(_number(number, field))
            else:
                parts.append(
                    _bytes(
                        number,
                        b"".join(map(encode_varint, field)) if kind is FieldKind.NUMBERS else field,
                    )
                )
        body = b"".join(parts)
        return bytes([code]) + encode_varint(len(body)) + body

    def next_header(self, subscriber: int, length: int, /) -> bytes:
        field = _SUBSCRIBER + encode_varint(subscriber) if subscriber else b""
        return _BEGINS[len(field)][length] + field + _ENDS[length]

    def packed_header(self, subscriber: int, count: int, length: int, /) -> bytes:
        return _header(b"\x22", _number(1, subscriber) + _number(2, count), length)

    def part_header(self, subscriber: int, element: int, length: int, /, *, last: bool) -> bytes:
        return _header(
            b"\x24" if last else b"\x23", _number(1, subscriber) + _number(2, element), length
        )

    def extension_header(self, code: int, length: int, /) -> bytes:
        return COMPACT.extension_header(code, length)

    def decoder(
        self, sink: RsioSink, streams: Mapping[int, WireStream], limits: WireLimits, /
    ) -> ProtobufDecoder:
        return ProtobufDecoder(sink, streams, limits)

    def join_run(self, subscriber: int, elements: list[bytes], /) -> bytearray:
        if len(elements) == 1:
            return bytearray(self.next_header(subscriber, len(elements[0]))) + elements[0]
        length = length_of_all(elements)
        if length >= 0:
            return join_same(self.next_header(subscriber, length), elements)
        field = _SUBSCRIBER + encode_varint(subscriber) if subscriber else b""
        lengths = list(map(len, elements))
        # Lists that are filled by C, and one join:
        # a header for each element would cost more than all the rest.
        parts = [field] * (4 * len(elements))
        parts[::4] = map(_BEGINS[len(field)].__getitem__, lengths)
        parts[2::4], parts[3::4] = list(map(_ENDS.__getitem__, lengths)), elements
        return bytearray().join(parts)

    # Without records: these messages belong to every stream.

    def encode_request(self, subscriber: int, demand: int, /) -> bytes:
        return _whole(b"\x11", _number(1, subscriber) + _number(2, demand))

    def encode_cancel(self, subscriber: int, /) -> bytes:
        return _whole(b"\x12", _number(1, subscriber))

    def encode_on_subscribe(self, subscriber: int, element_size: int, /) -> bytes:
        return _whole(b"\x20", _number(1, subscriber) + _number(2, element_size))

    def encode_on_complete(self, subscriber: int, /) -> bytes:
        return _whole(b"\x25", _number(1, subscriber))


def _number(field: int, value: int) -> bytes:
    return bytes([field << 3]) + encode_varint(value) if value else b""


def _bytes(field: int, value: bytes) -> bytes:
    return bytes([field << 3 | 2]) + encode_varint(len(value)) + value if value else b""


def _whole(code: bytes, body: bytes) -> bytes:
    return code + encode_varint(len(body)) + body


def _header(code: bytes, before: bytes, length: int) -> bytes:
    """Return a message without its last field's bytes: field 3, of `length` bytes."""
    if length:
        before += _THIRD + encode_varint(length)
    return code + encode_varint(len(before) + length) + before
