"""Elements are requested from the publisher as demand and room permit.
Elements of one length go out together.
"""

from penstock.api import UNBOUNDED
from tests.session._pair import Pair, limits_with, open_stream


def test_one_element_is_requested_until_its_size_is_known() -> None:
    """Without this a publisher of 4 MiB elements would get a request for 1,000 of them,
    for room of 128 KiB.
    """
    pair = Pair()
    source, _ = open_stream(pair, 1000)
    assert source.requests == [1]
    source.emit(bytes(1000))
    assert source.requests == [1, 129]


def test_the_publisher_gets_exactly_the_demand_of_the_subscriber() -> None:
    """The sum of the requests to the publisher is the sum that the subscriber requested."""
    pair = Pair()
    source, subscriber = open_stream(pair, 3)
    assert source.demand <= 3
    source.emit(b"a", *[b"b"] * (source.demand - 1))
    subscriber.request(4)
    pair.settle()
    while source.demand > len(subscriber.elements):
        source.emit(b"c" * 1)
        pair.settle()
    assert source.demand == len(subscriber.elements) == 7


def test_elements_of_one_length_go_out_together_and_in_order() -> None:
    """They are gathered until the writer comes, and count as waiting bytes. An element of
    another length, and the end, come after them.
    """
    pair = Pair()
    source, subscriber = open_stream(pair, UNBOUNDED)
    source.emit(b"1")
    pair.settle()
    source.emit(b"4", b"5", b"66", b"7")
    source.complete()
    pair.settle()
    assert subscriber.elements == [b"1", b"4", b"5", b"66", b"7"]
    assert subscriber.ends == ["complete"]
    assert pair.server.session.outbox.gathered == 0


def test_a_run_takes_room_of_the_outbox() -> None:
    """Gathered elements will be sent, so publishers are asked only for elements that still fit."""
    pair = Pair(limits=limits_with(outbound_high=200))
    source, _ = open_stream(pair, UNBOUNDED)
    source.emit(bytes(10))
    pair.settle()
    emitted = 1
    while source.demand > emitted:
        source.emit(bytes(10))
        emitted += 1
        assert emitted < 100
    assert pair.server.session.outbox.room() <= 0
    assert pair.server.session.held() >= 100


def test_a_peer_that_never_reads_costs_a_fixed_number_of_bytes() -> None:
    """Unbounded demand permits sending, not buffering."""
    pair = Pair(limits=limits_with(outbound_high=10_000))
    source, _ = open_stream(pair, UNBOUNDED)
    emitted = 0
    while source.demand > emitted:
        source.emit(bytes(1000))
        emitted += 1
        assert emitted < 100
    assert pair.server.session.outbox.waiting < 20_000
    pair.settle()
    assert source.demand > emitted
