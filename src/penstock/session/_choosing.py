"""One port for all protocols: what a client says first tells which it speaks. What is not served here gets an answer it understands.

Rules of this file:

* No more than `ENOUGH` bytes are looked at, and nothing is said before they are in.
* Who speaks nothing that is known is left to the first of the dialects that are served, to be refused in its manner.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from penstock.api import ProtocolError
from penstock.session._dialect import Dialect
from penstock.session._settings import DialectKind, DialectSettings
from penstock.wire import reactivesocket, rsio

if TYPE_CHECKING:
    from penstock.session._session import Session

ENOUGH: Final = 8
"""Bytes after which every protocol that is known here can be told."""

TLS_RECORD: Final = b"\x16\x03"
"""How a TLS client begins: a record of its handshake, of any version 3."""

TLS_ALERT: Final = bytes.fromhex("15 0303 0002 02 46")
"""A fatal alert, protocol_version: what a TLS client takes for a refusal, and reports as one."""


def chooser(offers: Sequence[tuple[DialectKind, DialectSettings]], *, framed: bool) -> "Callable[[Session, bytes], Dialect | None]":
    """Return what chooses among `offers` by a client's first bytes; what it raises says what the client spoke instead."""

    def choose(session: "Session", first: bytes) -> Dialect | None:
        verdicts = [kind.recognises(first, framed) for kind, _ in offers]
        if True in verdicts:
            kind, settings = offers[verdicts.index(True)]
            return kind(session, settings)
        if not framed and len(first) < ENOUGH and (None in verdicts or _may_be_known(first)):
            return None
        stranger = _stranger(first, _what_to_do([kind.name for kind, _ in offers]), framed=framed)
        if stranger is not None:
            what, token, session.last_words = stranger
            raise ProtocolError(f"the client speaks {what}, which is not served here", reason=f"protocol:{token}")
        kind, settings = offers[0]
        return kind(session, settings)

    return choose


def _may_be_known(first: bytes) -> bool:
    """More bytes may show a protocol that is not served, but has an answer."""
    return first[:1] in (b"\0", TLS_RECORD[:1]) or first[:1].isalpha()


def _what_to_do(names: Sequence[str]) -> str:
    return f"this port speaks {' and '.join(names)}; connect with a client of {'one of these' if names[1:] else 'that'}"


def _stranger(first: bytes, advice: str, *, framed: bool) -> tuple[str, str, bytes] | None:
    """What else a client may speak: its name, a token for it, and the refusal in its own words."""
    if first[:1] == bytes([rsio.CLIENT_HELLO]):
        return "RS.io", "not-served", rsio.encode(rsio.Goodbye(reason="protocol:not-served"))
    if not framed and reactivesocket.opens(first):
        return "ReactiveSocket", "not-served", reactivesocket.encode(reactivesocket.Error(stream_id=0, data=b"protocol:not-served"))
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
