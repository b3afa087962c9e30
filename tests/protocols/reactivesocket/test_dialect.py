"""The dialect of ReactiveSocket: the frames that it sends for the session, and two sessions
that speak it.
"""

import pytest

from penstock.api import (
    UNBOUNDED,
    ConnectionLost,
    Limits,
    Model,
    PublicError,
    PublisherFailed,
    Rejected,
    Request,
    Role,
)
from penstock.extensions import Keepalive
from penstock.protocols import reactivesocket as wire
from penstock.protocols.reactivesocket import ReactiveSocketDialect
from penstock.session import ConnectionState, DialectSettings
from tests.protocols.reactivesocket._pair import RawSocket, RsPair
from tests.session._pair import RecordingSubscriber, limits_with


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
    raw = RawSocket(limits=limits_with(churn_burst=1, churn_rate=1e-9)).handshake()
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
