"""Before both hellos: bounds on bytes and time, the choice of a protocol, foreign clients."""

from typing import ClassVar

import pytest
from attrs import evolve as replace

from penstock.api import Limits, Role
from penstock.protocols import reactivesocket, rsio
from penstock.protocols.reactivesocket import ReactiveSocketDialect
from penstock.protocols.rsio import RsioDialect
from penstock.session import (
    ConnectionState,
    DialectSettings,
    Session,
    protocol_detector,
    refusal_for,
)
from penstock.session._handshake import (
    MAX_FIRST_BYTES,
    MAX_FIRST_LINE,
    TLS_ALERT,
    BeforeHello,
    ForeignClient,
    examine_foreign_client,
)
from tests.session._outside_extension import Outsider
from tests.session._pair import RawPeer, RecordingDelegate, limits_with

# --- bytes and time


HELLO = rsio.encode(rsio.ClientHello(version=0, extensions=tuple(range(1, 9))))


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_a_hello_that_is_too_long_is_refused_however_it_is_cut(step: int) -> None:
    """Received bytes are counted, not decoded ones."""
    most = len(HELLO) - 2
    raw = RawPeer(limits=limits_with(preauth_bytes=most))
    for at in range(0, most, step):
        raw.send(HELLO[at : min(at + step, most)])
    assert raw.session.state is ConnectionState.FRESH
    raw.send(HELLO[most : most + 1])
    assert raw.goodbye_reason() == "limit:hello"


def test_bytes_after_the_hello_are_not_counted() -> None:
    """The bound is on the hello only."""
    raw = RawPeer(limits=limits_with(preauth_bytes=20)).handshake()
    for _ in range(50):
        raw.send(rsio.Request(subscriber=9, demand=1))
    assert raw.session.state is ConnectionState.OPEN


@pytest.mark.parametrize("role", list(Role))
def test_a_hello_must_come_within_handshake_timeout(role: Role) -> None:
    """On either side; tick() returns the deadline."""
    raw = RawPeer(role, limits=limits_with(handshake_timeout=4.0))
    assert raw.session.tick(3.9) == 4.0
    raw.session.tick(4.0)
    assert raw.session.close_reason[0] == "limit:handshake"


def test_a_part_of_a_hello_leaves_nothing_to_do() -> None:
    """receive() returns False, as for any chunk whose messages were all acted on."""
    raw = RawPeer(limits=limits_with(preauth_bytes=len(HELLO)))
    assert not raw.session.receive(HELLO[:3], 0.0)
    assert not raw.session.receive(HELLO[3:], 0.0)
    assert raw.session.state is ConnectionState.OPEN


def test_messages_behind_the_hello_are_more_to_do() -> None:
    """receive() returns True while it is asked for fewer messages than have come, and
    so it is called again.
    """
    raw = RawPeer()
    assert raw.session.receive(
        HELLO + rsio.encode(rsio.Request(subscriber=9, demand=1)) * 2, 0.0, most=1
    )
    assert raw.session.receive(b"", 0.0, most=1)
    assert not raw.session.receive(b"", 0.0)


def test_messages_of_a_peer_that_is_held_are_more_to_do() -> None:
    """They are kept while an extension examines the peer,
    and the rest of a chunk must not wait for the next one.
    """
    raw = RawPeer(extensions=[Outsider(holds=True)])
    hello = rsio.encode(rsio.ClientHello(extensions=(200,)))
    assert raw.session.receive(
        hello + rsio.encode(rsio.Request(subscriber=9, demand=1)) * 2, 0.0, most=1
    )
    assert raw.session.state is ConnectionState.GREETING
    assert raw.session.receive(b"", 0.0, most=1)
    assert not raw.session.receive(b"", 0.0)


# --- the choice of a protocol


RSIO, REACTIVESOCKET = (RsioDialect, DialectSettings()), (ReactiveSocketDialect, DialectSettings())
BOTH = [RSIO, REACTIVESOCKET]


