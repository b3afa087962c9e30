"""Keepalive at work on a session: a silent peer is asked, and one that does not answer is given up."""

from typing import Any

from penstock.api import ConnectionLost, Role
from penstock.builtin import Keepalive
from penstock.builtin._keepalive import PING, PONG
from penstock.protocols import rsio
from penstock.session import ConnectionState
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
    assert raw.session.state is ConnectionState.CLOSING


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


def _ping_at(raw: RawPeer, *times: float) -> None:
    for each in times:
        raw.now = each
        raw.say(rsio.ExtensionMessage(type=PING, body=b""))


def test_pings_that_come_too_soon_are_strikes_and_only_so_many_are_forgiven() -> None:
    """Two more frequent than every five seconds, and the third ends the connection."""
    raw = _kept_alive(keepalive_least=5.0, keepalive_strikes=2)
    _ping_at(raw, 0.0, 4.0, 8.0)
    assert raw.session.state is ConnectionState.OPEN
    raw.hear()
    _ping_at(raw, 12.0)
    assert raw.reason() == "limit:pings"


def test_a_ping_in_good_time_forgives_the_strikes_before_it() -> None:
    """Jitter is no offence: 15 % too soon is in good time."""
    raw = _kept_alive(keepalive_least=5.0, keepalive_strikes=1)
    _ping_at(raw, 0.0, 1.0, 5.25, 6.0, 10.25, 11.0)
    assert raw.session.state is ConnectionState.OPEN


def test_a_strike_spends_the_budget_too() -> None:
    """Whoever is forgiven for ever is so at his own cost."""
    raw = _kept_alive(glitch_burst=1, glitch_rate=0.001, keepalive_strikes=100)
    _ping_at(raw, 0.0, 1.0)
    raw.hear()
    _ping_at(raw, 2.0)
    assert raw.reason() == "limit:glitches"


def test_the_interval_is_the_one_asked_for_with_some_chance() -> None:
    """Fifteen per cent to either side, so that a thousand connections do not ask at once."""
    raw = _kept_alive(keepalive=20)
    raw.session.channel.random = lambda: 0.0
    assert raw.session.tick(0.0) == 20.0
    link = RawPeer(Role.SERVER, limits=limited(keepalive=20), extensions=[Keepalive()])
    link.session.channel.random = lambda: 1.0
    link.say(rsio.ClientHello(extensions=(1,)))
    assert link.session.tick(0.0) == 23.0


def test_a_ping_that_is_too_long_ends_the_connection() -> None:
    """125 bytes are enough for anything."""
    raw = _kept_alive()
    raw.say(rsio.ExtensionMessage(type=PING, body=bytes(126)))
    assert raw.reason() == "protocol:ping"
    raw.session.end_of_input()
    assert isinstance(raw.owner.ended[0], ConnectionLost)


def test_the_answer_has_its_time() -> None:
    """Three seconds here, from the ping on."""
    raw = _kept_alive(keepalive=20, keepalive_timeout=3)
    assert raw.session.tick(20.0) == 23.0
    raw.session.tick(22.9)
    assert raw.session.state is ConnectionState.OPEN
    raw.session.tick(23.0)
    assert raw.session.state is ConnectionState.CLOSING
