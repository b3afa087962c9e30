"""The metadata of requests: several kinds in one piece (composite metadata), and the kinds that
RSocket's extensions define: routes, credentials, MIME types of the data, a trace.

Rules of this file:

* Metadata is the peer's, and its entries are small: a megabyte of it could have 250,000. So entries
  are looked at one after the other, `MOST_ENTRIES` of them at most, and no list of them is made.
* A fault of the peer raises ProtocolError. A value that cannot be encoded raises UsageError.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from penstock.api import Credentials, ProtocolError, UsageError

COMPOSITE: Final = "message/x.rsocket.composite-metadata.v0"
ROUTING: Final = "message/x.rsocket.routing.v0"
AUTHENTICATION: Final = "message/x.rsocket.authentication.v0"
TRACING: Final = "message/x.rsocket.tracing-zipkin.v0"
DATA_TYPE: Final = "message/x.rsocket.mime-type.v0"
ACCEPTED_TYPES: Final = "message/x.rsocket.accept-mime-types.v0"

# wire §MIME types. The registry of RSocket, in the order of its numbers from 0.
_WELL_KNOWN: Final = (
    "application/avro",
    "application/cbor",
    "application/graphql",
    "application/gzip",
    "application/javascript",
    "application/json",
    "application/octet-stream",
    "application/pdf",
    "application/vnd.apache.thrift.binary",
    "application/vnd.google.protobuf",
    "application/xml",
    "application/zip",
    "audio/aac",
    "audio/mp3",
    "audio/mp4",
    "audio/mpeg3",
    "audio/mpeg",
    "audio/ogg",
    "audio/opus",
    "audio/vorbis",
    "image/bmp",
    "image/gif",
    "image/heic-sequence",
    "image/heic",
    "image/heif-sequence",
    "image/heif",
    "image/jpeg",
    "image/png",
    "image/tiff",
    "multipart/mixed",
    "text/css",
    "text/csv",
    "text/html",
    "text/plain",
    "text/xml",
    "video/H264",
    "video/H265",
    "video/VP8",
    "application/x-hessian",
    "application/x-java-object",
    "application/cloudevents+json",
    "application/x-capnp",
    "application/x-flatbuffers",
)
_OF_RSOCKET: Final = {
    0x7A: DATA_TYPE,
    0x7B: ACCEPTED_TYPES,
    0x7C: AUTHENTICATION,
    0x7D: TRACING,
    0x7E: ROUTING,
    0x7F: COMPOSITE,
}
TYPE_OF: Final[dict[int, str]] = dict(enumerate(_WELL_KNOWN)) | _OF_RSOCKET
"""MIME types by their numbers."""
NUMBER_OF: Final[dict[str, int]] = {name: number for number, name in TYPE_OF.items()}

IS_NUMBER: Final = 0x80
"""The bit that tells a number from the length of a name less one."""
LONGEST_NAME: Final = 128
"""Bytes of a name where a number could stand."""
LONGEST_TAG: Final = 255
LONGEST_ENTRY: Final = 2**24 - 1
MOST_ENTRIES: Final = 64
"""Entries in one piece of composite metadata that are looked at. No honest sender has more."""

SIMPLE: Final = 0x00
BEARER: Final = 0x01
_AUTH_TYPES: Final = {SIMPLE: "simple", BEARER: "bearer"}

# --- composite metadata


def encode_composite(entries: Iterable[tuple[str, bytes]]) -> bytes:
    """Return MIME types and contents in one piece.
    Raises UsageError for a type or a content that does not fit.
    """
    parts: list[bytes] = []
    for mime_type, content in entries:
        if len(content) > LONGEST_ENTRY:
            raise UsageError(f"metadata of {len(content)} bytes; {LONGEST_ENTRY} is the most")
        parts += (encode_type(mime_type), len(content).to_bytes(3), content)
    return b"".join(parts)


def entries_of(composite: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the MIME types and the contents in composite metadata. Raises ProtocolError."""
    position = 0
    for _ in range(MOST_ENTRIES):
        if position == len(composite):
            return
        mime_type, position = _read_name(composite, position, TYPE_OF)
        begin = position + 3
        position = begin + int.from_bytes(composite[position:begin])
        if begin > len(composite) or position > len(composite):
            raise _broken("an entry ends after the metadata")
        yield mime_type, composite[begin:position]
    if position != len(composite):
        raise _broken(f"it has more than {MOST_ENTRIES} entries")


def find_entry(composite: bytes, mime_type: str) -> bytes | None:
    """Return the first content of that type in composite metadata, or None without one.
    Raises ProtocolError.
    """
    for found, content in entries_of(composite):
        if found == mime_type:
            return content
    return None


# --- MIME types


def encode_type(mime_type: str) -> bytes:
    """Return a MIME type as a number, or as a name without one."""
    return _encode_name(mime_type, NUMBER_OF.get(mime_type))


def decode_types(content: bytes) -> list[str]:
    """Return the MIME types in the content of `DATA_TYPE` or `ACCEPTED_TYPES`.
    Raises ProtocolError.
    """
    types: list[str] = []
    position = 0
    while position < len(content):
        if len(types) == MOST_ENTRIES:
            raise _broken(f"it names more than {MOST_ENTRIES} MIME types")
        mime_type, position = _read_name(content, position, TYPE_OF)
        types.append(mime_type)
    return types


# --- routes