def server(offers: list[tuple[type, DialectSettings]] = BOTH, *, framed: bool = False) -> Session:  # type: ignore[assignment]  # lists of tuples of classes
    offers = [(kind, replace(settings, framed=framed)) for kind, settings in offers]
    kind, settings = offers[0]
    session = Session(
        RecordingDelegate(Role.SERVER),
        lambda session: kind(session, settings),
        role=Role.SERVER,
        limits=Limits(),
        random=lambda: 0.5,
        choose=protocol_detector(
            offers,
            framed=framed,
            unserved=[
                each
                for each in (RsioDialect, ReactiveSocketDialect)
                if each not in {kind for kind, _ in offers}
            ],
        ),
    )
    session.start(0.0)
    return session


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    ("hello", "name"),
    [
        (rsio.encode(rsio.ClientHello()), "rsio"),
        (reactivesocket.encode(reactivesocket.Setup()), "reactivesocket"),
    ],
    ids=["rsio", "reactivesocket"],
)
def test_the_first_bytes_choose_the_dialect_however_they_are_cut(
    hello: bytes, name: str, size: int
) -> None:
    """The chosen dialect gets all bytes from the first one on."""
    session = server()
    for start in range(0, len(hello), size):
        session.receive(hello[start : start + size], 0.0)
    assert session.channel.dialect.name == name
    assert session.state in (ConnectionState.OPEN, ConnectionState.EXAMINING)


def test_a_framed_transport_carries_frames_without_their_length() -> None:
    """ReactiveSocket is recognised without the length in front."""
    session = server(framed=True)
    session.receive(reactivesocket.encode(reactivesocket.Setup(), framed=True), 0.0)
    assert session.channel.dialect.name == "reactivesocket"


@pytest.mark.parametrize(
    "offers", [[RSIO], [REACTIVESOCKET], BOTH], ids=["rsio", "reactivesocket", "both"]
)
@pytest.mark.parametrize(
    "first",
    [b"\xff" * 8, b"\x00" * 8, b"get / ht", b"\x00\x00\x00\x10\x00\x00\x00\x02"],
    ids=bytes.hex,
)
def test_the_first_served_dialect_refuses_an_unknown_client(
    offers: list[tuple[type, DialectSettings]], first: bytes
) -> None:
    """The client gets a goodbye of that dialect."""
    session = server(offers)
    session.receive(first.ljust(16, b"\0"), 0.0)
    assert session.state is ConnectionState.CLOSING
    assert session.channel.dialect.name == offers[0][0].name


OTHERS = [
    reactivesocket.FrameType(kind)
    for kind in reactivesocket.FrameType
    if kind is not reactivesocket.FrameType.SETUP
]


def opening(kind: int, *, version: int = 0, framed: bool = False) -> bytes:
    """Return a frame on stream 1 with the fields that every type must have, written by hand."""
    body = bytes((version, 0)) + kind.to_bytes(2) + (1).to_bytes(8) + (1).to_bytes(8)
    return body if framed else (len(body) + 4).to_bytes(4) + body


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("kind", OTHERS, ids=lambda kind: kind.name)
def test_a_first_frame_other_than_setup_is_refused_by_reactivesocket(
    kind: reactivesocket.FrameType, size: int, framed: bool
) -> None:
    """The client gets an ERROR frame. It would not understand a goodbye of RS.io."""
    session = server(framed=framed)
    data = opening(kind, framed=framed)
    step = len(data) if framed else size  # a framed transport does not cut messages
    for start in range(0, len(data), step):
        session.receive(data[start : start + step], 0.0)
    assert session.channel.dialect.name == "reactivesocket"
    assert session.state is ConnectionState.CLOSING
    refusal = reactivesocket.Error(stream_id=0, data=b"protocol:setup")
    assert [bytes(each) for each in session.split(session.take())] == [
        reactivesocket.encode(refusal, framed=True)
    ]


@pytest.mark.parametrize("kind", OTHERS, ids=lambda kind: kind.name)
def test_a_first_frame_is_refused_by_an_error_where_reactivesocket_is_not_served(
    kind: reactivesocket.FrameType,
) -> None:
    """The ERROR frame has the reason protocol:not-served, as for a SETUP."""
    session = server([RSIO])
    session.receive(opening(kind), 0.0)
    assert bytes(session.take()) == reactivesocket.encode(
        reactivesocket.Error(stream_id=0, data=b"protocol:not-served")
    )


@pytest.mark.parametrize(
    "first",
    [opening(0x30), opening(0x13, version=1), b"\1" + opening(0x13)[1:]],
    ids=["type", "version", "length"],
)
def test_a_malformed_frame_is_not_recognised_as_reactivesocket(first: bytes) -> None:
    """The first served dialect refuses it, as any unknown client."""
    session = server()
    session.receive(first, 0.0)
    assert session.channel.dialect.name == "rsio"


