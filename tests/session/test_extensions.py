"""Extensions: their host, their calls to the connection, streams that they observe, held requests."""

from typing import Any

import pytest

from penstock.api import (
    HOLD,
    ActiveExtension,
    ConnectionLost,
    ExtensionLink,
    Model,
    PluginError,
    ProtocolError,
    Request,
    UsageError,
)
from penstock.protocols import reactivesocket as rs
from penstock.protocols import rsio
from penstock.session import ConnectionState, ReceivingStream
from tests.protocols.reactivesocket._pair import RawSocket, RsDelegate, RsPair
from tests.session._outside_extension import Meeting, Outsider
from tests.session._pair import (
    Pair,
    RawPeer,
    RecordingSubscriber,
    Role,
    ScriptedPublisher,
    limits_with,
)

# --- the host


class Echo:
    """An extension that notes the messages it receives."""

    id = 200
    name = "echo"
    codes = frozenset({0x60})

    def __init__(self, *, raises: bool = False) -> None:
        self.raises = raises
        self.links: list[ExtensionLink] = []
        self.bodies: list[bytes] = []

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        self.links.append(link)
        return self

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the wire's word
        if self.raises:
            raise RuntimeError("broken")
        self.bodies.append(body)


def echoing(**server_options: Any) -> tuple[Pair, Echo, Echo]:
    here, there = Echo(), Echo(**server_options)
    pair = Pair(extensions=[here], server_extensions=[there])
    pair.settle()
    return pair, here, there


def test_an_extension_of_both_sides_is_opened_once_and_its_messages_arrive() -> None:
    """An extension sends through its link."""
    pair, here, there = echoing()
    here.links[0].send(0x60, b"hello")
    pair.settle()
    assert len(here.links) == len(there.links) == 1
    assert there.bodies == [b"hello"]


def test_an_extension_may_refuse_a_message_for_its_length_before_the_body() -> None:
    """Only if the body has not arrived as a whole; one without the method is never asked."""

    class Picky(Echo):
        def check_length(self, type: int, length: int, /) -> None:  # noqa: A002  # the wire's word
            if length > 10:
                self.links[0].break_off("limit:frame")

    picky = Picky()
    for there, state in ((picky, ConnectionState.CLOSING), (Echo(), ConnectionState.OPEN)):
        pair = Pair(extensions=[Echo()], server_extensions=[there])
        pair.settle()
        pair.server.session.receive(bytes([0x60, 10]) + bytes(9), 0.0)
        assert pair.server.session.state is ConnectionState.OPEN
        pair.server.session.receive(bytes([0, 0x60, 11]), 0.0)
        assert pair.server.session.state is state
    assert picky.bodies == [bytes(10)]


def test_an_extension_cannot_send_a_code_of_another_extension() -> None:
    """It raises UsageError, because the extension's author must act."""
    _, here, _ = echoing()
    with pytest.raises(UsageError, match="none of its codes"):
        here.links[0].send(0x61, b"")


def test_an_extension_that_raises_ends_its_connection_and_nothing_else() -> None:
    """The peer gets the reason `internal`, without the exception's text.
    This side reports the exception, once.
    """
    pair, here, _ = echoing(raises=True)
    here.links[0].send(0x60, b"hello")
    here.links[0].send(0x60, b"again")
    pair.settle()
    (warning,) = pair.server.warnings
    assert "broken" in str(warning)
    assert warning.__cause__ is not None
    assert pair.server.session.state.is_over
    (lost,) = pair.client.ended
    assert isinstance(lost, ConnectionLost)
    assert "broken" not in str(lost)
    assert "internal" in str(lost)


def test_an_end_by_an_extension_names_the_extension_and_the_reason() -> None:
    """The peer gets the token. The error on this side explains the token,
    if the table of reasons has it.
    """
    pair, here, _ = echoing()
    subscriber = pair.subscribe("s")
    here.links[0].break_off("keepalive")
    pair.settle()
    assert str(subscriber.ends[0]).startswith(
        "the extension 'echo' ended the connection: the peer gave no sign of life"
    )
    assert "'keepalive'" in str(pair.server.ended[0])