def encode_route(route: str) -> bytes:
    """Return a route as the only tag. Raises UsageError for one that does not fit."""
    try:
        tag = route.encode()
    except UnicodeEncodeError:
        raise UsageError(
            f"{route[:200]!a} cannot be a route: it holds half a character, which has no UTF-8"
        ) from None
    if len(tag) > LONGEST_TAG:
        raise UsageError(
            f"a name of {len(tag)} bytes; a route of RSocket has {LONGEST_TAG} at most"
        )
    return bytes([len(tag)]) + tag


def decode_route(content: bytes) -> str:
    """Return the route, which is the first tag. Raises ProtocolError."""
    # Only the first tag is kept. The others are read because they must be well-formed.
    position, first = 0, b""
    while position < len(content):
        end = position + 1 + content[position]
        if end > len(content):
            raise _broken("a tag of its route ends after it")
        if not position:
            first = content[1:end]
        position = end
    try:
        return first.decode()
    except UnicodeDecodeError:
        raise _broken("its route is not UTF-8") from None


# --- credentials


def encode_credentials(credentials: Credentials) -> bytes:
    """Return the content of `AUTHENTICATION`. Raises UsageError for a scheme that does not fit."""
    if credentials.scheme == "bearer":
        return bytes([IS_NUMBER | BEARER]) + credentials.data
    if credentials.scheme == "basic":
        user, _, password = credentials.data.partition(b":")
        return b"".join((bytes([IS_NUMBER | SIMPLE]), len(user).to_bytes(2), user, password))
    return _encode_name(credentials.scheme, None) + credentials.data


def decode_credentials(content: bytes) -> Credentials:
    """Return the credentials in the content of `AUTHENTICATION`. Raises ProtocolError."""
    scheme, position = _read_name(content, 0, _AUTH_TYPES)
    data = content[position:]
    if scheme != "simple":
        return Credentials(scheme, data)
    end = 2 + int.from_bytes(data[:2])
    if len(data) < 2 or end > len(data):
        raise _broken("the user of its credentials ends after them")
    # The colon separates the two in `Credentials`, so a user with one would be read as
    # another user.
    if b":" in data[2:end]:
        raise _broken("the user of its credentials has a ':'")
    return Credentials("basic", data[2:end] + b":" + data[end:])


# --- traces

_IDS, _DEBUG, _SAMPLED, _NOT_SAMPLED, _LONG, _PARENT = 0x80, 0x40, 0x20, 0x10, 0x08, 0x04


@attrs.frozen(kw_only=True)
class Trace:
    """The place of a request in a trace, in the form of Zipkin."""

    trace_id: int | None = None
    """64 or 128 bits. None: only the decision about sampling crosses."""
    span_id: int = 0
    parent_id: int | None = None
    is_long: bool = False
    """The id of the trace has 128 bits."""
    debug: bool = False
    sampled: bool | None = None
    """None: it is not decided."""


def encode_trace(trace: Trace) -> bytes:
    """Return the content of `TRACING`."""
    flags = _DEBUG if trace.debug else 0
    if trace.sampled is not None:
        flags |= _SAMPLED if trace.sampled else _NOT_SAMPLED
    if trace.trace_id is None:
        return bytes([flags])
    ids = trace.trace_id.to_bytes(16 if trace.is_long else 8) + trace.span_id.to_bytes(8)
    flags |= _IDS | (_LONG if trace.is_long else 0)
    if trace.parent_id is not None:
        flags |= _PARENT
        ids += trace.parent_id.to_bytes(8)
    return bytes([flags]) + ids


def decode_trace(content: bytes) -> Trace:
    """Return the trace in the content of `TRACING`. Raises ProtocolError."""
    flags = content[0] if content else 0
    wide, parent = 16 if flags & _LONG else 8, 8 if flags & _PARENT else 0
    size = wide + 8 + parent if flags & _IDS else 0
    if len(content) != 1 + size:
        raise _broken(f"its trace has {len(content)} bytes, and its flags say {1 + size}")
    # wire §Traces: the flag for "not sampled" counts only without the other one.
    sampled = bool(flags & _SAMPLED) if flags & (_SAMPLED | _NOT_SAMPLED) else None
    debug = bool(flags & _DEBUG)
    if not size:
        return Trace(debug=debug, sampled=sampled)
    return Trace(
        trace_id=int.from_bytes(content[1 : 1 + wide]),
        span_id=int.from_bytes(content[1 + wide : 9 + wide]),
        parent_id=int.from_bytes(content[9 + wide :]) if parent else None,
        is_long=wide == 16,
        debug=debug,
        sampled=sampled,
    )


# --- inside


def _encode_name(name: str, number: int | None) -> bytes:
    if number is not None:
        return bytes([IS_NUMBER | number])
    encoded = name.encode("ascii", "replace")
    if not name.isascii() or not 0 < len(encoded) <= LONGEST_NAME:
        raise UsageError(
            f"{name[:200]!a} is no name that RSocket can carry: 1 to 128 characters of ASCII"
        )
    # wire §Composite metadata: every implementation writes one less than the length.
    return bytes([len(encoded) - 1]) + encoded


def _read_name(content: bytes, position: int, names: dict[int, str]) -> tuple[str, int]:
    if position >= len(content):
        raise _broken("it ends before a name")
    first = content[position]
    if first & IS_NUMBER:
        number = first & ~IS_NUMBER
        # A number that is not known here is skipped by its reader, so it needs some name.
        return names.get(number, f"number {number:#04x}"), position + 1
    end = position + 2 + first  # the length is written as one less: see `_encode_name`
    if end > len(content):
        raise _broken("a name ends after it")
    return content[position + 1 : end].decode("ascii", "backslashreplace"), end


def _broken(what: str) -> ProtocolError:
    return ProtocolError(f"the metadata of a request: {what}", reason="protocol:metadata")
