"""The watchers end things that may last only for a time: an unfinished message or element, idle
streams, an unused connection.
"""

from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.api import ConnectionLost, LimitExceeded, Limits, Role
from penstock.extensions import Keepalive
from penstock.protocols import rsio
from penstock.session import ConnectionState
from penstock.session._deadlines import Deadlines
from penstock.session._stream_tables import NOTED_WITHIN, ConnectionUse
from tests.session._pair import Pair, RawPeer, ScriptedPublisher, limits_with, subscribe_to

# --- messages and elements

ELEMENT = rsio.encode(rsio.OnNext(subscriber=0, element=bytes(1000)))


def _receiving_peer() -> RawPeer:
    raw = RawPeer(Role.CLIENT, limits=limits_with(partial_age=3.0)).handshake()
    subscribe_to(raw, 100)
    return raw


def test_a_message_that_comes_byte_by_byte_ends_the_connection() -> None:
    """One byte comes each second. The message's age counts, not the time since the last byte."""
    raw = _receiving_peer()
    for second in range(3):
        raw.now = float(second)
        raw.send(ELEMENT[second : second + 1])
        assert raw.session.tick(raw.now) == 3.0
    raw.session.tick(3.0)
    assert raw.goodbye_reason() == "limit:partial"


def test_each_message_has_its_own_age() -> None:
    """A connection whose every chunk ends within a message stays open,
    because each message is complete in time.
    """
    raw = _receiving_peer()
    stream = ELEMENT * 50
    for at in range(0, len(stream), 800):
        raw.now += 1.4
        raw.send(stream[at : at + 800])
        raw.session.tick(raw.now)
    assert raw.session.state is ConnectionState.OPEN


def test_silence_between_messages_is_tolerated() -> None:
    """Keepalive judges silence, not MessageAge."""
    raw = _receiving_peer()
    raw.send(ELEMENT[:10])
    raw.send(ELEMENT[10:])
    raw.session.tick(1000.0)
    assert raw.session.state is ConnectionState.OPEN


# --- streams and connections


def _open(raw: RawPeer, *ids: int, demand: int = 0) -> ScriptedPublisher:
    source = raw.delegate.publishers["s"] = ScriptedPublisher()
    raw.send(*[rsio.Subscribe(publisher="s", subscriber=each, demand=demand) for each in ids])
    raw.receive()
    return source


def _run(raw: RawPeer, until: float) -> float:
    """Tick whenever it is due, until `until`. Return when the first message was queued."""
    first_message_at = float("inf")
    due: float | None = raw.now
    while due is not None and due <= until:
        raw.now = due
        due = raw.session.tick(due)
        if raw.session.outbox.waiting:
            first_message_at = min(first_message_at, raw.now)
    raw.now = until
    return first_message_at


def test_an_idle_stream_ends_after_idle_subscription_age() -> None:
    """The peer gets the error `idle`, the publisher is cancelled, and the connection stays open."""
    raw = RawPeer(limits=limits_with(idle_subscription_age=40.0)).handshake()
    source = _open(raw, 1)
    assert 40.0 <= _run(raw, 100.0) <= 60.0
    assert raw.receive() == [rsio.OnError(subscriber=1, error="idle")]
    assert source.cancels == 1
    assert raw.session.state is ConnectionState.OPEN
    assert raw.session.streams.serving == {}


def test_a_stream_with_demand_is_not_idle() -> None:
    """It waits for its publisher, for however long."""
    raw = RawPeer(limits=limits_with(idle_subscription_age=40.0)).handshake()
    _open(raw, 1, demand=1)
    assert _run(raw, 1000.0) == inf


@pytest.mark.parametrize(
    ("size", "element"),
    [(0, bytes(50_000)), (2, b"aabbcc")],
    ids=["a large element", "the rest of a block"],
)
def test_a_stream_whose_elements_wait_is_not_idle(size: int, element: bytes) -> None:
    """Its demand is used up: a large element waits for the writer, or elements that the publisher
    gave beyond the demand wait for more of it.
    """
    raw = RawPeer(limits=limits_with(idle_subscription_age=40.0)).handshake()
    source = raw.delegate.publishers["s"] = ScriptedPublisher(element_size=size)
    raw.send(rsio.Subscribe(publisher="s", subscriber=1, demand=1))
    raw.receive()
    source.emit(element)
    (stream,) = raw.session.streams.serving.values()
    assert (stream.available, stream.is_idle) == (0, False)
    _run(raw, 1000.0)
    assert source.cancels == 0


