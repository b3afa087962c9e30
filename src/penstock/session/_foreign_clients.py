"""Recognises clients of protocols that penstock does not have,
and has the answer in their protocol.

Rules of this file:

* A protocol with an answer that every client of it understands gets that answer:
  HTTP, HTTP/2, TLS, RSocket 1.0.
* A client of another text protocol (SSH, SMTP, Redis) gets no byte:
  it would read any answer as its own protocol.
* HTTP is told from other text protocols by its request line, and not by its first letters: ``SSH-``
  and ``EHLO`` once got an HTTP response.
"""

import re
from enum import Enum
from typing import Final

import attrs

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
