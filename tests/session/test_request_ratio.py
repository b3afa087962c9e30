"""Requests in ratio to elements: one for each is earned, twenty are tolerated, and each one more is a glitch."""

import pytest

from penstock.protocols import rsio
from penstock.session import ConnectionState
from penstock.session._demand_ledger import DemandLedger
from penstock.session._request_ratio import RequestClass, RequestRatio
from tests.session._pair import RawPeer, ScriptedPublisher, limits_with


def test_the_formula() -> None:
    """Five, two for each stream, one or twenty for each element; what publishers were asked for and have not sent does not count."""
    ratio = RequestRatio()
    ratio.streams = 3
    ratio.requested = 10
    live = DemandLedger()
    live.reserved = 8
    weights = [ratio.classify([live]) for _ in range(200)]
    assert weights.count(RequestClass.PAID) == 5 + 2 * 3 + 2
    assert weights.count(RequestClass.PAID) + weights.count(RequestClass.FREE) == 5 + 2 * 3 + 20 * 2
    ratio.requested = 11
    assert ratio.classify([live]) is RequestClass.EXCESS  # 201 requests are still more than 71


def test_two_messages_for_each_stream_may_cross_its_end() -> None:
    """More come from nowhere."""
    ratio = RequestRatio()
    ratio.streams = 3
    assert [ratio.count_late() for _ in range(8)] == [True] * 6 + [False] * 2


def test_a_subscriber_may_ask_for_each_element_by_itself_as_fast_as_they_come() -> None:
    """However many, and in however short a time."""
    raw, source = _asking(control_burst=10, control_rate=1e-9)
    for _ in range(200):
        raw.send(rsio.Request(subscriber=1, demand=1))
        source.emit(b"a")
        raw.receive()
    assert raw.session.state is ConnectionState.OPEN


def test_short_streams_may_come_as_fast_as_they_are_served() -> None:
    """Each ends by itself, and a cancel for it, and a request, cross its end."""
    raw = RawPeer(limits=limits_with(control_burst=10, control_rate=1e-9, glitch_burst=1, churn_burst=1, churn_rate=1e-9)).handshake()
    for stream_id in range(200):
        source = raw.delegate.publishers["s"] = ScriptedPublisher()
        raw.send(rsio.Subscribe(publisher="s", subscriber=stream_id, demand=1))
        source.emit(b"a")
        source.complete()
        raw.send(rsio.Request(subscriber=stream_id, demand=1), rsio.Cancel(subscriber=stream_id))
        raw.receive()
    assert raw.session.state is ConnectionState.OPEN


def _asking(glitch_burst: int = 3, element_size: int = 0, **limits: float) -> tuple[RawPeer, ScriptedPublisher]:
    raw = RawPeer(limits=limits_with(glitch_burst=glitch_burst, glitch_rate=1e-9, **limits)).handshake()
    source = raw.delegate.publishers["s"] = ScriptedPublisher(element_size=element_size)
    raw.send(rsio.Subscribe(publisher="s", subscriber=1))
    raw.receive()
    return raw, source


def test_a_peer_that_asks_and_asks_and_gets_nothing_is_told_so() -> None:
    """Seven requests are free, three come out of the glitch budget, the next one ends the connection."""
    raw, source = _asking()
    raw.send(*[rsio.Request(subscriber=1, demand=1)] * 10)
    assert raw.session.state is ConnectionState.OPEN
    assert source.demand == 1
    raw.send(rsio.Request(subscriber=1, demand=1))
    assert raw.goodbye_reason() == "limit:requests"


@pytest.mark.parametrize("size", [0, 2])
def test_a_peer_that_asks_for_one_at_a_time_may_do_so_for_ever(size: int) -> None:
    """Even in ten requests for each element, once the first has come; of fixed size, too, where elements come packed."""
    raw, source = _asking(3, element_size=size)
    for _ in range(200):
        raw.send(*[rsio.Request(subscriber=1, demand=1)] * 10)
        source.emit(b"ab")
        raw.receive()
    assert raw.session.state is ConnectionState.OPEN


def test_elements_that_were_never_sent_do_not_count() -> None:
    """A stream that ends with elements still owed pays for no request on another."""
    raw, source = _asking(1)
    raw.send(rsio.Request(subscriber=1, demand=1000))
    source.emit(b"a")
    assert raw.session.channel.budgets.requests.requested == source.demand > 10
    source.emit(b"a")
    raw.send(rsio.Cancel(subscriber=1))
    assert raw.session.channel.budgets.requests.requested == 2


def test_pieces_of_several_elements_count_as_so_many() -> None:
    """As many as were sent; a surplus that waits for demand counts when it goes."""
    raw, source = _asking(1, element_size=2)
    raw.send(rsio.Request(subscriber=1, demand=3))
    source.emit(b"aabbccdd")
    assert raw.session.channel.budgets.requests.requested - raw.delegate.served[0].reserved == 3
