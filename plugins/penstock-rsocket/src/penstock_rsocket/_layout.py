"""The numbers of RSocket 1.0: the header, the types of frames, the flags, the error codes.

In this package `wire §…` cites a section of docs/reference/rsocket.md.

A frame has 6 bytes of header: 31 bits of stream id, 6 bits of type, 10 bits of flags. On a stream
of bytes 24 bits of length come before it; where the transport delivers messages, one frame each,
they are left out. Type and flags are neighbours, and are read as one number of 16 bits, the *word*.
All numbers are unsigned and big-endian.
"""

from enum import IntEnum
from struct import Struct
from typing import Final

# wire §The header. The length has 24 bits, which `struct` does not have: 8 and 16.
HEADER: Final = Struct(">BHIH")
"""The high and the low part of the length, stream id, word."""
FRAMED_HEADER: Final = Struct(">IH")
"""Stream id, word."""
NUMBER: Final = Struct(">I")
"""A demand, a code, a time: 31 or 32 bits."""
POSITION: Final = Struct(">Q")
POSITION_SIZE: Final = POSITION.size
VERSION: Final = Struct(">HH")
LENGTH_SIZE: Final = 3
HEADER_SIZE: Final = HEADER.size
FRAMED_HEADER_SIZE: Final = FRAMED_HEADER.size

LARGEST_LENGTH: Final = 2**24 - 1
"""The most bytes of a frame, its length not counted; and of the metadata in one."""
LARGEST_STREAM_ID: Final = 2**31 - 1
LARGEST_NUMBER: Final = 2**31 - 1
"""The largest demand, and number of milliseconds or requests. It does not mean "without bound"."""
LARGEST_POSITION: Final = 2**63 - 1

MAJOR: Final = 1
MINOR: Final = 0

TYPE_SHIFT: Final = 10
FLAGS_MASK: Final = (1 << TYPE_SHIFT) - 1

IGNORE: Final = 0x200
"""A receiver that does not understand the frame skips it."""
METADATA: Final = 0x100
FOLLOWS: Final = 0x80
"""Requests and payloads: fragments follow."""
RESUME_ENABLED: Final = 0x80
"""SETUP: a token follows, and the connection can be resumed."""
RESPOND: Final = 0x80
"""KEEPALIVE: the other side must answer."""
COMPLETE: Final = 0x40
LEASE: Final = 0x40
"""SETUP: the client honours leases."""
NEXT: Final = 0x20


class FrameType(IntEnum):
    """The type of a frame."""

    SETUP = 0x01
    LEASE = 0x02
    KEEPALIVE = 0x03
    REQUEST_RESPONSE = 0x04
    REQUEST_FNF = 0x05
    REQUEST_STREAM = 0x06
    REQUEST_CHANNEL = 0x07
    REQUEST_N = 0x08
    CANCEL = 0x09
    PAYLOAD = 0x0A
    ERROR = 0x0B
    METADATA_PUSH = 0x0C
    RESUME = 0x0D
    RESUME_OK = 0x0E
    EXT = 0x3F


# The shortest body of each type: the bytes after the header.
SHORTEST_BODY: Final[dict[int, int]] = {
    FrameType.SETUP: 14,  # version, two times, two MIME types without a character
    FrameType.LEASE: 8,
    FrameType.KEEPALIVE: 8,
    FrameType.REQUEST_RESPONSE: 0,
    FrameType.REQUEST_FNF: 0,
    FrameType.REQUEST_STREAM: 4,
    FrameType.REQUEST_CHANNEL: 4,
    FrameType.REQUEST_N: 4,
    FrameType.CANCEL: 0,
    FrameType.PAYLOAD: 0,
    FrameType.ERROR: 4,
    FrameType.METADATA_PUSH: 0,
    FrameType.RESUME: 22,  # version, length of the token, two positions
    FrameType.RESUME_OK: 8,
    FrameType.EXT: 4,
}

WHOLE_PAYLOAD: Final = FrameType.PAYLOAD << TYPE_SHIFT | NEXT
"""The word of the most frequent frame: an element, whole, without metadata and without the end."""


LAST_PAYLOAD: Final = FrameType.PAYLOAD << TYPE_SHIFT | NEXT | COMPLETE
"""The word of the answer to most requests: an element with the end."""
PLAIN_REQUEST: Final = FrameType.REQUEST_RESPONSE << TYPE_SHIFT
"""The word of a request for one value, whole and without metadata."""


class ErrorCode(IntEnum):
    """The codes of ERROR. Those from `APPLICATION` on belong to applications."""

    INVALID_SETUP = 0x001
    UNSUPPORTED_SETUP = 0x002
    REJECTED_SETUP = 0x003
    REJECTED_RESUME = 0x004
    CONNECTION_ERROR = 0x101
    CONNECTION_CLOSE = 0x102
    APPLICATION_ERROR = 0x201
    REJECTED = 0x202
    CANCELED = 0x203
    INVALID = 0x204


FIRST_APPLICATION_CODE: Final = 0x301
LAST_APPLICATION_CODE: Final = 0xFFFFFFFE
