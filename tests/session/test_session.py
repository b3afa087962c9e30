"""The conversation: handshake, streams, and the three answers to bad input."""

from typing import Any

import pytest

from penstock.api import UNBOUNDED, ConnectionLost, ProtocolError, PublicError, PublisherFailed, Rejected, Role
from penstock.session import ConnectionState
from penstock.wire import rsio
from tests.session._pair import Owner, Pair, RawPeer, Reader, Script, limited


def _streaming(pair: Pair, demand: int = 5, **script: Any) -> tuple[Script, Reader]:
    source = pair.server.publishers["s"] = Script(**script)
    reader = pair.subscribe("s", demand)
    pair.settle()
    return source, reader


def test_both_sides_are_open_after_the_hellos() -> None:
    """The handshake takes one message of each side."""
    pair = Pair()
    assert pair.settle() == 6
    assert pair.client.is_open and pair.server.is_open


def test_a_client_speaks_on_without_waiting() -> None:
    """False start: hello, subscribe and demand are one piece of bytes."""
    pair = Pair()
    source = pair.server.publishers["s"] = Script()
    pair.subscribe("s", 3)
    assert bytes(pair.client.session.take()) == bytes.fromhex("010000 1001730003")
    del source


def test_a_server_says_nothing_before_it_has_heard_the_client() -> None:
    """It must not speak a version that the client does not have."""
    assert bytes(Owner(Role.SERVER).session.take()) == b""


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 1 << 20])
def test_elements_arrive_in_order_however_the_wire_cuts_them(cut: int) -> None:
    """The same stream in pieces of every small size."""
    pair = Pair()
    source, reader = _streaming(pair, 100)
    sent = [bytes([number]) * number for number in range(40)]
    source.emit(*sent)
    source.complete()
    pair.settle(cut=cut)
    assert reader.elements == sent
    assert reader.ends == ["complete"]


def test_demand_reaches_the_publisher_and_no_more() -> None:
    """The sum of what the publisher was asked for is what the subscriber asked for."""
    pair = Pair()
    source, reader = _streaming(pair, 3)
    assert source.demand <= 3
    source.emit(b"a", *[b"b"] * (source.demand - 1))
    reader.request(4)
    pair.settle()
    while source.demand > len(reader.elements):
        source.emit(b"c" * 1)
        pair.settle()
    assert source.demand == len(reader.elements) == 7


def test_a_publisher_that_nobody_asks_is_not_even_attached() -> None:
    """An idle stream of a generator costs an object, not a subscription."""
    pair = Pair()
    source, reader = _streaming(pair, 0, is_lazy=True)
    assert source.subscriber is None
    reader.request(1)
    pair.settle()
    assert source.demand == 1


def test_a_cancel_stops_the_publisher_and_what_was_under_way_is_dropped() -> None:
    """What crossed the cancel is delimited, dropped, and costs a glitch."""
    pair = Pair()
    source, reader = _streaming(pair)
    source.emit(b"x")
    reader.cancel()
    pair.settle()
    assert source.cancels == 1
    assert reader.elements == []
    assert pair.client.session.state is ConnectionState.OPEN


def test_failures_of_publishers_keep_their_text_at_home() -> None:
    """Only a PublicError's text crosses the wire; the owner is told everything."""
    pair = Pair()
    source, reader = _streaming(pair)
    secret = ValueError("the password is 123")
    source.fail(secret)
    pair.settle()
    assert str(reader.ends[0]) == "the publisher failed"
    assert pair.server.failures == [secret]
    source, reader = _streaming(pair)
    source.fail(PublicError("no such symbol"))
    pair.settle()
    assert isinstance(reader.ends[0], PublisherFailed) and str(reader.ends[0]) == "no such symbol"


def test_an_unknown_publisher_is_a_rejection() -> None:
    """An error before the stream began was never a failure of the publisher."""
    pair = Pair()
    reader = pair.subscribe("nobody", 1)
    pair.settle()
    assert isinstance(reader.ends[0], Rejected)


