"""The dialect of ReactiveSocket: the frames that it sends for the session, two sessions that speak
it, and frames that are too long.
"""

import pytest

from penstock.api import (
    UNBOUNDED,
    ConnectionLost,
    Limits,
    Model,
    ProtocolError,
    PublicError,
    PublisherFailed,
    Rejected,
    Request,
    Role,
)
from penstock.extensions import Keepalive
from penstock.protocols import reactivesocket as wire
from penstock.protocols.reactivesocket import ReactiveSocketDialect
from penstock.protocols.reactivesocket._dialect import RequestShapes
from penstock.session import ConnectionState, DialectSettings
from tests.protocols.reactivesocket._pair import RawSocket, RsPair
from tests.session._pair import RecordingSubscriber, ScriptedPublisher, limits_with

# --- requests and streams


@pytest.mark.parametrize("cut", [1, 7, 1 << 30])
def test_a_stream_flows_by_demand_and_ends(cut: int) -> None:
    """For chunks of any size."""
    pair = RsPair()
    source, reader = pair.ask(Model.STREAM, demand=2)
    assert source.demand == 1  # one, until the size of an element is known
    source.emit(b"one", b"two")
    pair.settle(cut=cut)
    assert reader.elements == [b"one", b"two"]
    reader.request(1)
    pair.settle(cut=cut)
    assert source.demand == 3
    source.emit(b"")
    source.complete()
    pair.settle(cut=cut)
    assert reader.elements == [b"one", b"two", b""]
    assert reader.ends == ["complete"]
    assert not pair.client.session.streams.opened
    assert not pair.server.session.streams.serving


def test_both_sides_send_requests_over_one_connection_with_their_own_ids() -> None:
    """The ids of the client are odd, those of the server even."""
    pair = RsPair()
    source, reader = pair.ask(Model.STREAM)
    theirs = pair.client.publishers["STREAM s"] = type(source)()
    back = RecordingSubscriber(3)
    pair.server.session.subscribe(Request(Model.STREAM, b"s"), back)
    pair.settle()
    assert (list(pair.client.session.streams.opened), list(pair.server.session.streams.opened)) == (
        [1],
        [2],
    )
    theirs.emit(b"back")
    source.emit(b"forth")
    pair.settle()
    assert (reader.elements, back.elements) == ([b"forth"], [b"back"])


def test_one_value_and_the_end_go_in_one_frame() -> None:
    """The request needs no demand, and the response contains the end."""
    raw = RawSocket().handshake()
    source = raw.serve("RESPONSE s")
    raw.send(wire.RequestResponse(stream_id=1, data=b"s"))
    assert source.demand == 1
    source.emit(b"value")
    source.complete()
    assert raw.receive() == [
        wire.Response(stream_id=1, begin=True, end=True, complete=True, data=b"value")
    ]
    assert not raw.session.streams.serving


def test_a_large_value_completes_with_its_last_part() -> None:
    """Only the last part has E and C.
    No other stream sends, so each part has four times `split_outbound_at`.
    """
    raw = RawSocket(limits=limits_with(split_outbound_at=4)).handshake()
    source = raw.serve("RESPONSE s")
    raw.send(wire.RequestResponse(stream_id=1, data=b"s"))
    source.emit(b"0" * 36)
    source.complete()
    said = [
        (each.begin, each.end, each.complete, each.data)
        for each in raw.receive()
        if isinstance(each, wire.Response)
    ]
    assert [flags for *flags, _ in said] == [
        [True, False, False],
        [False, False, False],
        [False, True, True],
    ]
    assert b"".join(data for *_, data in said) == b"0" * 36


def test_a_request_for_one_value_fails_if_the_publisher_has_none() -> None:
    """An empty response would be a value."""
    pair = RsPair()
    source, reader = pair.ask(Model.RESPONSE, demand=1)
    source.complete()
    pair.settle()
    (end,) = reader.ends
    assert isinstance(end, PublisherFailed)
    assert "nothing to answer with" in str(end)


def test_a_subscription_that_completes_ends_with_an_error() -> None:
    """The subscriber gets the error "subscription terminated"."""
    pair = RsPair()
    source, reader = pair.ask(Model.SUBSCRIPTION)
    source.emit(b"one")
    source.complete()
    pair.settle()
    assert reader.elements == [b"one"]
    (end,) = reader.ends
    assert isinstance(end, PublisherFailed)
    assert str(end) == "subscription terminated"


