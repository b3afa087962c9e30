"""The names of subprotocols: those of TLS's ALPN, written so that a header of HTTP can hold them
(``rsio/0`` is ``rsio.v0``).

Rules of this file:

* What is installed decides: `TransportOptions.protocols` has the names of the dialects and
  encodings that the URL speaks.
* ReactiveSocket and RSocket have one frame in a message.
  Any other protocol is a stream of bytes, in messages of any length.
"""

from collections.abc import Iterable
from typing import Final

import attrs

_FRAMED: Final = ("reactivesocket.", "rsocket.")
_RSIO_HELLO: Final = 0x01
_SETUP: Final = b"\0\x01"
WORD_SIZE: Final = 4
"""Bytes that tell RS.io from ReactiveSocket."""


@attrs.frozen
class Agreed:
    """The result of a handshake."""

    subprotocol: str | None
    """None if the client offered none, or if the server chose none."""
    rest: bytes
    """Bytes that have arrived behind the handshake."""


def subprotocols_of(protocols: Iterable[str] | None) -> tuple[str, ...]:
    """Return the subprotocols for names of ALPN."""
    return tuple(name.replace("/", ".v") for name in protocols or ())


def is_framed(subprotocol: str) -> bool:
    """Return whether a message is one frame of this protocol."""
    return subprotocol.startswith(_FRAMED)


def is_framed_by(first: bytes) -> bool:
    """Return the same for a client that offered no subprotocol,
    by the first `WORD_SIZE` bytes of its first message.
    """
    # The first byte of RS.io is the type of a hello. That of ReactiveSocket is its version, and a
    # SETUP of version 1 wants an answer of ReactiveSocket. In RS.io these bytes would be a hello
    # without extensions, and a second hello after it.
    return first[0] != _RSIO_HELLO or first[2:WORD_SIZE] == _SETUP