def test_large_elements_are_split_and_others_get_their_turn() -> None:
    """A small element of another stream overtakes the rest of a large one."""
    pair = Pair(limits=limited(split_outbound_at=100))
    large, reader = _streaming(pair, 5)
    small = pair.server.publishers["t"] = Script()
    other = pair.subscribe("t", 5)
    pair.settle()
    large.emit(bytes(1000))
    small.emit(bytes(101))
    small.complete()
    first = bytes(pair.server.session.take())
    heard = rsio.MessageList()
    for stream in (0, 1):
        heard.control(rsio.OnSubscribe(subscriber=stream))
    rsio.RsioDecoder(heard, heard.streams).feed(first)
    order = [message.subscriber for message in heard.messages[2:] if isinstance(message, rsio.OnNextPart | rsio.OnNextLastPart)]
    assert order[:4] == [0, 1, 0, 1]
    pair.client.session.receive(first, 0.0)
    pair.settle()
    assert reader.elements == [bytes(1000)]
    assert other.elements == [bytes(101)]
    assert other.ends == ["complete"]


def test_elements_of_fixed_size_go_packed() -> None:
    """Three elements, one header; and a piece of several counts as several."""
    pair = Pair()
    source, reader = _streaming(pair, 6, element_size=4)
    source.emit(b"aaaabbbb", b"cccc")
    data = bytes(pair.server.session.take())
    assert data == bytes([0x22, 0, 3]) + b"aaaabbbbcccc"
    pair.client.session.receive(data, 0.0)
    assert reader.elements == [b"aaaa", b"bbbb", b"cccc"]


def test_a_piece_of_more_than_was_asked_for_waits_for_demand() -> None:
    """The surplus is kept, nothing is pulled meanwhile, and completion comes after it."""
    pair = Pair()
    source, reader = _streaming(pair, 1, element_size=2)
    source.emit(b"aabbcc")
    source.complete()
    pair.settle()
    assert reader.elements == [b"aa"]
    asked = source.demand
    reader.request(1)
    pair.settle()
    assert reader.elements == [b"aa", b"bb"]
    assert reader.ends == []
    reader.request(5)
    pair.settle()
    assert reader.elements == [b"aa", b"bb", b"cc"]
    assert reader.ends == ["complete"]
    assert source.demand == asked


def test_a_peer_that_never_reads_costs_a_fixed_number_of_bytes() -> None:
    """Demand without bound permits sending, not buffering."""
    pair = Pair(limits=limited(outbound_high=10_000))
    source, _ = _streaming(pair, UNBOUNDED)
    emitted = 0
    while source.demand > emitted:
        source.emit(bytes(1000))
        emitted += 1
        assert emitted < 100
    assert pair.server.session.outbox.waiting < 20_000
    pair.settle()
    assert source.demand > emitted


def test_goodbye_ends_everything_on_both_sides() -> None:
    """Publishers are cancelled, subscribers get ConnectionLost, and both sessions are over."""
    pair = Pair()
    source, reader = _streaming(pair)
    pair.client.session.leave("shutdown")
    pair.settle()
    assert isinstance(reader.ends[0], ConnectionLost)
    assert source.cancels == 1
    assert pair.client.session.state is pair.server.session.state is ConnectionState.OVER
    assert len(pair.client.ended) == len(pair.server.ended) == 1


def test_crossing_goodbyes_answer_each_other() -> None:
    """Each side says one goodbye, and no second one in answer."""
    pair = Pair()
    pair.settle()
    pair.client.session.leave("a")
    pair.server.session.leave("b")
    assert pair.settle() == 6
    assert pair.client.session.state is pair.server.session.state is ConnectionState.OVER


