"""Unfinished elements: their parts, their bounds, and their age."""

import pytest

from penstock.api import ConnectionLost, ProtocolError, Role
from penstock.protocols import rsio
from penstock.session import ConnectionState
from tests.session._pair import RawPeer, RecordingSubscriber, limits_with, subscribe_to


def test_an_unfinished_element_ends_its_stream_after_partial_age() -> None:
    """overdue() returns when to look again. An element that was finished in time is forgotten."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(partial_age=5, idle_connection=1000)).handshake()
    subscriber = subscribe_to(raw, 4)
    raw.send(rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 64))
    assert raw.session.channel.budgets.partials.overdue(3.0, 0.0) == (5.0, [])
    raw.send(rsio.OnNextLastPart(subscriber=0, element=0, data=b"y"))
    assert raw.session.channel.budgets.partials.overdue(5.0, 0.0) == (None, [])
    raw.send(rsio.OnNextPart(subscriber=0, element=1, data=b"x" * 64))
    due, overdue = raw.session.channel.budgets.partials.overdue(5.0, 5.0)
    assert (due, [is_silent for _, is_silent in overdue]) == (None, [False])
    overdue[0][0].on_partial_timeout(is_silent=False)
    (end,) = subscriber.ends
    assert isinstance(end, ProtocolError)
    assert subscriber.elements == [b"x" * 64 + b"y"]


def test_an_element_that_was_finished_hides_no_other_one() -> None:
    """It is forgotten at the next look, and the others are looked at."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(partial_age=5, idle_connection=1000)).handshake()
    subscribe_to(raw, 4)
    raw.session.subscribe("t", RecordingSubscriber(4))
    raw.send(rsio.OnSubscribe(subscriber=1, element_size=0))
    for stream in (0, 1):
        raw.send(rsio.OnNextPart(subscriber=stream, element=0, data=b"x" * 64))
    raw.send(rsio.OnNextLastPart(subscriber=0, element=0, data=b"y"))
    due, overdue = raw.session.channel.budgets.partials.overdue(5.0, 5.0)
    assert (due, len(overdue)) == (None, 1)


PART = rsio.OnNextPart(subscriber=0, element=0, data=bytes(64))


def test_a_peer_that_sends_other_data_has_abandoned_the_element() -> None:
    """After the age, the peer's next byte ends the stream with a ProtocolError."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(partial_age=8)).handshake()
    subscriber = subscribe_to(raw, 4)
    raw.send(PART)
    raw.now = 7.0
    raw.send(rsio.Subscribe(publisher="x", subscriber=1))
    assert raw.session.tick(8.0) == 9.0
    assert subscriber.ends == []
    raw.now = 8.5
    raw.send(rsio.Cancel(subscriber=1))
    raw.session.tick(8.5)
    (end,) = subscriber.ends
    assert isinstance(end, ProtocolError)
    assert "an element was left unfinished for more than 8 s. The peer must act" in str(end)


@pytest.mark.parametrize(("last", "due"), [(0.0, 8.0), (6.0, 8.0), (7.5, 9.5)])
def test_a_peer_that_falls_silent_within_an_element_is_lost(last: float, due: float) -> None:
    """The stream ends with ConnectionLost after a quarter of the age without a byte. The
    connection stays open: keepalive judges that.
    """
    raw = RawPeer(Role.CLIENT, limits=limits_with(partial_age=8)).handshake()
    subscriber = subscribe_to(raw, 4)
    for now in (0.0, last):
        raw.now = now
        raw.send(PART)
    assert raw.session.tick(last) == due
    raw.session.tick(due - 0.01)
    assert subscriber.ends == []
    raw.session.tick(due)
    (end,) = subscriber.ends
    assert isinstance(end, ConnectionLost)
    assert str(end).endswith(
        "for more than 8 s (Limits.partial_age), and nothing follows; the peer hangs, or the "
        "network is gone"
    )
    assert raw.receive()[-1] == rsio.Cancel(subscriber=0)
    assert raw.session.state is ConnectionState.OPEN
