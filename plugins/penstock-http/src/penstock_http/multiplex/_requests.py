"""The request that opens a stream of bytes, and its answer. Plain functions, on lists of headers.

Rules of this file:

* The content type names the protocol: ``application/x-rsio``, ``application/x-reactivesocket``. Its
  parameters are the version (``v``) and the encoding. A client that names no such type is known by
  its first bytes, as over TCP.
* A request with an `Origin` comes from a page in a browser. Any page could send one to any server,
  so only those of `h2.origins` may.
* The words of a peer never get into an answer.
"""

from collections.abc import Iterable
from typing import Final

import attrs

from penstock_http.multiplex._protocol import Headers

MAX_HEADERS: Final = 100
"""Fields of one request."""

_PREFIX: Final = "application/x-"
_PROTOCOLS: Final = frozenset({"rsio", "reactivesocket"})

HeaderPairs = list[tuple[str, str]]


@attrs.frozen(kw_only=True)
class Mount:
    """Where requests come to."""

    path: str = ""
    """The path of the URL that is listened at; empty for ``/``."""
    protocols: tuple[str, ...] = ()
    """The protocols that are served, as subprotocols: ``rsio.v0``."""
    origins: frozenset[str] = frozenset()
    """Pages that may send requests."""


@attrs.frozen
class Agreed:
    """The request opens a stream."""

    protocol: str | None
    """The subprotocol that its content type names, or None."""


@attrs.frozen(kw_only=True)
class Refused:
    """The request opens none."""

    status: int
    text: str
    headers: tuple[tuple[str, str], ...] = ()


def subprotocols_of(protocols: Iterable[str] | None) -> tuple[str, ...]:
    """Return the subprotocols for names of ALPN: ``rsio.v0`` for ``rsio/0``."""
    return tuple(name.replace("/", ".v") for name in protocols or ())


def content_type_of(subprotocol: str) -> str:
    """Return the content type of a subprotocol:
    ``application/x-rsio;v=0;encoding=msgpack`` for ``rsio.v0+msgpack``.
    """
    name, _, encoding = subprotocol.partition("+")
    name, _, version = name.partition(".v")
    return (
        f"{_PREFIX}{name}"
        + (f";v={version}" if version else "")
        + (f";encoding={encoding}" if encoding else "")
    )


# --- the server's side


def judge_request(headers: Headers, place: Mount) -> Agreed | Refused:
    """Return whether a request with these headers opens a stream at `place`."""
    if len(headers) > MAX_HEADERS:
        return Refused(status=431, text=f"the request has more than {MAX_HEADERS} header fields")
    if _only(headers, b":method") != "POST":
        return Refused(
            status=405, text="a stream of bytes begins with a POST", headers=(("allow", "POST"),)
        )
    if _only(headers, b":path").partition("?")[0] != (place.path or "/"):
        return Refused(status=404, text="nothing is served at this path")
    origins = [value.decode("latin-1").lower() for name, value in headers if name == b"origin"]
    if not set(origins) <= place.origins:
        return Refused(
            status=403,
            text="pages of this origin may not connect; name it with the option h2.origins",
        )
    return _judge_type(_only(headers, b"content-type"), place)


def asks_for_bytes(headers: Headers) -> bool:
    """Return whether a request at a port of several protocols asks for a stream of bytes: its
    content type names a protocol.
    """
    name = _only(headers, b"content-type").partition(";")[0].strip().lower().removeprefix(_PREFIX)
    return name in _PROTOCOLS and _only(headers, b":method") == "POST"


def _judge_type(content_type: str, place: Mount) -> Agreed | Refused:
    essence, *parameters = (part.strip().lower() for part in content_type.split(";"))
    if not essence.startswith(_PREFIX):
        return Agreed(None)
    values = dict(part.partition("=")[::2] for part in parameters)
    name, encoding = essence.removeprefix(_PREFIX), values.get("encoding", "")
    for protocol in place.protocols:
        known, _, known_encoding = protocol.partition("+")
        known_name, _, version = known.partition(".v")
        if (
            known_name == name
            and known_encoding == encoding
            and values.get("v", version) == version
        ):
            return Agreed(protocol)
    # Another type that begins so, of an application (x-www-form-urlencoded, which curl sends),
    # says nothing.
    if name not in _PROTOCOLS:
        return Agreed(None)
    served = ", ".join(map(content_type_of, place.protocols))
    return Refused(
        status=415,
        text=f"this protocol, or its version or encoding, is not served here; served are: {served}",
    )


def answer_headers(agreed: Agreed) -> HeaderPairs:
    """Return the headers of the answer that opens a stream.
    The last two keep proxies from collecting it.
    """
    kind = (
        "application/octet-stream" if agreed.protocol is None else content_type_of(agreed.protocol)
    )
    return [
        (":status", "200"),
        ("content-type", kind),
        ("cache-control", "no-store"),
        ("x-accel-buffering", "no"),
    ]


def refusal_headers(refused: Refused, size: int) -> HeaderPairs:
    """Return the headers of an answer with a text of `size` bytes."""
    fields = [
        (":status", str(refused.status)),
        ("content-type", "text/plain"),
        ("content-length", str(size)),
        ("cache-control", "no-store"),
    ]
    return [*fields, *refused.headers]


# --- the client's side


def request_headers(*, scheme: str, host: str, path: str, subprotocol: str) -> HeaderPairs:
    """Return the headers of the request that opens a stream."""
    return [
        (":method", "POST"),
        (":scheme", scheme),
        (":authority", host),
        (":path", path),
        ("content-type", content_type_of(subprotocol)),
        ("te", "trailers"),  # proxies for gRPC look for it
        ("user-agent", "penstock"),
    ]


def judge_answer(headers: Headers) -> str | None:
    """Return None if the answer opens a stream, or a text that says why it does not."""
    status = _only(headers, b":status")
    return (
        None
        if status == "200"
        else f"it answered the request with {ascii(status)[1:-1] or 'no status'}"
    )


def _only(headers: Headers, name: bytes) -> str:
    """Return the value of a header that occurs once; empty if it is missing or repeated."""
    values = [value for key, value in headers if key == name]
    return values[0].decode("latin-1") if len(values) == 1 else ""
