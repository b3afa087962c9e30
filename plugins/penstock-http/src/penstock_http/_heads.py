"""The heads of HTTP/1.1: requests are read by h11, answers are written here.

Rules of this file:

* A head is judged before h11 sees it: it has at most `MAX_HEAD` bytes, and each of its lines ends
  with CR LF. A bare LF is where a proxy and a server may see two different requests.
* A request with a Content-Length and a Transfer-Encoding is refused, for the same reason, and so is
  a line that goes on in the next one.
* The major version is 1: h11 reads all others too. A minor version above 1 is read as 1.1 (RFC
  9110, 2.5).
* A body means nothing here. At most `MAX_BODY` bytes of it are read,
  and the connection ends after the answer.
"""

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Final

import attrs
import h11

from penstock_http._messages import Request

MAX_HEAD: Final = 16 << 10
MAX_HEADERS: Final = 100
MAX_BODY: Final = 64 << 10

_BARE_LF: Final = re.compile(rb"(?<!\r)\n")
_NONE: Final = frozenset[str]()
_FOLDED: Final = re.compile(rb"\r\n[ \t]")
_ABSOLUTE: Final = re.compile(r"https?://[^/?#]*", re.IGNORECASE)


class BadRequest(Exception):
    """A request that cannot be served. The connection ends after the answer: where the next
    request begins is not known.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@attrs.frozen(kw_only=True)
class Head:
    """A request of HTTP/1.1, with its options for the connection."""

    request: Request
    host: str
    keeps_alive: bool
    is_chunkable: bool
    """Whether the answer may be in chunks: HTTP/1.0 does not have them."""
    has_body: bool
    expects_continue: bool
    asks_for_websocket: bool = False
    """Whether the request asks to upgrade the connection to a WebSocket."""
    scheme: str = ""
    """The scheme of a request of HTTP/2; empty otherwise."""


class HeadReader:
    """Collects received bytes, and cuts requests out of them."""

    def __init__(self) -> None:
        # Bounded by MAX_HEAD and one chunk of the connection; `has_room` says when to stop reading.
        self._buffer = bytearray()
        self._body: h11.Connection | None = None
        self._body_bytes = 0

    @property
    def has_room(self) -> bool:
        """Whether more may be received while a request is being answered."""
        return len(self._buffer) < MAX_HEAD

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the next request has come."""
        return not self._buffer

    def receive(self, data: bytes | bytearray) -> None:
        """Add bytes."""
        self._buffer += data

    def next_head(self) -> Head | None:
        """Return the next request, or None if it is incomplete. Raises BadRequest."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            # Also without the end: a client that writes bare LF alone would otherwise wait in vain.
            if _BARE_LF.search(self._buffer):
                raise BadRequest(400, "a line of the request does not end with CR LF")
            if len(self._buffer) > MAX_HEAD:
                raise BadRequest(431, f"the head of a request has at most {MAX_HEAD} bytes")
            return None
        raw = bytes(self._buffer[: end + 4])
        if len(raw) > MAX_HEAD:
            raise BadRequest(431, f"the head of a request has at most {MAX_HEAD} bytes")
        if _BARE_LF.search(raw):
            raise BadRequest(400, "a line of the request does not end with CR LF")
        if _FOLDED.search(raw):
            raise BadRequest(400, "a line of the request goes on in the next one")
        # One for each request: the bytes behind the head stay here, so the next head is judged too.
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        try:
            parser.receive_data(raw)
            event = parser.next_event()
        except h11.RemoteProtocolError as error:
            raise BadRequest(error.error_status_hint, "this is no request of HTTP/1.1") from None
        if not isinstance(event, h11.Request):
            raise BadRequest(400, "this is no request of HTTP/1.1")
        head = _head_of(event)
        # The bytes of an upgrade stay, for the protocol that is upgraded to.
        if not head.asks_for_websocket:
            del self._buffer[: end + 4]
        if head.has_body:
            self._body, self._body_bytes = parser, 0
        return head

    def take(self) -> bytes:
        """Take all bytes that were not read."""
        data = bytes(self._buffer)
        self._buffer.clear()
        return data

    def discard_body(self) -> bool:
        """Read the bytes of a body that have come; return whether it has ended.
        Raises BadRequest.
        """
        body = self._body
        if body is None:
            return True
        self._body_bytes += len(self._buffer)
        if self._body_bytes > MAX_BODY:
            raise BadRequest(413, "a request needs no body here")
        data = bytes(self._buffer)
        self._buffer.clear()
        try:
            if data:
                body.receive_data(data)
            while True:
                event = body.next_event()
                if event is h11.NEED_DATA:
                    return False
                if isinstance(event, h11.EndOfMessage) or event is h11.PAUSED:
                    return True
        except h11.RemoteProtocolError as error:
            raise BadRequest(
                error.error_status_hint, "the body of the request cannot be read"
            ) from None


def _head_of(event: h11.Request) -> Head:
    if not event.http_version.startswith(b"1."):
        raise BadRequest(505, "the version of a request is 1.0 or 1.1 here")
    if len(event.headers) > MAX_HEADERS:
        raise BadRequest(431, f"a request has at most {MAX_HEADERS} headers")
    headers: dict[str, tuple[str, ...]] = {}
    for raw_name, raw_value in event.headers:
        name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
        headers[name] = (*headers.get(name, ()), value)
    if "content-length" in headers and "transfer-encoding" in headers:
        raise BadRequest(400, "a request has one length: Content-Length or Transfer-Encoding")
    target = event.target.decode("ascii")
    path, _, query = _ABSOLUTE.sub("", target, count=1).partition("?")
    connection, upgrades = _tokens(headers, "connection"), _tokens(headers, "upgrade")
    length = int(headers.get("content-length", ("0",))[0])  # h11 has checked that it is a number
    if length > MAX_BODY:
        raise BadRequest(413, "a request needs no body here")
    has_body = "transfer-encoding" in headers or length > 0
    is_modern = event.http_version != b"1.0"
    return Head(
        request=Request(
            method=event.method.decode("ascii"), path=path or "/", query=query, headers=headers
        ),
        host=headers.get("host", ("",))[0].strip().lower(),
        keeps_alive=is_modern and "close" not in connection and not has_body,
        is_chunkable=is_modern,
        has_body=has_body,
        expects_continue="100-continue" in headers.get("expect", ("",))[0].lower(),
        asks_for_websocket="upgrade" in connection and "websocket" in upgrades,
    )


def _tokens(headers: Mapping[str, tuple[str, ...]], name: str) -> frozenset[str]:
    """Return the words of a header that is a list."""
    values = headers.get(name)
    if values is None:
        return _NONE
    return frozenset(token.strip().lower() for value in values for token in value.split(","))


def response_head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    """Return the head of an answer."""
    lines = "\r\n".join(map(": ".join, headers))
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{lines}\r\n\r\n".encode("latin-1")


def chunk_head(size: int) -> bytes:
    """Return what stands before a chunk of `size` bytes, which is not empty, of a body whose length
    is not known.
    """
    return b"%x\r\n" % size


CHUNK_END: Final = b"\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
