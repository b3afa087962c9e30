"""Elements of fixed size go packed, as demand and room permit."""

import pytest

from penstock.api import UNBOUNDED, PublisherFailed, UsageError
from tests.session._pair import Pair, limits_with, open_stream


def test_elements_of_fixed_size_go_packed() -> None:
    """Three elements have one header. A block of two elements counts as two."""
    pair = Pair()
    source, subscriber = open_stream(pair, 6, element_size=4)
    source.emit(b"aaaabbbb", b"cccc")
    data = bytes(pair.server.session.take())
    assert data == bytes([0x22, 0, 3]) + b"aaaabbbbcccc"
    pair.client.session.receive(data, 0.0)
    assert subscriber.elements == [b"aaaa", b"bbbb", b"cccc"]


def test_a_block_after_single_elements_uses_their_reservations() -> None:
    """The peer requested all of these elements at once.
    None may wait for a request that will never come.
    """
    pair = Pair()
    source, subscriber = open_stream(pair, 9, element_size=2)
    source.emit(b"aa")
    assert source.demand == 9
    source.emit(b"bbccdd", b"ee", b"ffgg")
    source.complete()
    pair.settle()
    assert subscriber.elements == [b"aa", b"bb", b"cc", b"dd", b"ee", b"ff", b"gg"]
    assert subscriber.ends == ["complete"]


def test_blocks_after_single_elements_keep_to_demand() -> None:
    """A block that was pulled before waits for demand, in order,
    and nothing is pulled meanwhile.
    """
    pair = Pair()
    source, subscriber = open_stream(pair, 4, element_size=2)
    source.emit(b"aa")
    source.emit(b"bbccdd", b"eeff", b"gg")
    pair.settle()
    assert subscriber.elements == [b"aa", b"bb", b"cc", b"dd"]
    assert source.demand == 4
    subscriber.request(2)
    pair.settle()
    assert subscriber.elements[4:] == [b"ee", b"ff"]
    assert source.demand == 4
    subscriber.request(2)
    pair.settle()
    assert subscriber.elements[6:] == [b"gg"]
    assert source.demand == 5


def test_a_block_larger_than_the_demand_waits_for_demand() -> None:
    """The rest is kept, nothing is pulled meanwhile, and the completion comes after it."""
    pair = Pair()
    source, subscriber = open_stream(pair, 1, element_size=2)
    source.emit(b"aabbcc")
    source.complete()
    pair.settle()
    assert subscriber.elements == [b"aa"]
    asked = source.demand
    subscriber.request(1)
    pair.settle()
    assert subscriber.elements == [b"aa", b"bb"]
    assert subscriber.ends == []
    subscriber.request(5)
    pair.settle()
    assert subscriber.elements == [b"aa", b"bb", b"cc"]
    assert subscriber.ends == ["complete"]
    assert source.demand == asked


def test_blocks_beyond_the_high_water_mark_wait_for_the_writer() -> None:
    """Demand permits sending, not gathering: a large block goes one full outbox at a time, and
    nothing is pulled meanwhile.
    """
    pair = Pair(limits=limits_with(outbound_high=100))
    source, subscriber = open_stream(pair, UNBOUNDED, element_size=4)
    source.emit(bytes(1000))
    asked = source.demand
    source.complete()
    for _ in range(3):
        subscriber.request(1)  # more demand makes no more room, and does not queue the stream twice
    taken = []
    while data := bytes(pair.server.session.take()):
        pair.client.session.receive(data, 0.0)
        taken.append(len(data))
    assert max(taken) < 150
    assert (len(subscriber.elements), subscriber.ends) == (250, ["complete"])
    assert source.demand == asked


def test_no_packed_message_is_longer_than_max_frame() -> None:
    """Gathered elements beyond that go as several messages.
    One message above Limits.max_frame would end the connection.
    """
    pair = Pair(limits=limits_with(outbound_high=1000, max_frame=100))
    source, subscriber = open_stream(pair, 300, element_size=4)
    source.emit(bytes(800))
    pair.settle()
    assert subscriber.elements == [bytes(4)] * 200
    assert pair.client.ended == []


@pytest.mark.parametrize("element", [b"", b"abc"], ids=["empty", "one byte too long"])
def test_an_element_of_another_size_fails_its_stream(element: bytes) -> None:
    """The peer could not delimit the elements after it."""
    pair = Pair()
    source, subscriber = open_stream(pair, 5, element_size=2)
    source.emit(element)
    pair.settle()
    assert isinstance(subscriber.ends[0], PublisherFailed)
    assert source.cancels == 1
    assert isinstance(pair.server.failures[0], UsageError)


def test_the_memory_budget_hears_of_blocks() -> None:
    """A single element was heard of when it was pulled. A block brings more than that."""
    pair = Pair()
    heard: list[int] = []
    source, _ = open_stream(pair, 9, element_size=4)
    pair.server.session.channel.on_buffered = heard.append
    source.emit(b"aaaabbbb")
    assert heard[0] == 8
    heard.clear()
    source.emit(b"cccc")
    assert 4 not in heard


def test_an_element_larger_than_the_room_goes_alone() -> None:
    """It must be sent at some time, and a second one has no room."""
    pair = Pair(limits=limits_with(outbound_high=3))
    source, _ = open_stream(pair, 3, element_size=4)
    source.emit(b"aaaabbbbcccc")
    taken = [bytes(pair.server.session.take())[-4:] for _ in range(3)]
    assert taken == [b"aaaa", b"bbbb", b"cccc"]


def test_a_publisher_of_single_elements_is_asked_for_as_many_as_fit() -> None:
    """Their length is known from the ones before. 100 of them would fill the outbox."""
    pair = Pair(limits=limits_with(outbound_high=10_000))
    source, subscriber = open_stream(pair, UNBOUNDED, element_size=100)
    for _ in range(12):
        source.emit(*[bytes(100)] * source.requests[-1])
        pair.settle()
    assert source.requests[0] == 1
    assert 80 <= max(source.requests) <= 100
    assert len(subscriber.elements) == sum(source.requests[:-1])
