"""Streams that this side has cancelled: what still arrives for them."""

from penstock.api import Role
from penstock.protocols import rsio
from penstock.session import ConnectionState
from tests.session._pair import RawPeer, limited, reading


def test_elements_that_were_asked_for_and_crossed_the_cancel_cost_nothing() -> None:
    """As many as had been asked for may be on their way; beyond them each run is an oddity."""
    raw = RawPeer(Role.CLIENT, limits=limited(glitch_burst=1, glitch_rate=0.001)).greet()
    reader = reading(raw, 100)
    reader.cancel()
    raw.hear()
    # Of many lengths, so that no run of them counts as one.
    raw.say(*[rsio.OnNext(subscriber=0, element=b"x" * size) for size in range(100)])
    assert raw.session.state is ConnectionState.OPEN
    raw.say(*[rsio.OnNext(subscriber=0, element=b"x" * size) for size in range(2)])
    assert raw.reason() == "limit:glitches"
