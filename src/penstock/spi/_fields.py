"""The parts of the bodies of penstock's own extensions: numbers, and bytes after their length; and
credentials, which a dialect hands to the extension *auth*. The forms are those of compact RS.io.

A number is an unsigned varint from 0 to 2^63-1, in at most nine bytes and in the shortest form. The
body is the same in every encoding.
"""

from typing import Final

from penstock.api import Credentials

BROKEN: Final = -1
"""The position after a part that cannot be read."""

_LONGEST_VARINT: Final = 9

# Ids and lengths are below 128 in most messages, and each stream begins with one of these messages.
_ONE_BYTE: Final = tuple(bytes([number]) for number in range(0x80))


def encode_number(number: int) -> bytes:
    """Return a number as a varint."""
    if number < 0x80:
        return _ONE_BYTE[number]
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def encode_field(data: bytes) -> bytes:
    """Return bytes behind their length."""
    return encode_number(len(data)) + data


def read_number(body: bytes, position: int) -> tuple[int, int]:
    """Return the number at `position` and the position after it. `BROKEN` may be the position."""
    if position == BROKEN:
        return 0, BROKEN
    if position < len(body) and body[position] < 0x80:
        return body[position], position + 1
    number = 0
    for index, byte in enumerate(body[position : position + _LONGEST_VARINT]):
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            # The shortest form only: two sides must not read the same bytes differently.
            return (number, position + index + 1) if byte or not index else (0, BROKEN)
    return 0, BROKEN


def read_field(body: bytes, position: int) -> tuple[bytes, int]:
    """Return the field at `position` and the position after it. `BROKEN` may be the position."""
    length, start = read_number(body, position)
    if start == BROKEN or start + length > len(body):
        return b"", BROKEN
    return body[start : start + length], start + length


def encode_credentials(credentials: Credentials) -> bytes:
    """Return credentials in one piece: the body of a message of the extension *auth*, and the
    introduction that a dialect hands to `ExtensionHost.meet`.
    """
    return encode_field(credentials.scheme.encode()) + encode_field(credentials.data)


def decode_credentials(body: bytes) -> tuple[bytes, bytes] | None:
    """Return the scheme and the data, or None for a body that cannot be read."""
    scheme, position = read_field(body, 0)
    data, end = read_field(body, position)
    return (scheme, data) if end == len(body) else None
