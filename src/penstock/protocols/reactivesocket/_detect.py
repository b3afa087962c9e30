"""Tells from the first bytes of a connection whether its client speaks ReactiveSocket, on a port
that serves other protocols too.

Rules of this file:

* A SETUP of any version is ReactiveSocket:
  the sender gets an answer that it understands, if only a refusal.
* Any other frame of this version, of a known type, is ReactiveSocket too. It is out of place here,
  and the dialect refuses it as such: a client that leaves out its SETUP would not understand the
  goodbye of RS.io.
* RSocket 1.0 is not recognised: its SETUP and RESUME read as types 0x0004 and 0x0034, which version
  0 does not have. RS.io is not either: its first byte is 0x01 or 0x03, and the first byte of a
  length is 0.
"""

from typing import Final

from penstock.protocols.reactivesocket._layout import LENGTH_SIZE, VERSION, FrameType

WORD_SIZE: Final = 4
"""Version, flags, type."""

# As bytes, because the input may still be incomplete: it is compared, not decoded.
_SETUP: Final = FrameType.SETUP.to_bytes(2)
_TYPES: Final = frozenset(kind.to_bytes(2) for kind in FrameType)


def opens(first: bytes, *, framed: bool = False) -> bool | None:
    """Return whether a connection that begins with `first` speaks ReactiveSocket; None if more
    bytes are needed (8 are always enough).

    If the frame has a length, it must be below 16 MiB.
    """
    # The top byte of such a length is 0, and no other protocol on a shared port begins with a 0. So
    # one byte is enough to refuse HTTP, TLS and RS.io. In a message of the transport the length is
    # left out, and the first byte is the version.
    if not framed and first[:1] not in (b"", b"\0"):
        return False
    word = first[:WORD_SIZE] if framed else first[LENGTH_SIZE : LENGTH_SIZE + WORD_SIZE]
    if len(word) < WORD_SIZE:
        return None
    kind = word[2:]  # word[1], the flags, may be anything
    return kind == _SETUP or (word[0] == VERSION and kind in _TYPES)
