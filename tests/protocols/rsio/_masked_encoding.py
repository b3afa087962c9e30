"""An encoding of a third party: the fields of a message in decimal digits and netstrings, each byte behind the type with its bits turned.

No file of penstock knows it. It has an id of its own, and uses public names only.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from penstock.protocols.rsio import (
    NEED_MORE,
    Encoding,
    ExtensionMessage,
    FieldKind,
    Message,
    MessageDecoder,
    RsioSink,
    WireLimits,
    WireStream,
    encoding_error,
    fields_of,
)

ID = 200
_TURNED = bytes(each ^ 0xFF for each in range(256))


class MaskedEncoding(Encoding):
    """Numbers are ``12;``, texts and bytes ``3:abc``, lists ``2[1;2;``; all digits and marks are turned, and bytes are not."""

    name: ClassVar[str] = "masked"

    def encode(self, message: Message, /) -> bytes:
        if isinstance(message, ExtensionMessage):
            return self.extension_header(message.type, len(message.body)) + message.body
        code, fields = fields_of(message)
        return bytes([code]) + b"".join(map(_field, fields))

    def next_header(self, subscriber: int, length: int, /) -> bytes:
        return b"\x21" + _number(subscriber) + _mark(length, ":")

    def packed_header(self, subscriber: int, count: int, length: int, /) -> bytes:
        return b"\x22" + _number(subscriber) + _number(count) + _mark(length, ":")

    def part_header(self, subscriber: int, element: int, length: int, /, *, last: bool) -> bytes:
        return (b"\x24" if last else b"\x23") + _number(subscriber) + _number(element) + _mark(length, ":")

    def extension_header(self, code: int, length: int, /) -> bytes:
        return bytes([code]) + _mark(length, ":")

    def decoder(self, sink: RsioSink, streams: Mapping[int, WireStream], limits: WireLimits, /) -> "MaskedDecoder":
        return MaskedDecoder(sink, streams, limits)


class MaskedDecoder(MessageDecoder):
    """Reads the fields one by one."""

    def read_message(self, data: bytes, start: int, fields: Sequence[FieldKind], /) -> int:
        code, position = data[start], start + 1
        values: list[Any] = []
        for index, kind in enumerate(fields):
            number, position = _read(data, position, _END[kind])
            if position < 0:
                return NEED_MORE
            if kind is FieldKind.NUMBER:
                self.check_number(code, index, number)
                values.append(number)
                continue
            self.check_length(code, number, values)
            if kind is FieldKind.NUMBERS:
                numbers: list[int] = []
                for _ in range(number):
                    each, position = _read(data, position, ";")
                    if position < 0:
                        return NEED_MORE
                    numbers.append(each)
                values.append(tuple(numbers))
                continue
            begin, position = position, position + number
            if position > len(data):
                return self.wait_for(position - start)
            values.append(data[begin:position])
        self.deliver(code, values)
        return position

    def read_extension(self, data: bytes, start: int, /) -> int:
        length, position = _read(data, start + 1, ":")
        if position < 0:
            return NEED_MORE
        self.check_length(data[start], length, ())
        if position + length > len(data):
            self.sink.check_extension(data[start], length)
            return self.wait_for(position + length - start)
        self.deliver_extension(data[start], data[position : position + length])
        return position + length


_END = {FieldKind.NUMBER: ";", FieldKind.TEXT: ":", FieldKind.BYTES: ":", FieldKind.NUMBERS: "["}


def _mark(number: int, end: str) -> bytes:
    return f"{number}{end}".encode().translate(_TURNED)


def _number(number: int) -> bytes:
    return _mark(number, ";")


def _field(value: Any) -> bytes:
    if isinstance(value, int):
        return _number(value)
    if isinstance(value, tuple):
        return _mark(len(value), "[") + b"".join(map(_number, value))
    return _mark(len(value), ":") + bytes(value)


def _read(data: bytes, position: int, end: str) -> tuple[int, int]:
    text = data[position : position + 20].translate(_TURNED)
    digits, mark, _ = text.partition(end.encode())
    if not all(0x30 <= each <= 0x39 for each in digits):
        raise encoding_error("a number with other signs than digits")
    if not mark:
        if len(text) == 20:
            raise encoding_error("a number without an end")
        return 0, NEED_MORE
    if not digits:
        raise encoding_error("a number without digits")
    return int(digits), position + len(digits) + 1
