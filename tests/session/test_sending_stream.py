"""An outbound stream: demand, splitting, packing, the end; seen from the publisher, and on the wire."""

import pytest

from penstock.api import UNBOUNDED, PublicError, PublisherFailed, UsageError
from penstock.protocols import rsio
from penstock.session._reasons import PRIVATE, explain_stream_end
from penstock.testing import MessageList
from tests.session._pair import Pair, Script, limited, streaming


def test_a_publisher_that_nobody_asks_is_not_even_attached() -> None:
    """An idle stream of a generator costs an object, not a subscription."""
    pair = Pair()
    source, reader = streaming(pair, 0, is_lazy=True)
    assert source.subscriber is None
    reader.request(1)
    pair.settle()
    assert source.demand == 1


def test_one_element_is_asked_for_until_its_size_is_known() -> None:
    """A thousand of four MiB would have come otherwise, for room of 128 KiB."""
    pair = Pair()
    source, _ = streaming(pair, 1000)
    assert source.requests == [1]
    source.emit(bytes(1000))
    assert source.requests == [1, 129]


def test_demand_reaches_the_publisher_and_no_more() -> None:
    """The sum of what the publisher was asked for is what the subscriber asked for."""
    pair = Pair()
    source, reader = streaming(pair, 3)
    assert source.demand <= 3
    source.emit(b"a", *[b"b"] * (source.demand - 1))
    reader.request(4)
    pair.settle()
    while source.demand > len(reader.elements):
        source.emit(b"c" * 1)
        pair.settle()
    assert source.demand == len(reader.elements) == 7


def test_failures_of_publishers_keep_their_text_at_home() -> None:
    """Only a PublicError's text crosses the wire; the owner is told everything."""
    pair = Pair()
    source, reader = streaming(pair)
    secret = ValueError("the password is 123")
    source.fail(secret)
    pair.settle()
    assert str(reader.ends[0]) == explain_stream_end(PRIVATE)
    assert pair.server.failures == [secret]
    source, reader = streaming(pair)
    source.fail(PublicError("no such symbol"))
    pair.settle()
    assert isinstance(reader.ends[0], PublisherFailed)
    assert str(reader.ends[0]) == "no such symbol"


def test_large_elements_are_split_and_others_get_their_turn() -> None:
    """A small element of another stream overtakes the rest of a large one."""
    pair = Pair(limits=limited(split_outbound_at=100))
    large, reader = streaming(pair, 5)
    small = pair.server.publishers["t"] = Script()
    other = pair.subscribe("t", 5)
    pair.settle()
    large.emit(bytes(1000))
    small.emit(bytes(101))
    small.complete()
    first = bytes(pair.server.session.take())
    heard = MessageList()
    for stream in (0, 1):
        heard.receive_on_subscribe(stream, 0)
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
    source, reader = streaming(pair, 6, element_size=4)
    source.emit(b"aaaabbbb", b"cccc")
    data = bytes(pair.server.session.take())
    assert data == bytes([0x22, 0, 3]) + b"aaaabbbbcccc"
    pair.client.session.receive(data, 0.0)
    assert reader.elements == [b"aaaa", b"bbbb", b"cccc"]


def test_a_piece_of_several_behind_single_elements_takes_what_those_had_reserved() -> None:
    """The peer asked once, for all of it: nothing may wait for a request that will never come."""
    pair = Pair()
    source, reader = streaming(pair, 9, element_size=2)
    source.emit(b"aa")
    assert source.demand == 9
    source.emit(b"bbccdd", b"ee", b"ffgg")
    source.complete()
    pair.settle()
    assert reader.elements == [b"aa", b"bb", b"cc", b"dd", b"ee", b"ff", b"gg"]
    assert reader.ends == ["complete"]


def test_pieces_behind_single_elements_keep_to_demand() -> None:
    """What was pulled before waits for demand, in order, and nothing is pulled meanwhile."""
    pair = Pair()
    source, reader = streaming(pair, 4, element_size=2)
    source.emit(b"aa")
    source.emit(b"bbccdd", b"eeff", b"gg")
    pair.settle()
    assert reader.elements == [b"aa", b"bb", b"cc", b"dd"]
    assert source.demand == 4
    reader.request(2)
    pair.settle()
    assert reader.elements[4:] == [b"ee", b"ff"]
    assert source.demand == 4
    reader.request(2)
    pair.settle()
    assert reader.elements[6:] == [b"gg"]
    assert source.demand == 5


