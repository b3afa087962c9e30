"""A message that has begun must end, in so many seconds."""

from penstock.api import Role
from penstock.protocols import rsio
from penstock.session import ConnectionState
from tests.session._pair import RawPeer, limits_with, subscribe_to

ELEMENT = rsio.encode(rsio.OnNext(subscriber=0, element=bytes(1000)))


def _reading() -> RawPeer:
    raw = RawPeer(Role.CLIENT, limits=limits_with(partial_age=3.0)).handshake()
    subscribe_to(raw, 100)
    return raw


def test_a_message_that_drips_in_ends_the_connection() -> None:
    """A byte each second: after three it is over, though something was heard all the time."""
    raw = _reading()
    for second in range(3):
        raw.now = float(second)
        raw.send(ELEMENT[second : second + 1])
        assert raw.session.tick(raw.now) == 3.0
    raw.session.tick(3.0)
    assert raw.goodbye_reason() == "limit:partial"


def test_messages_that_are_cut_anywhere_have_their_time_each() -> None:
    """A connection whose every piece of bytes ends within a message goes on for ever."""
    raw = _reading()
    stream = ELEMENT * 50
    for at in range(0, len(stream), 800):
        raw.now += 1.4
        raw.send(stream[at : at + 800])
        raw.session.tick(raw.now)
    assert raw.session.state is ConnectionState.OPEN


def test_where_nothing_has_begun_nothing_is_waited_for() -> None:
    """Silence between messages is keepalive's affair."""
    raw = _reading()
    raw.send(ELEMENT[:10])
    raw.send(ELEMENT[10:])
    raw.session.tick(1000.0)
    assert raw.session.state is ConnectionState.OPEN
