"""The opening handshake: requests and responses of HTTP/1.1, judged by plain functions.
h11 parses them.

Rules of this file:

* A browser tells the page's origin, and any page can open a WebSocket to any host. So an origin is
  refused unless it is known.
* A page can let one of its names lead to 127.0.0.1 (DNS rebinding). So at an address of this
  machine the Host must be known too.
* No extension is accepted: a compressed frame of 261 kB once became 256 MiB.
"""

import base64
import binascii
import hashlib
import ipaddress
import os
from collections.abc import Sequence
from typing import Final

import attrs
import h11

from penstock_websocket._settings import Settings, is_origin, normal_origin

MAX_HEADERS: Final = 100
MAX_HEADER_BYTES: Final = 16 << 10
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_VERSION: Final = b"13"
_KEY_SIZE: Final = 16
SWITCHING: Final = 101


@attrs.frozen(kw_only=True)
class Refused:
    """A request that gets no WebSocket."""

    status: int
    text: str
    headers: tuple[tuple[str, str], ...] = ()


@attrs.frozen(kw_only=True)
class Accepted:
    """A request that gets one."""

    key: bytes
    subprotocol: str | None


@attrs.frozen(kw_only=True)
class OpeningFacts:
    """The facts about a listener and a connection that a request is compared with."""

    secure: bool
    path: str
    subprotocols: tuple[str, ...]
    is_loopback: bool
    """The client has reached an address of this machine that no other machine can reach."""
    settings: Settings


# --- the server's side


def judge_request(request: h11.Request, size: int, place: OpeningFacts) -> Accepted | Refused:
    """Return whether a request of `size` bytes is accepted at `place`."""
    if size > MAX_HEADER_BYTES or len(request.headers) > MAX_HEADERS:
        return Refused(
            status=431,
            text=f"the headers are longer than {MAX_HEADER_BYTES} bytes, or over {MAX_HEADERS}",
        )
    key = _only(request, b"sec-websocket-key")
    version = _values(request, b"sec-websocket-version")
    refusal = _refuse_form(request, key) or _refuse_host(request, place)
    if refusal is None and version != [_VERSION]:
        refusal = Refused(
            status=426,
            text="only version 13 of WebSocket is known here",
            headers=(("Sec-WebSocket-Version", "13"),),
        )
    refusal = refusal or _refuse_origin(request, place)
    if refusal is not None:
        return refusal
    offered = _tokens(request, b"sec-websocket-protocol")
    # The order of the client counts.
    chosen = next((name for name in offered if name in place.subprotocols), None)
    if offered and chosen is None:
        known = ", ".join(place.subprotocols)
        return Refused(
            status=400, text=f"none of the subprotocols is known here; known are: {known}"
        )
    return Accepted(key=key, subprotocol=chosen)


def accept_bytes(accepted: Accepted) -> bytes:
    """Return the response that opens a WebSocket."""
    lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
    lines.append(f"Sec-WebSocket-Accept: {accept_token(accepted.key).decode()}")
    if accepted.subprotocol is not None:
        lines.append(f"Sec-WebSocket-Protocol: {accepted.subprotocol}")
    return _head(lines)


def refuse_bytes(refused: Refused) -> bytes:
    """Return the response that refuses one."""
    body = f"{refused.text}\n".encode()
    lines = [
        f"HTTP/1.1 {refused.status} {_PHRASES[refused.status]}",
        "Content-Type: text/plain",
        f"Content-Length: {len(body)}",
    ]
    lines += [f"{name}: {value}" for name, value in refused.headers]
    return _head([*lines, "Connection: close"]) + body


def accept_token(key: bytes) -> bytes:
    """Return the answer of a server to the key of a client."""
    return base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())


_PHRASES: Final = {
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    421: "Misdirected Request",
    426: "Upgrade Required",
    431: "Request Header Fields Too Large",
}


