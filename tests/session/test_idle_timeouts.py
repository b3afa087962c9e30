"""Idle streams and idle connections end, because each holds a place that another peer could use."""

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
    assert _run(raw, 1000.0) == float("inf")


def test_a_request_starts_the_age_again() -> None:
    """Its elements may be sent between two looks."""
    raw = RawPeer(limits=limits_with(idle_subscription_age=40.0)).handshake()
    source = _open(raw, 1)
    for second in range(0, 1000, 35):
        assert _run(raw, float(second)) == float("inf")
        raw.send(rsio.Request(subscriber=1, demand=1))
        source.emit(b"x")
        raw.receive()
    assert raw.session.state is ConnectionState.OPEN
    assert list(raw.session.streams.serving) == [1]


def test_without_an_age_there_is_one_warning() -> None:
    """It comes after an hour, for all idle streams together, and no stream ends."""
    raw = RawPeer().handshake()
    _open(raw, 1, 2, 3)
    assert _run(raw, 10 * 3600.0) == float("inf")
    assert sorted(raw.session.streams.serving) == [1, 2, 3]
    (warning,) = raw.delegate.warnings
    assert isinstance(warning, LimitExceeded)
    assert "3 of the streams" in str(warning)
    assert "Limits.untrusted()" in str(warning)


def test_untrusted_limits_end_idle_streams_after_an_hour() -> None:
    """Limits.untrusted() differs from the defaults in nothing else."""
    assert Limits.untrusted() == limits_with(idle_subscription_age=3600.0)


def test_no_stream_timer_runs_without_streams() -> None:
    """A stream that begins later has the whole age."""
    raw = RawPeer(limits=limits_with(idle_subscription_age=40.0, idle_connection=1e9)).handshake()
    assert raw.session.tick(0.0) == 1e9
    raw.now = 39.0
    _open(raw, 1)
    assert raw.session.tick(39.0) == 49.0


def test_a_connection_without_streams_ends_after_idle_connection() -> None:
    """A stream starts the time again."""
    raw = RawPeer(limits=limits_with(idle_connection=30.0)).handshake()
    raw.session.tick(0.0)
    _open(raw, 1)
    assert raw.session.tick(29.0) != 30.0
    raw.now = 100.0
    raw.send(rsio.Cancel(subscriber=1))
    assert raw.session.tick(100.0) == 130.0
    assert _run(raw, 130.0) == 130.0
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
