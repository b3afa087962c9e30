"""Idleness: streams and connections that hold a place and use it for nothing."""

from penstock.api import LimitExceeded, Limits
from penstock.protocols import rsio
from penstock.session import ConnectionState
from tests.session._pair import RawPeer, ScriptedPublisher, limits_with


def _open(raw: RawPeer, *ids: int, demand: int = 0) -> ScriptedPublisher:
    source = raw.delegate.publishers["s"] = ScriptedPublisher()
    raw.send(*[rsio.Subscribe(publisher="s", subscriber=each, demand=demand) for each in ids])
    raw.receive()
    return source


def _run(raw: RawPeer, until: float) -> float:
    """Tick whenever it is due, until `until`; return when the first message was said."""
    spoke = float("inf")
    due: float | None = raw.now
    while due is not None and due <= until:
        raw.now = due
        due = raw.session.tick(due)
        if raw.session.outbox.waiting:
            spoke = min(spoke, raw.now)
    raw.now = until
    return spoke


def test_a_stream_without_demand_and_traffic_ends_after_its_time() -> None:
    """With an error that says why; its publisher is cancelled; the connection goes on."""
    raw = RawPeer(limits=limits_with(idle_subscription_age=40.0)).handshake()
    source = _open(raw, 1)
    assert 40.0 <= _run(raw, 100.0) <= 60.0
    assert raw.receive() == [rsio.OnError(subscriber=1, error="idle")]
    assert source.cancels == 1
    assert raw.session.state is ConnectionState.OPEN
    assert raw.session.streams.serving == {}


def test_demand_that_waits_for_its_publisher_is_not_idle() -> None:
    """A stream that asked is the publisher's turn, for however long."""
    raw = RawPeer(limits=limits_with(idle_subscription_age=40.0)).handshake()
    _open(raw, 1, demand=1)
    assert _run(raw, 1000.0) == float("inf")


def test_any_demand_begins_the_time_anew() -> None:
    """Also where it was served at once, between two looks."""
    raw = RawPeer(limits=limits_with(idle_subscription_age=40.0)).handshake()
    source = _open(raw, 1)
    for second in range(0, 1000, 35):
        assert _run(raw, float(second)) == float("inf")
        raw.send(rsio.Request(subscriber=1, demand=1))
        source.emit(b"x")
        raw.receive()
    assert raw.session.state is ConnectionState.OPEN
    assert list(raw.session.streams.serving) == [1]


def test_without_a_bound_there_is_one_warning() -> None:
    """After an hour, for all such streams together, and none ends."""
    raw = RawPeer().handshake()
    _open(raw, 1, 2, 3)
    assert _run(raw, 10 * 3600.0) == float("inf")
    assert sorted(raw.session.streams.serving) == [1, 2, 3]
    (warning,) = raw.delegate.warnings
    assert isinstance(warning, LimitExceeded)
    assert "3 of the streams" in str(warning)
    assert "Limits.untrusted()" in str(warning)


def test_strangers_are_given_an_hour() -> None:
    """The record for them differs in nothing else."""
    assert Limits.untrusted() == limits_with(idle_subscription_age=3600.0)


def test_nothing_is_looked_at_while_there_are_no_streams() -> None:
    """No timer runs for nothing, and one that begins later has its whole time."""
    raw = RawPeer(limits=limits_with(idle_subscription_age=40.0, idle_connection=1e9)).handshake()
    assert raw.session.tick(0.0) == 1e9
    raw.now = 39.0
    _open(raw, 1)
    assert raw.session.tick(39.0) == 49.0


def test_a_connection_without_streams_ends_after_its_time() -> None:
    """A stream begins the time anew."""
    raw = RawPeer(limits=limits_with(idle_connection=30.0)).handshake()
    raw.session.tick(0.0)
    _open(raw, 1)
    assert raw.session.tick(29.0) != 30.0
    raw.now = 100.0
    raw.send(rsio.Cancel(subscriber=1))
    assert raw.session.tick(100.0) == 130.0
    assert _run(raw, 130.0) == 130.0
    assert raw.goodbye_reason() == "idle"
