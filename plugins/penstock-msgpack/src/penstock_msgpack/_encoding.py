"""The messages of RS.io in MessagePack: the type, then each field as one object (wire §Encodings of the reference)."""

from collections.abc import Mapping
from typing import ClassVar, Final

from penstock.api import UsageError
from penstock.protocols.rsio import (
    FIELDS,
    Encoding,
    ExtensionMessage,
    FieldKind,
    Message,
    RsioSink,
    WireLimits,
    WireStream,
    fields_of,
)
from penstock.wire import join_each, join_same, length_of_all
from penstock_msgpack._decoder import MsgpackDecoder
from penstock_msgpack._heads import ARRAY, BIN, BIN_HEADS, STR, encode_uint

_ON_NEXT: Final = b"\x21"
_EXTENSIONS: Final = range(0x40, 0x7F)


class MsgpackEncoding(Encoding):
    """The encoding ``msgpack``, id 16."""

    name: ClassVar[str] = "msgpack"

    def encode(self, message: Message, /) -> bytes:
        if isinstance(message, ExtensionMessage):
            return self.extension_header(message.type, len(message.body)) + message.body
        code, fields = fields_of(message)
        parts = [bytes([code])]
        for kind, field in zip(FIELDS[code], fields, strict=True):
            if kind is FieldKind.NUMBER:
                parts.append(encode_uint(field))
            elif kind is FieldKind.NUMBERS:
                parts += (ARRAY.encode(len(field)), *map(encode_uint, field))
            else:
                parts += ((STR if kind is FieldKind.TEXT else BIN).encode(len(field)), field)
        return b"".join(parts)

    def next_header(self, subscriber: int, length: int, /) -> bytes:
        return _ON_NEXT + encode_uint(subscriber) + BIN_HEADS[length]

    def packed_header(self, subscriber: int, count: int, length: int, /) -> bytes:
        return b"\x22" + encode_uint(subscriber) + encode_uint(count) + BIN.encode(length)

    def part_header(self, subscriber: int, element: int, length: int, /, *, last: bool) -> bytes:
        return (b"\x24" if last else b"\x23") + encode_uint(subscriber) + encode_uint(element) + BIN.encode(length)

    def extension_header(self, code: int, length: int, /) -> bytes:
        if code not in _EXTENSIONS:
            raise UsageError(f"type={code:#x}; an extension's messages take the codes 0x40 to 0x7e")
        return bytes([code]) + BIN.encode(length)

    def decoder(self, sink: RsioSink, streams: Mapping[int, WireStream], limits: WireLimits, /) -> MsgpackDecoder:
        return MsgpackDecoder(sink, streams, limits)

    def join_run(self, subscriber: int, elements: list[bytes], /) -> bytearray:
        if len(elements) == 1:
            return bytearray(self.next_header(subscriber, len(elements[0]))) + elements[0]
        length = length_of_all(elements)
        if length >= 0:
            return join_same(self.next_header(subscriber, length), elements)
        begin = _ON_NEXT + encode_uint(subscriber)
        return join_each([begin] * len(elements), [BIN_HEADS[len(element)] for element in elements], elements)

    # Without records: these messages belong to every stream.

    def encode_request(self, subscriber: int, demand: int, /) -> bytes:
        return b"\x11" + encode_uint(subscriber) + encode_uint(demand)

    def encode_cancel(self, subscriber: int, /) -> bytes:
        return b"\x12" + encode_uint(subscriber)

    def encode_on_subscribe(self, subscriber: int, element_size: int, /) -> bytes:
        return b"\x20" + encode_uint(subscriber) + encode_uint(element_size)

    def encode_on_complete(self, subscriber: int, /) -> bytes:
        return b"\x25" + encode_uint(subscriber)
