"""Every frame of RSocket 1.0 as a record, for control frames, tests and tools.

Elements on their way never become records: the decoder passes their bytes on, and the encoder
writes a header before them. The records do not check their numbers; `encode` does.

`metadata` is None without the flag M, and perhaps ``b""`` with it: the two differ on the wire.
"""

from typing import TypeAlias

import attrs

from penstock_rsocket._layout import MAJOR, MINOR

# All fields are passed by name: most are integers, and two integers in the wrong order would be a
# valid frame.


@attrs.frozen(kw_only=True)
class Setup:
    """The first frame of a client that does not resume: its settings of the connection."""

    major: int = MAJOR
    minor: int = MINOR
    keepalive: int
    """Milliseconds between two KEEPALIVE frames of the client."""
    lifetime: int
    """Milliseconds without a KEEPALIVE after which the client gives the server up."""
    token: bytes | None = None
    """By this token the connection can be resumed. None: it cannot."""
    leases: bool = False
    """The client sends no request without a lease."""
    metadata_type: str
    data_type: str
    metadata: bytes | None = None
    data: bytes = b""


@attrs.frozen(kw_only=True)
class Lease:
    """Permits requests: a number of them, for a time."""

    ttl: int
    """Milliseconds."""
    requests: int
    metadata: bytes | None = None


@attrs.frozen(kw_only=True)
class Keepalive:
    """Says that the sender lives."""

    respond: bool = False
    position: int = 0
    """The position that the sender has received, for a connection that can be resumed; else 0."""
    data: bytes = b""


@attrs.frozen(kw_only=True)
class RequestResponse:
    """Requests one element."""

    stream_id: int
    metadata: bytes | None = None
    data: bytes = b""
    follows: bool = False


@attrs.frozen(kw_only=True)
class RequestFnf:
    """Fire and forget: a request without an answer."""

    stream_id: int
    metadata: bytes | None = None
    data: bytes = b""
    follows: bool = False


@attrs.frozen(kw_only=True)
class RequestStream:
    """Requests a stream. `demand` elements may be sent at once."""

    stream_id: int
    demand: int
    metadata: bytes | None = None
    data: bytes = b""
    follows: bool = False


@attrs.frozen(kw_only=True)
class RequestChannel:
    """Requests a stream, and brings the first element of another one in the other direction."""

    stream_id: int
    demand: int
    metadata: bytes | None = None
    data: bytes = b""
    follows: bool = False
    complete: bool = False


@attrs.frozen(kw_only=True)
class RequestN:
    """Permits `demand` more elements."""

    stream_id: int
    demand: int


@attrs.frozen(kw_only=True)
class Cancel:
    """Ends a stream, from the side that gets its elements."""

    stream_id: int


@attrs.frozen(kw_only=True)
class Payload:
    """An element, a part of one or of a request, the end of the stream, or an element and the
    end.
    """

    # The defaults are those of the most frequent payload.
    stream_id: int
    metadata: bytes | None = None
    data: bytes = b""
    follows: bool = False
    complete: bool = False
    next: bool = True


@attrs.frozen(kw_only=True)
class Error:
    """The stream failed or was refused. On stream 0: the connection."""

    stream_id: int
    code: int
    data: bytes = b""  # a text in UTF-8; as bytes, because a peer may send bytes that are not


@attrs.frozen(kw_only=True)
class MetadataPush:
    """Metadata about the connection, without an answer."""

    metadata: bytes


@attrs.frozen(kw_only=True)
class Resume:
    """The first frame of a client that goes on after a lost connection."""

    major: int = MAJOR
    minor: int = MINOR
    token: bytes
    received: int
    """The position up to which the client has received."""
    first_kept: int
    """The first position that the client can still send again."""


@attrs.frozen(kw_only=True)
class ResumeOk:
    """The server goes on."""

    received: int
    """The position up to which the server has received."""


@attrs.frozen(kw_only=True)
class Ext:
    """A frame of an extension."""

    stream_id: int = 0
    extended_type: int
    ignore: bool = False
    data: bytes = b""


@attrs.frozen(kw_only=True)
class Unknown:
    """A frame of a type that RSocket 1.0 does not have, and that may be ignored."""

    stream_id: int
    type: int


Frame: TypeAlias = (
    Setup
    | Lease
    | Keepalive
    | RequestResponse
    | RequestFnf
    | RequestStream
    | RequestChannel
    | RequestN
    | Cancel
    | Payload
    | Error
    | MetadataPush
    | Resume
    | ResumeOk
    | Ext
    | Unknown
)
"""Any frame of RSocket, as a record."""
