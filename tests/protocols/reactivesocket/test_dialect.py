"""ReactiveSocket as a dialect: how it says what the session core has to say, and two sessions that speak it."""

import pytest

from penstock.api import UNBOUNDED, ConnectionLost, Limits, Model, PublicError, PublisherFailed, Rejected, Request, Role
from penstock.builtin import Keepalive
from penstock.protocols import reactivesocket as wire
from penstock.protocols.reactivesocket import ReactiveSocketDialect
from penstock.session import ConnectionState, DialectSettings
from tests.protocols.reactivesocket._pair import RawSocket, RsPair
from tests.session._pair import Reader, limited


@pytest.mark.parametrize("cut", [1, 7, 1 << 30])
def test_a_stream_flows_by_demand_and_ends(cut: int) -> None:
    """However what is said is cut."""
    pair = RsPair()
    source, reader = pair.ask(Model.STREAM, demand=2)
    assert source.demand == 1  # until it is known how large they are
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


def test_both_sides_ask_over_one_connection_with_ids_of_their_own() -> None:
    """The client's are odd and the server's even."""
    pair = RsPair()
    source, reader = pair.ask(Model.STREAM)
    theirs = pair.client.publishers["STREAM s"] = type(source)()
    back = Reader(3)
    pair.server.session.subscribe(Request(Model.STREAM, b"s"), back)
    pair.settle()
    assert (list(pair.client.session.streams.opened), list(pair.server.session.streams.opened)) == ([1], [2])
    theirs.emit(b"back")
    source.emit(b"forth")
    pair.settle()
    assert (reader.elements, back.elements) == ([b"forth"], [b"back"])


def test_one_value_and_the_end_go_in_one_frame() -> None:
    """The request carries its demand in itself, and the answer its end."""
    raw = RawSocket().greet()
    source = raw.serve("RESPONSE s")
    raw.say(wire.RequestResponse(stream_id=1, data=b"s"))
    assert source.demand == 1
    source.emit(b"value")
    source.complete()
    assert raw.hear() == [wire.Response(stream_id=1, begin=True, end=True, complete=True, data=b"value")]
    assert not raw.session.streams.serving


def test_a_large_value_ends_with_its_last_fragment() -> None:
    """And only with that. (Nobody else waits for a turn, so a fragment is four parts.)"""
    raw = RawSocket(limits=limited(split_outbound_at=4)).greet()
    source = raw.serve("RESPONSE s")
    raw.say(wire.RequestResponse(stream_id=1, data=b"s"))
    source.emit(b"0" * 36)
    source.complete()
    said = [(each.begin, each.end, each.complete, each.data) for each in raw.hear() if isinstance(each, wire.Response)]
    assert [flags for *flags, _ in said] == [[True, False, False], [False, False, False], [False, True, True]]
    assert b"".join(data for *_, data in said) == b"0" * 36


def test_a_request_without_a_value_to_answer_with_fails() -> None:
    """An empty answer would be a value."""
    pair = RsPair()
    source, reader = pair.ask(Model.RESPONSE, demand=1)
    source.complete()
    pair.settle()
    (end,) = reader.ends
    assert isinstance(end, PublisherFailed)
    assert "nothing to answer with" in str(end)


def test_a_subscription_has_no_good_end() -> None:
    """When its publisher ends, its subscriber is told of an error."""
    pair = RsPair()
    source, reader = pair.ask(Model.SUBSCRIPTION)
    source.emit(b"one")
    source.complete()
    pair.settle()
    assert reader.elements == [b"one"]
    (end,) = reader.ends
    assert isinstance(end, PublisherFailed)
    assert str(end) == "subscription terminated"


def test_requests_for_one_value_that_are_answered_are_no_churn() -> None:
    """However many; those that are cancelled or refused are."""
    raw = RawSocket(limits=limited(churn_burst=1, churn_rate=1e-9)).greet()
    for number in range(1, 21):
        source = raw.serve("RESPONSE s")
        raw.say(wire.RequestResponse(stream_id=number, data=b"s"))
        source.emit(b"value")
        source.complete()
    assert raw.session.state is ConnectionState.OPEN
    raw.hear()
    raw.say(wire.RequestResponse(stream_id=21, data=b"s"), wire.Cancel(stream_id=21))
    raw.say(wire.RequestResponse(stream_id=22, data=b"nowhere"))
    assert [each.data for each in raw.hear() if isinstance(each, wire.Error) and not each.stream_id] == [b"limit:churn"]


