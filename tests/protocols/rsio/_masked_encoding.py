"""An encoding of a third party: the fields of a message in decimal digits and netstrings, each byte
behind the type with its bits turned.

No file of penstock knows it. It has its own id, and uses public names only.
"""

from collections.abc import Mapping
from typing import ClassVar

from penstock.protocols.rsio import (
    NEED_MORE,
    Encoding,
    FieldKind,
    MessageDecoder,
    RsioSink,
    WireLimits,
    WireStream,
    encoding_error,
)

ID = 200
_TURNED = bytes(each ^ 0xFF for each in range(256))


class MaskedEncoding(Encoding):
    """Numbers are ``12;``, texts and bytes ``3:abc``, lists ``2[1;2;``;
    all digits and marks are turned, and bytes are not.
    """

    name: ClassVar[str] = "masked"

    def encode_number(self, number: int, /) -> bytes:
        return _mark(number, ";")

    def encode_length(self, length: int, kind: FieldKind, /) -> bytes:
        return _mark(length, "[" if kind is FieldKind.NUMBERS else ":")

    def decoder(
        self, sink: RsioSink, streams: Mapping[int, WireStream], limits: WireLimits, /
    ) -> "MaskedDecoder":
        return MaskedDecoder(sink, streams, limits)


class MaskedDecoder(MessageDecoder):
    """Reads numbers and lengths; the base does the rest."""

    def read_number(self, data: bytes, position: int, /) -> tuple[int, int]:
        return _read(data, position, ";")

    def read_length(self, data: bytes, position: int, kind: FieldKind, /) -> tuple[int, int]:
        return _read(data, position, "[" if kind is FieldKind.NUMBERS else ":")


def _mark(number: int, end: str) -> bytes:
    return f"{number}{end}".encode().translate(_TURNED)


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