def test_a_goodbye_that_nobody_answers_ends_by_its_deadline() -> None:
    """The owner is told when to look again, and then it is over."""
    pair = Pair()
    pair.settle()
    session = pair.client.session
    session.leave("a")
    assert session.tick(1.0) == 2.0
    assert session.tick(2.0) is None
    assert session.state is ConnectionState.OVER


def test_a_server_of_another_version_has_discarded_everything() -> None:
    """The client says goodbye, and asking again is safe."""
    raw = RawPeer(Role.CLIENT)
    reader = Reader(1)
    raw.session.subscribe("s", reader)
    raw.hear()
    raw.say(rsio.ServerHello(version=1))
    assert raw.reason() == "version 0"
    assert isinstance(reader.ends[0], Rejected) and not reader.ends[0].processed


FATAL: list[tuple[str, list[rsio.Message | bytes], str]] = [
    ("an unknown type", [b"\x7f"], "protocol:type 0x7f"),
    ("a reserved type", [b"\x00"], "protocol:type 0x00"),
    ("an extension's message without it", [rsio.ExtensionMessage(type=0x40, body=b"")], "protocol:type 0x40"),
    ("a second hello", [rsio.ClientHello()], "protocol:hello"),
    ("the other side's hello", [rsio.ServerHello()], "protocol:hello"),
    ("an endless varint", [b"\x12" + b"\xff" * 9], "protocol:varint"),
    ("a varint longer than it must be", [b"\x12\x80\x00"], "protocol:varint"),
    ("an element for nobody", [rsio.OnNext(subscriber=7, element=b"")], "protocol:stream 7"),
    ("an end for nobody", [rsio.OnComplete(subscriber=7)], "protocol:stream 7"),
    ("a live id", [rsio.Subscribe(publisher="s", subscriber=1), rsio.Subscribe(publisher="s", subscriber=1)], "protocol:subscribe 1"),
    ("an endless name", [b"\x10" + rsio.encode_varint(2**62)], f"limit:name {2**62} > 1024"),
    ("an endless error", [b"\x26\x00" + rsio.encode_varint(2**62)], f"limit:text {2**62} > 4096"),
    ("a switch of the encoding", [rsio.SwitchEncoding(extension=16)], "protocol:type 0x04"),
]


@pytest.mark.parametrize(("said", "reason"), [case[1:] for case in FATAL], ids=[case[0] for case in FATAL])
def test_what_cannot_be_trusted_ends_the_connection_with_its_reason(said: list[Any], reason: str) -> None:
    """Goodbye with a fixed reason; publishers are cancelled; nothing the peer says afterwards counts."""
    raw = RawPeer().greet()
    source = raw.owner.publishers["s"] = Script()
    raw.say(rsio.Subscribe(publisher="s", subscriber=100, demand=1))
    raw.hear()
    raw.say(*said)
    assert raw.reason() == reason
    assert source.cancels >= 1
    raw.say(rsio.Subscribe(publisher="s", subscriber=101, demand=1))
    assert raw.hear() == []


def test_a_message_before_the_hello_ends_the_connection() -> None:
    """Whoever does not say hello first speaks something else."""
    raw = RawPeer()
    raw.say(rsio.Subscribe(publisher="s", subscriber=0))
    assert raw.reason() == "protocol:hello"


def test_too_much_before_the_hello_ends_the_connection() -> None:
    """A hello that never ends cannot be waited for."""
    raw = RawPeer(limits=limited(preauth_bytes=8))
    raw.say(b"\x01\x00\x40" + b"\x01" * 7)
    assert raw.reason() == "limit:hello"


def test_silence_before_the_hello_ends_by_its_deadline() -> None:
    """A connection that says nothing holds its place for a while only."""
    raw = RawPeer()
    assert raw.session.tick(0.0) == 10.0
    raw.session.tick(10.0)
    assert raw.reason() == "limit:handshake"


