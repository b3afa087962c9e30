"""One port for all protocols: the first bytes tell."""

from typing import ClassVar

import pytest
from attrs import evolve as replace

from penstock.api import Limits, Role
from penstock.protocols import reactivesocket, rsio
from penstock.protocols.reactivesocket import ReactiveSocketDialect
from penstock.protocols.rsio import RsioDialect
from penstock.session import ConnectionState, DialectSettings, Session, protocol_detector
from tests.session._pair import RecordingDelegate

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
            unserved=[each for each in (RsioDialect, ReactiveSocketDialect) if each not in {kind for kind, _ in offers}],
        ),
    )
    session.start(0.0)
    return session


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    ("hello", "name"),
    [(rsio.encode(rsio.ClientHello()), "rsio"), (reactivesocket.encode(reactivesocket.Setup()), "reactivesocket")],
    ids=["rsio", "reactivesocket"],
)
def test_the_first_bytes_choose_the_dialect_however_they_are_cut(hello: bytes, name: str, size: int) -> None:
    """Nothing of them is lost for the one that was chosen."""
    session = server()
    for start in range(0, len(hello), size):
        session.receive(hello[start : start + size], 0.0)
    assert session.dialect.name == name
    assert session.state in (ConnectionState.OPEN, ConnectionState.EXAMINING)


def test_a_framed_transport_carries_frames_without_their_length() -> None:
    """They are told by what stands where."""
    session = server(framed=True)
    session.receive(reactivesocket.encode(reactivesocket.Setup(), framed=True), 0.0)
    assert session.dialect.name == "reactivesocket"


@pytest.mark.parametrize("offers", [[RSIO], [REACTIVESOCKET], BOTH], ids=["rsio", "reactivesocket", "both"])
@pytest.mark.parametrize("first", [b"\xff" * 8, b"\x00" * 8, b"get / ht", b"\x00\x00\x00\x10\x00\x00\x00\x02"], ids=bytes.hex)
def test_who_speaks_nothing_that_is_known_is_refused_by_the_first(offers: list[tuple[type, DialectSettings]], first: bytes) -> None:
    """In its manner."""
    session = server(offers)
    session.receive(first.ljust(16, b"\0"), 0.0)
    assert session.state is ConnectionState.CLOSING
    assert session.dialect.name == offers[0][0].name


OTHERS = [reactivesocket.FrameType(kind) for kind in reactivesocket.FrameType if kind is not reactivesocket.FrameType.SETUP]


def opening(kind: int, *, version: int = 0, framed: bool = False) -> bytes:
    """A frame on stream 1 with what each type must have, by hand."""
    body = bytes((version, 0)) + kind.to_bytes(2) + (1).to_bytes(8) + (1).to_bytes(8)
    return body if framed else (len(body) + 4).to_bytes(4) + body


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("kind", OTHERS, ids=lambda kind: kind.name)
def test_a_frame_that_should_have_come_behind_a_setup_is_refused_in_words_of_its_protocol(
    kind: reactivesocket.FrameType, size: int, framed: bool
) -> None:
    """Its sender would not understand a goodbye of RS.io."""
    session = server(framed=framed)
    data = opening(kind, framed=framed)
    step = len(data) if framed else size  # where messages arrive whole, they are not cut
    for start in range(0, len(data), step):
        session.receive(data[start : start + step], 0.0)
    assert session.dialect.name == "reactivesocket"
    assert session.state is ConnectionState.CLOSING
    refusal = reactivesocket.Error(stream_id=0, data=b"protocol:setup")
    assert [bytes(each) for each in session.split(session.take())] == [reactivesocket.encode(refusal, framed=True)]


@pytest.mark.parametrize("kind", OTHERS, ids=lambda kind: kind.name)
def test_it_is_so_refused_as_well_where_reactivesocket_is_not_served(kind: reactivesocket.FrameType) -> None:
    """As a SETUP would be."""
    session = server([RSIO])
    session.receive(opening(kind), 0.0)
    assert bytes(session.take()) == reactivesocket.encode(reactivesocket.Error(stream_id=0, data=b"protocol:not-served"))


