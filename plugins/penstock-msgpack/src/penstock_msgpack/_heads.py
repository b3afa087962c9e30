"""The heads of the objects of MessagePack that RS.io uses, to bytes and back: integers, and the
lengths of str, bin and array.

Rules of this file:

* An object of another kind is refused on its first byte.
  So nothing nests, and a peer cannot make the decoder wait for it.
* Heads are written in their shortest form, and read in any form.
"""

from typing import Final

from penstock.api import ProtocolError, UsageError
from penstock.protocols.rsio import NEED_MORE, FieldKind, encoding_error

LARGEST: Final = 2**63 - 1
"""The largest number of RS.io."""

BIN_8: Final = 0xC4
BIN_16: Final = 0xC5

_SHORTEST_SIGNED: Final = 0xD0
_WIDTHS: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
"""By the first byte of an integer, the number of bytes after it."""

_ONE_BYTE: Final = tuple(bytes([n]) for n in range(0x80))


class LengthHeads:
    """The heads of one kind of object that has a length."""

    __slots__ = ("_first", "_last", "_name", "_widths")

    def __init__(self, name: str, widths: dict[int, int], fixed: range = range(0)) -> None:
        """`widths`: by the first byte, the bytes of the length. `fixed`:
        the first bytes that contain the length.
        """
        self._name = name
        self._widths = widths
        self._first, self._last = fixed.start, fixed.stop

    def encode(self, length: int) -> bytes:
        """Return the shortest head."""
        if length < self._last - self._first:
            return bytes([self._first + length])
        for first, width in self._widths.items():
            if length < 1 << 8 * width:
                return bytes([first]) + length.to_bytes(width)
        raise UsageError(f"a length of {length:,}; MessagePack has lengths below 2^32")

    def read(self, data: bytes, position: int) -> tuple[int, int]:
        """Return the length at `position` and the position after it, or (0, NEED_MORE)."""
        if position >= len(data):
            return 0, NEED_MORE
        first = data[position]
        if self._first <= first < self._last:
            return first - self._first, position + 1
        width = self._widths.get(first)
        if width is None:
            raise _wrong(first, self._name)
        end = position + 1 + width
        return (
            (0, NEED_MORE) if end > len(data) else (int.from_bytes(data[position + 1 : end]), end)
        )


STR: Final = LengthHeads("a str", {0xD9: 1, 0xDA: 2, 0xDB: 4}, range(0xA0, 0xC0))
BIN: Final = LengthHeads("a bin", {BIN_8: 1, BIN_16: 2, 0xC6: 4})
ARRAY: Final = LengthHeads("an array", {0xDC: 2, 0xDD: 4}, range(0x90, 0xA0))


HEADS: Final = {FieldKind.NUMBERS: ARRAY, FieldKind.TEXT: STR, FieldKind.BYTES: BIN}
"""By the kind of a field, the heads that it has."""


def encode_uint(n: int) -> bytes:
    """Return `n` with the shortest head.
    Raises UsageError for a number that RS.io does not have.
    """
    if 0 <= n < 0x80:
        return _ONE_BYTE[n]
    if not 0 <= n <= LARGEST:
        raise UsageError(
            f"a number of RS.io is 0 to 2^63-1, and was given an integer of {n.bit_length()} bits"
        )
    for first in (0xCC, 0xCD, 0xCE):
        if n < 1 << 8 * _WIDTHS[first]:
            return bytes([first]) + n.to_bytes(_WIDTHS[first])
    return b"\xcf" + n.to_bytes(8)


def read_uint(data: bytes, position: int) -> tuple[int, int]:
    """Return the number at `position` and the position after it, or (0, NEED_MORE)."""
    if position >= len(data):
        return 0, NEED_MORE
    first = data[position]
    if first < 0x80:
        return first, position + 1
    width = _WIDTHS.get(first)
    if width is None:
        raise _wrong(first, "an unsigned integer")
    end = position + 1 + width
    if end > len(data):
        return 0, NEED_MORE
    number = int.from_bytes(data[position + 1 : end], signed=first >= _SHORTEST_SIGNED)
    if not 0 <= number <= LARGEST:
        raise encoding_error("an integer that is not from 0 to 2^63-1")
    return number, end


class _BinHeads(dict[int, bytes]):
    """The heads of elements, made when they are first used.
    A look-up takes a tenth of the time of a call.
    """

    def __missing__(self, length: int) -> bytes:
        head = BIN.encode(length)
        # Bounded: longer elements cost more than their head does.
        if length < MOST_HEADS:
            self[length] = head
        return head


MOST_HEADS: Final = 2048

BIN_HEADS: Final = _BinHeads()
"""Returns the head of a bin: ``BIN_HEADS[n]``."""


def _wrong(first: int, due: str) -> ProtocolError:
    return encoding_error(
        f"an object of MessagePack that begins with {first:#04x} stands where {due} is due"
    )
