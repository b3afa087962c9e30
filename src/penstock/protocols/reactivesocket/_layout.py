"""ReactiveSocket version 0 in numbers: the header, the types of frames, the flags, and how long a frame must at least be.

A header is 16 bytes where frames carry their length (byte streams), 12 where the transport delimits them; all numbers are unsigned and
big-endian. Version, flags and type stand side by side and are read as one 32-bit *word*: most questions about a frame are one
comparison of it.
"""

from enum import IntEnum
from struct import Struct
from typing import Final

VERSION: Final = 0
"""The version of ReactiveSocket that is spoken here; the byte of it in every frame."""

HEADER: Final = Struct(">IIQ")
"""Length, word, stream id."""
FRAMED_HEADER: Final = Struct(">IQ")
"""Word, stream id."""
NUMBER: Final = Struct(">Q")
"""A demand."""
EXTENDED_TYPE: Final = Struct(">I")

HEADER_SIZE: Final = HEADER.size
FRAMED_HEADER_SIZE: Final = FRAMED_HEADER.size
LENGTH_SIZE: Final = 4

LARGEST_LENGTH: Final = 2**31 - 1
"""The top bit of the length is reserved."""
LARGEST_STREAM_ID: Final = 2**64 - 1
LARGEST_DEMAND: Final = 2**63 - 1
LARGEST_EXTENDED_TYPE: Final = 2**32 - 1
LARGEST_VERSION: Final = 0xFF


class FrameType(IntEnum):
    """What a frame is. Requesters send 0x10 to 0x1f, responders 0x20 to 0x2f."""

    SETUP = 0x0001
    REQUEST_RESPONSE = 0x0011
    REQUEST_FNF = 0x0012
    REQUEST_STREAM = 0x0013
    REQUEST_SUB = 0x0014
    REQUEST_N = 0x0015
    CANCEL = 0x0016
    RESPONSE = 0x0020
    ERROR = 0x0021
    EXT = 0xFFFF


SHORTEST_BODY: Final[dict[int, int]] = {
    FrameType.SETUP: 0,
    FrameType.REQUEST_RESPONSE: 0,
    FrameType.REQUEST_FNF: 0,
    FrameType.REQUEST_STREAM: NUMBER.size,
    FrameType.REQUEST_SUB: NUMBER.size,
    FrameType.REQUEST_N: NUMBER.size,
    FrameType.CANCEL: 0,
    FrameType.RESPONSE: 0,
    FrameType.ERROR: 0,
    FrameType.EXT: EXTENDED_TYPE.size,
}
"""Bytes behind the header that a frame of this type cannot do without."""

IGNORE: Final = 0x80
"""The flag of any frame: who does not know its type may skip it. Says nothing on a type that is known, but for EXT."""
BEGIN: Final = 0x40
"""The flag of a response that begins an element."""
END: Final = 0x20
"""The flag of a response that ends an element."""
COMPLETE: Final = 0x10
"""The flag of a response that ends its stream well."""
WHOLE: Final = BEGIN | END
"""The flags of a response that is an element in one piece."""

FLAGS_SHIFT: Final = 16
VERSION_SHIFT: Final = 24
TYPE_MASK: Final = 0xFFFF

# The ignore bit and the four reserved ones mean nothing on a response. Without begin and end it is read as whole, as long as no parts
# are open; the stream knows that.
_MEANINGLESS: Final = [flags for flags in range(0x100) if not flags & (BEGIN | END | COMPLETE)]
WHOLE_RESPONSES: Final = frozenset(
    (flags | meaningless) << FLAGS_SHIFT | FrameType.RESPONSE for flags in (WHOLE, 0) for meaningless in _MEANINGLESS
)
"""The words of responses that are an element in one piece and do not end their stream."""
LAST_RESPONSES: Final = frozenset((WHOLE | COMPLETE | meaningless) << FLAGS_SHIFT | FrameType.RESPONSE for meaningless in _MEANINGLESS)
"""The words of those that do: what answers a request for one value."""
