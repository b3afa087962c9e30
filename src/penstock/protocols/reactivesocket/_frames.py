"""Every frame of ReactiveSocket as a record, for control frames, tests and tools.

Elements under way never become records: the decoder hands their bytes on, the encoder writes a header to stand before them.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """First from the side that opened the connection, once; `data` is the program's own. The stream id must be 0."""

    version: int = 0
    stream_id: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestResponse:
    """Ask for one element."""

    stream_id: int
    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFnf:
    """Tell something, and expect no answer: fire and forget."""

    stream_id: int
    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStream:
    """Ask for elements that end; `demand` of them may come for now."""

    stream_id: int
    demand: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSub:
    """Ask for elements that do not end by themselves; `demand` of them may come for now."""

    stream_id: int
    demand: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestN:
    """So many more elements may come."""

    stream_id: int
    demand: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Nothing more is wanted."""

    stream_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An element, or a part of one, or the good end of the stream, or an element and the end at once."""

    stream_id: int
    begin: bool = True
    end: bool = True
    complete: bool = False
    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """The stream failed or was refused; on stream 0 the connection."""

    stream_id: int
    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ext:
    """A frame that an extension defines; with `ignore` who does not know it skips it."""

    ext_type: int
    ignore: bool = False
    stream_id: int = 0
    data: bytes = b""


Frame: TypeAlias = Setup | RequestResponse | RequestFnf | RequestStream | RequestSub | RequestN | Cancel | Response | Error | Ext
"""Any frame of ReactiveSocket, as a record."""
