"""The dialect of RS.io: the handshake, versions, ids, the negotiation of extensions, and messages
that come while an extension holds the peer.
"""

from typing import Any

import pytest

from penstock.api import (
    AuthRefused,
    ConnectionLost,
    ExtensionLink,
    Model,
    PluginError,
    ProtocolError,
    Rejected,
    Request,
    Role,
    UsageError,
)
from penstock.protocols import rsio
from penstock.protocols.rsio import Requests
from penstock.session import AUTH, ConnectionState, SendingStream
from tests.session._outside_extension import Meeting, Outsider
from tests.session._pair import (
    Pair,
    RawPeer,
    RecordingDelegate,
    RecordingSubscriber,
    ScriptedPublisher,
    limits_with,
    subscribe_to,
)

# --- handshake and streams


def test_a_client_sends_requests_without_waiting_for_the_hello_of_the_server() -> None:
    """Hello, subscribe and demand are one piece of bytes."""
    pair = Pair()
    source = pair.server.publishers["s"] = ScriptedPublisher()
    pair.subscribe("s", 3)
    assert bytes(pair.client.session.take()) == bytes.fromhex("010000 1001730003")
    del source


def test_a_server_sends_nothing_before_the_hello_of_the_client() -> None:
    """Otherwise it could send a version that the client does not know."""
    assert bytes(RecordingDelegate(Role.SERVER).session.take()) == b""


def test_a_server_of_another_version_has_discarded_all_requests() -> None:
    """The client sends a goodbye, and the stream ends with `Rejected(processed=False)`."""
    raw = RawPeer(Role.CLIENT)
    reader = RecordingSubscriber(1)
    raw.session.subscribe("s", reader)
    raw.receive()
    raw.send(rsio.ServerHello(version=1))
    assert raw.goodbye_reason() == "version 0"
    assert isinstance(reader.ends[0], Rejected)
    assert not reader.ends[0].processed


def test_a_message_before_the_hello_ends_the_connection() -> None:
    """The peer speaks another protocol."""
    raw = RawPeer()
    raw.send(rsio.Subscribe(publisher="s", subscriber=0))
    assert raw.goodbye_reason() == "protocol:hello"


def test_a_name_that_is_not_utf_8_is_refused() -> None:
    """The end of the message is known, so the connection continues."""
    raw = RawPeer().handshake()
    raw.send(b"\x10\x02\xff\xfe\x05\x00")
    assert raw.receive() == [rsio.OnError(subscriber=5, error="the publisher's name is no UTF-8")]
    assert raw.session.state is ConnectionState.OPEN


def test_an_id_is_never_used_again() -> None:
    """A late element of a cancelled stream must find the element size of its own stream."""
    raw = RawPeer(Role.CLIENT).handshake()
    readers = [RecordingSubscriber() for _ in range(3)]
    for reader in readers:
        raw.session.subscribe("s", reader)
        reader.cancel()
    ids = [message.subscriber for message in raw.receive() if isinstance(message, rsio.Subscribe)]
    assert ids == [0, 1, 2]


class Reversed:
    """An extension that changes the meaning of onNext: the bytes of elements are reversed, from
    the acknowledgement of the client on.
    """

    id = 200
    name = "reversed"
    codes = frozenset({0x60, 0x61})

    def open(self, link: ExtensionLink, now: float, /) -> "Reversed.Active":
        return self.Active(link)

    class Active:
        def __init__(self, link: ExtensionLink) -> None:
            self._link = link
            if link.role is Role.SERVER:
                link.hold_elements()
                link.send(0x60, b"")

        def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the wire's word
            if type == 0x60:
                self._link.change_elements(incoming=lambda element: element[::-1])
                self._link.send(0x61, b"")
            else:
                self._link.change_elements(outgoing=lambda element: element[::-1])
                self._link.resume_elements()


def test_elements_wait_until_an_extension_that_changes_them_is_acknowledged() -> None:
    """The server declares it, the client acknowledges it. The publisher gets no demand before
    that, and the elements arrive unchanged.
    """
    pair = Pair(extensions=[Reversed()])
    source = pair.server.publishers["s"] = ScriptedPublisher()
    reader = pair.subscribe("s", 2)
    pair.server.session.receive(bytes(pair.client.session.take()), 0.0)
    assert source.requests == []
    pair.client.session.receive(bytes(pair.server.session.take()), 0.0)
    pair.server.session.receive(bytes(pair.client.session.take()), 0.0)
    assert source.demand == 1  # one, until the size of an element is known
    source.emit(b"abc")
    data = bytes(pair.server.session.take())
    assert data.endswith(b"cba")
    pair.client.session.receive(data, 0.0)
    assert reader.elements == [b"abc"]


