"""The numbers of RS.io version 0 in the compact encoding: type codes, and the integers of messages.

In this folder `wire §…` cites a section of docs/reference/rsio.md,
which describes the bytes for peers in any language.

The high digit of a code tells who sends the message: 0 either side, about the connection; 1 the
subscriber; 2 the publisher; 4 and 5 extensions of penstock; 6 and 7 other extensions.

No code is 0x00 (where an RSocket or ReactiveSocket frame may begin), 0x16 (where a TLS connection
begins) or an ASCII letter (where HTTP begins). So one port can tell the protocols apart by the
first byte of a connection.

A *varint* is an unsigned integer from 0 to 2^63-1, seven bits a byte, the low bits first, in at
most nine bytes. Each number has one encoding, the shortest. The decoder refuses any other (wire
§Parts of messages), so two peers cannot read the same bytes differently, and bytes that were
decoded can be encoded again without a change.
"""

from typing import Final

from penstock.api import ProtocolError, UsageError

VERSION: Final = 0
"""The version of RS.io that penstock speaks: the second byte of both hellos."""

# wire §The handshake: the three types that may be the first byte of a connection.
CLIENT_HELLO: Final = 0x01
"""The type of a client's first message."""

SERVER_HELLO: Final = 0x02
"""The type of a server's first message."""

GOODBYE: Final = 0x03
"""The type of the last message of either side. It may be the first one too: a side that refuses
a connection needs no hello.
"""

# wire §Encodings: the last message of its direction in the compact encoding.
SWITCH_ENCODING: Final = 0x04

# wire §Messages: from the subscriber; ids are those of the sender.
SUBSCRIBE: Final = 0x10
REQUEST: Final = 0x11
CANCEL: Final = 0x12

# wire §Messages: from the publisher; ids are those of the receiver.
ON_SUBSCRIBE: Final = 0x20
ON_NEXT: Final = 0x21
ON_NEXT_PACKED: Final = 0x22
ON_NEXT_PART: Final = 0x23
ON_NEXT_LAST_PART: Final = 0x24
ON_COMPLETE: Final = 0x25
ON_ERROR: Final = 0x26

# wire §The handshake: a type in this range belongs to an extension. All of them have one body with
# a length, so a decoder can find the end of a message whose extension it does not know.
FIRST_EXTENSION: Final = 0x40  # to 0x5f: extensions of penstock; from 0x60: all others
LAST_EXTENSION: Final = 0x7E  # 0x7f stays reserved, and so do all codes with the top bit set

# wire §Parts of messages: the largest demand of Reactive Streams is a Java long (rule 3.17),
# and ids have the same range.
LARGEST_VARINT: Final = 2**63 - 1
LONGEST_VARINT: Final = 9
"""Bytes: nine groups of seven bits hold 2^63-1."""

LARGEST_VERSION: Final = 0xFF  # wire §Messages: the version is one byte


NEED_MORE: Final = -1
"""The position that a reader returns if the bytes end before the message does."""

# Ids, counts and most lengths are below 128. Taking the byte from a table costs a ninth of
# `bytes([n])`: 9 ns instead of 82.
_ONE_BYTE: Final = tuple(bytes([n]) for n in range(0x80))


def encode_varint(n: int) -> bytes:
    """Return `n` as a varint. Raises UsageError for a number below 0 or above 2^63-1."""
    if 0 <= n < 0x80:
        return _ONE_BYTE[n]
    if 0x80 <= n < 0x4000:
        # The lengths of most documents: no loop.
        return (n & 0x7F | 0x80 | n >> 7 << 8).to_bytes(2, "little")
    if not 0 <= n <= LARGEST_VARINT:
        # The text gives the size and not the number:
        # Python refuses to print integers of more than 4,300 digits.
        raise UsageError(
            f"a varint holds 0 to 2^63-1, and was given an integer of {n.bit_length()} "
            f"bits{' below zero' if n < 0 else ''}"
        )
    groups = bytearray()  # low bits first, so the number need not be reversed at the end
    while n >= 0x80:
        groups.append(n & 0x7F | 0x80)
        n >>= 7
    groups.append(n)
    return bytes(groups)


class _Lengths(dict[int, bytes]):
    """The varints of lengths, made when they are first used.
    A look-up takes 30 ns, a call of `encode_varint` 350.
    """

    def __missing__(self, n: int) -> bytes:
        encoded = encode_varint(n)
        # Bounded: the lengths of at most two bytes, 1.7 MB if all of them occur. Longer elements
        # cost more than their header does.
        if n < MOST_LENGTHS:
            self[n] = encoded
        return encoded


MOST_LENGTHS: Final = 0x4000

LENGTHS: Final = _Lengths()
"""Returns the varint of a length: ``LENGTHS[n]``."""


def decode_varint(data: bytes, start: int) -> tuple[int, int]:
    """Return the varint at `start` and the position after it, or (0, NEED_MORE) if `data` ends
    before the varint does.

    Raises ProtocolError for a varint of more than nine bytes, and for one that is not the shortest.
    """
    if start < len(data) and data[start] < 0x80:
        return data[start], start + 1  # one byte, the most frequent case: no loop, no shifts
    value = shift = 0
    for position in range(start, min(len(data), start + LONGEST_VARINT)):
        byte = data[position]
        if byte < 0x80:
            if not byte and shift:
                # wire §Points of refusal: with the superfluous 0, which is the last byte.
                raise ProtocolError(
                    "a varint ends with a superfluous zero byte; the shortest form is the only one",
                    reason="protocol:varint",
                )
            return value | byte << shift, position + 1
        value |= (byte & 0x7F) << shift
        shift += 7
    if len(data) - start >= LONGEST_VARINT:
        # wire §Points of refusal: with the ninth byte, so a peer cannot keep a decoder waiting with
        # a varint without end.
        raise ProtocolError(
            "a varint goes on after nine bytes, which hold 2^63-1, the largest",
            reason="protocol:varint",
        )
    return 0, NEED_MORE