def test_what_needs_no_answer_arrives_and_leaves_nothing() -> None:
    """No stream on either side."""
    pair = RsPair()
    pair.client.session.fire(Request(Model.FIRE_AND_FORGET, b"shot"))
    pair.settle()
    assert pair.server.shots == [Request(Model.FIRE_AND_FORGET, b"shot")]
    assert not pair.server.session.streams.serving
    assert not pair.client.session.streams.opened


def test_what_needs_no_answer_cannot_be_said_after_the_end() -> None:
    """The reason is raised."""
    pair = RsPair()
    pair.client.session.close("done")
    with pytest.raises(ConnectionLost):
        pair.client.session.fire(Request(Model.FIRE_AND_FORGET, b"shot"))


def test_fixed_sizes_are_not_told_and_every_element_has_its_frame() -> None:
    """What a publisher gives in one piece is taken apart."""
    raw = RawSocket(limits=limited(split_outbound_at=16)).greet()
    source = raw.serve(element_size=4)
    raw.say(wire.RequestStream(stream_id=1, demand=2, data=b"s"))
    source.emit(b"aaaabbbbcccc")
    assert [each.data for each in raw.hear() if isinstance(each, wire.Response)] == [b"aaaa", b"bbbb"]


def test_elements_of_a_fixed_size_that_are_large_are_split() -> None:
    """As any others."""
    raw = RawSocket(limits=limited(split_outbound_at=3)).greet()
    source = raw.serve(element_size=4)
    raw.say(wire.RequestStream(stream_id=1, demand=2, data=b"s"))
    source.emit(b"aaaabbbb")
    said = [(each.begin, each.end, each.data) for each in raw.hear() if isinstance(each, wire.Response)]
    assert said == [(True, False, b"aaa"), (False, True, b"a"), (True, False, b"bbb"), (False, True, b"b")]


def test_a_cancel_frees_the_id_at_once_on_both_sides() -> None:
    """What still arrives is told by its id, which is never used again."""
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


def test_errors_cross_as_text_that_decides_nothing() -> None:
    """A refusal and a failure are the same frame: the text may be a publisher's own words."""
    pair = RsPair()
    source, reader = pair.ask(Model.STREAM)
    source.fail(PublicError("out of stock"))
    refused = Reader(1)
    pair.client.session.subscribe(Request(Model.STREAM, b"nowhere"), refused)
    pair.settle()
    assert [(type(end), str(end)) for end in reader.ends] == [(PublisherFailed, "out of stock")]
    (refusal,) = refused.ends
    assert isinstance(refusal, PublisherFailed)
    assert str(refusal).startswith("no such publisher (penstock says this if ")


def test_a_client_is_accepted_when_it_is_answered_or_after_a_silence() -> None:
    """The protocol has no word for it."""
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


def test_a_refused_client_is_told_in_everything_it_asked_for() -> None:
    """The client cannot know whether a silent server had accepted it before: what it asked for may have been done."""
    pair = RsPair()
    pair.server.waits = True
    _, reader = pair.ask(Model.STREAM)
    assert pair.server.introductions == [b"me"]
    assert pair.server.served == []  # it waits for the verdict
    pair.server.session.close("not you")
    pair.settle()
    (end,), (over,) = reader.ends, pair.client.ended
    assert isinstance(end, Rejected)
    assert "'not you'" in str(end)
    assert end.processed is True
    assert (type(over), str(over)) == (type(end), str(end))


def test_what_waits_for_a_verdict_goes_on_after_it() -> None:
    """In order, and nothing of it is lost."""
    pair = RsPair()
    pair.server.waits = True
    source, _ = pair.ask(Model.STREAM)
    pair.server.session.admit()
    assert source.demand == 0
    pair.server.session.receive(b"", 0.0)
    assert source.demand == 1