def test_an_extension_of_one_side_is_not_active() -> None:
    """The peer lists no extension, and elements arrive unchanged."""
    pair = Pair(extensions=[Reversed()], server_extensions=[])
    source = pair.server.publishers["s"] = ScriptedPublisher()
    reader = pair.subscribe("s", 1)
    pair.settle()
    source.emit(b"abc")
    pair.settle()
    assert reader.elements == [b"abc"]


class Faulty(Reversed):
    """An extension that raises `error` in the method `where`."""

    def __init__(self, where: str, error: Exception) -> None:
        self.where = where
        self.error = error

    def open(self, link: ExtensionLink, now: float, /) -> Any:
        if self.where == "open":
            raise self.error
        active = Reversed.Active(link)
        setattr(active, self.where, self._raise)
        return active

    def _raise(self, *_: object) -> None:
        raise self.error


@pytest.mark.parametrize("where", ["open", "received", "heard", "tick"])
def test_an_exception_of_an_extension_ends_its_connection_and_does_not_leave_the_session(
    where: str,
) -> None:
    """The peer gets the reason `internal` and no details. The delegate gets a PluginError."""
    raw = RawPeer(extensions=[Faulty(where, KeyError("a secret"))])
    raw.send(rsio.ClientHello(extensions=(200,)))
    raw.send(rsio.ExtensionMessage(type=0x61, body=b""))
    raw.session.tick(0.0)
    assert raw.goodbye_reason() == "internal"
    raw.session.end_of_input()
    assert isinstance(raw.delegate.ended[0], PluginError)


def test_a_protocol_error_from_an_extension_keeps_its_reason() -> None:
    """It is a fault of the peer, not of the plugin."""
    raw = RawPeer(extensions=[Faulty("received", ProtocolError("bad", reason="protocol:mine"))])
    raw.send(rsio.ClientHello(extensions=(200,)), rsio.ExtensionMessage(type=0x61, body=b""))
    assert raw.goodbye_reason() == "protocol:mine"


def test_messages_of_extensions_count_as_control_messages() -> None:
    """More of them than the limit end the connection."""
    raw = RawPeer(extensions=[Reversed()], limits=limits_with(controls=1, per_second=1))
    raw.send(rsio.ClientHello(extensions=(200,)), *[rsio.ExtensionMessage(type=0x61, body=b"")] * 2)
    assert raw.goodbye_reason() == "limit:control"


def test_an_extension_that_sends_a_code_of_another_extension_ends_its_connection() -> None:
    """The reason is `internal`."""
    raw = RawPeer(extensions=[UnregisteredCode()])
    raw.send(rsio.ClientHello(extensions=(201,)))
    assert raw.goodbye_reason() == "internal"


class UnregisteredCode(Reversed):
    """Sends messages of a type that is not one of its codes."""

    id = 201
    codes = frozenset({0x70})


@pytest.mark.parametrize(
    "code", [each for each in range(256) if each not in (rsio.CLIENT_HELLO, rsio.GOODBYE)]
)
def test_a_first_byte_that_is_not_a_hello_is_refused(code: int) -> None:
    """At once, without waiting for more bytes:
    another protocol, a request, or the hello of a server.
    """
    raw = RawPeer()
    raw.send(bytes([code]))
    assert raw.goodbye_reason() == "protocol:hello"


def test_a_client_refuses_the_hello_of_a_client() -> None:
    """Two clients may be connected with each other by mistake."""
    raw = RawPeer(Role.CLIENT)
    raw.receive()
    raw.send(bytes([rsio.CLIENT_HELLO]))
    assert raw.goodbye_reason() == "protocol:hello"


def test_a_goodbye_is_accepted_instead_of_a_hello() -> None:
    """It is answered with a goodbye."""
    raw = RawPeer()
    raw.send(rsio.Goodbye(reason="not today"))
    assert raw.receive() == [rsio.Goodbye()]
    assert raw.session.state.is_over


def test_a_goodbye_with_a_version_instead_of_a_hello_has_discarded_all_requests() -> None:
    """The stream ends with `Rejected(processed=False)`.
    Behind a hello the same goodbye is a lost connection.
    """
    for before, kind in (((), Rejected), ((rsio.ServerHello(),), ConnectionLost)):
        raw = RawPeer(Role.CLIENT)
        reader = RecordingSubscriber(1)
        raw.session.subscribe("s", reader)
        raw.send(*before, rsio.Goodbye(reason="version 7"))
        assert type(reader.ends[0]) is kind
        assert not getattr(reader.ends[0], "processed", False)
        assert "7" in str(reader.ends[0])


def test_a_hello_of_another_version_is_refused_on_its_second_byte() -> None:
    """The rest of such a hello is discarded, even if it is longer than the limit of a hello."""
    raw = RawPeer()
    raw.send(b"\x01\x09")
    assert raw.goodbye_reason() == "version 0"
    raw.send(b"\xff" * 5000)
    assert raw.receive() == []