def _refuse_form(request: h11.Request, key: bytes) -> Refused | None:
    # h11 has refused a request of HTTP/1.1 without exactly one Host. One of HTTP/1.0 may lack it.
    if request.http_version != b"1.1" or request.method != b"GET":
        return Refused(status=400, text="a WebSocket begins with a GET of HTTP/1.1")
    if "websocket" not in map(str.lower, _tokens(request, b"upgrade")) or "upgrade" not in map(
        str.lower, _tokens(request, b"connection")
    ):
        return Refused(
            status=400, text="this port speaks WebSocket; the request has no 'Upgrade: websocket'"
        )
    if _values(request, b"content-length") not in ([], [b"0"]) or _values(
        request, b"transfer-encoding"
    ):
        return Refused(status=400, text="a request for a WebSocket has no body")
    try:
        size = len(base64.b64decode(key, validate=True))
    except binascii.Error:
        size = 0
    if size != _KEY_SIZE:
        return Refused(status=400, text=f"Sec-WebSocket-Key is not {_KEY_SIZE} bytes in base64")
    return None


def _refuse_host(request: h11.Request, place: OpeningFacts) -> Refused | None:
    target = request.target.partition(b"?")[0].decode("ascii")
    if place.path and target != place.path:
        return Refused(status=404, text="nothing is served at this path")
    host = _host_name(_host(request))
    if place.is_loopback and not (
        host == "localhost" or _is_loopback(host) or host in place.settings.hosts
    ):
        return Refused(
            status=421, text="this host is not served here; name it with the option ws.hosts"
        )
    return None


def _refuse_origin(request: h11.Request, place: OpeningFacts) -> Refused | None:
    origins = _values(request, b"origin")
    if not origins:
        return None  # no browser: a browser always tells the origin
    own = normal_origin(f"{'https' if place.secure else 'http'}://{_host(request)}")
    origin = normal_origin(origins[0].decode("latin-1"))
    if (
        len(origins) == 1
        and is_origin(origin)
        and (origin == own or origin in place.settings.origins)
    ):
        return None
    return Refused(
        status=403, text="pages of this origin may not connect; name it with the option ws.origins"
    )


def _host(request: h11.Request) -> str:
    return _only(request, b"host").decode("latin-1").lower()


def _host_name(host: str) -> str:
    """Return `host` without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# --- the client's side


def new_key() -> bytes:
    """Return a key, new for each connection."""
    return base64.b64encode(os.urandom(_KEY_SIZE))


def request_bytes(*, host: str, target: str, key: bytes, subprotocols: Sequence[str]) -> bytes:
    """Return the request that asks for a WebSocket."""
    lines = [f"GET {target} HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade"]
    lines += [f"Sec-WebSocket-Key: {key.decode()}", "Sec-WebSocket-Version: 13"]
    if subprotocols:
        lines.append(f"Sec-WebSocket-Protocol: {', '.join(subprotocols)}")
    return _head(lines)


def judge_response(
    response: h11.InformationalResponse | h11.Response, key: bytes, subprotocols: Sequence[str]
) -> str | Accepted:
    """Return what the server has accepted, or a text that says why this is not a WebSocket."""
    if response.status_code != SWITCHING:
        phrase = bytes(response.reason).decode("latin-1")
        return f"it answered {response.status_code} {phrase}".rstrip()
    if "websocket" not in map(str.lower, _tokens(response, b"upgrade")):
        return "it switched to another protocol"
    if _only(response, b"sec-websocket-accept") != accept_token(key):
        return "its answer has a wrong key"
    if _values(response, b"sec-websocket-extensions"):
        return "it uses an extension that was not offered"
    chosen = _tokens(response, b"sec-websocket-protocol")
    if len(chosen) > 1 or not set(chosen) <= set(subprotocols):
        return "it chose a subprotocol that was not offered"
    return Accepted(key=key, subprotocol=chosen[0] if chosen else None)


# --- both sides

Message = h11.Request | h11.InformationalResponse | h11.Response


def _values(message: Message, name: bytes) -> list[bytes]:
    return [bytes(value) for key, value in message.headers if key == name]


def _only(message: Message, name: bytes) -> bytes:
    """Return the value of a header that occurs once; empty if it is missing or repeated."""
    values = _values(message, name)
    return values[0] if len(values) == 1 else b""


def _tokens(message: Message, name: bytes) -> list[str]:
    joined = b",".join(_values(message, name)).decode("latin-1")
    return [token.strip() for token in joined.split(",") if token.strip()]


def _head(lines: list[str]) -> bytes:
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode("latin-1")
