"""A connection before both hellos are exchanged: what the peer may send and how long it may take,
and which protocol its first bytes choose.

Rules of this file:

* One port serves all protocols: a client's first bytes tell which one it speaks. At most
  `MAX_FIRST_BYTES` are looked at, or the first line of a text, and nothing is sent before they have
  come. A client of no known protocol is left to the first of the served dialects, which refuses it.
* A client of a protocol that penstock does not have is refused in its own protocol, if that has an
  answer that every client of it understands: HTTP, HTTP/2, TLS, RSocket 1.0.
* A client of another text protocol (SSH, SMTP, Redis) gets no byte:
  it would read any answer as its own protocol.
* HTTP is told from other text protocols by its request line, and not by its first letters: ``SSH-``
  and ``EHLO`` once got an HTTP response.
"""

import re
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, TypeAlias

import attrs

from penstock.api import Limits, ProtocolError
from penstock.session._dialect import Dialect, DialectFactory, DialectHost, DialectSettings
from penstock.session._reasons import NOT_SERVED

ChooseDialect: TypeAlias = Callable[[DialectHost, bytes], Dialect | None]
"""Called with the session and all bytes received so far, until it returns a dialect. Raises
ProtocolError for a client of no known protocol."""


class HandshakeGuard:
    """Watches one session until it is open."""

    __slots__ = ("_choose", "_deadline", "_first_bytes", "_limits", "_received")

    def __init__(self, limits: Limits, choose: ChooseDialect | None) -> None:
        self._limits = limits
        # None from the beginning for a client, and for a server once the choice is made.
        self._choose = choose
        self._first_bytes = b""
        self._received = 0
        self._deadline = 0.0

    @property
    def awaits_choice(self) -> bool:
        """The peer's first bytes still have to choose the dialect."""
        return self._choose is not None

    def start(self, now: float) -> None:
        """Start the time that the handshake may take."""
        # The session starts the time, and not the constructor:
        # a server counts from the accept, before TLS.
        self._deadline = now + self._limits.handshake_timeout

    def count(self, data: bytes) -> None:
        """Count received bytes."""
        self._received += len(data)

    def choose(self, session: DialectHost, data: bytes) -> tuple[Dialect, bytes] | None:
        """Return the dialect that the first bytes choose, with all of these bytes,
        or None while there are too few of them.
        """
        # All bytes again on each call: a protocol is recognised by its beginning,
        # and the chunks may be single bytes.
        self._first_bytes += data
        dialect = None if self._choose is None else self._choose(session, self._first_bytes)
        if dialect is None:
            return None
        self._choose = None
        first_bytes, self._first_bytes = self._first_bytes, b""
        return dialect, first_bytes

    def is_too_long(self, preauth_bytes: int) -> bool:
        """Return whether more than `preauth_bytes` have come."""
        # Counted in received bytes, not in decoded ones: a hello that never ends is never decoded.
        return self._received > preauth_bytes

    def tick(self, now: float) -> tuple[float, bool]:
        """Return the deadline of the handshake, and whether it has passed."""
        return self._deadline, now >= self._deadline


# --- the choice of a protocol

MAX_FIRST_BYTES: Final = 8
"""With this many bytes every protocol that is known here can be told: RSocket 1.0 needs the
most, the eighth byte has its frame type.
"""


def protocol_detector(
    offers: Sequence[tuple[DialectFactory, DialectSettings]],
    *,
    framed: bool,
    unserved: Sequence[DialectFactory] = (),
) -> ChooseDialect:
    """Return a function that chooses among `offers` by a client's first bytes.

    `unserved` are the dialects that this program knows and does not offer here: a client that
    speaks one of them is refused in its own protocol. The function raises ProtocolError with the
    name of the client's protocol.
    """

    def choose(session: DialectHost, first: bytes) -> Dialect | None:
        # True wins over None: one dialect may need more bytes than another one
        # that is certain already.
        verdicts = [factory.recognises(first, framed) for factory, _ in offers]
        if True in verdicts:
            factory, settings = offers[verdicts.index(True)]
            # A look at fewer bytes may have set it.
            session.foreign_refusal = None
            return factory(session, settings)
        # On a framed transport the first message is whole,
        # so waiting for more bytes would only delay the refusal.
        if not framed and len(first) < MAX_FIRST_BYTES and None in verdicts:
            return None
        _refuse_unserved(session, first, unserved, framed=framed)
        stranger = examine_foreign_client(
            first, _advice_for([factory.name for factory, _ in offers])
        )
        if isinstance(stranger, BeforeHello) and not framed:
            # If the rest never comes, a client of a text protocol gets no goodbye of a protocol
            # that it does not speak.
            session.foreign_refusal = b"" if stranger is BeforeHello.TEXT else None
            return None
        if isinstance(stranger, ForeignClient):
            session.foreign_refusal = stranger.answer
            raise ProtocolError(
                f"the client speaks {stranger.speaks}, which is not served here",
                reason=f"protocol:{stranger.token}",
            )
        # An unknown client is refused by a dialect, because only that knows how to say goodbye.
        session.foreign_refusal = None
        factory, settings = offers[0]
        return factory(session, settings)

    return choose