def test_answered_requests_for_one_value_do_not_count_as_churn() -> None:
    """20 answered requests are fine with a burst of 1. Cancelled and refused requests count."""
    raw = RawSocket(limits=limits_with(churn=1)).handshake()
    for number in range(1, 21):
        source = raw.serve("RESPONSE s")
        raw.send(wire.RequestResponse(stream_id=number, data=b"s"))
        source.emit(b"value")
        source.complete()
    assert raw.session.state is ConnectionState.OPEN
    raw.receive()
    raw.send(wire.RequestResponse(stream_id=21, data=b"s"), wire.Cancel(stream_id=21))
    raw.send(wire.RequestResponse(stream_id=22, data=b"nowhere"))
    assert [
        each.data for each in raw.receive() if isinstance(each, wire.Error) and not each.stream_id
    ] == [b"limit:churn"]


def test_fire_and_forget_opens_no_stream() -> None:
    """Neither side has an entry in its table of streams."""
    pair = RsPair()
    pair.client.session.streams.fire(Request(Model.FIRE_AND_FORGET, b"shot"))
    pair.settle()
    assert pair.server.fired_targets == [Request(Model.FIRE_AND_FORGET, b"shot")]
    assert not pair.server.session.streams.serving
    assert not pair.client.session.streams.opened


def test_fire_and_forget_after_the_end_raises() -> None:
    """The exception is the reason of the end."""
    pair = RsPair()
    pair.client.session.close("done")
    with pytest.raises(ConnectionLost):
        pair.client.session.streams.fire(Request(Model.FIRE_AND_FORGET, b"shot"))


def test_each_element_of_fixed_size_has_its_own_frame() -> None:
    """The protocol has neither element sizes nor packed elements,
    so elements from one buffer are separated.
    """
    raw = RawSocket(limits=limits_with(split_outbound_at=16)).handshake()
    source = raw.serve(element_size=4)
    raw.send(wire.RequestStream(stream_id=1, demand=2, data=b"s"))
    source.emit(b"aaaabbbbcccc")
    assert [each.data for each in raw.receive() if isinstance(each, wire.Response)] == [
        b"aaaa",
        b"bbbb",
    ]


def test_large_elements_of_fixed_size_are_split() -> None:
    """Like other large elements."""
    raw = RawSocket(limits=limits_with(split_outbound_at=3)).handshake()
    source = raw.serve(element_size=4)
    raw.send(wire.RequestStream(stream_id=1, demand=2, data=b"s"))
    source.emit(b"aaaabbbb")
    said = [
        (each.begin, each.end, each.data)
        for each in raw.receive()
        if isinstance(each, wire.Response)
    ]
    assert said == [
        (True, False, b"aaa"),
        (False, True, b"a"),
        (True, False, b"bbb"),
        (False, True, b"b"),
    ]


def test_a_cancel_removes_the_stream_at_once_on_both_sides() -> None:
    """Late frames are recognised by their id, which is never used again."""
    pair = RsPair()
    source, reader = pair.ask(Model.STREAM)
    source.emit(b"late")
    reader.cancel()
    pair.settle()
    assert source.cancels == 1
    assert reader.elements == []
    assert not pair.client.session.streams.opened
    assert not pair.server.session.streams.serving
    assert pair.client.session.state is ConnectionState.OPEN


def test_the_text_of_an_error_does_not_make_it_a_refusal() -> None:
    """A refusal and a failure are the same frame, and a publisher may choose the same text."""
    pair = RsPair()
    source, reader = pair.ask(Model.STREAM)
    source.fail(PublicError("out of stock"))
    refused = RecordingSubscriber(1)
    pair.client.session.subscribe(Request(Model.STREAM, b"nowhere"), refused)
    pair.settle()
    assert [(type(end), str(end)) for end in reader.ends] == [(PublisherFailed, "out of stock")]
    (refusal,) = refused.ends
    assert isinstance(refusal, PublisherFailed)
    assert str(refusal).startswith("no such publisher (penstock says this if ")


