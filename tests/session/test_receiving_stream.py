"""An inbound stream: demand checked on receiving, parts joined within their bounds, and nothing after the end."""

import pytest

from penstock.api import UNBOUNDED, ConnectionLost, ProtocolError, Rejected, Role
from penstock.protocols import rsio
from penstock.session import ConnectionState
from tests.session._pair import Pair, RawPeer, RecordingSubscriber, limits_with, open_stream, subscribe_to


def test_a_cancel_stops_the_publisher_and_what_was_under_way_is_dropped() -> None:
    """What crossed the cancel is delimited, dropped, and costs a glitch."""
    pair = Pair()
    source, subscriber = open_stream(pair)
    source.emit(b"x")
    subscriber.cancel()
    pair.settle()
    assert source.cancels == 1
    assert subscriber.elements == []
    assert pair.client.session.state is ConnectionState.OPEN


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
    raw = RawPeer(Role.CLIENT, limits=limits_with(max_partials=2, max_element=1000)).handshake()
    subscriber = subscribe_to(raw, 2, size)
    raw.send(*said)
    assert isinstance(subscriber.ends[0], ProtocolError)
    assert raw.receive() == [rsio.Cancel(subscriber=0)]
    assert raw.session.state is ConnectionState.OPEN
    assert raw.session.channel.budgets.partials.count == raw.session.channel.budgets.partials.bytes == 0


def test_an_element_in_a_single_part_is_never_unfinished() -> None:
    """It needs none of the places for those."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(max_partials=1)).handshake()
    subscriber = subscribe_to(raw, 2)
    begun, alone = (kind(subscriber=0, element=at, data=b"x" * 64) for at, kind in enumerate((rsio.OnNextPart, rsio.OnNextLastPart)))
    raw.send(begun, alone)
    assert subscriber.elements == [b"x" * 64]
    assert subscriber.ends == []


def test_completion_within_an_element_is_an_error() -> None:
    """No element is delivered in part."""
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = subscribe_to(raw, 2)
    raw.send(rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 64), rsio.OnComplete(subscriber=0))
    assert subscriber.elements == []
    assert isinstance(subscriber.ends[0], ProtocolError)


def test_an_unfinished_element_ages() -> None:
    """A part that is never followed by its last one holds memory for a while only."""
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = subscribe_to(raw, 2)
    raw.send(rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 64))
    assert raw.session.tick(1.0) == 30.0
    raw.session.tick(30.0)
    assert "unfinished for more than 30 s" in str(subscriber.ends[0])
    assert raw.session.channel.budgets.partials.bytes == 0


def test_elements_of_a_cancelled_stream_of_fixed_size_are_still_delimited() -> None:
    """The size outlives the stream until its end is heard, even where onSubscribe comes after the cancel."""
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = RecordingSubscriber(5)
    raw.session.subscribe("s", subscriber)
    subscriber.cancel()
    raw.receive()
    raw.send(rsio.OnSubscribe(subscriber=0, element_size=3), b"\x21\x00abc", b"\x22\x00\x02abcdef", rsio.OnComplete(subscriber=0))
    assert raw.session.state is ConnectionState.OPEN
    assert raw.session.streams.opened == {}
    raw.send(rsio.OnComplete(subscriber=0))
    assert raw.goodbye_reason() == "protocol:stream 0"


def test_after_the_end_nothing_is_asked_for_or_delivered() -> None:
    """Rules 3.6 and 1.7: a request and a second cancel say nothing to the peer."""
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = subscribe_to(raw, 1)
    subscriber.cancel()
    assert raw.receive() == [rsio.Cancel(subscriber=0)]
    subscriber.cancel()
    subscriber.request(5)
    assert raw.receive() == []
    raw.send(rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 64), *[rsio.OnNext(subscriber=0, element=b"x")] * 9)
    assert (subscriber.elements, subscriber.ends) == ([], [])


def test_demand_without_bound_stays_so() -> None:
    """Rule 3.17: elements take nothing from it, whole, packed or in parts; and the peer is asked once."""
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = subscribe_to(raw, UNBOUNDED, 2)
    subscriber.request(1)
    assert raw.receive() == []
    raw.send(
        rsio.OnNextPacked(subscriber=0, count=2, elements=b"aabb"),
        rsio.OnNextPart(subscriber=0, element=0, data=b"c"),
        rsio.OnNextLastPart(subscriber=0, element=0, data=b"c"),
        b"\x21\x00dd",
    )
    assert subscriber.elements == [b"aa", b"bb", b"cc", b"dd"]


def test_unfinished_elements_are_bounded_in_bytes_over_the_connection() -> None:
    """However many streams they are spread over."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(partial_bytes=100)).handshake()
    subscriber = subscribe_to(raw, 2)
    raw.send(rsio.OnNextPart(subscriber=0, element=0, data=bytes(101)))
    assert "unfinished elements hold 101 bytes" in str(subscriber.ends[0])
    assert raw.session.channel.budgets.partials.bytes == 0