def test_a_verdict_that_takes_too_long_ends_the_connection() -> None:
    """As a handshake that takes too long does."""
    raw = RawSocket()
    raw.owner.waits = True
    raw.say(wire.Setup())
    raw.session.tick(Limits().handshake_timeout)
    assert raw.hear() == [wire.Error(stream_id=0, data=b"limit:handshake")]


def test_a_goodbye_with_a_reason_is_an_error_of_the_connection_and_one_without_is_nothing() -> None:
    """It has no answer but the end of the transport."""
    raw = RawSocket().greet()
    raw.session.close("drain")
    assert raw.hear() == [wire.Error(stream_id=0, data=b"drain")]
    assert not raw.session.expects_answer
    quiet = RawSocket().greet()
    quiet.session.close("")
    assert quiet.hear() == []


@pytest.mark.parametrize("reason", ["", "drain"])
def test_what_has_no_answer_is_over_once_it_is_said(reason: str) -> None:
    """Nobody waits for a time-out because a goodbye was not answered, where none ever is; but what was said before it goes out first."""
    raw = RawSocket().greet()
    raw.session.channel.send(b"said before")
    raw.session.close(reason)
    raw.session.tick(5.0)
    assert raw.session.state is ConnectionState.CLOSING_UNANSWERED
    raw.session.take()
    raw.session.tick(5.0)
    assert raw.session.state.is_over


def test_a_client_that_leaves_before_it_was_accepted_hears_a_refusal() -> None:
    """It waits as long as for an answer to a goodbye, and no longer."""
    raw = RawSocket(Role.CLIENT)
    raw.hear()
    raw.session.close("")
    raw.session.tick(5.0)
    assert raw.session.state is ConnectionState.CLOSING
    raw.session.tick(5.0 + raw.session.channel.limits.goodbye_timeout)
    assert raw.session.state.is_over


def test_demand_without_bound_crosses_as_it_is() -> None:
    """2^63-1."""
    raw = RawSocket(Role.CLIENT)
    raw.hear()
    raw.session.subscribe(Request(Model.STREAM, b"s"), Reader(UNBOUNDED))
    assert raw.hear() == [wire.RequestStream(stream_id=1, demand=UNBOUNDED, data=b"s")]


def test_extensions_are_off_until_both_sides_have_shown_theirs() -> None:
    """In frames that a peer without them ignores."""
    both = RsPair(extensions=[Keepalive()], theirs=[Keepalive()])
    both.settle()
    both.client.session.admit()
    both.client.session.dialect.overdue()
    due = both.client.session.dialect.tick(0.0)
    assert due is not None
    alone = RsPair(extensions=[Keepalive()])
    alone.settle()
    assert alone.client.session.dialect.tick(0.0) is None
    assert alone.server.session.state is ConnectionState.OPEN


def test_a_silent_peer_that_has_keepalive_is_asked_and_answers() -> None:
    """A ping comes back, and counts as a sign of life."""
    pair = RsPair(extensions=[Keepalive()], theirs=[Keepalive()])
    pair.settle()
    limits = Limits()
    pair.client.session.dialect.tick(limits.keepalive * 2)
    ping = bytes(pair.client.session.take())
    pair.server.session.receive(ping, 1.0)
    pong = bytes(pair.server.session.take())
    assert ping
    assert len(pong) == len(ping)
    assert pong[-8:] == ping[-8:]


def test_frames_are_cut_apart_for_a_transport_that_delimits_them() -> None:
    """Without their lengths."""
    raw = RawSocket().greet()
    dialect = ReactiveSocketDialect(raw.session, DialectSettings(framed=True))
    said = [wire.Cancel(stream_id=1), wire.RequestN(stream_id=3, demand=2), wire.Setup(data=b"x")]
    whole = bytearray(b"".join(map(wire.encode, said)))
    assert [bytes(each) for each in dialect.split(whole)] == [wire.encode(each, framed=True) for each in said]
