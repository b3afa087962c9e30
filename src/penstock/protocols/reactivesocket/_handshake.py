"""The handshake of ReactiveSocket: the checks of a SETUP, the error that refuses one, and the frames of extensions."""

from penstock.api import Extension, Limits, ProtocolError, Rejected
from penstock.protocols.reactivesocket import _frames as frames
from penstock.protocols.reactivesocket._codec import encode
from penstock.protocols.reactivesocket._layout import VERSION
from penstock.session import connection_reason, explain_connection_end, no_room_refusal


def check_setup(version: int, stream_id: int, data: bytes, limits: Limits) -> None:
    """Raise ProtocolError for a SETUP of another version, on a stream, or with too much data."""
    if version != VERSION:
        raise ProtocolError(f"the client speaks version {version}, and this side version 0", reason=f"version {VERSION}")
    if stream_id:
        raise ProtocolError(f"a SETUP on stream {stream_id}, which belongs on 0", reason="protocol:setup")
    # Checked here as well, because a SETUP may arrive in one chunk with the bytes after it.
    if len(encode(frames.Setup(data=data))) > limits.preauth_bytes:
        raise ProtocolError(f"a SETUP with {len(data)} bytes of data", reason="limit:hello")


def setup_refusal(text: str) -> Rejected | None:
    """Return the error of an ERROR on stream 0 that comes before anything was answered: by its place it refuses the SETUP.

    But a server may have accepted the SETUP in silence, acted on requests, and ended the connection later. So the refusal never says
    that nothing was done. If penstock gives a reason only to clients that it has let in, the error stays ConnectionLost.
    """
    reason = connection_reason(text)
    if reason is not None and reason.ends_accepted:
        return None
    no_room = no_room_refusal(text, processed=True)
    if no_room is not None:
        return no_room
    return Rejected(
        f"the server refused this client's setup: {explain_connection_end(text)}. Requests that were sent before may have been processed"
    )


def announcement(extension_id: int) -> bytes:
    """Encode that this side has an extension: an EXT frame without a body, which a peer without the extension ignores."""
    return encode(frames.Ext(stream_id=0, ignore=True, ext_type=extension_id, data=b""))


def extension_message(extension: Extension, code: int, body: bytes) -> bytes:
    """Encode a message of an extension."""
    return encode(frames.Ext(stream_id=0, ignore=True, ext_type=extension.id, data=bytes([code]) + body))
