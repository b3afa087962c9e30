"""The two codings of several elements in one body, written and read.

* ``X-Rsio-LengthPrefixedElements``:
  the length of each element in four bytes, big-endian, before it.
* ``X-Rsio-FixedSizeElements``: the size of all elements in four bytes, then the elements.
"""

import struct
from collections.abc import Sequence
from typing import Final

from penstock.api import ConnectionLost, LimitExceeded, ProtocolError

_LENGTH: Final = struct.Struct(">I")
SIZE: Final = _LENGTH.size
_pack: Final = _LENGTH.pack


def length_prefixed(elements: Sequence[bytes]) -> bytes:
    """Return elements of any sizes as a body."""
    sizes = set(map(len, elements))
    # Elements of one size have one prefix: then the loop is in C.
    if len(sizes) == 1:
        prefix = _pack(sizes.pop())
        return prefix + prefix.join(elements)
    return b"".join([part for element in elements for part in (_pack(len(element)), element)])


def fixed_size(elements: Sequence[bytes]) -> bytes:
    """Return elements of one size, of at least one byte, as a body."""
    return _pack(len(elements[0])) + b"".join(elements)


class LengthPrefixedReader:
    """Reads a body of length-prefixed elements as it arrives."""

    def __init__(self, max_element: int) -> None:
        self._buffer = bytearray()  # bounded: one element of max_element bytes, and one chunk
        self._max_element = max_element

    def receive(self, data: bytes) -> list[bytes]:
        """Return the elements that are complete. Raises LimitExceeded for a longer one, before it
        has arrived, and after the call that returned the elements before it.
        """
        buffer, most, unpack = self._buffer, self._max_element, _LENGTH.unpack_from
        buffer += data
        elements, at, end = list[bytes](), 0, len(buffer)
        while end - at >= SIZE:
            (size,) = unpack(buffer, at)
            if size > most and not elements:
                check_size(size, most)
            if size > most or end - at - SIZE < size:
                break
            elements.append(bytes(buffer[at + SIZE : at + SIZE + size]))
            at += SIZE + size
        del buffer[:at]
        return elements

    def end(self) -> None:
        """Check that the body has ended after an element. Raises ConnectionLost if it was cut, and
        LimitExceeded for an element that was too long.
        """
        self.receive(b"")
        if self._buffer:
            raise ConnectionLost("the body of a batch has ended inside an element")


def read_fixed_size(body: bytes, max_element: int, most: int) -> list[bytes]:
    """Return the elements of a whole body. Raises ProtocolError if it cannot be one, or has more
    elements than `most`, before they are cut apart.
    """
    if len(body) < SIZE:
        raise ProtocolError(
            "a body of X-Rsio-FixedSizeElements lacks the size of its elements",
            reason="protocol:http",
        )
    (size,) = _LENGTH.unpack_from(body)
    if size < 1 or (len(body) - SIZE) % size:
        raise ProtocolError(
            f"a body of {len(body) - SIZE} bytes is no whole number of elements of {size} bytes",
            reason="protocol:http",
        )
    check_size(size, max_element)
    if (count := (len(body) - SIZE) // size) > most:
        raise ProtocolError(
            f"the server has sent a batch of {count:,} elements, and {most:,} were requested (rule "
            "1.1). The author of the server must act",
            reason="protocol:demand",
        )
    return [body[at : at + size] for at in range(SIZE, len(body), size)]


def check_size(size: int, most: int) -> None:
    """Raise LimitExceeded for an element that is longer than `most`."""
    if size > most:
        text = f"an element of {size:,} bytes arrived; {most:,} are allowed (Limits.max_element)"
        raise LimitExceeded(text, limit="max_element", value=most)
