"""One port for all protocols: what a client says first tells which it speaks. What is not served here gets an answer it understands.

Rules of this file:

* No more than `ENOUGH` bytes are looked at, and nothing is said before they are in.
* Who speaks nothing that is known is left to the first of the dialects that are served, to be refused in its manner.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from penstock.api import ProtocolError
from penstock.session._dialect import Dialect
from penstock.session._dialect_settings import DialectFactory, DialectSettings

if TYPE_CHECKING:
    from penstock.session._session import Session

ENOUGH: Final = 8
"""Bytes after which every protocol that is known here can be told."""

NOT_SERVED: Final = "protocol:not-served"
"""The reason that a client gets whose protocol this program knows and does not serve here."""

TLS_RECORD: Final = b"\x16\x03"
"""How a TLS client begins: a record of its handshake, of any version 3."""

TLS_ALERT: Final = bytes.fromhex("15 0303 0002 02 46")
"""A fatal alert, protocol_version: what a TLS client takes for a refusal, and reports as one."""


def protocol_detector(
    offers: Sequence[tuple[DialectFactory, DialectSettings]], *, framed: bool, unserved: Sequence[DialectFactory] = ()
) -> "Callable[[Session, bytes], Dialect | None]":
    """Return a function that chooses among `offers` by a client's first bytes.

    `unserved` are the dialects that this program knows and does not offer here: a client that speaks one of them is refused in its own
    protocol. The function raises ProtocolError with the name of what the client speaks instead.
    """

    def choose(session: "Session", first: bytes) -> Dialect | None:
        verdicts = [factory.recognises(first, framed) for factory, _ in offers]
        if True in verdicts:
            factory, settings = offers[verdicts.index(True)]
            return factory(session, settings)
        if not framed and len(first) < ENOUGH and (None in verdicts or _may_be_known(first)):
            return None
        _refuse_unserved(session, first, unserved, framed=framed)
        stranger = _refuse_unknown_client(first, _what_to_do([factory.name for factory, _ in offers]))
        if stranger is not None:
            what, token, session.foreign_refusal = stranger
            raise ProtocolError(f"the client speaks {what}, which is not served here", reason=f"protocol:{token}")
        factory, settings = offers[0]
        return factory(session, settings)

    return choose


def _refuse_unserved(session: "Session", first: bytes, unserved: Sequence[DialectFactory], *, framed: bool) -> None:
    """Raise ProtocolError if the client speaks one of `unserved`, and leave that protocol's own refusal with the session."""
    for factory in unserved:
        if factory.recognises(first, framed):
            session.foreign_refusal = factory.refusal(NOT_SERVED)
            raise ProtocolError(f"the client speaks {factory.name}, which is not served here", reason=NOT_SERVED)


def _may_be_known(first: bytes) -> bool:
    """More bytes may show a protocol that is not served, but has an answer."""
    return first[:1] in (b"\0", TLS_RECORD[:1]) or first[:1].isalpha()


def _what_to_do(names: Sequence[str]) -> str:
    return f"this port speaks {' and '.join(names)}; connect with a client of {'one of these' if names[1:] else 'that'}"


def _refuse_unknown_client(first: bytes, advice: str) -> tuple[str, str, bytes] | None:
    """What else a client may speak: its name, a token for it, and the refusal in its own words."""
    if first[:2] == TLS_RECORD:
        return "TLS", "tls", TLS_ALERT
    if len(first) >= ENOUGH and first[:3].isalpha() and first[:3].isupper():
        return "HTTP", "http", _http_refusal(advice)
    if len(first) >= ENOUGH and first[3:7] == bytes(4) and first[7] >> 2 in (1, 13):
        return "RSocket 1.0", "rsocket", _rsocket_refusal(advice)
    return None


def _http_refusal(advice: str) -> bytes:
    text = f"No HTTP here: {advice}.\n".encode()
    head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    return head.encode() + text


def _rsocket_refusal(advice: str) -> bytes:
    """An ERROR on stream 0 with the code REJECTED_SETUP: 24 bits of length, stream, type and flags, code, text."""
    body = bytes(4) + (0x0B << 10).to_bytes(2) + (3).to_bytes(4) + advice.encode()
    return len(body).to_bytes(3) + body
