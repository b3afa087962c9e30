"""The parts of a message of protocol buffers that are read here:
varints, tags, and fields that are not known.

Rules of this file:

* No position goes past the end of the body: a field that would is refused.
* A varint may be padded, unlike those of the compact encoding.
"""

from typing import Final

from penstock.api import ProtocolError
from penstock.protocols.rsio import encoding_error

LARGEST: Final = 2**63 - 1
"""The largest number of RS.io."""

LONGEST_VARINT: Final = 10
LARGEST_TAG: Final = 2**32 - 1

VARINT: Final = 0
BYTES: Final = 2
_WIDTHS: Final = {1: 8, 5: 4}
"""By wire type, the bytes of a field of fixed size."""


def read_varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return the varint at `position` and the position after it.
    Raises ProtocolError if it goes past `end`.
    """
    value = shift = 0
    for at in range(position, min(end, position + LONGEST_VARINT)):
        byte = data[at]
        if byte < 0x80:
            return value | byte << shift, at + 1
        value |= (byte & 0x7F) << shift
        shift += 7
    raise encoding_error("a varint goes past the end of its message, or on after ten bytes")


def read_number(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return the number of RS.io at `position` and the position after it.
    Raises ProtocolError for one above 2^63-1.
    """
    number, position = read_varint(data, position, end)
    if number > LARGEST:
        raise encoding_error("a number above 2^63-1")
    return number, position


def read_length(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return the positions where the bytes of a field begin and end.
    Raises ProtocolError if they go past `end`.
    """
    length, begin = read_varint(data, position, end)
    if length > end - begin:
        raise encoding_error("a field goes past the end of its message")
    return begin, begin + length


def read_tag(data: bytes, position: int, end: int) -> tuple[int, int, int]:
    """Return the number and the wire type of a field, and the position after its tag. Raises
    ProtocolError for the number 0.
    """
    tag, position = read_varint(data, position, end)
    if tag > LARGEST_TAG or not tag >> 3:
        raise encoding_error("a field with a number that protocol buffers do not have")
    return tag >> 3, tag & 7, position


def skip_field(data: bytes, position: int, end: int, wire_type: int) -> int:
    """Return the position after a field that is not known. Raises ProtocolError for a group and for
    the wire types 6 and 7.
    """
    if wire_type == VARINT:
        return read_varint(data, position, end)[1]
    if wire_type == BYTES:
        return read_length(data, position, end)[1]
    if wire_type not in _WIDTHS:
        raise wrong_type(wire_type)
    if position + _WIDTHS[wire_type] > end:
        raise encoding_error("a field goes past the end of its message")
    return position + _WIDTHS[wire_type]


def wrong_type(wire_type: int) -> ProtocolError:
    """Return the error for a wire type that a field does not have."""
    return encoding_error(f"a field of the wire type {wire_type}, which it does not have")