def refusal_for(
    first: bytes,
    reason: str,
    offers: Sequence[DialectFactory],
    *,
    framed: bool,
    unserved: Sequence[DialectFactory] = (),
) -> bytes | None:
    """Return the last bytes for a client that begins with `first` and is not let in for `reason`;
    None if that takes more bytes.

    A client of one of `offers` gets the reason in its protocol. A client of another protocol gets
    the answer of a server with room. An unknown client gets no byte.
    """
    verdicts = [factory.recognises(first, framed) for factory in offers]
    if True in verdicts:
        return _last_words(offers[verdicts.index(True)], reason, framed=framed)
    if not framed and len(first) < MAX_FIRST_BYTES and None in verdicts:
        return None
    for factory in unserved:
        if factory.recognises(first, framed):
            return _last_words(factory, NOT_SERVED, framed=framed)
    stranger = examine_foreign_client(first, _advice_for([factory.name for factory in offers]))
    if isinstance(stranger, BeforeHello) and not framed:
        return None
    return stranger.answer if isinstance(stranger, ForeignClient) else b""


def _last_words(factory: DialectFactory, reason: str, *, framed: bool) -> bytes:
    # The dialect of a plugin may lack the method: then the client gets no byte.
    return factory.refusal(reason, framed=framed) if hasattr(factory, "refusal") else b""


def _refuse_unserved(
    session: DialectHost, first: bytes, unserved: Sequence[DialectFactory], *, framed: bool
) -> None:
    """Raise ProtocolError if the client speaks one of `unserved`, and leave
    that protocol's own refusal with the session.
    """
    for factory in unserved:
        if factory.recognises(first, framed):
            # In the client's protocol: a client that left out its SETUP once got a goodbye of
            # RS.io, which it cannot read.
            session.foreign_refusal = _last_words(factory, NOT_SERVED, framed=framed)
            raise ProtocolError(
                f"the client speaks {factory.name}, which is not served here", reason=NOT_SERVED
            )


def _advice_for(names: Sequence[str]) -> str:
    return (
        f"this port speaks {' and '.join(names)}; connect with a client of "
        f"{'one of these' if names[1:] else 'that'}"
    )


# --- clients of other protocols

MAX_FIRST_LINE: Final = 1024
"""Bytes after which a first line without an end is judged by its beginning.
`Limits.preauth_bytes` ends a longer one otherwise.
"""

TLS_RECORD: Final = b"\x16\x03"
"""The beginning of a TLS client: a handshake record, of any version 3."""

TLS_ALERT: Final = bytes.fromhex("15 0303 0002 02 46")
"""A fatal alert, protocol_version: a TLS client reports it as a refusal."""

RSOCKET_HEADER: Final = 8
"""Bytes that tell RSocket 1.0: 24 bits of length, the stream's id,
and the upper byte of type and flags.
"""

# The method is any token of RFC 9110, 32 characters at most; the target is not examined.
# A version ends the line.
_REQUEST_LINE: Final = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}) [^\s]+ HTTP/([0-9])")
# HTTP/0.9 has no version and this method only.
_OLD_REQUEST: Final = re.compile(rb"GET /[^\s]*\r?\Z")
_BEGINS_A_REQUEST: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32} (?:/|\*|https?:)")
_MAY_BEGIN_A_METHOD: Final = re.compile(
    rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]{0,32}\Z|[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32} "
)
_TEXT: Final = re.compile(rb"[\t\r\n -~]*\Z")
_FOUR_LETTERS: Final = re.compile(rb"[A-Za-z]{4}")


