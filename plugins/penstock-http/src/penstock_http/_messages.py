"""Requests and responses of HTTP, as the engine sees them:
no socket, no version of HTTP, no framing.

The rules of the mapping that concern every answer are here:
the caches keep none, and a text says what was wrong.
"""

from collections.abc import Callable, Mapping
from typing import Final, Protocol
from urllib.parse import parse_qsl

import attrs

NO_STORE: Final = ("Cache-Control", "no-store")
"""Of every answer: caches may keep a 204, a 404 or a 410 that does not forbid it (RFC 9110,
15.1).
"""

ERROR: Final = ("X-Rsio-Error", "true")
"""Says that the stream has ended with an error, and that its subscription is gone."""

POSITION: Final = "X-Rsio-Position"
TRACE: Final = "traceparent"
"""The header of W3C Trace Context."""

REQUESTED: Final = "X-Rsio-Requested"
DELIVERY: Final = "X-Rsio-Delivery"
LENGTH_PREFIXED: Final = "X-Rsio-LengthPrefixedElements"
FIXED_SIZE: Final = "X-Rsio-FixedSizeElements"

MAX_ARGUMENTS: Final = 256


class Malformed(Exception):
    """A request cannot be read. The text is for the client."""


@attrs.frozen(kw_only=True)
class Request:
    """One request, without its body, which means nothing here."""

    method: str
    path: str
    """As it came: percent-encoded, without the query."""
    query: str = ""
    headers: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """By name, in small letters."""
    accepts_pushes: bool = False
    """Whether elements can be pushed on the stream of the request:
    over HTTP/2, if the client permits it.
    """

    def header(self, name: str) -> str | None:
        """Return the value of a header, all of its values with commas between them;
        None if it is missing.
        """
        values = self.headers.get(name.lower())
        return None if values is None else ", ".join(values)

    def arguments(self) -> list[tuple[str, str]]:
        """Return the arguments of the query. Raises Malformed if there are too many."""
        if self.query.count("&") >= MAX_ARGUMENTS:
            raise Malformed("the query has too many arguments")
        return parse_qsl(self.query, keep_blank_values=True)


class Outcome(Protocol):
    """Learns what became of the elements in an answer."""

    def on_written(self) -> None:
        """The answer was written to its end, which proves nothing about its arrival."""

    def on_lost(self) -> None:
        """The answer was not written to its end, or its connection was reset."""


class Holder(Protocol):
    """The client whose memory the bytes of an answer are."""

    def hold(self, size: int, element: int, abort: Callable[[], None]) -> Callable[[], None]:
        """Count the `size` bytes of a body until the returned function is called. `element` is that
        of its `Response`. `abort` is called if the server needs the memory: then the answer must
        end.
        """


@attrs.frozen(kw_only=True)
class Response:
    """One answer."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    outcome: Outcome | None = None
    """Set if the answer has elements."""
    holder: Holder | None = None
    """Set if the answer has elements: they count for the client while they are written."""
    element: int = -1
    """The position of the element that the body is, if the body is not a copy of elements."""


def answer(status: int, *headers: tuple[str, str], text: str = "") -> Response:
    """Return an answer without elements; `text` is for a person."""
    kind = (("Content-Type", "text/plain; charset=utf-8"),) if text else ()
    return Response(
        status=status,
        headers=(NO_STORE, *kind, *headers),
        body=f"{text}\n".encode(errors="replace") if text else b"",
    )


def refusal(status: int, text: str, *headers: tuple[str, str]) -> Response:
    """Return the end of a stream with an error, or a subscribe that is refused."""
    return answer(status, ERROR, *headers, text=text)
