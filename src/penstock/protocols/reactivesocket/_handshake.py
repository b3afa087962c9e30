"""The handshake of ReactiveSocket: whether a client speaks the protocol, the checks of a SETUP, the
error that refuses one, and the frames of extensions.

Rules for a client's first bytes, on a port that serves other protocols too:

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

from penstock.api import AuthRefused, Extension, Limits, ProtocolError, Rejected
from penstock.protocols.reactivesocket import _frames as frames
from penstock.protocols.reactivesocket._codec import encode
from penstock.protocols.reactivesocket._layout import (
    LARGEST_EXTENDED_TYPE,
    LENGTH_SIZE,
    VERSION,
    FrameType,
)
from penstock.session import AUTH, connection_reason, explain_connection_end, no_room_refusal

CODE_BITS: Final = 8
"""The low bits of an extended type are the code of a message,
and the others are the id of its extension.
"""

CODE_MASK: Final = (1 << CODE_BITS) - 1

LARGEST_ID: Final = LARGEST_EXTENDED_TYPE >> CODE_BITS
"""The largest id of an extension that fits into an extended type."""

ANNOUNCED: Final = 0
"""The code that announces an extension. No extension has it."""

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


def check_setup(version: int, stream_id: int, data: bytes, limits: Limits) -> None:
    """Raise ProtocolError for a SETUP of another version, on a stream, or with too much data."""
    if version != VERSION:
        raise ProtocolError(
            f"the client speaks version {version}, and this side version 0",
            reason=f"version {VERSION}",
        )
    if stream_id:
        raise ProtocolError(
            f"a SETUP on stream {stream_id}, which belongs on 0", reason="protocol:setup"
        )
    # Checked here as well, because a SETUP may arrive in one chunk with the bytes after it.
    if len(encode(frames.Setup(data=data))) > limits.preauth_bytes:
        raise ProtocolError(f"a SETUP with {len(data)} bytes of data", reason="limit:hello")


def setup_refusal(text: str) -> Rejected | None:
    """Return the error of an ERROR on stream 0 that comes before anything was answered: by its
    place it refuses the SETUP.

    But a server may have accepted the SETUP in silence, acted on requests, and ended the connection
    later. So the refusal never says that nothing was done. If penstock gives a reason only to
    clients that it has let in, the error stays ConnectionLost.
    """
    reason = connection_reason(text)
    # Only clients that were let in get such a reason: the SETUP was accepted, in silence.
    if reason is not None and reason.ends_accepted:
        return None
    if text == AUTH:
        return AuthRefused(f"the server did not let this client in: {explain_connection_end(text)}")
    # A client may send requests after its SETUP without waiting for an answer, and they may have
    # been acted on.
    no_room = no_room_refusal(text, processed=True)
    if no_room is not None:
        return no_room
    return Rejected(
        f"the server refused this client's setup: {explain_connection_end(text)}. Requests that "
        "were sent before may have been processed"
    )


def extended_type(extension_id: int, code: int) -> int:
    """Return the extended type of an extension's message."""
    return extension_id << CODE_BITS | code


def announcement(extension_id: int) -> bytes:
    """Encode that this side has an extension:
    an EXT frame with the code 0, which a peer without the extension ignores.
    """
    return encode(
        frames.Ext(
            stream_id=0, ignore=True, ext_type=extended_type(extension_id, ANNOUNCED), data=b""
        )
    )


def extension_message(extension: Extension, code: int, body: bytes) -> bytes:
    """Encode a message of an extension."""
    return encode(
        frames.Ext(stream_id=0, ignore=True, ext_type=extended_type(extension.id, code), data=body)
    )