def test_an_extension_is_called_for_bytes_and_when_it_is_due() -> None:
    """Both methods are optional. It is first asked when the connection is open."""
    calls: list[tuple[str, float]] = []

    class Watching(Echo):
        def heard(self, now: float, /) -> None:
            calls.append(("heard", now))

        def tick(self, now: float, /) -> float | None:
            calls.append(("tick", now))
            return 9.0

    there, here = Watching(), Echo()
    pair = Pair(extensions=[here], server_extensions=[there])
    pair.settle()
    session = pair.server.session
    calls.clear()
    assert session.tick(1.0) == 9.0
    here.links[0].send(0x60, b"hello")
    pair.now = 2.0
    pair.settle()
    assert there.links[0].heard_at == 2.0
    session.tick(3.0)
    there.links[0].wake_at(5.0)
    there.links[0].wake_at(7.0)
    assert session.tick(4.0) == 5.0
    session.tick(5.0)
    session.tick(6.0)
    assert calls == [("tick", 1.0), ("heard", 2.0), ("tick", 5.0)]
    assert there.bodies == [b"hello"]


def test_an_extension_that_finds_a_fault_when_it_is_due_ends_the_connection() -> None:
    """As if it had found it in a message."""

    class Strict(Echo):
        def tick(self, now: float, /) -> float | None:
            raise ProtocolError("too slow", reason="limit:echo")

    pair = Pair(extensions=[Echo()], server_extensions=[Strict()])
    pair.settle()
    pair.server.session.tick(1.0)
    assert pair.server.session.close_reason[0] == "limit:echo"


@pytest.mark.parametrize(
    ("member", "is_bounded"),
    [("none", True), ("goes_with_streams", False), ("is_uncounted", False)],
)
def test_the_messages_of_an_extension_have_a_rate(member: str, is_bounded: bool) -> None:
    """Not those that go with streams, which have other bounds, and not those
    that acknowledge bytes of this side.
    """
    here, there = Echo(), Echo()
    setattr(there, member, True)
    pair = Pair(
        extensions=[here],
        server_extensions=[there],
        limits=limits_with(controls=2),
    )
    pair.settle()
    for _ in range(3):
        here.links[0].send(0x60, b"")
    pair.settle()
    assert pair.server.session.state.is_over is is_bounded
    assert len(there.bodies) == (2 if is_bounded else 3)


# --- calls to the connection


def opened() -> tuple[Pair, Outsider]:
    there = Outsider()
    pair = Pair(extensions=[Outsider()], server_extensions=[there])
    pair.settle()
    return pair, there


def test_an_extension_knows_the_peer_when_it_opens() -> None:
    """And whether clients of the protocol introduce themselves."""
    _, there = opened()
    assert there.named("open") == [("the peer",)]
    assert there.link.has_introductions is False


def test_an_extension_gets_the_outcome_of_what_it_waits_for() -> None:
    """The delegate awaits the object, and calls the extension with the result."""
    pair, there = opened()
    outcomes = []
    there.link.await_result("awaitable", lambda result, error: outcomes.append((result, error)))  # type: ignore[arg-type]  # never awaited
    ((awaitable, then),) = pair.server.awaited
    assert awaitable == "awaitable"
    then("result", None)
    assert outcomes == [("result", None)]


@pytest.mark.parametrize(
    ("error", "reason"),
    [(ProtocolError("x", reason="protocol:x"), "protocol:x"), (RuntimeError("x"), "internal")],
)
def test_an_extension_that_raises_with_the_outcome_ends_its_connection(
    error: Exception, reason: str
) -> None:
    """The exception does not reach the task that awaited."""
    pair, there = opened()

    def fail(_result: object, _error: Exception | None) -> None:
        raise error

    there.link.await_result("awaitable", fail)  # type: ignore[arg-type]  # never awaited
    pair.server.awaited[0][1](None, None)
    assert pair.server.session.close_reason[0] == reason


def test_a_late_refusal_of_an_open_connection_ends_it_at_once() -> None:
    """The time in `at` counts for a peer that is not let in yet."""
    pair, there = opened()
    there.link.break_off("private", at=10.0)
    assert pair.server.session.state is ConnectionState.CLOSING


def test_a_link_sends_the_codes_of_its_extension_only() -> None:
    """Another code would be read by another extension."""
    _, there = opened()
    with pytest.raises(UsageError):
        there.link.send(0x61, b"")


# --- observers of streams


CALLS = ("check_subscribe", "before_accept", "on_begun")