def test_a_client_is_accepted_with_the_first_answer_or_after_the_handshake_timeout() -> None:
    """The protocol has no frame that accepts a SETUP."""
    pair = RsPair()
    pair.settle()
    assert not pair.client.is_open
    source, _ = pair.ask(Model.STREAM)
    source.emit(b"x")
    pair.settle()
    assert pair.client.is_open
    silent = RsPair()
    silent.settle()
    silent.client.session.tick(Limits().handshake_timeout)
    assert silent.client.is_open
    assert silent.client.session.state is ConnectionState.OPEN


def test_each_request_of_a_refused_client_ends_with_the_refusal() -> None:
    """The server may have accepted the client before, without a frame that says so:
    it may have acted on the requests.
    """
    pair = RsPair()
    pair.server.waits = True
    _, reader = pair.ask(Model.STREAM)
    assert pair.server.introductions == [b"me"]
    assert pair.server.served == []  # the request waits until the SETUP is examined
    pair.server.session.close("not you")
    pair.settle()
    (end,), (over,) = reader.ends, pair.client.ended
    assert isinstance(end, Rejected)
    assert "'not you'" in str(end)
    assert end.processed is True
    assert (type(over), str(over)) == (type(end), str(end))


def test_a_request_that_waits_for_the_examination_is_served_after_it() -> None:
    """It is decoded with the next call of `receive`, even without new data."""
    pair = RsPair()
    pair.server.waits = True
    source, _ = pair.ask(Model.STREAM)
    pair.server.session.admit()
    assert source.demand == 0
    pair.server.session.receive(b"", 0.0)
    assert source.demand == 1


def test_an_examination_that_takes_too_long_ends_the_connection() -> None:
    """After `handshake_timeout`, with the reason `limit:handshake`."""
    raw = RawSocket()
    raw.delegate.waits = True
    raw.send(wire.Setup())
    raw.session.tick(Limits().handshake_timeout)
    assert raw.receive() == [wire.Error(stream_id=0, data=b"limit:handshake")]


def test_a_goodbye_with_a_reason_is_an_error_on_stream_0() -> None:
    """Without a reason nothing is sent. No answer is expected but the end of the transport."""
    raw = RawSocket().handshake()
    raw.session.close("drain")
    assert raw.receive() == [wire.Error(stream_id=0, data=b"drain")]
    assert not raw.session.channel.dialect.answers_goodbye
    quiet = RawSocket().handshake()
    quiet.session.close("")
    assert quiet.receive() == []


@pytest.mark.parametrize("reason", ["", "drain"])
def test_the_session_is_over_as_soon_as_its_last_bytes_are_taken(reason: str) -> None:
    """It does not wait for an answer to the goodbye.
    Before the bytes are taken it is still leaving.
    """
    raw = RawSocket().handshake()
    raw.session.channel.send(b"said before")
    raw.session.close(reason)
    raw.session.tick(5.0)
    assert raw.session.state is ConnectionState.CLOSING_UNANSWERED
    raw.session.take()
    raw.session.tick(5.0)
    assert raw.session.state.is_over


def test_a_client_that_leaves_before_it_is_accepted_waits_for_a_refusal() -> None:
    """The session is closing until `goodbye_timeout` has passed."""
    raw = RawSocket(Role.CLIENT)
    raw.receive()
    raw.session.close("")
    raw.session.tick(5.0)
    assert raw.session.state is ConnectionState.CLOSING
    raw.session.tick(5.0 + raw.session.channel.limits.goodbye_timeout)
    assert raw.session.state.is_over


def test_demand_without_bound_is_sent_as_2_63_minus_1() -> None:
    """The largest demand of a frame means the same."""
    raw = RawSocket(Role.CLIENT)
    raw.receive()
    raw.session.subscribe(Request(Model.STREAM, b"s"), RecordingSubscriber(UNBOUNDED))
    assert raw.receive() == [wire.RequestStream(stream_id=1, demand=UNBOUNDED, data=b"s")]


def test_an_extension_is_active_when_both_sides_have_announced_it() -> None:
    """With frames that a peer without it ignores."""
    both = RsPair(extensions=[Keepalive()], server_extensions=[Keepalive()])
    both.settle()
    both.client.session.admit()
    both.client.session.channel.dialect.overdue()
    assert both.client.session.streams.use.keepalive is not None
    assert both.server.session.streams.use.keepalive is not None
    alone = RsPair(extensions=[Keepalive()])
    alone.settle()
    assert alone.client.session.streams.use.keepalive is None
    assert alone.server.session.state is ConnectionState.OPEN