@pytest.mark.parametrize(
    ("role", "text"),
    [
        (Role.CLIENT, "the server did not let this client in: "),
        (Role.SERVER, "the client did not let this server in: "),
    ],
)
def test_a_refusal_of_credentials_says_which_side_refused(role: Role, text: str) -> None:
    """The streams end with `AuthRefused`. The peer may have acted on requests that were sent."""
    raw = RawPeer(role).handshake()
    reader = subscribe_to(raw, 1)
    raw.send(rsio.Goodbye(reason=AUTH))
    (refused,) = reader.ends
    assert isinstance(refused, AuthRefused)
    assert str(refused).startswith(text)
    assert refused.processed


def test_a_client_that_has_sent_no_request_knows_that_none_was_acted_on() -> None:
    """Its extension holds the requests back until the hello of the server."""
    raw = RawPeer(Role.CLIENT, extensions=[Meeting()])
    reader = RecordingSubscriber(1)
    raw.session.subscribe("s", reader)
    raw.send(rsio.Goodbye(reason=AUTH))
    (refused,) = reader.ends
    assert isinstance(refused, AuthRefused)
    assert not refused.processed


def test_requests_that_rsio_does_not_have_are_refused_with_advice() -> None:
    """Request data needs an extension, and fire and forget another protocol."""
    raw = RawPeer(Role.CLIENT).handshake()
    dialect = raw.session.channel.dialect
    with pytest.raises(
        UsageError,
        match=r"^requests that carry data need the extension 'requests' on both sides of an RS\.io connection$",
    ):
        dialect.subscribe(0, Request(Model.RESPONSE, b"x"), 1)
    with pytest.raises(
        UsageError, match=r"RS\.io has no fire and forget; connect with reactivesocket\+"
    ):
        dialect.fire(0, Request(Model.FIRE_AND_FORGET, b"x"))


def test_an_extension_is_asked_about_the_length_of_its_message() -> None:
    """Before the body has come, with the type and the length of the message."""
    asked: list[tuple[int, int]] = []

    class Asked(Reversed):
        def open(self, link: ExtensionLink, now: float, /) -> Any:
            active = Reversed.Active(link)
            active.check_length = lambda code, length: asked.append((code, length))  # type: ignore[attr-defined]  # an optional member
            return active

    raw = RawPeer(extensions=[Asked()])
    raw.send(rsio.ClientHello(extensions=(200,)), b"\x61\x05ab")
    assert asked == [(0x61, 5)]


def answer(raw: RawPeer, stream: SendingStream) -> None:
    stream.answer(b"value")


def complete(raw: RawPeer, stream: SendingStream) -> None:
    stream.on_complete()


def fail(raw: RawPeer, stream: SendingStream) -> None:
    stream.on_error(ValueError())


def cancel(raw: RawPeer, stream: SendingStream) -> None:
    raw.send(rsio.Cancel(subscriber=stream.id))


@pytest.mark.parametrize("end", [answer, complete, fail, cancel])
def test_the_data_of_a_request_is_given_back_at_each_end(end: Any) -> None:
    """The data of another request still counts."""
    raw = RawPeer(extensions=[Requests()])
    raw.send(rsio.ClientHello(extensions=(7,)))
    served: list[SendingStream] = []

    def serve(stream: SendingStream, /) -> None:
        served.append(stream)
        stream.accept_call(ScriptedPublisher())

    raw.delegate.serve = serve  # type: ignore[method-assign]  # requests are no names
    for stream_id in (0, 1):
        raw.send(rsio.ExtensionMessage(type=0x4C, body=bytes([stream_id, 4]) + b"data"))
    assert raw.session.channel.request_bytes == 8
    end(raw, served[0])
    assert raw.session.channel.request_bytes == 4


# --- early messages


SUBSCRIBE = rsio.Subscribe(publisher="s", subscriber=0, demand=1)


def held_peer(extension: Outsider, most: int = 1000) -> RawPeer:
    raw = RawPeer(limits=limits_with(preauth_bytes=most), extensions=[extension])
    raw.delegate.publishers["s"] = ScriptedPublisher()
    raw.send(rsio.ClientHello(extensions=(200,)))
    raw.receive()
    return raw


def test_subscribe_request_and_cancel_wait_and_are_replayed_in_order() -> None:
    """Nothing is answered before the extension lets the peer in; the principal is known then."""
    there = Outsider(holds=True)
    raw = held_peer(there)
    other = rsio.Subscribe(publisher="s", subscriber=1, demand=0)
    raw.send(SUBSCRIBE, rsio.Request(subscriber=0, demand=2), other, rsio.Cancel(subscriber=1))
    assert raw.delegate.served == []
    assert not raw.delegate.is_open
    assert raw.receive() == []
    there.link.admit("alice")
    assert raw.delegate.principal == "alice"
    assert raw.delegate.is_open
    assert [stream.id for stream in raw.delegate.served] == [0, 1]
    assert raw.delegate.served[0].available + raw.delegate.served[0].reserved == 3
    assert raw.delegate.publishers["s"].cancels == 1
    # Later messages no longer wait.
    raw.send(rsio.Subscribe(publisher="s", subscriber=2, demand=0))
    assert len(raw.delegate.served) == 3


