"""The numbers of RS.io version 0 in the compact encoding:
type codes, and the bounds of its integers.

In this folder `wire §…` cites a section of docs/reference/rsio.md,
which describes the bytes for peers in any language.

The high digit of a code tells who sends the message: 0 either side, about the connection; 1 the
subscriber; 2 the publisher; 4 and 5 extensions of penstock; 6 and 7 other extensions.

No code is 0x00 (where an RSocket or ReactiveSocket frame may begin), 0x16 (where a TLS connection
begins) or an ASCII letter (where HTTP begins). So one port can tell the protocols apart by the
first byte of a connection.
"""

from typing import Final

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
