"""Streams that end soon after they were opened cost tokens."""

from penstock.protocols import rsio
from penstock.session import ConnectionState
from penstock.session._stream_churn import StreamChurn
from tests.session._pair import LIMITS, RawPeer, ScriptedPublisher, limits_with


def test_short_streams_cost_tokens_and_long_ones_do_not() -> None:
    """The length is measured at the verdict, with a clock that was read after the streams ended."""
    churn = StreamChurn(limits_with(churn_burst=2, churn_rate=1e-6))
    for began in (0.0, 0.0, 9.5, 9.5):
        churn.count(began)
    assert churn.verdict(10.0) is None
    churn.count(9.5)
    assert churn.verdict(10.0) is not None
    assert churn.verdict(10.0) is None


def test_streams_that_lived_long_may_all_end_at_once() -> None:
    """Nothing has arrived since they were opened, so the session's clock still shows that time."""
    raw = RawPeer(limits=limits_with(churn_burst=2, churn_rate=1e-6)).handshake()
    sources = []
    for stream_id in range(10):
        source = raw.delegate.publishers["s"] = ScriptedPublisher()
        raw.send(rsio.Subscribe(publisher="s", subscriber=stream_id, demand=1))
        sources.append(source)
    for source in sources:
        source.complete()
    raw.now = 3600.0
    raw.send(rsio.Request(subscriber=99, demand=1))
    assert raw.session.state is ConnectionState.OPEN
    assert LIMITS.churn_burst > 2