def test_races_are_tolerated_until_the_budget_is_spent() -> None:
    """A request for a stream that has just ended is nobody's fault; a thousand of them are."""
    raw = RawPeer(limits=limited(glitch_burst=3, glitch_rate=1)).greet()
    for _ in range(3):
        raw.say(rsio.Cancel(subscriber=9))
    assert raw.hear() == []
    raw.say(rsio.Cancel(subscriber=9))
    assert raw.reason() == "limit:glitches"


def test_the_budget_fills_again_with_time() -> None:
    """One oddity a second may go on for ever."""
    raw = RawPeer(limits=limited(glitch_burst=2, glitch_rate=1)).greet()
    for second in range(20):
        raw.now = float(second)
        raw.say(rsio.Cancel(subscriber=9))
    assert raw.hear() == []


@pytest.mark.parametrize("demand", [0])
def test_an_illegal_demand_ends_that_stream_only(demand: int) -> None:
    """Rule 3.9, over the wire."""
    raw = RawPeer().greet()
    source = raw.owner.publishers["s"] = Script()
    raw.say(rsio.Subscribe(publisher="s", subscriber=1, demand=1), rsio.Request(subscriber=1, demand=demand))
    assert raw.hear()[-1] == rsio.OnError(subscriber=1, error="illegal demand")
    assert source.cancels == 1
    assert raw.session.state is ConnectionState.OPEN


def test_a_name_that_is_no_text_is_refused() -> None:
    """The message's end is known, so the connection goes on."""
    raw = RawPeer().greet()
    raw.say(b"\x10\x02\xff\xfe\x05\x00")
    assert raw.hear() == [rsio.OnError(subscriber=5, error="the publisher's name is no UTF-8")]
    assert raw.session.state is ConnectionState.OPEN


def test_streams_are_bounded_in_number_and_the_dying_count() -> None:
    """A cancelled publisher that still runs keeps its place."""
    raw = RawPeer(limits=limited(max_subscriptions=2)).greet()
    raw.owner.publishers["s"] = Script()
    raw.say(*[rsio.Subscribe(publisher="s", subscriber=each) for each in (1, 2, 3)])
    assert raw.hear()[-1] == rsio.OnError(subscriber=3, error="refused")
    raw.session.stopping()
    raw.say(rsio.Cancel(subscriber=1), rsio.Subscribe(publisher="s", subscriber=4))
    assert raw.hear()[-1] == rsio.OnError(subscriber=4, error="refused")
    raw.session.stopped()
    raw.say(rsio.Subscribe(publisher="s", subscriber=5))
    assert raw.hear()[-1] == rsio.OnSubscribe(subscriber=5)


def _reading(raw: RawPeer, demand: int, element_size: int = 0) -> Reader:
    reader = Reader(demand)
    raw.session.subscribe("s", reader)
    raw.say(rsio.OnSubscribe(subscriber=0, element_size=element_size))
    raw.hear()
    return reader


OVERRUNS: list[tuple[str, int, list[rsio.Message]]] = [
    ("beyond demand", 0, [rsio.OnNext(subscriber=0, element=b"a")] * 3),
    ("packed beyond demand", 1, [rsio.OnNextPacked(subscriber=0, count=3, elements=b"abc")]),
    ("a part beyond demand", 0, [*[rsio.OnNext(subscriber=0, element=b"a")] * 2, rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 64)]),
    ("too many open elements", 0, [rsio.OnNextPart(subscriber=0, element=each, data=b"x" * 64) for each in range(3)]),
    ("a joined element of another size", 2, [rsio.OnNextLastPart(subscriber=0, element=0, data=b"x")]),
    ("an element that is too large", 0, [rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 600)] * 2),
]


