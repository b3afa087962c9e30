"""The auth extension on one connection, message by message: good credentials, and wrong, late,
missing, huge, and repeated ones.
"""

from typing import Any

import pytest

from penstock.api import AuthRefused, Credentials, NotAvailable, Role
from penstock.extensions import Auth
from penstock.protocols import reactivesocket as rs
from penstock.protocols import rsio
from penstock.session import ConnectionState
from penstock.spi import (
    Certificate,
    PeerIdentity,
    UnixCredentials,
    decode_credentials,
    encode_credentials,
)
from tests.protocols.reactivesocket._pair import RawSocket
from tests.session._pair import Pair, RawPeer, RecordingSubscriber, ScriptedPublisher, limits_with

# --- two sides


GOOD = Credentials.bearer("swordfish")
VERDICT = rsio.ExtensionMessage(type=0x43, body=b"\x01")
SUBSCRIBE = rsio.Subscribe(publisher="s", subscriber=0, demand=1)


def message(credentials: Credentials) -> rsio.ExtensionMessage:
    return rsio.ExtensionMessage(type=0x42, body=encode_credentials(credentials))


def accept_alice(scheme: str, data: bytes, peer: PeerIdentity) -> str | None:
    return "alice" if (scheme, data) == ("bearer", b"swordfish") else None


def server(
    authenticate: Any = accept_alice,
    *,
    listed: tuple[int, ...] = (2,),
    peer: Any = None,
    **limits: Any,
) -> RawPeer:
    raw = RawPeer(limits=limits_with(**limits), extensions=[Auth(authenticate=authenticate)])
    raw.delegate.identity = peer or PeerIdentity(address="somewhere")
    raw.delegate.publishers["s"] = ScriptedPublisher()
    raw.send(rsio.ClientHello(extensions=listed))
    raw.receive()
    return raw


def assert_refused_after_the_delay(raw: RawPeer) -> None:
    assert raw.session.tick(0.0) == 0.25
    assert raw.session.tick(0.249) == 0.25
    assert raw.receive() == []
    raw.session.tick(0.25)
    assert raw.receive() == [rsio.Goodbye(reason="auth")]
    assert raw.delegate.served == []


def test_good_credentials_get_a_verdict_and_early_subscribes_are_served_after_it() -> None:
    """The publisher sees the principal."""
    raw = server()
    raw.send(SUBSCRIBE, message(GOOD))
    assert raw.receive()[0] == VERDICT
    assert raw.delegate.principal == "alice"
    assert len(raw.delegate.served) == 1


def test_an_early_name_that_is_not_utf_8_is_refused_after_the_verdict() -> None:
    """A stranger sends it before it is let in. It once ended the whole server."""
    raw = server()
    raw.send(bytes.fromhex("1003 73ff73 05 01"), message(GOOD))
    refusal = "the publisher's name is no UTF-8"
    assert raw.receive() == [VERDICT, rsio.OnError(subscriber=5, error=refusal)]
    assert raw.delegate.served == []


@pytest.mark.parametrize(
    "body",
    [
        encode_credentials(Credentials.bearer("guess")),
        encode_credentials(Credentials("bearer")),
        encode_credentials(Credentials.basic("alice", "swordfish")),
        encode_credentials(Credentials("")),
        b"\x01\xff\x00",  # a scheme that is not UTF-8
    ],
)
def test_all_wrong_credentials_get_the_same_refusal_after_the_same_time(body: bytes) -> None:
    """One goodbye, and no verdict. Early messages are dropped."""
    raw = server()
    raw.send(SUBSCRIBE, rsio.ExtensionMessage(type=0x42, body=body))
    assert_refused_after_the_delay(raw)


