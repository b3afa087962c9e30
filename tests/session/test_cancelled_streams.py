"""Cancelled streams: late elements are dropped and counted, in number and in bytes; a message
that crosses a cancel costs nothing.
"""

import pytest

from penstock.api import UNBOUNDED, Limits, Role
from penstock.protocols import rsio
from penstock.session import ConnectionState
from penstock.session._cancelled_streams import KEPT_SECONDS
from tests.session._pair import RawPeer, RecordingSubscriber, limits_with, subscribe_to

KIB = 1024


def without_glitches(**limits: float) -> Limits:
    """Return limits under which a second oddity ends the connection."""
    return limits_with(glitches=1, **limits)


def opened(raw: RawPeer, stream: int, demand: int) -> RecordingSubscriber:
    """Open the stream with that id, which the peer accepts."""
    subscriber = RecordingSubscriber(demand)
    raw.session.subscribe("s", subscriber)
    raw.send(rsio.OnSubscribe(subscriber=stream, element_size=0))
    raw.receive()
    return subscriber


def test_requested_elements_that_cross_the_cancel_cost_nothing() -> None:
    """After a cancel, as many elements as were requested may arrive free. Each run beyond them
    is an oddity, `limit:late`.
    """
    raw = RawPeer(Role.CLIENT, limits=without_glitches()).handshake()
    subscriber = subscribe_to(raw, 100)
    subscriber.cancel()
    raw.receive()
    # Each has another length, so that the decoder makes no run of them, which would count once.
    raw.send(*[rsio.OnNext(subscriber=0, element=b"x" * size) for size in range(100)])
    assert raw.session.state is ConnectionState.OPEN
    raw.send(*[rsio.OnNext(subscriber=0, element=b"x" * size) for size in range(2)])
    assert raw.goodbye_reason() == "limit:late"


def test_late_elements_are_bounded_in_bytes() -> None:
    """The demand was unbounded, so only the bytes are a bound.
    A cancel of another stream allows for them once more.
    """
    raw = RawPeer(Role.CLIENT, limits=limits_with(late_bytes=10 * KIB)).handshake()
    first, second = opened(raw, 0, UNBOUNDED), opened(raw, 1, UNBOUNDED)
    first.cancel()
    raw.receive()
    kilobyte = rsio.OnNext(subscriber=0, element=bytes(KIB))
    raw.send(*[kilobyte] * 9)
    assert raw.session.state is ConnectionState.OPEN
    second.cancel()
    raw.receive()
    raw.send(*[kilobyte] * 9)
    assert raw.session.state is ConnectionState.OPEN
    raw.send(kilobyte)
    assert raw.goodbye_reason() == "limit:late"


def test_late_elements_without_a_byte_are_bounded_too() -> None:
    """Each message has a header, which counts."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(late_bytes=30)).handshake()
    subscriber = subscribe_to(raw, UNBOUNDED)
    subscriber.cancel()
    raw.receive()
    raw.send(*[rsio.OnNext(subscriber=0, element=b"")] * 10)
    assert raw.session.state is ConnectionState.OPEN
    raw.send(rsio.OnNext(subscriber=0, element=b""))
    assert raw.goodbye_reason() == "limit:late"


def test_elements_beyond_the_demand_are_bounded_in_bytes_after_a_cancel() -> None:
    """The only requested element came before the cancel. Each further one costs a glitch, of
    which there are a thousand, and its bytes.
    """
    raw = RawPeer(Role.CLIENT, limits=limits_with(late_bytes=10 * KIB)).handshake()
    subscriber = opened(raw, 0, 1)
    kilobyte = rsio.OnNext(subscriber=0, element=bytes(KIB))
    raw.send(kilobyte)
    subscriber.cancel()
    raw.receive()
    for _ in range(9):
        raw.send(kilobyte)
    assert raw.session.state is ConnectionState.OPEN
    raw.send(kilobyte)
    assert raw.goodbye_reason() == "limit:late"


def test_the_rest_of_a_begun_element_may_cross_the_cancel() -> None:
    """Its first part has used the only demand.
    Its last part comes after the cancel, and costs nothing.
    """
    raw = RawPeer(Role.CLIENT, limits=without_glitches()).handshake()
    for stream in range(5):
        subscriber = opened(raw, stream, 1)
        raw.send(rsio.OnNextPart(subscriber=stream, element=0, data=bytes(100)))
        subscriber.cancel()
        raw.receive()
        raw.send(rsio.OnNextLastPart(subscriber=stream, element=0, data=bytes(100)))
    assert raw.session.state is ConnectionState.OPEN


@pytest.mark.parametrize("is_accepted", [True, False], ids=["accepted", "not-yet-accepted"])
def test_a_peer_that_ends_no_cancelled_stream_keeps_its_connection(is_accepted: bool) -> None:
    """A publisher need not confirm a cancel.
    Places are given up after one to two times `KEPT_SECONDS`.
    """
    raw = RawPeer(Role.CLIENT, limits=limits_with(retired_ids=100)).handshake()
    for stream in range(1000):
        subscriber = RecordingSubscriber(1)
        raw.session.subscribe("s", subscriber)
        if is_accepted:
            raw.send(rsio.OnSubscribe(subscriber=stream, element_size=0))
        subscriber.cancel()
        raw.receive()
        raw.now += KEPT_SECONDS / 40
        raw.session.receive(b"", raw.now)
    assert raw.session.state is ConnectionState.OPEN
    assert len(raw.session.streams.opened) <= 100


def test_a_place_is_kept_for_kept_seconds() -> None:
    """Late elements can be delimited for that time after the cancel, whenever the last look was."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(retired_ids=8)).handshake()
    kept = []
    for stream, minutes in enumerate((1.0, 1.0, 1.0, 1.0, 1.0, 1.9, 2.0)):
        raw.now = minutes * KEPT_SECONDS
        raw.session.receive(b"", raw.now)
        opened(raw, stream, 1).cancel()
        raw.receive()
        kept.append(list(raw.session.streams.opened))
    # The fifth cancel makes the first look, which notes the four places that are there.
    # The look at 120 s gives them up.
    assert kept[4:] == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5], [4, 5, 6]]


def test_a_late_part_that_is_not_tiny_costs_nothing() -> None:
    """A part of `Limits.tiny_part` bytes is large enough; a shorter one is odd."""
    raw = RawPeer(Role.CLIENT, limits=without_glitches(tiny_part=64)).handshake()
    opened(raw, 0, 5).cancel()
    raw.receive()
    raw.send(*[rsio.OnNextPart(subscriber=0, element=0, data=bytes(64))] * 3)
    assert raw.session.state is ConnectionState.OPEN
    raw.send(*[rsio.OnNextPart(subscriber=0, element=0, data=bytes(63))] * 2)
    assert raw.goodbye_reason() == "limit:glitches"