@pytest.mark.parametrize(("size", "said"), [case[1:] for case in OVERRUNS], ids=[case[0] for case in OVERRUNS])
def test_a_publisher_that_breaks_its_contract_loses_the_stream(size: int, said: list[rsio.Message]) -> None:
    """Cancel to the peer, ProtocolError to the subscriber, and the connection goes on."""
    raw = RawPeer(Role.CLIENT, limits=limited(max_partials=2, max_element=1000)).greet()
    reader = _reading(raw, 2, size)
    raw.say(*said)
    assert isinstance(reader.ends[0], ProtocolError)
    assert raw.hear() == [rsio.Cancel(subscriber=0)]
    assert raw.session.state is ConnectionState.OPEN
    assert raw.session.partials == raw.session.partial_bytes == 0


def test_completion_within_an_element_is_an_error() -> None:
    """No element is delivered in part."""
    raw = RawPeer(Role.CLIENT).greet()
    reader = _reading(raw, 2)
    raw.say(rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 64), rsio.OnComplete(subscriber=0))
    assert reader.elements == []
    assert isinstance(reader.ends[0], ProtocolError)


def test_an_unfinished_element_ages() -> None:
    """A part that is never followed by its last one holds memory for a while only."""
    raw = RawPeer(Role.CLIENT).greet()
    reader = _reading(raw, 2)
    raw.say(rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 64))
    assert raw.session.tick(1.0) == 30.0
    raw.session.tick(30.0)
    assert isinstance(reader.ends[0], ProtocolError)
    assert raw.session.partial_bytes == 0


def test_elements_of_a_cancelled_stream_of_fixed_size_are_still_delimited() -> None:
    """The size outlives the stream until its end is heard, even where onSubscribe comes after the cancel."""
    raw = RawPeer(Role.CLIENT).greet()
    reader = Reader(5)
    raw.session.subscribe("s", reader)
    reader.cancel()
    raw.hear()
    raw.say(rsio.OnSubscribe(subscriber=0, element_size=3), b"\x21\x00abc", b"\x22\x00\x02abcdef", rsio.OnComplete(subscriber=0))
    assert raw.session.state is ConnectionState.OPEN
    assert raw.session.streams == {}
    raw.say(rsio.OnComplete(subscriber=0))
    assert raw.reason() == "protocol:stream 0"


def test_ids_are_never_used_again() -> None:
    """An element that is late must find the size of the stream it belongs to."""
    raw = RawPeer(Role.CLIENT).greet()
    readers = [Reader() for _ in range(3)]
    for reader in readers:
        raw.session.subscribe("s", reader)
        reader.cancel()
    ids = [message.subscriber for message in raw.hear() if isinstance(message, rsio.Subscribe)]
    assert ids == [0, 1, 2]


def test_an_idle_connection_ends() -> None:
    """Five minutes without a stream."""
    pair = Pair()
    pair.settle()
    assert pair.server.session.tick(1.0) == 301.0
    pair.server.session.tick(301.0)
    pair.settle()
    assert pair.client.session.state is ConnectionState.OVER


def test_a_draining_side_refuses_new_streams() -> None:
    """What runs goes on."""
    pair = Pair()
    source, reader = _streaming(pair)
    pair.server.session.drain()
    late = pair.subscribe("s", 1)
    source.emit(b"x")
    pair.settle()
    assert "draining" in str(late.ends[0])
    assert reader.elements == [b"x"]


def test_the_end_of_the_transport_is_a_lost_connection() -> None:
    """Nobody said goodbye."""
    pair = Pair()
    source, reader = _streaming(pair)
    pair.client.session.end_of_input()
    pair.server.session.end_of_input()
    assert isinstance(reader.ends[0], ConnectionLost)
    assert source.cancels == 1


def test_a_type_that_is_not_bytes_fails_its_stream_only() -> None:
    """A publisher without a serializer must publish bytes; bytes-like is enough."""
    pair = Pair()
    source, reader = _streaming(pair)
    source.emit(bytearray(b"a"), memoryview(b"b"))
    source.emit("text")
    pair.settle()
    assert reader.elements == [b"a", b"b"]
    assert isinstance(reader.ends[0], PublisherFailed)
    assert "serializer" in str(pair.server.failures[0])
    assert source.cancels == 1