def pair_with(protocol: str, here: Outsider, there: Outsider) -> Any:
    kind: Any = Pair if protocol == "rsio" else RsPair
    pair = kind(extensions=[here], server_extensions=[there])
    pair.settle()
    return pair


def ask(pair: Any, **script: Any) -> Any:
    if isinstance(pair, RsPair):
        return pair.ask(Model.STREAM, **script)
    source = pair.server.publishers["s"] = ScriptedPublisher(**script)
    subscriber = pair.subscribe("s", 5)
    pair.settle()
    return source, subscriber


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
def test_an_extension_sees_the_life_of_a_stream_on_both_sides(protocol: str) -> None:
    """The ids, the target, the acceptance, the beginning and the end."""
    here, there = Outsider(), Outsider()
    pair = pair_with(protocol, here, there)
    source, subscriber = ask(pair)
    source.emit(b"element")
    pair.settle()
    source.complete()
    pair.settle()
    (stream_id, _), target = here.named("before_subscribe")[0], there.named("check_subscribe")[0][1]
    assert target.endswith("s")
    assert here.named("on_accepted") == [(stream_id, 0)]
    assert here.named("on_ended") == [(stream_id, False)]
    assert there.named("before_accept") == [(stream_id, 0)]
    assert there.named("on_begun") == [(stream_id,)]
    assert there.named("on_ended") == [(stream_id, True)]
    assert subscriber.ends == ["complete"]


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
def test_a_cancelled_stream_has_ended_on_both_sides(protocol: str) -> None:
    """It has ended once on each side: the answer to the cancel is not a second end."""
    here, there = Outsider(), Outsider()
    pair = pair_with(protocol, here, there)
    source, subscriber = ask(pair)
    subscriber.cancel()
    pair.settle()
    assert source.cancels == 1
    assert len(here.named("on_ended")) == len(there.named("on_ended")) == 1


def test_a_request_for_one_value_ends_for_the_extension_that_asked() -> None:
    """On ReactiveSocket the value and the end come in one frame, by a shorter way."""
    here, there = Outsider(), Outsider()
    pair = RsPair(extensions=[here], server_extensions=[there])
    pair.settle()
    source, subscriber = pair.ask(Model.RESPONSE, demand=1)
    source.emit(b"value")
    source.complete()
    pair.settle()
    assert subscriber.elements == [b"value"]
    assert len(here.named("on_ended")) == 1


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
def test_an_extension_refuses_a_stream_with_its_own_text(protocol: str) -> None:
    """The service is not asked."""
    there = Outsider()
    there.answer = "not on a Sunday"
    pair = pair_with(protocol, Outsider(), there)
    _, subscriber = ask(pair)
    assert pair.server.served == []
    assert "not on a Sunday" in str(subscriber.ends[0])


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
@pytest.mark.parametrize("refusal", [None, "too late"])
def test_an_extension_holds_a_stream_and_decides_later(protocol: str, refusal: str | None) -> None:
    """Its demand stays with it. A second decision does nothing."""
    there = Outsider()
    there.answer = HOLD
    pair = pair_with(protocol, Outsider(), there)
    source, subscriber = ask(pair)
    assert pair.server.served == []
    stream_id = there.named("check_subscribe")[0][0]
    there.link.decide(stream_id, refusal)
    there.link.decide(stream_id)
    pair.settle()
    assert len(pair.server.served) == (refusal is None)
    if refusal is None:
        assert source.demand + pair.server.served[0].available == 5
    else:
        assert "too late" in str(subscriber.ends[0])


def test_a_held_stream_that_was_cancelled_is_not_decided_on() -> None:
    """The decision may come after the cancel."""
    there = Outsider()
    there.answer = HOLD
    pair = pair_with("rsio", Outsider(), there)
    _, subscriber = ask(pair)
    subscriber.cancel()
    pair.settle()
    there.link.decide(0)
    assert pair.server.served == []


