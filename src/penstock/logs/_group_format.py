"""One group of elements as bytes: the lengths of its elements, then the elements.

Rules of this file:

* Each length is four bytes, least significant byte first.
  The elements follow without anything between them.
* The checksum is the CRC-32 of the other columns of the row and of the bytes.
  CRC-32 finds each change of one bit.
"""

import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple
from zlib import crc32


class Row(NamedTuple):
    """A group as the file has it.

    `key` is the number of its partition and the position of its first element in one integer,
    `length` its number of elements.
    """

    key: int
    length: int
    size: int
    written: float
    checksum: int
    elements: bytes


def encode_row(key: int, elements: Sequence[bytes], written: float) -> Row:
    """Return the row of a group."""
    lengths = list(map(len, elements))
    data = struct.pack(f"<{len(lengths)}I", *lengths) + b"".join(elements)
    size = len(data) - 4 * len(lengths)
    return Row(
        key, len(lengths), size, written, _checksum(key, len(lengths), size, written, data), data
    )


def decode_row(row: Row) -> list[bytes] | None:
    """Return the elements of a group, or None if its checksum does not fit."""
    try:
        if row.checksum != _checksum(row.key, row.length, row.size, row.written, row.elements):
            return None
    except (struct.error, TypeError):  # a column of another type or beyond its range
        return None
    start = 4 * row.length
    lengths = struct.unpack_from(f"<{row.length}I", row.elements)
    data = row.elements
    if len(set(lengths)) == 1 and lengths[0]:
        # Most groups have elements of one length: a range costs half as much as the sums.
        length = lengths[0]
        return [data[at : at + length] for at in range(start, len(data), length)]
    return [data[begin:end] for begin, end in pairwise(accumulate(lengths, initial=start))]


def checksum_of(*values: object) -> int:
    """Return the CRC-32 of values that are not elements."""
    return crc32(repr(values).encode("utf-8", "surrogateescape"))


def _checksum(key: int, count: int, size: int, written: float, data: bytes) -> int:
    # With the key: a group that stands at the position of another one does not pass.
    return crc32(data, crc32(struct.pack("<QIQd", key, count, size, written)))
