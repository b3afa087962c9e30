"""One group of elements as bytes: the lengths of its elements, the elements, and their times.

Rules of this file:

* Each length is four bytes, least significant byte first.
  The elements follow without anything between them.
* The time of a group is that of its last element. If its elements have several times, those stand
  after the elements: the numbers of the elements that are the first ones of a time, and the times.
  A penstock that does not know of them reads the elements as before.
* A group without any bytes stands for elements that were lost before the log was salvaged.
* The checksum is the CRC-32 of the other columns of the row and of the bytes.
  CRC-32 finds each change of one bit.
"""

import struct
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple
from zlib import crc32

_TIME_BYTES: Final = 12
"""Bytes of a time of a group, and of the number of its first element."""


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


def encode_row(
    key: int, elements: Sequence[bytes], written: float, times: Sequence[tuple[int, float]] = ()
) -> Row:
    """Return the row of a group. `times` are those of `times_of`, if there are several."""
    lengths = list(map(len, elements))
    data = struct.pack(f"<{len(lengths)}I", *lengths) + b"".join(elements)
    size = len(data) - 4 * len(lengths)
    if len(times) > 1:
        firsts, each = zip(*times, strict=True)
        data += struct.pack(f"<{len(times)}I{len(times)}d", *firsts, *each)
    return Row(
        key, len(lengths), size, written, _checksum(key, len(lengths), size, written, data), data
    )


def lost_row(key: int, length: int, written: float) -> Row:
    """Return the row that stands for elements that were lost. It keeps their positions."""
    return Row(key, length, 0, written, _checksum(key, length, 0, written, b""), b"")


def moved_row(row: Row, key: int, written: float) -> Row:
    """Return a whole group at another key, with another time."""
    checksum = _checksum(key, row.length, row.size, written, row.elements)
    return Row(key, row.length, row.size, written, checksum, row.elements)


def is_lost(row: Row) -> bool:
    """Return whether a whole group stands for elements that were lost."""
    return not row.elements


def is_whole(row: Row) -> bool:
    """Return whether the checksum of a group fits."""
    try:
        return row.length > 0 and row.checksum == _checksum(
            row.key, row.length, row.size, row.written, row.elements
        )
    except (struct.error, TypeError):  # a column of another type or beyond its range
        return False


def has_times(length: int, size: int, stored: int) -> bool:
    """Return whether a group has several times, by the bytes that are stored of it."""
    return stored > 4 * length + size


def times_of(row: Row) -> list[tuple[int, float]]:
    """Return the times of a whole group, each with the number of the first element that has it."""
    at = 4 * row.length + row.size
    count = (len(row.elements) - at) // _TIME_BYTES
    if not count:
        return [(0, row.written)]
    numbers = struct.unpack_from(f"<{count}I{count}d", row.elements, at)
    return list(zip(numbers[:count], numbers[count:], strict=True))


def joined_times(rows: Sequence[Row]) -> list[tuple[int, float]]:
    """Return the times of the group that these groups become."""
    times: list[tuple[int, float]] = []
    begin = 0
    for row in rows:
        for number, time in times_of(row):
            if not times or time != times[-1][1]:
                times.append((begin + number, time))
        begin += row.length
    return times


def decode_row(row: Row, begin: int, stop: int, size: int) -> list[bytes]:
    """Return the elements of a whole group from number `begin` up to, and not with, `stop`: at
    least one, and no more than have `size` bytes together.
    """
    stop, start, data = min(stop, row.length), 4 * row.length, row.elements
    lengths = struct.unpack_from(f"<{row.length}I", data)
    length = lengths[0]
    if length and length * row.length == row.size and len(set(lengths)) == 1:
        # Most groups have elements of one length: a range costs half as much as the sums.
        stop = min(stop, begin + max(1, size // length))
        places = range(start + begin * length, start + stop * length, length)
        return [data[at : at + length] for at in places]
    ends = list(accumulate(lengths[begin:stop], initial=start + sum(lengths[:begin])))
    del ends[max(2, bisect_right(ends, ends[0] + size)) :]
    return [data[begin:end] for begin, end in pairwise(ends)]


def checksum_of(*values: object) -> int:
    """Return the CRC-32 of values that are not elements."""
    return crc32(repr(values).encode("utf-8", "surrogateescape"))


def _checksum(key: int, count: int, size: int, written: float, data: bytes) -> int:
    # With the key: a group that stands at the position of another one does not pass.
    return crc32(data, crc32(struct.pack("<QIQd", key, count, size, written)))