@pytest.mark.parametrize("extra", [0, 1])
def test_messages_are_counted_as_encoded(extra: int) -> None:
    """One byte above the limit ends the connection, with both numbers."""
    name = "n" * (100 + extra)
    size = len(rsio.encode(rsio.Subscribe(publisher=name, subscriber=0, demand=1)))
    raw = held_peer(Outsider(holds=True), most=size - extra)
    raw.send(rsio.Subscribe(publisher=name, subscriber=0, demand=1))
    if extra:
        assert raw.goodbye_reason() == f"limit:auth {size} > {size - 1}"
    else:
        assert raw.session.state is ConnectionState.GREETING


def test_a_message_that_does_not_fit_is_refused_on_its_length() -> None:
    """Before its body, and with what has come before."""
    raw = held_peer(Outsider(holds=True), most=100)
    raw.send(bytes([0x60, 100]) + b"x")
    assert raw.session.state is ConnectionState.GREETING
    raw = held_peer(Outsider(holds=True), most=100)
    raw.send(bytes([0x60, 101]) + b"x")
    assert raw.goodbye_reason() == "limit:auth 101 > 100"


def test_a_goodbye_is_taken_at_once() -> None:
    """The kept messages are forgotten."""
    there = Outsider(holds=True)
    raw = held_peer(there)
    raw.send(SUBSCRIBE, rsio.Goodbye(reason=""))
    assert raw.session.state is ConnectionState.CLOSED_BY_PEER
    there.link.admit()
    assert raw.delegate.served == []


def test_a_peer_that_is_held_for_too_long_is_refused() -> None:
    """The time is that of the handshake."""
    raw = held_peer(Outsider(holds=True))
    raw.session.tick(raw.session.channel.limits.handshake_timeout)
    assert raw.goodbye_reason() == "limit:handshake"


def test_a_refusal_may_come_at_a_later_time() -> None:
    """Until then the connection is neither open nor closed;
    of two refusals the earlier one counts.
    """
    there = Outsider(holds=True)
    raw = held_peer(there)
    there.link.break_off("other", at=0.3)
    there.link.break_off("private", at=0.25)
    there.link.break_off("late", at=0.25)
    assert raw.session.tick(0.1) == 0.25
    assert raw.session.state is ConnectionState.GREETING
    raw.session.tick(0.25)
    assert raw.goodbye_reason() == "private"


def test_two_extensions_that_hold_must_both_let_the_peer_in() -> None:
    """A second call of the first one does not count for the other."""

    class Second(Outsider):
        id = 201
        codes = frozenset({0x61})

    first, second = Outsider(holds=True), Second(holds=True)
    raw = RawPeer(extensions=[first, second])
    raw.send(rsio.ClientHello(extensions=(200, 201)))
    first.link.admit()
    first.link.admit()
    assert not raw.delegate.is_open
    second.link.admit()
    assert raw.delegate.is_open


@pytest.mark.parametrize("listed", [(), (200,)])
def test_an_extension_meets_a_peer_that_does_not_have_it(listed: tuple[int, ...]) -> None:
    """The extension can also hold such a peer."""
    there = Meeting(holds=True)
    raw = RawPeer(extensions=[there])
    raw.send(rsio.ClientHello(extensions=listed), SUBSCRIBE)
    assert there.named("meet") == ([] if listed else [(None,)])
    assert raw.delegate.served == []
    there.link.admit()
    assert len(raw.delegate.served) == 1


def test_an_extension_that_raises_while_it_meets_the_peer_ends_the_connection() -> None:
    """The peer is not let in."""
    raw = RawPeer(extensions=[Meeting(raises="meet")])
    raw.send(rsio.ClientHello(), SUBSCRIBE)
    assert raw.delegate.served == []
    assert raw.goodbye_reason() == "internal"


def test_an_extension_that_lets_the_peer_in_at_once_holds_nothing() -> None:
    """Hold and admit inside `open`."""

    class Quick(Outsider):
        def note(self, name: str, *arguments: object) -> None:
            super().note(name, *arguments)
            if name == "open":
                self.link.admit("bob")

    pair = Pair(extensions=[Outsider()], server_extensions=[Quick(holds=True)])
    pair.server.publishers["s"] = ScriptedPublisher()
    pair.subscribe("s", 1)
    pair.settle()
    assert pair.server.principal == "bob"
    assert len(pair.server.served) == 1