def test_a_piece_of_more_than_was_asked_for_waits_for_demand() -> None:
    """The surplus is kept, nothing is pulled meanwhile, and completion comes after it."""
    pair = Pair()
    source, reader = streaming(pair, 1, element_size=2)
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


def test_pieces_beyond_the_high_water_mark_wait_for_the_writer() -> None:
    """Demand permits sending, not gathering: a piece of any size goes a full outbox at a time, and nothing is pulled meanwhile."""
    pair = Pair(limits=limited(outbound_high=100))
    source, reader = streaming(pair, UNBOUNDED, element_size=4)
    source.emit(bytes(1000))
    asked = source.demand
    source.complete()
    for _ in range(3):
        reader.request(1)  # more demand makes no more room, and does not queue the stream twice
    taken = []
    while data := bytes(pair.server.session.take()):
        pair.client.session.receive(data, 0.0)
        taken.append(len(data))
    assert max(taken) < 150
    assert (len(reader.elements), reader.ends) == (250, ["complete"])
    assert source.demand == asked


def test_elements_of_one_length_go_out_together_and_in_order() -> None:
    """They are gathered until the writer comes; what differs in length, and the end, comes behind them; and they count as what waits."""
    pair = Pair()
    source, reader = streaming(pair, UNBOUNDED)
    source.emit(b"1")
    pair.settle()
    source.emit(b"4", b"5", b"66", b"7")
    source.complete()
    pair.settle()
    assert reader.elements == [b"1", b"4", b"5", b"66", b"7"]
    assert reader.ends == ["complete"]
    assert pair.server.session.outbox.gathered == 0


def test_a_run_of_elements_uses_up_the_room_of_others() -> None:
    """What is gathered will be sent as surely as what was written: another publisher is not asked for more than still fits."""
    pair = Pair(limits=limited(outbound_high=200))
    source, _ = streaming(pair, UNBOUNDED)
    source.emit(bytes(10))
    pair.settle()
    emitted = 1
    while source.demand > emitted:
        source.emit(bytes(10))
        emitted += 1
        assert emitted < 100
    assert pair.server.session.outbox.room() <= 0
    assert pair.server.session.held() >= 100


def test_no_packed_message_is_longer_than_a_peer_takes() -> None:
    """What was gathered beyond that goes as several messages, none of which ends the connection over there."""
    pair = Pair(limits=limited(outbound_high=1000, max_frame=100))
    source, reader = streaming(pair, 300, element_size=4)
    source.emit(bytes(800))
    pair.settle()
    assert reader.elements == [bytes(4)] * 200
    assert pair.client.ended == []


def test_a_peer_that_never_reads_costs_a_fixed_number_of_bytes() -> None:
    """Demand without bound permits sending, not buffering."""
    pair = Pair(limits=limited(outbound_high=10_000))
    source, _ = streaming(pair, UNBOUNDED)
    emitted = 0
    while source.demand > emitted:
        source.emit(bytes(1000))
        emitted += 1
        assert emitted < 100
    assert pair.server.session.outbox.waiting < 20_000
    pair.settle()
    assert source.demand > emitted


def test_a_type_that_is_not_bytes_fails_its_stream_only() -> None:
    """A publisher without a serializer must publish bytes; bytes-like is enough."""
    pair = Pair()
    source, reader = streaming(pair)
    source.emit(bytearray(b"a"), memoryview(b"b"))
    source.emit("text")
    pair.settle()
    assert reader.elements == [b"a", b"b"]
    assert isinstance(reader.ends[0], PublisherFailed)
    assert "serializer" in str(pair.server.failures[0])
    assert source.cancels == 1


def test_what_a_publisher_says_after_the_end_is_not_sent() -> None:
    """Rule 1.7, also for an element as long as the last one: the id may be somebody else's by then."""
    pair = Pair()
    source, reader = streaming(pair, 10)
    source.emit(b"abc")
    pair.settle()
    reader.cancel()
    pair.settle()
    source.emit(b"abc", b"abcd")
    source.complete()
    source.fail(ValueError())
    assert bytes(pair.server.session.take()) == b""