@pytest.mark.parametrize("error", [ValueError("a secret"), NotAvailable("no")])
def test_a_function_that_raises_refuses_and_its_exception_stays_here(error: Exception) -> None:
    """It is reported, unless it is one of the exceptions that refuse."""

    def broken(scheme: str, data: bytes, peer: PeerIdentity) -> None:
        raise error

    raw = server(broken)
    raw.send(message(GOOD))
    assert_refused_after_the_delay(raw)
    assert raw.delegate.warnings == ([error] if isinstance(error, ValueError) else [])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x06bearer",
        b"\x06bearer\x05abc",
        b"\x00\x00x",
        b"\x80\x00\x00",
        b"\xff\xff\xff\xff\xff\x00",
    ],
)
def test_credentials_that_cannot_be_read_break_the_protocol(body: bytes) -> None:
    """They are cut, too long, followed by bytes, or have a length that is not the shortest."""
    raw = server()
    raw.send(rsio.ExtensionMessage(type=0x42, body=body))
    assert raw.goodbye_reason() == "protocol:auth"


def test_credentials_twice_break_the_protocol() -> None:
    """While the first ones are examined, and after the verdict."""
    raw = server()
    raw.send(message(GOOD))
    raw.receive()
    raw.send(message(GOOD))
    assert raw.goodbye_reason() == "protocol:auth"


def test_a_verdict_that_nothing_asked_for_breaks_the_protocol() -> None:
    """A client sends it to a server."""
    raw = server()
    raw.send(VERDICT)
    assert raw.goodbye_reason() == "protocol:auth"


@pytest.mark.parametrize("arrived", ["head", "all"])
def test_huge_credentials_are_refused_on_their_length(arrived: str) -> None:
    """They are refused also before the body is there."""
    raw = server(preauth_bytes=100)
    whole = rsio.encode(message(Credentials.bearer("x" * 200)))
    raw.send(whole[:4] if arrived == "head" else whole)
    assert raw.goodbye_reason() == "limit:auth 209 > 100"


def test_late_credentials_find_the_connection_ended() -> None:
    """The time is that of the handshake."""
    raw = server()
    raw.session.tick(raw.session.channel.limits.handshake_timeout)
    assert raw.goodbye_reason() == "limit:handshake"
    raw.send(message(GOOD))
    assert raw.delegate.principal is None


def test_missing_credentials_are_refused_like_wrong_ones() -> None:
    """The client does not list the extension."""
    raw = server(listed=())
    raw.send(SUBSCRIBE)
    assert_refused_after_the_delay(raw)


@pytest.mark.parametrize(
    ("facts", "scheme"),
    [
        ({"certificate": Certificate(subject="CN=alice")}, "mtls"),
        ({"credentials": UnixCredentials(pid=1, uid=1000, gid=1000)}, "unix"),
        ({}, ""),
    ],
)
def test_a_client_without_credentials_is_examined_by_what_the_transport_knows(
    facts: Any, scheme: str
) -> None:
    """It gets no verdict, because it has no extension for it."""
    seen = []

    def examine(scheme: str, data: bytes, peer: PeerIdentity) -> str:
        seen.append((scheme, data, peer.address))
        return "somebody"

    raw = server(examine, listed=(), peer=PeerIdentity(address="a", **facts))
    assert seen == [(scheme, b"", "a")]
    assert raw.delegate.principal == "somebody"
    assert raw.delegate.is_open


def test_an_async_function_is_awaited_and_the_delay_counts_from_the_arrival() -> None:
    """A refusal that comes later than that is sent at once."""
    raw = server(lambda *_: _Later())
    raw.send(message(GOOD))
    ((_, then),) = raw.delegate.awaited
    assert raw.receive() == []
    raw.session.tick(1.0)
    then(None, None)
    assert raw.goodbye_reason() == "auth"
    raw = server(lambda *_: _Later())
    raw.send(message(GOOD))
    raw.delegate.awaited[0][1]("alice", None)
    assert raw.receive() == [VERDICT]
    assert raw.delegate.principal == "alice"


class _Later:
    def __await__(self) -> Any:
        yield


# --- the client


def test_a_client_sends_nothing_between_its_hello_and_the_verdict_but_credentials() -> None:
    """The subscribes of the client are sent after the verdict."""
    raw = RawPeer(Role.CLIENT, extensions=[Auth(credentials=GOOD)])
    raw.session.subscribe("s", RecordingSubscriber(1))
    assert raw.receive() == [rsio.ClientHello(extensions=(2,))]
    raw.send(rsio.ServerHello(extensions=(2,)))
    assert raw.receive() == [message(GOOD)]
    raw.send(VERDICT)
    assert raw.receive() == [SUBSCRIBE]