@attrs.frozen
class ForeignClient:
    """A client of another protocol."""

    speaks: str
    """The protocol, for people."""
    token: str
    """The token of the reason, behind ``protocol:``."""
    answer: bytes
    """All bytes that it gets, perhaps none."""


class BeforeHello(Enum):
    """More bytes are needed to tell."""

    TEXT = "it is text so far"
    BINARY = "it may be TLS or RSocket 1.0"


def examine_foreign_client(first: bytes, advice: str) -> ForeignClient | BeforeHello | None:
    """Return the protocol of a client that begins with `first`, and an answer with `advice`;
    None for a protocol that is not known here.
    """
    if first[:1] in (b"\0", TLS_RECORD[:1]) and len(first) < RSOCKET_HEADER:
        return BeforeHello.BINARY
    if first[:2] == TLS_RECORD:
        return ForeignClient("TLS", "tls", TLS_ALERT)
    # RSocket 1.0: 24 bits of length, stream 0, and the frame type SETUP (1)
    # or RESUME (13) in the upper six bits.
    kind = first[7] >> 2 if len(first) >= RSOCKET_HEADER and first[3:7] == bytes(4) else 0
    if kind in _RSOCKET_REFUSALS:
        return ForeignClient(
            "RSocket 1.0", "rsocket", _rsocket_refusal(_RSOCKET_REFUSALS[kind], advice)
        )
    return _examine_text(first, advice)


def _examine_text(first: bytes, advice: str) -> ForeignClient | BeforeHello | None:
    # A server of HTTP ignores empty lines before a request (RFC 9112, 2.2).
    line, end, _ = first.lstrip(b"\r\n").partition(b"\n")
    if not _TEXT.match(line):
        # The names of some binary protocols: AMQP, for example.
        return ForeignClient("another protocol", "text", b"") if _FOUR_LETTERS.match(line) else None
    request = _REQUEST_LINE.match(line)
    if request is not None:
        return _http(request[1], request[2], advice)
    if not end and len(line) < MAX_FIRST_LINE and _MAY_BEGIN_A_METHOD.match(line):
        return BeforeHello.TEXT
    if (_OLD_REQUEST if end else _BEGINS_A_REQUEST).match(line):
        return _http(line.partition(b" ")[0], b"1", advice)
    return ForeignClient("a text protocol other than HTTP", "text", b"")


def _http(method: bytes, version: bytes, advice: str) -> ForeignClient:
    # PRI is the method of HTTP/2's preface (RFC 9113, 3.4), and of nothing else.
    if method == b"PRI" and version == b"2":
        return ForeignClient("HTTP/2", "http", _http2_refusal(advice))
    return ForeignClient("HTTP", "http", _http_refusal(advice, has_body=method != b"HEAD"))


def _http_refusal(advice: str, *, has_body: bool) -> bytes:
    text = f"No HTTP here: {advice}.\n".encode()
    head = (
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: "
        f"{len(text)}\r\nConnection: close\r\n\r\n"
    )
    # A client that sent HEAD would read a body as the beginning of another response.
    return head.encode() + (text if has_body else b"")


def _http2_refusal(advice: str) -> bytes:
    # RFC 9113, 3.4: the first frame of a server is SETTINGS, here empty. GOAWAY (7) has the last
    # stream 0, PROTOCOL_ERROR (1), and a text.
    body = bytes(4) + (1).to_bytes(4) + f"no HTTP here: {advice}".encode()
    return (
        bytes.fromhex("000000 04 00 00000000")
        + len(body).to_bytes(3)
        + bytes.fromhex("07 00 00000000")
        + body
    )


_RSOCKET_REFUSALS: Final = {1: 3, 13: 4}
"""By the type of RSocket's first frame, the code of its refusal: SETUP gets REJECTED_SETUP,
RESUME gets REJECTED_RESUME.
"""


def _rsocket_refusal(code: int, advice: str) -> bytes:
    # An ERROR frame (0x0B) on stream 0: 24 bits of length, stream, type and flags, code, text.
    body = bytes(4) + (0x0B << 10).to_bytes(2) + code.to_bytes(4) + advice.encode()
    return len(body).to_bytes(3) + body
