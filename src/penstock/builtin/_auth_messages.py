"""The bytes of credentials: a scheme and data, each behind its length. A length is an unsigned varint, as in the compact form of RS.io."""

from typing import Final

from penstock.api import Credentials

CREDENTIALS: Final = 0x42
VERDICT: Final = 0x43
ACCEPTED: Final = b"\x01"

_LONGEST_VARINT: Final = 4
"""Bytes of a length. Credentials have at most `Limits.preauth_bytes`, so 28 bits are enough."""


def encode_credentials(credentials: Credentials) -> bytes:
    """Return the body of a credentials message, which is also the data of a ReactiveSocket client's SETUP."""
    return b"".join(_length(len(part)) + part for part in (credentials.scheme.encode(), credentials.data))


def decode_credentials(body: bytes) -> tuple[bytes, bytes] | None:
    """Return the scheme and the data, or None for a body that cannot be read."""
    scheme, position = _read(body, 0)
    data, end = _read(body, position) if position > 0 else (b"", -1)
    return (scheme, data) if end == len(body) else None


def _length(length: int) -> bytes:
    encoded = bytearray()
    while length > 0x7F:
        encoded.append(length & 0x7F | 0x80)
        length >>= 7
    encoded.append(length)
    return bytes(encoded)


def _read(body: bytes, position: int) -> tuple[bytes, int]:
    """Return the field at `position` and the position behind it, which is -1 if the field is broken."""
    length = 0
    for index in range(_LONGEST_VARINT):
        if position + index >= len(body):
            break
        byte = body[position + index]
        length |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            start = position + index + 1
            # Minimal lengths only, and no field beyond the end of the body.
            is_sound = (byte > 0 or index == 0) and start + length <= len(body)
            return (body[start : start + length], start + length) if is_sound else (b"", -1)
    return b"", -1