def test_a_client_gets_auth_refused_and_knows_that_nothing_was_done() -> None:
    """The goodbye comes in the place of the verdict."""
    raw = RawPeer(Role.CLIENT, extensions=[Auth(credentials=GOOD)])
    subscriber = RecordingSubscriber(1)
    raw.session.subscribe("s", subscriber)
    raw.send(rsio.ServerHello(extensions=(2,)), rsio.Goodbye(reason="auth"))
    (error,) = subscriber.ends
    assert isinstance(error, AuthRefused)
    assert error.processed is False
    assert "swordfish" not in str(error)


def test_a_client_sends_no_credentials_to_a_server_that_examines_none() -> None:
    """The client says goodbye, and its stream gets AuthRefused."""
    raw = RawPeer(Role.CLIENT, extensions=[Auth(credentials=GOOD)])
    subscriber = RecordingSubscriber(1)
    raw.session.subscribe("s", subscriber)
    raw.receive()
    raw.send(rsio.ServerHello())
    assert raw.receive() == [rsio.Goodbye(reason="auth")]
    assert isinstance(subscriber.ends[0], AuthRefused)


@pytest.mark.parametrize("body", [b"", b"\x00", b"\x02", b"\x01\x01"])
def test_a_verdict_other_than_01_breaks_the_protocol(body: bytes) -> None:
    """A refusal is a goodbye, and no verdict."""
    raw = RawPeer(Role.CLIENT, extensions=[Auth(credentials=GOOD)])
    raw.send(rsio.ServerHello(extensions=(2,)), rsio.ExtensionMessage(type=0x43, body=body))
    assert raw.goodbye_reason() == "protocol:auth"


def test_every_cut_of_the_bytes_gives_the_same_outcome() -> None:
    """Both sides, one byte at a time."""
    pair = Pair(
        extensions=[Auth(credentials=GOOD)], server_extensions=[Auth(authenticate=accept_alice)]
    )
    pair.server.publishers["s"] = ScriptedPublisher()
    pair.subscribe("s", 1)
    pair.settle(cut=1)
    assert pair.server.principal == "alice"
    assert len(pair.server.served) == 1


# --- ReactiveSocket


@pytest.mark.parametrize(
    "data",
    [encode_credentials(GOOD), encode_credentials(Credentials.bearer("guess")), b"\x06bear", b""],
)
def test_the_setup_of_a_reactivesocket_client_has_the_credentials(data: bytes) -> None:
    """Silence is acceptance; a refusal is an ERROR on stream 0, after the same time."""
    raw = RawSocket(extensions=[Auth(authenticate=accept_alice)])
    raw.delegate.identity = PeerIdentity(address="a")
    raw.send(rs.Setup(data=data))
    assert raw.receive() == []
    if data == encode_credentials(GOOD):
        assert raw.delegate.principal == "alice"
        assert raw.session.state is ConnectionState.OPEN
        return
    raw.session.tick(0.249)
    assert raw.receive() == []
    raw.session.tick(0.25)
    assert raw.receive() == [rs.Error(stream_id=0, data=b"auth")]


def test_a_reactivesocket_client_shows_its_credentials_in_the_setup() -> None:
    """The bytes of docs/reference/reactivesocket.md; its refusal is AuthRefused."""
    raw = RawSocket(Role.CLIENT, extensions=[Auth(credentials=GOOD)])
    assert raw.receive() == [rs.Setup(data=b"\x06bearer\x09swordfish")]
    reader = raw.ask()
    raw.send(rs.Error(stream_id=0, data=b"auth"))
    assert isinstance(reader.ends[0], AuthRefused)


def test_long_credentials_have_a_length_of_two_bytes() -> None:
    """As a varint has it."""
    body = encode_credentials(Credentials.bearer("x" * 300))
    assert body[:9] == b"\x06bearer\xac\x02"
    raw = server(lambda _scheme, data, _peer: len(data))
    raw.send(message(Credentials.bearer("x" * 300)))
    assert raw.delegate.principal == 300


