"""Requests in ratio to elements: one per element is paid, up to twenty are free,
and each one more costs a token.
"""

import pytest

from penstock.protocols import rsio
from penstock.session import ConnectionState, SendingStream
from penstock.session._request_ratio import RequestClass, RequestRatio
from tests.session._pair import RawPeer, ScriptedPublisher, limits_with


def test_a_request_is_paid_free_or_excess_by_the_formula() -> None:
    """5 + 2 per stream, plus 1 (paid) or 20 (free) per element sent.
    Elements that have not come yet do not count.
    """
    ratio = RequestRatio()
    ratio.streams = 3
    ratio.requested = 10
    live = SendingStream(RawPeer().session.channel, 0, "s", 0)
    live.reserved = 8
    weights = [ratio.classify([live]) for _ in range(200)]
    assert weights.count(RequestClass.PAID) == 5 + 2 * 3 + 2
    assert weights.count(RequestClass.PAID) + weights.count(RequestClass.FREE) == 5 + 2 * 3 + 20 * 2
    ratio.requested = 11
    assert ratio.classify([live]) is RequestClass.EXCESS  # 201 requests are still more than 71


def test_two_cancels_for_each_stream_may_cross_its_end() -> None:
    """More than that cannot have crossed an end."""
    ratio = RequestRatio()
    ratio.streams = 3
    assert [ratio.count_late_cancel() for _ in range(8)] == [True] * 6 + [False] * 2


def test_a_subscriber_may_request_single_elements_at_any_rate() -> None:
    """200 requests for one element each meet no rate, because each element pays for its request."""
    raw, source = _subscribed(control_burst=10, control_rate=1e-9)
    for _ in range(200):
        raw.send(rsio.Request(subscriber=1, demand=1))
        source.emit(b"a")
        raw.receive()
    assert raw.session.state is ConnectionState.OPEN


def test_requests_that_cross_the_end_of_their_stream_are_paid_by_its_elements() -> None:
    """A subscriber requests each of 500 elements by itself.
    The publisher has completed before it reads those requests.
    """
    raw, source = _subscribed(1, control_burst=1, control_rate=1e-9)
    raw.send(rsio.Request(subscriber=1, demand=500))
    source.emit(*[b"a"] * 500)
    source.complete()
    raw.receive()
    raw.send(*[rsio.Request(subscriber=1, demand=1)] * 500)
    assert raw.session.state is ConnectionState.OPEN


def test_short_streams_may_come_at_any_rate() -> None:
    """Each stream completes, and a request and a cancel for it cross its end."""
    raw = RawPeer(
        limits=limits_with(
            control_burst=10, control_rate=1e-9, glitch_burst=1, churn_burst=1, churn_rate=1e-9
        )
    ).handshake()
    for stream_id in range(200):
        source = raw.delegate.publishers["s"] = ScriptedPublisher()
        raw.send(rsio.Subscribe(publisher="s", subscriber=stream_id, demand=1))
        source.emit(b"a")
        source.complete()
        raw.send(rsio.Request(subscriber=stream_id, demand=1), rsio.Cancel(subscriber=stream_id))
        raw.receive()
    assert raw.session.state is ConnectionState.OPEN


def _subscribed(
    glitch_burst: int = 3, element_size: int = 0, **limits: float
) -> tuple[RawPeer, ScriptedPublisher]:
    raw = RawPeer(
        limits=limits_with(glitch_burst=glitch_burst, glitch_rate=1e-9, **limits)
    ).handshake()
    source = raw.delegate.publishers["s"] = ScriptedPublisher(element_size=element_size)
    raw.send(rsio.Subscribe(publisher="s", subscriber=1))
    raw.receive()
    return raw, source


def test_requests_without_elements_end_the_connection() -> None:
    """Seven requests are free, three cost the tokens of the oddity budget,
    and the next one ends the connection.
    """
    raw, source = _subscribed()
    raw.send(*[rsio.Request(subscriber=1, demand=1)] * 10)
    assert raw.session.state is ConnectionState.OPEN
    assert source.demand == 1
    raw.send(rsio.Request(subscriber=1, demand=1))
    assert raw.goodbye_reason() == "limit:requests"


@pytest.mark.parametrize("size", [0, 2])
def test_ten_requests_per_element_are_free(size: int) -> None:
    """From the first element on, also with elements of fixed size, which come packed."""
    raw, source = _subscribed(3, element_size=size)
    for _ in range(200):
        raw.send(*[rsio.Request(subscriber=1, demand=1)] * 10)
        source.emit(b"ab")
        raw.receive()
    assert raw.session.state is ConnectionState.OPEN


def test_elements_that_were_never_sent_do_not_count() -> None:
    """Elements that a cancelled stream never sent pay for no request on another stream."""
    raw, source = _subscribed(1)
    raw.send(rsio.Request(subscriber=1, demand=1000))
    source.emit(b"a")
    assert raw.session.channel.budgets.requests.requested == source.demand > 10
    source.emit(b"a")
    raw.send(rsio.Cancel(subscriber=1))
    assert raw.session.channel.budgets.requests.requested == 2


def test_a_block_counts_as_its_elements() -> None:
    """Elements of the block that wait for demand count when they are sent."""
    raw, source = _subscribed(1, element_size=2)
    raw.send(rsio.Request(subscriber=1, demand=3))
    source.emit(b"aabbccdd")
    assert raw.session.channel.budgets.requests.requested - raw.delegate.served[0].reserved == 3