def test_an_annotation_goes_right_before_the_message_of_the_stream() -> None:
    """The onSubscribe of a server and the subscribe of a client, also
    if elements of other streams wait.
    """
    raw = RawPeer(extensions=[Outsider(annotates=True)])
    raw.send(rsio.ClientHello(extensions=(200,)))
    raw.receive()
    raw.delegate.publishers["s"] = ScriptedPublisher()
    raw.send(rsio.Subscribe(publisher="s", subscriber=0, demand=1))
    assert raw.receive() == [
        rsio.ExtensionMessage(type=0x60, body=b"before accept"),
        rsio.OnSubscribe(subscriber=0, element_size=0),
    ]
    raw.session.subscribe("t", Subscriber())
    assert raw.receive() == [
        rsio.ExtensionMessage(type=0x60, body=b"before subscribe"),
        rsio.Subscribe(publisher="t", subscriber=0, demand=0),
    ]


class Subscriber:
    """A subscriber that does nothing."""

    def on_subscribe(self, subscription: Any, /) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name in {"on_next", "on_error", "on_complete"}:
            return lambda *_: None
        raise AttributeError(name)


@pytest.mark.parametrize(
    "name", ["check_subscribe", "before_accept", "on_begun", "on_ended", "closed"]
)
def test_an_observer_of_streams_that_raises_ends_its_connection_and_nothing_else(name: str) -> None:
    """In each of its methods, at a server."""
    there = Outsider(raises=name)
    pair = pair_with("rsio", Outsider(), there)
    source, _ = ask(pair)
    if source.subscriber is not None:
        source.complete()
    pair.server.session.close("shutdown")
    pair.settle()
    assert len(pair.server.ended) == 1
    if name == "closed":
        assert "RuntimeError" in str(pair.server.warnings[0])
    else:
        assert pair.server.session.close_reason[0] == "internal"
    assert there.named("closed") == [()]


@pytest.mark.parametrize("name", ["before_subscribe", "on_accepted", "on_ended"])
def test_an_extension_of_a_client_that_raises_ends_its_connection(name: str) -> None:
    """In each of the methods that a client calls."""
    here = Outsider(raises=name)
    pair = pair_with("rsio", here, Outsider())
    _, subscriber = ask(pair)
    subscriber.cancel()
    pair.settle()
    assert pair.client.session.close_reason[0] == "internal"


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
def test_a_request_is_not_sent_behind_the_goodbye_of_an_extension(protocol: str) -> None:
    """The extension ends the connection when it is told of the stream.
    Only the goodbye goes out.
    """
    pair = pair_with(protocol, Outsider(raises="before_subscribe"), Outsider())
    session, reader = pair.client.session, RecordingSubscriber(1)
    target: Any = "s" if protocol == "rsio" else Request(Model.RESPONSE, b"s")
    session.streams.ask(
        target, lambda channel, stream_id: ReceivingStream(channel, stream_id, reader, 1)
    )
    sent = bytes(session.take())
    assert [type(end) for end in reader.ends] == [PluginError]
    assert sent.endswith(b"internal"), sent
    pair.server.session.receive(sent, 0.0)
    assert pair.server.served == []


def test_a_fault_of_the_peer_that_an_extension_finds_has_its_own_reason() -> None:
    """A ProtocolError is told to the peer."""

    class Strict(Outsider):
        def check_subscribe(self, stream_id: int, target: Any, /) -> None:
            raise ProtocolError("a name with a blank", reason="protocol:blank")

    pair = pair_with("rsio", Outsider(), Strict())
    ask(pair)
    assert pair.server.session.close_reason[0] == "protocol:blank"


def test_closed_is_called_once_for_a_connection_that_is_lost() -> None:
    """Streams that end with the connection are not told one by one."""
    there = Outsider()
    pair = pair_with("rsio", Outsider(), there)
    ask(pair)
    pair.server.session.end_of_input()
    assert pair.server.session.state is ConnectionState.LOST
    assert there.named("closed") == [()]
    assert there.named("on_ended") == []


def test_a_connection_without_such_extensions_has_no_observers() -> None:
    """It pays one comparison for each stream, and no object."""
    pair = Pair()
    pair.settle()
    assert pair.server.session.streams.observers is None


# --- requests that wait


