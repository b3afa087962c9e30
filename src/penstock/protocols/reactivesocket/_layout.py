"""The numbers of ReactiveSocket version 0: the header, the types of frames, the flags, and the
shortest frame of each type.

In this folder `wire §…` cites a section of docs/reference/reactivesocket.md, which describes the
bytes for peers in any language.

A header has 16 bytes on a stream of bytes, where it begins with the length of the frame. It has 12
bytes where the transport delivers messages, one frame each. All numbers are unsigned and
big-endian. Version, flags and type are neighbours, and are read as one 32-bit number, the *word*:
most questions about a frame are one comparison of its word.
"""

from enum import IntEnum
from struct import Struct
from typing import Final

VERSION: Final = 0
"""The version of ReactiveSocket that penstock speaks. Every frame contains it."""

# wire §The header. A Struct reads the three numbers with one call: 59 ns, where three
# `int.from_bytes` of slices take 381.
HEADER: Final = Struct(">IIQ")
"""Length, word, stream id."""
FRAMED_HEADER: Final = Struct(">IQ")
"""Word, stream id."""
LENGTH: Final = Struct(">I")
NUMBER: Final = Struct(">Q")
"""A demand."""
EXTENDED_TYPE: Final = Struct(">I")

HEADER_SIZE: Final = HEADER.size
FRAMED_HEADER_SIZE: Final = FRAMED_HEADER.size
LENGTH_SIZE: Final = 4

LARGEST_LENGTH: Final = 2**31 - 1
"""The top bit of the length is reserved."""
# wire §How the draft is read: ids have no sign. Penstock chooses them below 2^63.
LARGEST_STREAM_ID: Final = 2**64 - 1
LARGEST_DEMAND: Final = 2**63 - 1  # rule 3.17: this demand means "without bound"
LARGEST_EXTENDED_TYPE: Final = 2**32 - 1
LARGEST_VERSION: Final = 0xFF


class FrameType(IntEnum):
    """The type of a frame. Requesters send 0x10 to 0x1f, responders 0x20 to 0x2f."""

    # wire §How the draft is read: the draft's figures contradict its table of types for REQUEST_N.
    # The table governs.
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


# A decoder takes a type that is missing here for an unknown type;
# a test compares the keys with FrameType.
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
"""The number of bytes behind the header that a frame of this type has at least."""

# wire §The header: flags, from the top bit down. The low four bits are reserved.
IGNORE: Final = 0x80
"""A receiver that does not know the type of the frame may skip it. EXT is the only type of version
0 that gives this flag a meaning.
"""
BEGIN: Final = 0x40
"""This response begins an element."""
END: Final = 0x20
"""This response ends an element."""
COMPLETE: Final = 0x10
"""This response ends its stream, without an error."""
WHOLE: Final = BEGIN | END
"""The flags of a response that is a complete element."""

FLAGS_SHIFT: Final = 16
VERSION_SHIFT: Final = 24
TYPE_MASK: Final = 0xFFFF

# wire §How the draft is read: the ignore bit and the four reserved bits mean nothing on a response;
# peers may set them. Without B and E a response is a whole element as long as no element of its
# stream is open in parts; the stream knows that.
_MEANINGLESS: Final = [flags for flags in range(0x100) if not flags & (BEGIN | END | COMPLETE)]
# All words that mean the same, in a set: `word in WHOLE_RESPONSES` takes 23 ns, the masks and
# comparisons that it replaces 89. This is asked for every frame.
WHOLE_RESPONSES: Final = frozenset(
    (flags | meaningless) << FLAGS_SHIFT | FrameType.RESPONSE
    for flags in (WHOLE, 0)
    for meaningless in _MEANINGLESS
)
"""The words of responses that are a complete element and do not end their stream."""
LAST_RESPONSES: Final = frozenset(
    (WHOLE | COMPLETE | meaningless) << FLAGS_SHIFT | FrameType.RESPONSE
    for meaningless in _MEANINGLESS
)
"""The words of responses that are a complete element and end their stream:
the answer to a request for one value.
"""
PLAIN_REQUEST: Final = VERSION << VERSION_SHIFT | FrameType.REQUEST_RESPONSE
"""The word of a request for one value without flags, as every peer sends it."""
