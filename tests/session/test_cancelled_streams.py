"""Streams that this side has cancelled: what still arrives for them."""

from penstock.api import Role
from penstock.protocols import rsio
from penstock.session import ConnectionState
from tests.session._pair import RawPeer, limits_with, subscribe_to


def test_elements_that_were_asked_for_and_crossed_the_cancel_cost_nothing() -> None:
    """As many as had been asked for may be on their way; beyond them each run is an oddity."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(glitch_burst=1, glitch_rate=0.001)).handshake()
    subscriber = subscribe_to(raw, 100)
    subscriber.cancel()
    raw.receive()
    # Of many lengths, so that no run of them counts as one.
    raw.send(*[rsio.OnNext(subscriber=0, element=b"x" * size) for size in range(100)])
    assert raw.session.state is ConnectionState.OPEN
    raw.send(*[rsio.OnNext(subscriber=0, element=b"x" * size) for size in range(2)])
    assert raw.goodbye_reason() == "limit:glitches"