def test_a_client_says_nothing_between_its_hello_and_the_first_word_of_the_extension() -> None:
    """Its subscribes, requests and cancels follow in their order
    when the extension lets the peer in.
    """
    here = Meeting(holds=True)
    raw = RawPeer(Role.CLIENT, extensions=[here])
    first, second = RecordingSubscriber(1), RecordingSubscriber(2)
    raw.session.subscribe("a", first)
    raw.session.subscribe("b", second)
    first.request(3)
    second.cancel()
    assert raw.receive() == [rsio.ClientHello(extensions=(200,))]
    raw.send(rsio.ServerHello(extensions=(200,)))
    here.link.send(0x60, b"first word")
    assert raw.receive() == [rsio.ExtensionMessage(type=0x60, body=b"first word")]
    here.link.admit()
    assert raw.receive() == [
        rsio.Subscribe(publisher="a", subscriber=0, demand=1),
        rsio.Subscribe(publisher="b", subscriber=1, demand=2),
        rsio.Request(subscriber=0, demand=3),
        rsio.Cancel(subscriber=1),
    ]
    assert raw.session.state is ConnectionState.OPEN


def test_what_was_held_back_is_never_sent_if_the_connection_ends() -> None:
    """The goodbye goes out, and the streams end with an error."""
    raw = RawPeer(Role.CLIENT, extensions=[Meeting(holds=True)])
    subscriber = RecordingSubscriber(1)
    raw.session.subscribe("a", subscriber)
    raw.session.close("")
    assert raw.receive() == [rsio.ClientHello(extensions=(200,)), rsio.Goodbye(reason="")]
    assert len(subscriber.ends) == 1


def test_elements_that_are_held_hold_requests_back_too() -> None:
    """Their data is changed when it is sent."""
    here = Outsider()
    pair = Pair(extensions=[here], server_extensions=[Outsider()])
    pair.settle()
    here.link.hold_elements()
    pair.subscribe("s", 1)
    pair.settle()
    assert pair.server.served == []
    here.link.resume_elements()
    pair.settle()
    assert len(pair.server.served) == 1


def flip(data: bytes) -> bytes:
    return bytes(letter ^ 0x5A for letter in data)


def test_the_data_of_reactivesocket_requests_is_changed() -> None:
    """In each shape of request. The clear text is nowhere on the wire."""
    here, there = Outsider(), Outsider()
    pair = RsPair(extensions=[here], server_extensions=[there])
    pair.settle()
    here.link.hold_elements()
    for model in (Model.RESPONSE, Model.STREAM, Model.SUBSCRIPTION):
        pair.client.session.subscribe(Request(model, b"secret"), RecordingSubscriber(1))
    pair.client.session.streams.fire(Request(Model.FIRE_AND_FORGET, b"secret"))
    assert not pair.client.session.take()
    there.link.change_elements(incoming=flip)
    here.link.change_elements(outgoing=flip)
    here.link.resume_elements()
    sent = bytes(pair.client.session.take())
    assert b"secret" not in sent
    assert sent.count(flip(b"secret")) == 4
    pair.server.session.receive(sent, 0.0)
    assert [str(stream.target) for stream in pair.server.served] == [
        "RESPONSE secret",
        "STREAM secret",
        "SUBSCRIPTION secret",
    ]
    assert [request.data for request in pair.server.fired_targets] == [b"secret"]


def test_an_extension_introduces_its_reactivesocket_client_and_examines_the_setup() -> None:
    """The server's extension holds the client, so that the service is asked after it; the
    extension is not announced.
    """
    here, there = Meeting(), Meeting(holds=True)
    pair = RsPair(extensions=[here], server_extensions=[there])
    pair.client.session.take()
    setup = rs.encode(rs.Setup(data=here.introduction()))
    request = rs.encode(rs.RequestStream(stream_id=1, demand=1, data=b"s"))
    pair.server.session.receive(setup + request, 0.0)
    assert there.named("meet") == [(b"it is me",)]
    assert pair.server.session.state is ConnectionState.EXAMINING
    assert pair.server.introductions == []
    there.link.admit("alice")
    pair.server.session.receive(b"", 0.0)
    assert pair.server.principal == "alice"
    assert pair.server.introductions == [b"it is me"]
    assert len(pair.server.served) == 1


def test_the_setup_has_the_introduction_of_an_extension_unless_the_program_gives_data() -> None:
    """`setup=` of the program goes first."""
    assert RawSocket(Role.CLIENT, extensions=[Meeting()]).receive() == [rs.Setup(data=b"it is me")]
    mine = RsDelegate(Role.CLIENT, extensions=[Meeting()], setup=b"mine")
    assert bytes(mine.session.take()) == rs.encode(rs.Setup(data=b"mine"))