FOREIGN_CLIENTS = {
    "tls": (bytes.fromhex("16 0301 0200 0100 01fc 03"), bytes.fromhex("15 0303 0002 02 46")),
    "http": (b"GET / HTTP/1.1\r\n", b"HTTP/1.1 400 Bad Request\r\n"),
    "rsocket": (
        bytes.fromhex("00001f 00000000 0400 0001 0000 0000"),
        bytes.fromhex("000059 00000000 2c00 00000003") + b"this port speaks",
    ),
}


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize(("first", "answer"), FOREIGN_CLIENTS.values(), ids=FOREIGN_CLIENTS)
def test_a_client_of_another_protocol_is_refused_in_that_protocol(
    first: bytes, answer: bytes, size: int
) -> None:
    """However its first bytes are cut, the client gets one whole message of the protocol
    that it speaks.
    """
    session = server()
    for start in range(0, len(first), size):
        session.receive(first[start : start + size], 0.0)
    sent = bytes(session.take())
    assert sent.startswith(answer)
    assert session.state is ConnectionState.CLOSING_UNANSWERED
    if answer[:1] == b"\0":
        assert len(sent) == 3 + int.from_bytes(sent[:3])


@pytest.mark.parametrize(
    "first",
    [b"SSH-2.0-OpenSSH_9.6\r\n", b"220 mail.example ESMTP\r\n", b"EHLO mail.example\r\n"],
    ids=["SSH", "SMTP", "EHLO"],
)
def test_a_client_of_a_text_protocol_gets_no_byte(first: bytes) -> None:
    """It would read any answer as a message of its protocol. The session is over at the next
    tick: such a client never says goodbye.
    """
    session = server()
    for byte in first:
        session.receive(bytes([byte]), 0.0)
    assert not session.take()
    assert session.close_reason[0] == "protocol:text"
    assert session.tick(0.0) is None
    assert session.state is ConnectionState.LOST


def test_a_text_that_goes_no_further_gets_no_goodbye_either() -> None:
    """After `handshake_timeout` the connection ends without a byte of RS.io."""
    session = server()
    session.receive(b"GET", 0.0)
    session.tick(Limits().handshake_timeout + 1)
    assert session.close_reason[0] == "limit:handshake"
    assert not session.take()


def test_a_dialect_that_is_chosen_late_says_its_own_goodbyes() -> None:
    """Its first bytes looked like a text: the next ones show that it sends something else."""
    session = server([RSIO])
    session.receive(b"abc", 0.0)
    session.receive(b"\0" * 20, 0.0)
    assert bytes(session.take()) == rsio.encode(rsio.Goodbye(reason="protocol:hello"))


def test_nothing_is_sent_before_the_protocol_is_known() -> None:
    """Four bytes of a SETUP may also begin an RSocket 1.0 frame.
    One byte of TLS decides nothing.
    """
    for first in (b"\x00\x00\x00\x10", b"GET", b"\x16"):
        session = server()
        session.receive(first, 0.0)
        assert not session.take()
        assert session.state is ConnectionState.FRESH


def test_too_few_bytes_are_refused_after_handshake_timeout() -> None:
    """The first served dialect sends the refusal."""
    session = server()
    session.receive(b"\x00\x00", 0.0)
    session.tick(Limits().handshake_timeout + 1)
    assert rsio.encode(rsio.Goodbye(reason="limit:handshake")) in bytes(session.take())


def test_a_refusal_in_another_protocol_goes_out_as_one_message() -> None:
    """split() does not look for the dialect's frames in it."""
    session = server([REACTIVESOCKET], framed=True)
    session.receive(rsio.encode(rsio.ClientHello()), 0.0)
    assert [bytes(each) for each in session.split(session.take())] == [
        rsio.encode(rsio.Goodbye(reason="protocol:not-served"))
    ]


class NotesStart(RsioDialect):
    """A dialect that notes its start."""

    starts: ClassVar[list[str]] = []

    def start(self, now: float) -> None:
        self.starts.append("started")
        super().start(now)