@pytest.mark.parametrize("arrived", [19, 20, 1000])
def test_a_ping_of_an_extension_is_refused_on_its_length(arrived: int) -> None:
    """As soon as its extended type is there, and not before: the type has the code."""
    pair = RsPair(extensions=[Keepalive()], server_extensions=[Keepalive()])
    pair.settle()
    frame = wire.encode(wire.Ext(stream_id=0, ignore=True, ext_type=0x140, data=bytes(5000)))
    pair.server.session.receive(frame[:arrived], 0.0)
    is_refused = pair.server.session.state is not ConnectionState.OPEN
    assert is_refused is (arrived >= 20)


def test_a_silent_peer_with_keepalive_answers_a_ping() -> None:
    """The pong has the body of the ping."""
    pair = RsPair(extensions=[Keepalive()], server_extensions=[Keepalive()])
    pair.settle()
    limits = Limits()
    pair.client.session.admit()
    pair.client.session.channel.dialect.overdue()
    pair.client.session.tick(limits.keepalive * 2)
    ping = bytes(pair.client.session.take())
    pair.server.session.receive(ping, 1.0)
    pong = bytes(pair.server.session.take())
    assert ping
    assert len(pong) == len(ping)
    assert pong[-8:] == ping[-8:]


def test_split_returns_each_frame_without_its_length() -> None:
    """As a transport that delivers messages needs them."""
    raw = RawSocket().handshake()
    dialect = ReactiveSocketDialect(raw.session, DialectSettings(framed=True))
    said = [wire.Cancel(stream_id=1), wire.RequestN(stream_id=3, demand=2), wire.Setup(data=b"x")]
    whole = bytearray(b"".join(map(wire.encode, said)))
    assert [bytes(each) for each in dialect.split(whole)] == [
        wire.encode(each, framed=True) for each in said
    ]


# --- request shapes


def test_the_tables_begin_empty_and_are_a_connections_own() -> None:
    """Two connections share nothing."""
    one, other = RequestShapes(), RequestShapes()
    one.single.add(1)
    one.answering[2] = Model.RESPONSE
    assert (other.single, other.answering) == (set(), {})


# --- too long


MOST = 1000
LIMITS = limits_with(max_frame=MOST)
LONG = bytes(MOST + 1)
CUTS = [1, 7, 15, 16, 17, 400, 1 << 20]
"""Sizes of the chunks that a frame arrives in:
within its length, its header, its body, and all at once.
"""


def client(
    model: Model = Model.STREAM,
) -> tuple[RawSocket, RecordingSubscriber, RecordingSubscriber]:
    """Return a client with the streams 1 and 3, of which the server has answered neither."""
    raw = RawSocket(Role.CLIENT, limits=LIMITS)
    readers = RecordingSubscriber(5), RecordingSubscriber(5)
    for reader in readers:
        raw.session.subscribe(Request(model, b"s"), reader)
    raw.receive()
    return raw, *readers


def server() -> RawSocket:
    return RawSocket(Role.SERVER, limits=LIMITS).handshake()


def send_in_pieces(raw: RawSocket, data: bytes, size: int) -> None:
    for start in range(0, len(data), size):
        raw.send(data[start : start + size])


@pytest.mark.parametrize("size", CUTS)
@pytest.mark.parametrize("model", [Model.STREAM, Model.RESPONSE, Model.SUBSCRIPTION])
def test_a_response_that_is_too_long_ends_its_stream_alone(model: Model, size: int) -> None:
    """The peer gets a CANCEL, the subscriber a ProtocolError, and the other stream its element."""
    raw, ended, other = client(model)
    send_in_pieces(
        raw,
        wire.encode(wire.Response(stream_id=1, data=LONG))
        + wire.encode(wire.Response(stream_id=3, data=b"e")),
        size,
    )
    (error,) = ended.ends
    assert isinstance(error, ProtocolError)
    assert error.reason == "limit:frame 1001 > 1000"
    assert "Limits.max_frame" in str(error)
    assert raw.receive() == [wire.Cancel(stream_id=1)]
    assert other.elements == [b"e"]
    assert raw.session.state is ConnectionState.OPEN