def test_tiny_parts_cost_a_glitch_each() -> None:
    """Legal, and the cheapest of floods."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(glitch_burst=2, glitch_rate=0.001)).handshake()
    subscribe_to(raw, 2)
    raw.send(*[rsio.OnNextPart(subscriber=0, element=0, data=b"x")] * 3)
    assert raw.goodbye_reason() == "limit:glitches"


PARTS: list[tuple[str, list[rsio.Message], int]] = [
    ("tiny", [rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 63)], 1),
    ("empty", [rsio.OnNextPart(subscriber=0, element=0, data=b"")], 10),
    ("an empty last one", [rsio.OnNextLastPart(subscriber=0, element=0, data=b"")], 1),
    ("a tiny last one", [rsio.OnNextLastPart(subscriber=0, element=0, data=b"x")], 0),
    ("large enough", [rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 64)], 0),
]


@pytest.mark.parametrize(("said", "weight"), [case[1:] for case in PARTS], ids=[case[0] for case in PARTS])
def test_what_parts_cost_depends_on_what_they_are_good_for(said: list[rsio.Message], weight: int) -> None:
    """Nothing for honest ones, one token for a tiny one, ten for one that neither adds nor ends anything."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(glitch_burst=10, glitch_rate=1e-9)).handshake()
    subscribe_to(raw, 2)
    raw.send(*said)
    assert raw.session.state is ConnectionState.OPEN
    left = sum(raw.session.channel.budgets.oddities.spend(1, raw.now) for _ in range(20))
    assert left == 10 - weight


def test_parts_of_one_element_are_bounded_in_number() -> None:
    """Whatever their size."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(max_parts=3)).handshake()
    subscriber = subscribe_to(raw, 2)
    raw.send(*[rsio.OnNextPart(subscriber=0, element=0, data=bytes(64))] * 3)
    assert subscriber.ends == []
    raw.send(rsio.OnNextPart(subscriber=0, element=0, data=bytes(64)))
    assert "in 4 parts" in str(subscriber.ends[0])


def test_unfinished_elements_are_bounded_in_number_over_the_connection() -> None:
    """One in each of two streams is allowed here, and a third is not."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(max_partials_in_all=2)).handshake()
    subscribers = [RecordingSubscriber(2) for _ in range(3)]
    for each, subscriber in enumerate(subscribers):
        raw.session.subscribe("s", subscriber)
        raw.send(rsio.OnSubscribe(subscriber=each), rsio.OnNextPart(subscriber=each, element=0, data=bytes(64)))
    assert [len(subscriber.ends) for subscriber in subscribers] == [0, 0, 1]
    assert raw.session.channel.budgets.partials.count == 2


def test_an_element_that_comes_whole_is_bounded_as_one_in_parts_is() -> None:
    """On the length alone, before its bytes have come."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(max_element=100)).handshake()
    subscribe_to(raw, 2)
    raw.send(b"\x21\x00" + rsio.encode_varint(101))
    assert raw.goodbye_reason() == "limit:frame 101 > 100"


def test_each_stream_of_a_lost_connection_gets_an_exception_of_its_own() -> None:
    """One that is raised in a thousand tasks would collect a thousand tracebacks; what it says, and its cause, are the same."""
    raw = RawPeer(Role.CLIENT).handshake()
    subscribers = [RecordingSubscriber(1) for _ in range(3)]
    for subscriber in subscribers:
        raw.session.subscribe("s", subscriber)
    lost = Rejected("not now", processed=False)
    lost.__cause__ = cause = OSError()
    raw.session.end_of_input(lost)
    ends = [subscriber.ends[0] for subscriber in subscribers]
    assert len({id(end) for end in [lost, *ends]}) == 4
    assert [(type(end), str(end), end.processed, end.__cause__) for end in ends] == [(Rejected, "not now", False, cause)] * 3


def test_an_exception_that_cannot_be_copied_is_shared() -> None:
    """A plugin may raise what it likes; the streams end all the same."""

    class Odd(ConnectionLost):
        def __init__(self, first: int, second: int) -> None:
            super().__init__(f"{first} {second}")

    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = subscribe_to(raw, 1)
    raw.session.end_of_input(odd := Odd(1, 2))
    assert subscriber.ends == [odd]
