"""Clients of other protocols are recognised, and get an answer in their protocol, or none."""

import pytest

from penstock.session._foreign_clients import (
    MAX_FIRST_LINE,
    TLS_ALERT,
    BeforeHello,
    ForeignClient,
    examine_foreign_client,
)

ADVICE = "this port speaks rsio"


def examine(first: bytes) -> ForeignClient | BeforeHello | None:
    return examine_foreign_client(first, ADVICE)


@pytest.mark.parametrize(
    "method", ["GET", "HEAD", "BREW", "M-SEARCH", "VERSION-CONTROL", "get", "A", "X" * 32]
)
@pytest.mark.parametrize("target", ["/", "*", "example.org:443", "http://example.org/a?b=c"])
def test_any_method_of_http_gets_an_answer_of_http(method: str, target: str) -> None:
    """At the end of the request line or before.
    At each byte before that it may still become another protocol.
    """
    line = f"{method} {target} HTTP/1.1\r\n".encode()
    found = examine(line)
    assert isinstance(found, ForeignClient)
    assert (found.speaks, found.token) == ("HTTP", "http")
    assert found.answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert examine(b"\r\n" + line) == found
    decided = line.index(b"HTTP/") + len(b"HTTP/1")
    for size in range(1, decided):
        assert examine(line[:size]) is BeforeHello.TEXT, line[:size]


def test_an_answer_to_head_has_no_body() -> None:
    """The client would read it as the beginning of another response."""
    answers = [
        found.answer
        for method in (b"HEAD", b"GET")
        if isinstance(found := examine(method + b" / HTTP/1.1\r\n"), ForeignClient)
    ]
    assert [answer.partition(b"\r\n\r\n")[2] for answer in answers] == [
        b"",
        b"No HTTP here: this port speaks rsio.\n",
    ]


def test_the_preface_of_http_2_gets_settings_and_a_goaway() -> None:
    """Two frames: 9 bytes of header each, and the lengths fit."""
    found = examine(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert isinstance(found, ForeignClient)
    assert (found.speaks, found.token) == ("HTTP/2", "http")
    settings, goaway = found.answer[:9], found.answer[9:]
    assert settings == bytes.fromhex("000000040000000000")
    assert int.from_bytes(goaway[:3]) == len(goaway) - 9
    assert goaway[3:9] == bytes.fromhex("070000000000")
    assert goaway[9:] == bytes.fromhex("0000000000000001") + b"no HTTP here: this port speaks rsio"


@pytest.mark.parametrize(
    "first",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"220 mail.example ESMTP\r\n",
        b"EHLO mail.example\r\n",
        b"INVITE sip:anna@example.org SIP/2.0\r\n",
        b"OPTIONS rtsp://example.org RTSP/1.0\r\n",
        b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
        b"GET key\r\n",
        b"{}\n",
        b"AMQP\0\0\x09\x01",
        b"x" * 33,
        b"A B " * MAX_FIRST_LINE,
    ],
    ids=lambda first: "".join(chr(byte) if chr(byte).isalnum() else "." for byte in first[:12]),
)
def test_another_text_protocol_gets_no_byte(first: bytes) -> None:
    """Also one that begins as HTTP does."""
    found = examine(first)
    assert isinstance(found, ForeignClient)
    assert (found.token, found.answer) == ("text", b"")


def test_http_without_a_version_and_with_an_endless_target_is_http() -> None:
    """HTTP/0.9 has no version; an endless target is judged before `preauth_bytes` are used up."""
    for first in (
        b"GET /\r\n",
        b"GET /" + b"x" * MAX_FIRST_LINE,
        b"PATCH /" + b"x" * MAX_FIRST_LINE,
    ):
        found = examine(first)
        assert isinstance(found, ForeignClient)
        assert found.token == "http"
    assert examine(b"GET /" + b"x" * 1000) is BeforeHello.TEXT


def test_a_tls_client_gets_an_alert() -> None:
    """At its eighth byte."""
    hello = bytes.fromhex("16 0301 0200 0100 01fc 03")
    assert examine(hello[:7]) is BeforeHello.BINARY
    assert examine(hello[:8]) == ForeignClient("TLS", "tls", TLS_ALERT)


@pytest.mark.parametrize(("kind", "code"), [(1, 3), (13, 4)])
def test_rsocket_gets_an_error_with_the_code_for_its_frame(kind: int, code: int) -> None:
    """REJECTED_SETUP for a SETUP, REJECTED_RESUME for a RESUME."""
    first = bytes.fromhex("000020 00000000") + bytes([kind << 2])
    found = examine(first)
    assert isinstance(found, ForeignClient)
    assert (
        found.answer
        == len(found.answer[3:]).to_bytes(3)
        + bytes(4)
        + b"\x2c\x00"
        + code.to_bytes(4)
        + ADVICE.encode()
    )
    assert examine(first[:7]) is BeforeHello.BINARY


@pytest.mark.parametrize(
    "first",
    [b"\xff" * 8, b"\0" * 8, b"\x10\x05ticks", b"\x21\x00\x05early", b"abc\0", b"\x17" * 8],
    ids=bytes.hex,
)
def test_another_binary_protocol_is_unknown(first: bytes) -> None:
    """The served dialect refuses it: it may be a faulty client of that protocol."""
    assert examine(first) is None
