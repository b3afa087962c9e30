"""Every frame of ReactiveSocket as a record, for control frames, tests and tools.

Elements on their way never become records: the decoder passes their bytes on, and the encoder
writes a header before them.

The records do not check their numbers; `encode` does.
"""

from typing import TypeAlias

import attrs

# All fields are passed by name: most are integers, and two integers in the wrong order would be a
# valid frame.


@attrs.frozen(kw_only=True)
class Setup:
    """The first frame of the side that opened the connection. Sent once.
    `data` belongs to the program.
    """

    # No other record has one: a frame of another version is refused on its header,
    # but a SETUP gets an answer.
    version: int = 0
    # wire §The beginning and the end of a connection:
    # another id is refused, so the encoder does not send one.
    stream_id: int = 0
    data: bytes = b""


@attrs.frozen(kw_only=True)
class RequestResponse:
    """Requests one element."""

    stream_id: int
    data: bytes = b""


@attrs.frozen(kw_only=True)
class RequestFnf:
    """Fire and forget: a request without an answer."""

    stream_id: int  # it is used up like any other, though no frame will refer to it
    data: bytes = b""


@attrs.frozen(kw_only=True)
class RequestStream:
    """Requests a stream that ends. `demand` elements may be sent at once."""

    stream_id: int
    # wire §How the draft is read: an initial demand of 0 is legal, a later one is not.
    demand: int = 0
    data: bytes = b""


@attrs.frozen(kw_only=True)
class RequestSub:
    """Requests a stream that does not end by itself. `demand` elements may be sent at once."""

    stream_id: int
    demand: int = 0
    data: bytes = b""


@attrs.frozen(kw_only=True)
class RequestN:
    """Permits `demand` more elements."""

    stream_id: int
    demand: int


@attrs.frozen(kw_only=True)
class Cancel:
    """Ends a stream, from its requester."""

    stream_id: int


@attrs.frozen(kw_only=True)
class Response:
    """An element, a part of one, the end of the stream, or an element and the end."""

    # The defaults are those of the most frequent response:
    # a whole element that does not end its stream.
    stream_id: int
    begin: bool = True
    end: bool = True
    complete: bool = False
    data: bytes = b""


@attrs.frozen(kw_only=True)
class Error:
    """The stream failed or was refused. On stream 0: the connection."""

    stream_id: int
    data: bytes = b""  # a text in UTF-8; as bytes, because a peer may send bytes that are not


@attrs.frozen(kw_only=True)
class Ext:
    """A frame of an extension. With `ignore`, a receiver
    that does not know the extension skips the frame.
    """

    ext_type: int
    ignore: bool = False
    # wire §How the draft is read: the figure of EXT has no stream id, but every frame begins with a
    # header.
    stream_id: int = 0
    data: bytes = b""


Frame: TypeAlias = (
    Setup
    | RequestResponse
    | RequestFnf
    | RequestStream
    | RequestSub
    | RequestN
    | Cancel
    | Response
    | Error
    | Ext
)
"""Any frame of ReactiveSocket, as a record."""
