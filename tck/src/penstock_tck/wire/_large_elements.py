"""The elements of the target's publisher `large`: each four bytes of them occur once, so parts
that are lost, swapped or repeated show.
"""

from collections.abc import Sequence
from struct import pack
from typing import Final

from penstock_tck.wire._verdict import fail

LARGE_BYTES: Final = 200_000
"""Bytes of each element."""

SPLIT_BYTES: Final = 20_000
"""Bytes of an element that may go whole or in parts."""

_WORD: Final = 4
_FIRST_BITS: Final = 24
"""The first number of element k is k · 2^24, above all numbers of element k - 1."""


def large_element(number: int) -> bytes:
    """Return the element of that number, from 0, of the target's publisher `large`.

    It consists of the 50,000 numbers from `number` · 2^24 on, each of four bytes,
    the highest byte first.
    """
    first = number << _FIRST_BITS
    count = LARGE_BYTES // _WORD
    return pack(f">{count}I", *range(first, first + count))


def verify_large(elements: Sequence[bytes]) -> None:
    """Fail unless these are the first elements of `large`, in order."""
    for number, element in enumerate(elements):
        due = large_element(number)
        if element != due:
            fail(f"element {number} of the large ones {describe_difference(element, due)}")


def describe_difference(element: bytes, due: bytes) -> str:
    """Return where an element that has come differs from the element that was due, and from which
    element, and where in it, the bytes there are.
    """
    at = next(
        (
            at
            for at in range(0, len(due), _WORD)
            if element[at : at + _WORD] != due[at : at + _WORD]
        ),
        len(due),
    )
    if at >= len(element):
        return f"ends after {len(element)} of {len(due)} bytes"
    if at == len(due):
        return f"goes on behind its {len(due)} bytes: {len(element)} came"
    found = int.from_bytes(element[at : at + _WORD])
    origin, offset = found >> _FIRST_BITS, (found & ((1 << _FIRST_BITS) - 1)) * _WORD
    where = f"has at byte {at} the bytes that belong to byte {offset} of element {origin}"
    return f"{where}; {len(element)} of {len(due)} bytes came"
