"""The messages of RS.io in MessagePack:
the type, then each field as one object (wire §Encodings of the reference).
"""

from collections.abc import Mapping
from typing import ClassVar, Final

from penstock.protocols.rsio import (
    Encoding,
    FieldKind,
    RsioSink,
    WireLimits,
    WireStream,
)
from penstock.wire import join_each, join_same, length_of_all
from penstock_msgpack._decoder import MsgpackDecoder
from penstock_msgpack._heads import BIN_HEADS, HEADS, encode_uint

_ON_NEXT: Final = b"\x21"


class MsgpackEncoding(Encoding):
    """The encoding ``msgpack``, id 16."""

    name: ClassVar[str] = "msgpack"

    def encode_number(self, number: int, /) -> bytes:
        return encode_uint(number)

    def encode_length(self, length: int, kind: FieldKind, /) -> bytes:
        return HEADS[kind].encode(length)

    def next_header(self, subscriber: int, length: int, /) -> bytes:
        return _ON_NEXT + encode_uint(subscriber) + BIN_HEADS[length]

    def decoder(
        self, sink: RsioSink, streams: Mapping[int, WireStream], limits: WireLimits, /
    ) -> MsgpackDecoder:
        return MsgpackDecoder(sink, streams, limits)

    def join_run(self, subscriber: int, elements: list[bytes], /) -> bytearray:
        if len(elements) == 1:
            return bytearray(self.next_header(subscriber, len(elements[0]))) + elements[0]
        length = length_of_all(elements)
        if length >= 0:
            return join_same(self.next_header(subscriber, length), elements)
        begin = _ON_NEXT + encode_uint(subscriber)
        return join_each(
            [begin] * len(elements), list(map(BIN_HEADS.__getitem__, map(len, elements))), elements
        )

    # Without records: these messages belong to every stream.

    def encode_request(self, subscriber: int, demand: int, /) -> bytes:
        return b"\x11" + encode_uint(subscriber) + encode_uint(demand)

    def encode_cancel(self, subscriber: int, /) -> bytes:
        return b"\x12" + encode_uint(subscriber)

    def encode_on_subscribe(self, subscriber: int, element_size: int, /) -> bytes:
        return b"\x20" + encode_uint(subscriber) + encode_uint(element_size)

    def encode_on_complete(self, subscriber: int, /) -> bytes:
        return b"\x25" + encode_uint(subscriber)