def test_a_request_starts_the_age_again() -> None:
    """Its elements may be sent between two looks."""
    raw = RawPeer(limits=limits_with(idle_subscription_age=40.0)).handshake()
    source = _open(raw, 1)
    for second in range(0, 1000, 35):
        assert _run(raw, float(second)) == inf
        raw.send(rsio.Request(subscriber=1, demand=1))
        source.emit(b"x")
        raw.receive()
    assert raw.session.state is ConnectionState.OPEN
    assert list(raw.session.streams.serving) == [1]


def test_without_an_age_there_is_one_warning() -> None:
    """It comes after an hour, for all idle streams together, and no stream ends."""
    raw = RawPeer().handshake()
    _open(raw, 1, 2, 3)
    assert _run(raw, 10 * 3600.0) == inf
    assert sorted(raw.session.streams.serving) == [1, 2, 3]
    (warning,) = raw.delegate.warnings
    assert isinstance(warning, LimitExceeded)
    assert "3 of the streams" in str(warning)
    assert "Limits.untrusted()" in str(warning)


def test_untrusted_limits_end_idle_streams_after_an_hour() -> None:
    """Limits.untrusted() differs from the defaults in nothing else."""
    assert Limits.untrusted() == limits_with(idle_subscription_age=3600.0)


def test_a_stream_that_begins_between_two_looks_has_the_whole_age() -> None:
    """Only looks set the time from which a stream is idle."""
    raw = RawPeer(limits=limits_with(idle_subscription_age=40.0, idle_connection=1e9)).handshake()
    assert _run(raw, 39.0) == inf
    _open(raw, 1)
    assert _run(raw, 79.9) == inf
    assert _run(raw, 100.0) == 80.0


def test_a_connection_without_streams_ends_after_idle_connection() -> None:
    """A stream starts the time again. A second after its end the clock is looked at."""
    raw = RawPeer(limits=limits_with(idle_connection=30.0)).handshake()
    raw.session.tick(0.0)
    _open(raw, 1)
    assert _run(raw, 100.0) == inf
    raw.send(rsio.Cancel(subscriber=1))
    assert raw.session.tick(100.0) == 101.0
    assert _run(raw, 131.0) == 131.0
    assert raw.goodbye_reason() == "idle"


def test_a_tick_before_the_next_look_returns_its_time() -> None:
    """Four looks for each age."""
    raw = RawPeer(limits=limits_with(idle_subscription_age=40.0)).handshake()
    _open(raw, 1)
    assert [raw.session.tick(now) for now in (0.0, 5.0, 9.9, 10.0, 12.0)] == [
        10.0,
        10.0,
        10.0,
        20.0,
        20.0,
    ]


# --- what a use is


@pytest.mark.parametrize(
    ("role", "publishes", "asked", "keeps"),
    [
        (Role.SERVER, False, 0, False),
        (Role.SERVER, True, 0, True),
        (Role.SERVER, False, 1, True),
        (Role.CLIENT, False, 0, True),
    ],
)
def test_a_side_that_publishes_keeps_the_connection_if_the_keepalive_is_active(
    role: Role, publishes: bool, asked: int, keeps: bool
) -> None:
    """A server is taken to publish; a client has published if it was asked for something.
    Without a keepalive nothing keeps it.
    """
    use = ConnectionUse(role, Deadlines())
    use.publishes = lambda: publishes
    use.asked = asked
    assert not use.keeps_open
    keepalive: Any = SimpleNamespace()
    use.keepalive = keepalive
    assert use.keeps_open == keeps


def test_pings_are_no_use() -> None:
    """The keepalive shows that a peer lives, and not that the connection is needed."""
    pair = Pair(extensions=[Keepalive()])
    pair.settle()
    uses = pair.client.session.streams.use, pair.server.session.streams.use
    assert all(use.keepalive is not None for use in uses)
    for now in (0.0, 30.0, 40.0, 60.0):
        pair.now = now
        pair.client.session.tick(now)
        pair.server.session.tick(now)
        pair.settle()
    assert [use.is_noted for use in uses] == [False, False]


def test_the_end_of_each_stream_is_a_use() -> None:
    """The end of a stream of this side, and of one of the peer. Soon after it the clock is read."""
    raw = RawPeer().handshake()
    raw.delegate.publishers["s"] = ScriptedPublisher()
    client = RawPeer(Role.CLIENT).handshake()
    raw.session.tick(0.0)
    client.session.tick(0.0)
    uses = raw.session.streams.use, client.session.streams.use
    raw.send(rsio.Subscribe(publisher="s", subscriber=0))
    subscribe_to(client, 2)
    assert [use.is_noted for use in uses] == [False, False]
    raw.delegate.publishers["s"].complete()
    client.send(rsio.OnComplete(subscriber=0))
    assert [use.is_noted for use in uses] == [True, True]
    dues = [side.session.channel.deadlines.earliest for side in (raw, client)]
    assert dues == [NOTED_WITHIN, NOTED_WITHIN]


