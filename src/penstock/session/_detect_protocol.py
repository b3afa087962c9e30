"""One port for all protocols: a client's first bytes tell which one it speaks. A client of another protocol is refused in its own protocol.

At most `MAX_FIRST_BYTES` are looked at, and nothing is sent before they have come. A client of no known protocol is left to the first of
the served dialects, which refuses it.
"""

from collections.abc import Sequence
from typing import Final

from penstock.api import ProtocolError
from penstock.session._dialect import Dialect
from penstock.session._dialect_host import DialectHost
from penstock.session._dialect_settings import DialectFactory, DialectSettings
from penstock.session._handshake_guard import ChooseDialect
from penstock.session._reasons import NOT_SERVED

MAX_FIRST_BYTES: Final = 8
"""With this many bytes every protocol that is known here can be told: RSocket 1.0 needs the most, the eighth byte has its frame type."""

TLS_RECORD: Final = b"\x16\x03"
"""The beginning of a TLS client: a handshake record, of any version 3."""

TLS_ALERT: Final = bytes.fromhex("15 0303 0002 02 46")
"""A fatal alert, protocol_version: a TLS client reports it as a refusal."""


def protocol_detector(
    offers: Sequence[tuple[DialectFactory, DialectSettings]], *, framed: bool, unserved: Sequence[DialectFactory] = ()
) -> ChooseDialect[DialectHost]:
    """Return a function that chooses among `offers` by a client's first bytes.

    `unserved` are the dialects that this program knows and does not offer here: a client that speaks one of them is refused in its own
    protocol. The function raises ProtocolError with the name of the client's protocol.
    """

    def choose(session: DialectHost, first: bytes) -> Dialect | None:
        # True wins over None: one dialect may need more bytes than another one that is certain already.
        verdicts = [factory.recognises(first, framed) for factory, _ in offers]
        if True in verdicts:
            factory, settings = offers[verdicts.index(True)]
            return factory(session, settings)
        # On a framed transport the first message is whole, so waiting for more bytes would only delay the refusal.
        if not framed and len(first) < MAX_FIRST_BYTES and (None in verdicts or _may_be_known(first)):
            return None
        _refuse_unserved(session, first, unserved, framed=framed)
        refusal = _refuse_unknown_client(first, _advice_for([factory.name for factory, _ in offers]))
        if refusal is not None:
            what, token, session.foreign_refusal = refusal
            raise ProtocolError(f"the client speaks {what}, which is not served here", reason=f"protocol:{token}")
        # An unknown client is refused by a dialect, because only that knows how to say goodbye.
        factory, settings = offers[0]
        return factory(session, settings)

    return choose


def _refuse_unserved(session: DialectHost, first: bytes, unserved: Sequence[DialectFactory], *, framed: bool) -> None:
    """Raise ProtocolError if the client speaks one of `unserved`, and leave that protocol's own refusal with the session."""
    for factory in unserved:
        if factory.recognises(first, framed):
            # In the client's protocol: a client that left out its SETUP once got a goodbye of RS.io, which it cannot read.
            session.foreign_refusal = factory.refusal(NOT_SERVED)
            raise ProtocolError(f"the client speaks {factory.name}, which is not served here", reason=NOT_SERVED)


def _may_be_known(first: bytes) -> bool:
    """Return whether more bytes may show a protocol that is not served, but has a refusal."""
    # RSocket 1.0 begins with a length, whose first byte is 0 below 64 KiB; TLS with 0x16; HTTP with a letter.
    return first[:1] in (b"\0", TLS_RECORD[:1]) or first[:1].isalpha()


def _advice_for(names: Sequence[str]) -> str:
    return f"this port speaks {' and '.join(names)}; connect with a client of {'one of these' if names[1:] else 'that'}"


def _refuse_unknown_client(first: bytes, advice: str) -> tuple[str, str, bytes] | None:
    """Return the name of the client's protocol, a token for it, and a refusal in it; None for an unknown protocol."""
    # Each is answered in its own protocol, so that the other side's log says what is wrong.
    if first[:2] == TLS_RECORD:
        return "TLS", "tls", TLS_ALERT
    if len(first) >= MAX_FIRST_BYTES and first[:3].isalpha() and first[:3].isupper():
        return "HTTP", "http", _http_refusal(advice)
    # RSocket 1.0: 24 bits of length, stream 0, and the frame type SETUP (1) or RESUME (13) in the upper six bits.
    if len(first) >= MAX_FIRST_BYTES and first[3:7] == bytes(4) and first[7] >> 2 in (1, 13):
        return "RSocket 1.0", "rsocket", _rsocket_refusal(advice)
    return None


def _http_refusal(advice: str) -> bytes:
    text = f"No HTTP here: {advice}.\n".encode()
    head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    return head.encode() + text


def _rsocket_refusal(advice: str) -> bytes:
    # An ERROR frame (0x0B) on stream 0 with the code REJECTED_SETUP (3): 24 bits of length, stream, type and flags, code, text.
    body = bytes(4) + (0x0B << 10).to_bytes(2) + (3).to_bytes(4) + advice.encode()
    return len(body).to_bytes(3) + body
