"""The compact binding of RS.io version 0 in numbers: type codes, and the bounds of its integers.

The first figure of a code says who sends it: 0 either side, about the connection; 1 a subscriber; 2 a publisher; 4 and 5 extensions
of penstock's; 6 and 7 anybody's. No code is an ASCII letter, 0x16 or 0x00 where a connection begins, so that one port can tell
protocols apart by their first byte.
"""

from typing import Final

VERSION: Final = 0
"""The version of RS.io that is spoken here; the byte of it in both hellos."""

CLIENT_HELLO: Final = 0x01
"""The type of a client's first message."""

SERVER_HELLO: Final = 0x02
"""The type of a server's first message."""

GOODBYE: Final = 0x03
"""The type of either side's last message, which is the first one, too, of who refuses before a hello."""

SWITCH_ENCODING: Final = 0x04

SUBSCRIBE: Final = 0x10
REQUEST: Final = 0x11
CANCEL: Final = 0x12

ON_SUBSCRIBE: Final = 0x20
ON_NEXT: Final = 0x21
ON_NEXT_PACKED: Final = 0x22
ON_NEXT_PART: Final = 0x23
ON_NEXT_LAST_PART: Final = 0x24
ON_COMPLETE: Final = 0x25
ON_ERROR: Final = 0x26

FIRST_EXTENSION: Final = 0x40
FIRST_PRIVATE_EXTENSION: Final = 0x60
LAST_EXTENSION: Final = 0x7E

LARGEST_VARINT: Final = 2**63 - 1
LONGEST_VARINT: Final = 9
"""Bytes: nine groups of seven bits hold 2^63-1."""

LARGEST_VERSION: Final = 0xFF
