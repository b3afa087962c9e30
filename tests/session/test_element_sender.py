"""Elements are pulled as demand and room permit, and those of one length go out together."""

from penstock.api import UNBOUNDED
from tests.session._pair import Pair, limits_with, open_stream


def test_one_element_is_asked_for_until_its_size_is_known() -> None:
    """A thousand of four MiB would have come otherwise, for room of 128 KiB."""
    pair = Pair()
    source, _ = open_stream(pair, 1000)
    assert source.requests == [1]
    source.emit(bytes(1000))
    assert source.requests == [1, 129]


def test_demand_reaches_the_publisher_and_no_more() -> None:
    """The sum of what the publisher was asked for is what the subscriber asked for."""
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
    """They are gathered until the writer comes; what differs in length, and the end, comes behind them; and they count as what waits."""
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


def test_a_run_of_elements_uses_up_the_room_of_others() -> None:
    """What is gathered will be sent as surely as what was written: another publisher is not asked for more than still fits."""
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
    """Demand without bound permits sending, not buffering."""
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