# --- the server also shows credentials

OF_SERVER = Credentials.bearer("lighthouse")


def know_server(scheme: str, data: bytes, peer: PeerIdentity) -> str | None:
    return "lighthouse" if (scheme, data) == ("bearer", b"lighthouse") else None


def examining(
    authenticate: Any = know_server, **options: Any
) -> tuple[RawPeer, RecordingSubscriber]:
    raw = RawPeer(Role.CLIENT, extensions=[Auth(authenticate=authenticate, **options)])
    raw.delegate.identity = PeerIdentity(address="a server")
    subscriber = RecordingSubscriber(1)
    raw.session.subscribe("s", subscriber)
    raw.receive()
    raw.send(rsio.ServerHello(extensions=(2,)))
    return raw, subscriber


def showing() -> RawPeer:
    raw = RawPeer(extensions=[Auth(credentials=OF_SERVER, authenticate=accept_alice)])
    raw.delegate.identity = PeerIdentity(address="somewhere")
    raw.delegate.publishers["s"] = ScriptedPublisher()
    raw.send(rsio.ClientHello(extensions=(2,)))
    raw.receive()
    return raw


def test_a_server_shows_its_credentials_behind_its_verdict_and_serves_behind_that_of_the_client() -> (
    None
):
    """Early messages of the client wait for its verdict."""
    raw = showing()
    raw.send(message(GOOD), SUBSCRIBE)
    assert raw.receive() == [VERDICT, message(OF_SERVER)]
    assert raw.delegate.served == []
    raw.send(VERDICT)
    raw.receive()
    assert len(raw.delegate.served) == 1
    assert raw.delegate.principal == "alice"


@pytest.mark.parametrize("listed", [(), (2,)])
def test_a_client_that_is_refused_never_sees_the_credentials_of_the_server(
    listed: tuple[int, ...],
) -> None:
    """Those of a stranger are wrong, or missing."""
    raw = RawPeer(extensions=[Auth(credentials=OF_SERVER, authenticate=accept_alice)])
    raw.delegate.identity = PeerIdentity(address="somewhere")
    raw.send(rsio.ClientHello(extensions=listed), *([message(OF_SERVER)] if listed else []))
    raw.receive()
    assert_refused_after_the_delay(raw)


def test_a_client_sends_no_request_before_the_server_is_let_in() -> None:
    """With its own credentials, and then without: those have an empty scheme."""
    for own, shown in ((GOOD, GOOD), (None, Credentials(""))):
        raw, _ = examining(credentials=own)
        assert raw.receive() == [message(shown)]
        raw.send(VERDICT)
        assert raw.receive() == []
        assert not raw.delegate.is_open
        raw.send(message(OF_SERVER))
        assert raw.receive() == [VERDICT, SUBSCRIBE]
        assert raw.delegate.principal == "lighthouse"


@pytest.mark.parametrize("shown", [Credentials.bearer("guess"), Credentials(""), GOOD])
def test_a_client_refuses_wrong_credentials_of_a_server_with_one_goodbye_after_the_delay(
    shown: Credentials,
) -> None:
    """Its subscriber gets AuthRefused, and no request was sent."""
    raw, subscriber = examining()
    raw.receive()
    raw.send(VERDICT, message(shown))
    assert raw.session.tick(0.249) == 0.25
    assert raw.receive() == []
    raw.session.tick(0.25)
    assert raw.receive() == [rsio.Goodbye(reason="auth")]
    (error,) = subscriber.ends
    assert isinstance(error, AuthRefused)
    assert error.processed is False
    assert "guess" not in str(error)


def test_a_client_leaves_a_server_that_shows_no_credentials_in_time() -> None:
    """The time is that of the handshake;
    the server lists the extension, and has let the client in.
    """
    raw, subscriber = examining()
    raw.receive()
    raw.send(VERDICT)
    seconds = raw.session.channel.limits.handshake_timeout
    assert raw.session.tick(seconds - 1) == seconds
    raw.session.tick(seconds)
    assert raw.goodbye_reason() == "auth"
    assert isinstance(subscriber.ends[0], AuthRefused)