def test_only_the_chosen_dialect_is_started() -> None:
    """A dialect that start() makes send must not send to a client of another protocol."""
    NotesStart.starts.clear()
    session = server([(NotesStart, DialectSettings()), REACTIVESOCKET])
    session.receive(reactivesocket.encode(reactivesocket.Setup()), 0.0)
    assert NotesStart.starts == []
    session = server([REACTIVESOCKET, (NotesStart, DialectSettings())])
    session.receive(rsio.encode(rsio.ClientHello()), 0.0)
    assert NotesStart.starts == ["started"]


@pytest.mark.parametrize(
    ("offers", "text"),
    [(BOTH, b"speaks rsio and reactivesocket; connect"), ([RSIO], b"speaks rsio; connect")],
)
def test_a_refused_http_client_reads_which_protocols_are_served(
    offers: list[tuple[type, DialectSettings]], text: bytes
) -> None:
    """The answer names the served dialects and no other."""
    session = server(offers)
    session.receive(b"GET / HTTP/1.1\r\n\r\n", 0.0)
    assert text in bytes(session.take())


def last_words(
    first: bytes,
    *,
    framed: bool = False,
    offers: tuple[type, ...] = (RsioDialect, ReactiveSocketDialect),
) -> bytes | None:
    unserved = [each for each in (RsioDialect, ReactiveSocketDialect) if each not in offers]
    return refusal_for(first, "places:address", offers, framed=framed, unserved=unserved)


HTTP = b"GET / HTTP/1.1\r\n"


@pytest.mark.parametrize(
    ("first", "answer"),
    [
        (rsio.encode(rsio.ClientHello()), rsio.encode(rsio.Goodbye(reason="places:address"))),
        (
            reactivesocket.encode(reactivesocket.Setup()),
            reactivesocket.encode(reactivesocket.Error(stream_id=0, data=b"places:address")),
        ),
        (b"SSH-2.0-OpenSSH_9.6\r\n", b""),
        (bytes([0x7F]) * 8, b""),
    ],
    ids=["rsio", "reactivesocket", "ssh", "unknown"],
)
def test_a_client_without_a_place_is_told_in_its_own_protocol(first: bytes, answer: bytes) -> None:
    """As soon as its bytes tell which one that is; an unknown one gets no byte."""
    answers = [last_words(first[:size]) for size in range(len(first) + 1)]
    assert answers[0] is None
    assert answers[-1] == answer
    assert set(answers) == {None, answer}


def test_a_stranger_without_a_place_gets_the_answer_of_a_server_with_room() -> None:
    """To connect again would not help it."""
    assert (last_words(HTTP) or b"").startswith(b"HTTP/1.1 400 Bad Request\r\n")
    setup = reactivesocket.encode(reactivesocket.Setup())
    assert last_words(setup, offers=(RsioDialect,)) == ReactiveSocketDialect.refusal(
        "protocol:not-served"
    )


def test_a_client_without_a_place_gets_a_message_of_the_transport() -> None:
    """Without the length of a frame, which a transport of messages has already."""
    setup = reactivesocket.encode(reactivesocket.Setup(), framed=True)
    error = reactivesocket.Error(stream_id=0, data=b"places:address")
    assert last_words(setup, framed=True) == reactivesocket.encode(error, framed=True)
    assert last_words(setup, framed=True, offers=(RsioDialect,)) == ReactiveSocketDialect.refusal(
        "protocol:not-served", framed=True
    )
    assert last_words(b"\x01", framed=True) is not None
    assert last_words(b"", framed=True) is not None


class NeverDecides(RsioDialect):
    """A dialect, as of a plugin, that asks for more bytes without end."""

    @staticmethod
    def recognises(first: bytes, framed: bool, /) -> bool | None:
        return None


def test_no_client_is_waited_for_beyond_max_first_bytes() -> None:
    """A dialect that asks for more bytes than that does not recognise its client. The first
    served one refuses the client.
    """
    first = bytes([0x7F]) * MAX_FIRST_BYTES
    session = server([REACTIVESOCKET, (NeverDecides, DialectSettings())])
    session.receive(first[:-1], 0.0)
    assert session.state is ConnectionState.FRESH
    session.receive(first[-1:], 0.0)
    assert session.state is ConnectionState.CLOSING
    assert session.channel.dialect.name == "reactivesocket"
    offers = (ReactiveSocketDialect, NeverDecides)
    assert last_words(first[:-1], offers=offers) is None
    assert last_words(first, offers=offers) == b""


# --- clients of other protocols


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
