"""Cancelled streams: late elements are dropped and counted."""

from penstock.api import Role
from penstock.protocols import rsio
from penstock.session import ConnectionState
from tests.session._pair import RawPeer, limits_with, subscribe_to


def test_requested_elements_that_cross_the_cancel_cost_nothing() -> None:
    """After a cancel, as many elements as were requested may arrive free. Each run beyond them is an oddity."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(glitch_burst=1, glitch_rate=0.001)).handshake()
    subscriber = subscribe_to(raw, 100)
    subscriber.cancel()
    raw.receive()
    # Each has another length, so that the decoder makes no run of them, which would count once.
    raw.send(*[rsio.OnNext(subscriber=0, element=b"x" * size) for size in range(100)])
    assert raw.session.state is ConnectionState.OPEN
    raw.send(*[rsio.OnNext(subscriber=0, element=b"x" * size) for size in range(2)])
    assert raw.goodbye_reason() == "limit:glitches"