@pytest.mark.parametrize(
    ("certificate", "is_accepted"), [(Certificate(subject="CN=server"), True), (None, False)]
)
def test_a_server_without_the_extension_is_examined_by_what_the_transport_knows(
    certificate: Any, is_accepted: bool
) -> None:
    """Its certificate, for example; the client has no credentials itself."""

    def by_certificate(scheme: str, data: bytes, peer: PeerIdentity) -> str | None:
        return "server" if scheme == "mtls" and peer.certificate is not None and not data else None

    raw = RawPeer(Role.CLIENT, extensions=[Auth(authenticate=by_certificate)])
    raw.delegate.identity = PeerIdentity(address="a server", certificate=certificate)
    raw.receive()
    raw.send(rsio.ServerHello())
    raw.session.tick(1.0)
    assert raw.receive() == ([] if is_accepted else [rsio.Goodbye(reason="auth")])
    assert raw.delegate.principal == ("server" if is_accepted else None)


def test_a_client_that_examines_no_server_lets_each_one_in() -> None:
    """Its requests do not wait for the credentials of the server."""
    raw = RawPeer(Role.CLIENT, extensions=[Auth(credentials=GOOD)])
    raw.session.subscribe("s", RecordingSubscriber(1))
    raw.receive()
    raw.send(rsio.ServerHello(extensions=(2,)), VERDICT, message(OF_SERVER))
    assert raw.receive() == [message(GOOD), SUBSCRIBE, VERDICT]
    raw.send(message(OF_SERVER))
    assert raw.goodbye_reason() == "protocol:auth"


def test_a_server_acts_on_no_credentials_in_place_of_the_verdict_of_its_client() -> None:
    """They break the protocol, and so does a verdict other than 01."""
    for wrong in (message(GOOD), rsio.ExtensionMessage(type=0x43, body=b"\x00")):
        raw = showing()
        raw.send(message(GOOD))
        raw.receive()
        raw.send(wrong)
        assert raw.goodbye_reason() == "protocol:auth"
        assert raw.delegate.principal is None


def test_every_cut_of_the_bytes_in_both_directions_gives_the_same_outcome() -> None:
    """Both sides examine each other, one byte at a time."""
    pair = Pair(
        extensions=[Auth(credentials=GOOD, authenticate=know_server)],
        server_extensions=[Auth(credentials=OF_SERVER, authenticate=accept_alice)],
    )
    pair.server.publishers["s"] = ScriptedPublisher()
    pair.subscribe("s", 1)
    pair.settle(cut=1)
    assert (pair.server.principal, pair.client.principal) == ("alice", "lighthouse")
    assert len(pair.server.served) == 1


# --- the bytes of credentials


@pytest.mark.parametrize(
    ("credentials", "body"),
    [
        (Credentials.bearer("token"), "06 62 65 61 72 65 72 05 74 6f 6b 65 6e"),
        (Credentials.basic("a", "b"), "05 62 61 73 69 63 03 61 3a 62"),
        (Credentials("mtls"), "04 6d 74 6c 73 00"),
        (Credentials("x", bytes(128)), "01 78 80 01" + " 00" * 128),
    ],
)
def test_golden_bytes(credentials: Credentials, body: str) -> None:
    """The table of docs/reference/rsio.md."""
    assert encode_credentials(credentials) == bytes.fromhex(body)
    assert decode_credentials(bytes.fromhex(body)) == (
        credentials.scheme.encode(),
        credentials.data,
    )


@pytest.mark.parametrize(
    "body", ["", "01", "01 78", "01 78 01", "01 78 00 00", "81 00 78 00", "ff ff ff ff 7f", "00"]
)
def test_a_broken_body_is_told_from_an_empty_field(body: str) -> None:
    """It is cut, followed by bytes, or has a length that is not the shortest or is too long."""
    assert decode_credentials(bytes.fromhex(body)) is None
    assert decode_credentials(b"\0\0") == (b"", b"")
