"""Keepalive at work on a session: a silent peer is asked, and one that does not answer is given up."""

from typing import Any

from penstock.api import ConnectionLost, Role
from penstock.builtin import Keepalive
from penstock.builtin._keepalive import PING, PONG
from penstock.session import ConnectionState
from penstock.wire import rsio
from tests.session._pair import RawPeer, limited


def _kept_alive(**limits: Any) -> RawPeer:
    raw = RawPeer(Role.SERVER, limits=limited(**limits), extensions=[Keepalive()])
    raw.say(rsio.ClientHello(extensions=(1, 1, 99)))
    assert raw.hear() == [rsio.ServerHello(extensions=(1,))]
    return raw


def test_a_silent_peer_is_asked_and_then_given_up() -> None:
    """One ping after the interval, and the end when it is not answered."""
    raw = _kept_alive(keepalive=20, keepalive_timeout=10)
    assert raw.session.tick(0.0) == 20.0
    assert raw.session.tick(20.0) == 30.0
    assert raw.hear() == [rsio.ExtensionMessage(type=PING, body=bytes(7) + b"\x01")]
    raw.session.tick(30.0)
    assert raw.reason() == "keepalive"
    assert raw.session.state is ConnectionState.LEAVING


def test_any_sign_of_life_will_do() -> None:
    """A pong, or anything else, begins the silence anew."""
    raw = _kept_alive(keepalive=20, keepalive_timeout=10)
    raw.session.tick(20.0)
    raw.now = 25.0
    raw.say(rsio.Cancel(subscriber=1))
    assert raw.session.tick(26.0) == 45.0


def test_a_ping_is_answered_with_its_own_body() -> None:
    """Whatever it says."""
    raw = _kept_alive()
    raw.say(rsio.ExtensionMessage(type=PING, body=b"hello"))
    assert raw.hear() == [rsio.ExtensionMessage(type=PONG, body=b"hello")]


def test_pinging_too_often_spends_the_budget() -> None:
    """A ping flood ends the connection."""
    raw = _kept_alive(glitch_burst=3, glitch_rate=0.001)
    for _ in range(4):
        raw.say(rsio.ExtensionMessage(type=PING, body=b""))
    raw.hear()
    raw.say(rsio.ExtensionMessage(type=PING, body=b""))
    assert raw.reason() == "limit:glitches"


def test_a_ping_that_is_too_long_ends_the_connection() -> None:
    """125 bytes are enough for anything."""
    raw = _kept_alive()
    raw.say(rsio.ExtensionMessage(type=PING, body=bytes(126)))
    assert raw.reason() == "protocol:ping"
    raw.session.end_of_input()
    assert isinstance(raw.owner.ended[0], ConnectionLost)