def test_the_body_is_not_held() -> None:
    """A body of 256 MiB costs no more than the chunk that it comes in."""
    raw, ended, _ = client()
    raw.send((16 + (1 << 28)).to_bytes(4) + wire.encode(wire.Response(stream_id=1, data=b""))[4:])
    assert len(ended.ends) == 1
    held = raw.session.held()
    for _ in range(1 << 12):
        raw.send(bytes(1 << 16))
        assert raw.session.held() == held
    assert raw.session.state is ConnectionState.OPEN
    raw.send(wire.Response(stream_id=3, data=b"e"))
    assert raw.session.state is ConnectionState.OPEN


def test_a_longer_body_ends_the_connection() -> None:
    """Its length is more likely the first bytes of another protocol."""
    raw, _, _ = client()
    raw.send((17 + (1 << 28)).to_bytes(4))
    assert raw.receive() == [wire.Error(stream_id=0, data=b"limit:frame 268435457 > 1000")]


def test_an_error_that_is_too_long_ends_its_stream_as_an_error_does() -> None:
    """The stream has ended on the other side, so no CANCEL goes out. The text was not read."""
    raw, ended, _ = client()
    raw.send(wire.Error(stream_id=1, data=LONG))
    assert [type(error) for error in ended.ends] == [PublisherFailed]
    assert raw.receive() == []


@pytest.mark.parametrize("kind", [wire.RequestStream, wire.RequestSub])
def test_a_request_that_is_too_long_is_refused(
    kind: type[wire.RequestStream] | type[wire.RequestSub],
) -> None:
    """With an ERROR on its id. The publisher with the first bytes of its data as a name is not
    asked.
    """
    raw = server()
    raw.send(kind(stream_id=1, demand=1, data=LONG))
    assert raw.receive() == [wire.Error(stream_id=1, data=b"too long")]
    assert raw.delegate.served == []
    raw.send(wire.RequestResponse(stream_id=3, data=LONG))
    assert raw.receive() == [wire.Error(stream_id=3, data=b"too long")]
    assert raw.session.state is ConnectionState.OPEN


def long_frame(kind: int, stream_id: int, flags: int = 0) -> bytes:
    return (
        (16 + len(LONG)).to_bytes(4)
        + bytes((0, flags))
        + kind.to_bytes(2)
        + stream_id.to_bytes(8)
        + LONG
    )


def test_demand_and_cancel_that_are_too_long_end_their_stream() -> None:
    """A CANCEL has its meaning in its header. A demand cannot be read."""
    for kind, answer in (
        (wire.FrameType.CANCEL, []),
        (wire.FrameType.REQUEST_N, [wire.Error(stream_id=1, data=b"too long")]),
    ):
        raw = server()
        source = raw.delegate.publishers["STREAM s"] = ScriptedPublisher()
        raw.send(wire.RequestStream(stream_id=1, demand=1, data=b"s"))
        raw.receive()
        raw.send(long_frame(kind, 1))
        assert source.cancels == 1
        assert raw.receive() == answer


IGNORED = {
    "message without an answer": long_frame(wire.FrameType.REQUEST_FNF, 1),
    "second SETUP": long_frame(wire.FrameType.SETUP, 0),
    "response to nothing": long_frame(wire.FrameType.RESPONSE, 9),
    "error to nothing": long_frame(wire.FrameType.ERROR, 9),
    "demand for nothing": long_frame(wire.FrameType.REQUEST_N, 9),
    "request on stream 0": long_frame(wire.FrameType.REQUEST_STREAM, 0),
    "unknown type that may be ignored": long_frame(0x30, 1, flags=0x80),
    "extension that may be ignored": long_frame(wire.FrameType.EXT, 0, flags=0x80),
}


@pytest.mark.parametrize("frame", IGNORED.values(), ids=IGNORED)
def test_other_frames_that_are_too_long_are_ignored(frame: bytes) -> None:
    """They name no stream that could end.
    Each costs a token, so a flood of them ends the connection.
    """
    raw = server()
    raw.send(frame)
    assert raw.receive() == []
    raw.send(frame * 1100)
    assert raw.session.state.is_closing


