"""Is it ReactiveSocket? The first bytes of a connection tell, on a port that speaks other protocols too.

Rules of this file:

* Who may speak it is a SETUP of whatever version: its sender gets an answer that it understands, if only a refusal.
* Any other frame is out of place there, and refused as one: of this version, and of a type that it has. RSocket 1.0 has its bytes so that
  they never read as one of these, and every RS.io hello begins with another byte.
"""

from typing import Final

from penstock.protocols.reactivesocket._layout import LENGTH_SIZE, VERSION, FrameType

WORD_SIZE: Final = 4
"""Version, flags, type."""

_SETUP: Final = FrameType.SETUP.to_bytes(2)
_TYPES: Final = frozenset(kind.to_bytes(2) for kind in FrameType)


def opens(first: bytes, *, framed: bool = False) -> bool | None:
    """Return whether a connection that begins with `first` speaks ReactiveSocket; None where it takes more bytes to tell, 8 at most.

    A length, where there is one, must be below 16 MiB: it begins with a 0, as no other protocol here does.
    """
    if not framed and first[:1] not in (b"", b"\0"):  # where the transport frames, the first byte is the version
        return False
    word = first[:WORD_SIZE] if framed else first[LENGTH_SIZE : LENGTH_SIZE + WORD_SIZE]
    if len(word) < WORD_SIZE:
        return None
    kind = word[2:]
    return kind == _SETUP or (word[0] == VERSION and kind in _TYPES)
