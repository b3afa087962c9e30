"""The varint: unsigned, little end first, seven bits a byte; 0 to 2^63-1, at most nine bytes, and never longer than it must be."""

from typing import Final

from penstock.api import ProtocolError, UsageError
from penstock.protocols.rsio._layout import LARGEST_VARINT, LONGEST_VARINT

NEED_MORE: Final = -1
"""The position that says "the bytes end before the varint does"."""

_SHORT: Final = tuple(bytes([n]) for n in range(0x80))


def encode_varint(n: int) -> bytes:
    """Return `n` as a varint. Raises UsageError for what has none."""
    if 0 <= n < 0x80:
        return _SHORT[n]
    if not 0 <= n <= LARGEST_VARINT:
        raise UsageError(f"a varint holds 0 to 2^63-1, and was given an integer of {n.bit_length()} bits{' below zero' if n < 0 else ''}")
    groups = bytearray()
    while n >= 0x80:
        groups.append(n & 0x7F | 0x80)
        n >>= 7
    groups.append(n)
    return bytes(groups)


def decode_varint(data: bytes, start: int) -> tuple[int, int]:
    """Return the varint at `start` and the position after it, or (0, NEED_MORE) where its end has not arrived.

    Raises ProtocolError for one that is too long, or longer than it must be.
    """
    if start < len(data) and data[start] < 0x80:
        return data[start], start + 1  # as most of them are
    value = shift = 0
    for position in range(start, min(len(data), start + LONGEST_VARINT)):
        byte = data[position]
        if byte < 0x80:
            if not byte and shift:
                raise ProtocolError(
                    "a varint ends with a superfluous zero byte; the shortest form is the only one", reason="protocol:varint"
                )
            return value | byte << shift, position + 1
        value |= (byte & 0x7F) << shift
        shift += 7
    if len(data) - start >= LONGEST_VARINT:
        raise ProtocolError("a varint goes on after nine bytes, which hold 2^63-1, the largest", reason="protocol:varint")
    return 0, NEED_MORE
