"""A message that has begun must be complete within `Limits.partial_age`."""

from penstock.api import Role
from penstock.protocols import rsio
from penstock.session import ConnectionState
from tests.session._pair import RawPeer, limits_with, subscribe_to

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