def test_a_request_between_two_looks_is_a_use() -> None:
    """The time counts from the look after it, so no connection ends too early."""
    raw = RawPeer(limits=limits_with(idle_connection=30.0)).handshake()
    raw.session.tick(0.0)
    source = raw.delegate.publishers["s"] = ScriptedPublisher()
    raw.now = 25.0
    raw.send(rsio.Subscribe(publisher="s", subscriber=1))
    # The publisher completes later than anything has arrived, so the session's clock is slow.
    source.complete()
    assert raw.receive()[-1] == rsio.OnComplete(subscriber=1)
    assert _run(raw, 56.0) == 56.0
    assert raw.goodbye_reason() == "idle"


# --- a peer that leaves when the streams have ended


def test_a_peer_that_leaves_gets_all_that_is_due_to_it() -> None:
    """The session ends when its last stream has ended and its bytes are taken, and is asked no
    later than a second after each.
    """
    raw = RawPeer().handshake()
    raw.session.tick(0.0)
    _open(raw, 1)
    _open(raw, 2)
    raw.session.receive_goodbye("going", waits=True)
    assert raw.session.streams.drain.is_peer_draining
    _run(raw, 50.0)
    assert raw.session.state is ConnectionState.OPEN
    raw.now = 50.0
    raw.send(rsio.Cancel(subscriber=1))
    _run(raw, 60.0)
    assert raw.session.state is ConnectionState.OPEN
    raw.delegate.publishers["s"].complete()
    raw.session.tick(60.0)
    for now in (61.0, 62.0):
        assert raw.session.tick(now) == now + NOTED_WITHIN
    assert raw.receive()[-1] == rsio.OnComplete(subscriber=2)
    raw.session.tick(63.0)
    assert raw.session.state is ConnectionState.CLOSED_BY_PEER
    assert raw.session.close_reason == ("going", None)
    assert "the peer closed the connection: 'going'" in str(raw.delegate.ended[0])


def test_a_peer_that_leaves_gets_what_was_encoded_for_it() -> None:
    """No stream is open any more, and the session ends when its bytes are taken."""
    raw = RawPeer(limits=limits_with(idle_connection=1000.0)).handshake()
    raw.session.tick(0.0)
    raw.session.channel.send(b"last")
    raw.session.receive_goodbye("going", waits=True)
    assert raw.session.tick(0.0) == NOTED_WITHIN
    assert raw.session.take().endswith(b"last")
    raw.session.tick(NOTED_WITHIN)
    assert raw.session.state is ConnectionState.CLOSED_BY_PEER


@pytest.mark.parametrize("has_stream", [True, False])
def test_a_peer_that_leaves_is_waited_for_only_with_a_stream(has_stream: bool) -> None:
    """If not, the session ends at once. If the transport ends before the stream, the stream gets
    the words of the peer.
    """
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = subscribe_to(raw, 2) if has_stream else None
    raw.receive()
    raw.session.receive_goodbye("going", waits=True)
    assert raw.session.state is (
        ConnectionState.OPEN if has_stream else ConnectionState.CLOSED_BY_PEER
    )
    raw.session.receive_goodbye("going on", waits=True)
    raw.session.end_of_input()
    assert raw.session.state is ConnectionState.CLOSED_BY_PEER
    assert raw.session.close_reason == ("going", None)
    if subscriber is not None:
        assert "'going'" in str(subscriber.ends[0])


# --- the element of a silent peer


def test_an_unfinished_element_of_a_silent_peer_is_a_lost_connection() -> None:
    """The stream ends with ConnectionLost, and the connection goes on."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(partial_age=4)).handshake()
    subscriber = subscribe_to(raw, 2)
    raw.send(rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 64))
    raw.session.tick(100.0)
    assert [type(end) for end in subscriber.ends] == [ConnectionLost]
    assert raw.session.state is ConnectionState.OPEN


def test_an_unfinished_message_is_a_fault_before_other_things_are_looked_at() -> None:
    """Both are due: the connection ends for the message, and no stream is ended as idle."""
    raw = RawPeer(limits=limits_with(partial_age=5, idle_subscription_age=4)).handshake()
    source = _open(raw, 0)
    raw.session.tick(0.0)
    raw.send(rsio.encode(rsio.Subscribe(publisher="s", subscriber=1))[:-1])
    raw.session.tick(5.0)
    assert [type(each) for each in raw.receive()] == [rsio.Goodbye]
    assert source.cancels == 1