FATAL = {
    "an extension that may not be ignored": long_frame(wire.FrameType.EXT, 0),
    "an error of the connection": long_frame(wire.FrameType.ERROR, 0),
}


@pytest.mark.parametrize("frame", FATAL.values(), ids=FATAL)
def test_a_frame_about_the_connection_ends_the_connection(frame: bytes) -> None:
    """Its meaning cannot be read, and it may not be ignored."""
    raw = server()
    raw.send(frame)
    assert raw.receive() == [wire.Error(stream_id=0, data=b"limit:frame 1001 > 1000")]


def test_before_setup_a_frame_that_is_too_long_ends_the_connection() -> None:
    """On its length: the client is unknown."""
    raw = RawSocket(Role.SERVER, limits=LIMITS)
    raw.send((16 + MOST + 1).to_bytes(4))
    assert raw.receive() == [wire.Error(stream_id=0, data=b"limit:frame 1001 > 1000")]


def test_a_short_extension_that_may_be_ignored_is_skipped() -> None:
    """Its type is missing, so no side can know it."""
    for size in range(4):
        raw = server()
        raw.send((16 + size).to_bytes(4) + bytes.fromhex("0080ffff") + bytes(8) + bytes(size))
        assert raw.receive() == []
        assert raw.session.state is ConnectionState.OPEN


TO_IGNORE = {
    "extension": wire.encode(wire.Ext(stream_id=0, ignore=True, ext_type=9, data=bytes(MOST - 4))),
    "type": (16 + MOST).to_bytes(4) + bytes((0, 0x80)) + (0x30).to_bytes(2) + bytes(8 + MOST),
}
"""Frames of the greatest length that `Limits.max_frame` permits.
Nothing of version 0 knows them.
"""


@pytest.mark.parametrize("frame", TO_IGNORE.values(), ids=TO_IGNORE)
def test_a_frame_to_ignore_is_dropped_as_it_arrives(frame: bytes) -> None:
    """After the header and the extended type nothing of it is held, and the next frame is read."""
    raw = server()
    for position in range(len(frame)):
        raw.send(frame[position : position + 1])
        assert raw.session.held() <= 20
    raw.send(wire.RequestStream(stream_id=1, demand=1, data=b"s"))
    assert [each.stream_id for each in raw.receive() if isinstance(each, wire.Error)] == [1]
    assert raw.session.state is ConnectionState.OPEN


@pytest.mark.parametrize("size", CUTS)
@pytest.mark.parametrize(
    ("name", "limits", "reason"),
    [
        (
            "extension",
            limits_with(max_frame=MOST, controls=3),
            b"limit:control",
        ),
        ("type", limits_with(max_frame=MOST, glitches=3), b"limit:glitches"),
    ],
    ids=["extension", "type"],
)
def test_a_frame_to_ignore_costs_one_token_in_chunks_of_any_size(
    name: str, limits: Limits, reason: bytes, size: int
) -> None:
    """A flood of them ends the connection, and not sooner because they are cut."""
    raw = RawSocket(Role.SERVER, limits=limits).handshake()
    send_in_pieces(raw, TO_IGNORE[name] * 3, size)
    assert raw.session.state is ConnectionState.OPEN
    send_in_pieces(raw, TO_IGNORE[name], size)
    assert raw.receive() == [wire.Error(stream_id=0, data=reason)]


def test_an_unknown_extension_that_may_not_be_ignored_ends_the_connection_before_its_body() -> None:
    """Its extended type and one more byte are enough."""
    raw = server()
    raw.send(wire.encode(wire.Ext(stream_id=0, ignore=False, ext_type=9, data=bytes(900)))[:21])
    assert raw.receive() == [wire.Error(stream_id=0, data=b"protocol:extension 9")]


@pytest.mark.parametrize("frame", TO_IGNORE.values(), ids=TO_IGNORE)
def test_before_setup_a_frame_to_ignore_ends_the_connection_before_its_body(frame: bytes) -> None:
    """The client is unknown, and a SETUP comes first."""
    raw = RawSocket(Role.SERVER, limits=LIMITS)
    raw.send(frame[:21])
    assert raw.receive() == [wire.Error(stream_id=0, data=b"protocol:setup")]