@pytest.mark.parametrize("first", [opening(0x30), opening(0x13, version=1), b"\1" + opening(0x13)[1:]], ids=["type", "version", "length"])
def test_what_is_no_frame_that_there_is_does_not_pass_for_one(first: bytes) -> None:
    """It is refused by the first protocol, as is all that is not known."""
    session = server()
    session.receive(first, 0.0)
    assert session.dialect.name == "rsio"


STRANGERS = {
    "tls": (bytes.fromhex("16 0301 0200 0100 01fc 03"), bytes.fromhex("15 0303 0002 02 46")),
    "http": (b"GET / HTTP/1.1\r\n", b"HTTP/1.1 400 Bad Request\r\n"),
    "rsocket": (bytes.fromhex("00001f 00000000 0400 0001 0000 0000"), bytes.fromhex("000059 00000000 2c00 00000003") + b"this port speaks"),
}


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize(("first", "answer"), STRANGERS.values(), ids=STRANGERS)
def test_a_stranger_is_refused_in_words_that_it_understands(first: bytes, answer: bytes, size: int) -> None:
    """However its first bytes are cut; the answer is one whole message of its own protocol."""
    session = server()
    for start in range(0, len(first), size):
        session.receive(first[start : start + size], 0.0)
    said = bytes(session.take())
    assert said.startswith(answer)
    assert session.state is ConnectionState.CLOSING
    if answer[:1] == b"\0":
        assert len(said) == 3 + int.from_bytes(said[:3])


def test_nothing_is_said_before_it_is_known_who_is_there() -> None:
    """Four bytes of a SETUP might be RSocket 1.0's as well, and one byte of TLS nobody's."""
    for first in (b"\x00\x00\x00\x10", b"GET", b"\x16"):
        session = server()
        session.receive(first, 0.0)
        assert not session.take()
        assert session.state is ConnectionState.FRESH


def test_who_never_says_enough_is_refused_when_its_time_is_over() -> None:
    """By the first of those that are served."""
    session = server()
    session.receive(b"\x00\x00", 0.0)
    session.tick(Limits().handshake_timeout + 1)
    assert rsio.encode(rsio.Goodbye(reason="limit:handshake")) in bytes(session.take())


def test_a_refusal_in_other_words_is_no_frame_of_the_dialects() -> None:
    """A transport that carries messages gets it in one piece."""
    session = server([REACTIVESOCKET], framed=True)
    session.receive(rsio.encode(rsio.ClientHello()), 0.0)
    assert [bytes(each) for each in session.split(session.take())] == [rsio.encode(rsio.Goodbye(reason="protocol:not-served"))]


class Eager(RsioDialect):
    """Notes when it is started."""

    begun: ClassVar[list[str]] = []

    def start(self, now: float) -> None:
        self.begun.append("eager")
        super().start(now)


def test_the_one_that_is_chosen_is_started_and_no_other() -> None:
    """Whatever it says then, the client has begun to speak it."""
    Eager.begun.clear()
    session = server([(Eager, DialectSettings()), REACTIVESOCKET])
    session.receive(reactivesocket.encode(reactivesocket.Setup()), 0.0)
    assert Eager.begun == []
    session = server([REACTIVESOCKET, (Eager, DialectSettings())])
    session.receive(rsio.encode(rsio.ClientHello()), 0.0)
    assert Eager.begun == ["eager"]


@pytest.mark.parametrize(("offers", "says"), [(BOTH, b"speaks rsio and reactivesocket; connect"), ([RSIO], b"speaks rsio; connect")])
def test_a_stranger_is_told_what_is_served_here(offers: list[tuple[type, DialectSettings]], says: bytes) -> None:
    """And nothing that is not."""
    session = server(offers)
    session.receive(b"GET / HTTP/1.1\r\n\r\n", 0.0)
    assert says in bytes(session.take())