@pytest.mark.parametrize("element", [b"", b"abc"], ids=["empty", "a part too much"])
def test_an_element_that_does_not_have_the_fixed_size_fails_its_stream(element: bytes) -> None:
    """The boundary of everything behind it would be lost."""
    pair = Pair()
    source, reader = streaming(pair, 5, element_size=2)
    source.emit(element)
    pair.settle()
    assert isinstance(reader.ends[0], PublisherFailed)
    assert source.cancels == 1
    assert isinstance(pair.server.failures[0], UsageError)


def test_an_element_that_no_peer_would_take_fails_its_stream() -> None:
    """Here, before it has crossed."""
    pair = Pair(limits=limited(max_element=100))
    source, reader = streaming(pair, 5)
    source.emit(bytes(101))
    pair.settle()
    assert isinstance(reader.ends[0], PublisherFailed)
    assert "101 bytes" in str(pair.server.failures[0])


def test_small_elements_wait_behind_a_large_one_of_their_stream() -> None:
    """Order is kept; completion comes last."""
    pair = Pair(limits=limited(split_outbound_at=100))
    source, reader = streaming(pair, 5)
    source.emit(bytes(250), b"a", bytes(101))
    source.complete()
    pair.settle()
    assert reader.elements == [bytes(250), b"a", bytes(101)]
    assert reader.ends == ["complete"]


def test_a_publisher_that_comes_after_the_end_is_let_go() -> None:
    """The peer cancelled before the publisher was there."""
    pair = Pair()
    source, reader = streaming(pair, 0)
    reader.cancel()
    pair.settle()
    before = source.cancels
    pair.server.served[0].on_subscribe(source)
    assert source.cancels == before + 1


def test_large_elements_of_all_streams_together_have_a_hard_bound() -> None:
    """The high-water mark and one element: beyond it no publisher is asked, and each goes on when there is room again."""
    pair = Pair(limits=limited(split_outbound_at=100, outbound_high=500, max_element=1000))
    scripts = [Script() for _ in range(5)]
    readers = []
    for each, script in enumerate(scripts):
        pair.server.publishers[f"s{each}"] = script
        readers.append(pair.subscribe(f"s{each}", 0))
    pair.settle()
    server = pair.server.session
    for script, reader in zip(scripts, readers, strict=True):
        reader.request(3)
        server.receive(bytes(pair.client.session.take()), 0.0)
        if script.demand:
            script.emit(bytes(800))
    assert [script.demand for script in scripts] == [1, 1, 0, 0, 0]
    assert server.outbox.large == server.held() == 1600
    pair.settle()
    assert server.outbox.large == 0
    assert [len(reader.elements) for reader in readers] == [1, 1, 0, 0, 0]
    assert all(script.demand for script in scripts)


def test_large_elements_of_a_stream_that_ends_hold_nothing() -> None:
    """In the middle of one, with another behind it."""
    pair = Pair(limits=limited(split_outbound_at=100, outbound_high=250))
    source, reader = streaming(pair, 5)
    source.emit(bytes(1000), b"small", bytes(500))
    pair.client.session.receive(bytes(pair.server.session.take()), 0.0)
    assert 0 < pair.server.session.outbox.large < 1505
    assert pair.server.session.outbox.large == pair.server.session.held()
    reader.cancel()
    pair.settle()
    assert pair.server.session.outbox.large == 0


@pytest.mark.parametrize("bound", [{"max_partials_in_all": 2}, {"partial_bytes": 2000}])
def test_no_more_is_begun_than_a_peer_with_the_same_limits_takes(bound: dict[str, int]) -> None:
    """Ten streams with large elements at once: all arrive, and no stream is ended for what others have under way."""
    pair = Pair(limits=limited(split_outbound_at=100, **bound))
    for number in range(10):
        pair.server.publishers[f"s{number}"] = Script()
    readers = [pair.subscribe(f"s{number}", 5) for number in range(10)]
    pair.settle()
    for source in pair.server.publishers.values():
        source.emit(bytes(900), bytes(200))
        source.complete()
    pair.settle()
    assert [(reader.elements, reader.ends) for reader in readers] == [([bytes(900), bytes(200)], ["complete"])] * 10
