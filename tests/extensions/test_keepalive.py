"""Keepalive on a session: a silent peer gets a ping, and the connection ends
if the peer does not answer.
"""

from typing import Any

import pytest

from penstock.api import ConnectionLost, Role
from penstock.extensions import Keepalive
from penstock.extensions._keepalive import PING, PONG
from penstock.protocols import rsio
from penstock.session import ConnectionState
from tests.session._pair import RawPeer, limits_with


def _with_keepalive(**limits: Any) -> RawPeer:
    raw = RawPeer(Role.SERVER, limits=limits_with(**limits), extensions=[Keepalive()])
    raw.send(rsio.ClientHello(extensions=(1, 1, 99)))
    assert raw.receive() == [rsio.ServerHello(extensions=(1,))]
    return raw


def test_a_silent_peer_gets_a_ping_and_then_the_connection_ends() -> None:
    """The ping after `keepalive` seconds, the end after `keepalive_timeout` more."""
    raw = _with_keepalive(keepalive=20, keepalive_timeout=10)
    assert raw.session.tick(0.0) == 20.0
    assert raw.session.tick(20.0) == 30.0
    assert raw.receive() == [rsio.ExtensionMessage(type=PING, body=bytes(7) + b"\x01")]
    raw.session.tick(30.0)
    assert raw.goodbye_reason() == "keepalive"
    assert raw.session.state is ConnectionState.CLOSING


def test_any_message_restarts_the_interval() -> None:
    """Not only a pong."""
    raw = _with_keepalive(keepalive=20, keepalive_timeout=10)
    raw.session.tick(20.0)
    raw.now = 25.0
    raw.send(rsio.Cancel(subscriber=1))
    # It is asked at the time at which the ping would have been unanswered for too long.
    assert raw.session.tick(26.0) == 30.0
    assert raw.session.tick(30.0) == 45.0
    assert raw.session.state is ConnectionState.OPEN


def test_a_pong_repeats_the_body_of_its_ping() -> None:
    """Any body is allowed."""
    raw = _with_keepalive()
    raw.send(rsio.ExtensionMessage(type=PING, body=b"hello"))
    assert raw.receive() == [rsio.ExtensionMessage(type=PONG, body=b"hello")]


def _ping_at(raw: RawPeer, *times: float) -> None:
    for each in times:
        raw.now = each
        raw.send(rsio.ExtensionMessage(type=PING, body=b""))


def test_more_than_keepalive_strikes_early_pings_end_the_connection() -> None:
    """Here two pings may be less than five seconds after the one before;
    the third one ends the connection.
    """
    raw = _with_keepalive(keepalive_least=5.0, keepalive_strikes=2)
    _ping_at(raw, 0.0, 4.0, 8.0)
    assert raw.session.state is ConnectionState.OPEN
    raw.receive()
    _ping_at(raw, 12.0)
    assert raw.goodbye_reason() == "limit:pings"


def test_a_ping_in_time_resets_the_count_of_early_pings() -> None:
    """Because of the jitter, a ping that is 15 % early is in time."""
    raw = _with_keepalive(keepalive_least=5.0, keepalive_strikes=1)
    _ping_at(raw, 0.0, 1.0, 5.25, 6.0, 10.25, 11.0)
    assert raw.session.state is ConnectionState.OPEN


def test_an_early_ping_spends_the_budget_for_oddities() -> None:
    """So a peer cannot send early pings without end, even if timely pings reset the count."""
    raw = _with_keepalive(glitches=1, keepalive_strikes=100)
    _ping_at(raw, 0.0, 1.0)
    raw.receive()
    _ping_at(raw, 2.0)
    assert raw.goodbye_reason() == "limit:glitches"


def test_the_interval_varies_by_15_percent() -> None:
    """So a thousand connections do not ping at the same time."""
    raw = _with_keepalive(keepalive=20)
    raw.session.channel.random = lambda: 0.0
    assert raw.session.tick(0.0) == 20.0
    link = RawPeer(Role.SERVER, limits=limits_with(keepalive=20), extensions=[Keepalive()])
    link.session.channel.random = lambda: 1.0
    link.send(rsio.ClientHello(extensions=(1,)))
    assert link.session.tick(0.0) == 23.0


def test_a_ping_that_is_too_long_ends_the_connection() -> None:
    """A body has at most 125 bytes."""
    raw = _with_keepalive()
    raw.send(rsio.ExtensionMessage(type=PING, body=bytes(126)))
    assert raw.goodbye_reason() == "protocol:ping"
    raw.session.end_of_input()
    assert isinstance(raw.delegate.ended[0], ConnectionLost)


@pytest.mark.parametrize("length", [b"\x7e", b"\xff\xff\x3f"], ids=["126", "1,048,575"])
def test_a_ping_is_refused_on_its_length(length: bytes) -> None:
    """Before its body: half pings of 1 MiB on 256 connections once filled a server's memory
    budget.
    """
    raw = _with_keepalive()
    raw.send(bytes([PING]) + length)
    assert raw.goodbye_reason() == "protocol:ping"


def test_a_ping_that_comes_byte_by_byte_is_answered() -> None:
    """Its length is looked at more than once, and counts as legal each time."""
    raw = _with_keepalive()
    for byte in rsio.encode(rsio.ExtensionMessage(type=PING, body=bytes(125))):
        raw.send(bytes([byte]))
    assert raw.receive() == [rsio.ExtensionMessage(type=PONG, body=bytes(125))]


def test_the_peer_has_keepalive_timeout_seconds_to_answer() -> None:
    """Three seconds here, counted from the ping."""
    raw = _with_keepalive(keepalive=20, keepalive_timeout=3)
    assert raw.session.tick(20.0) == 23.0
    raw.session.tick(22.9)
    assert raw.session.state is ConnectionState.OPEN
    raw.session.tick(23.0)
    assert raw.session.state is ConnectionState.CLOSING


def test_a_ping_without_its_pong_is_not_followed_by_another_one() -> None:
    """It is still under way: further ones would arrive together with it. Behind its pong the
    next interval ends with a ping.
    """
    raw = _with_keepalive(keepalive=20, keepalive_timeout=10)
    raw.session.tick(20.0)
    assert raw.receive() == [rsio.ExtensionMessage(type=PING, body=bytes(7) + b"\x01")]
    raw.now = 29.0
    raw.send(rsio.Cancel(subscriber=1))
    assert raw.session.tick(49.0) == 59.0
    assert raw.receive() == []
    raw.now = 50.0
    raw.send(rsio.ExtensionMessage(type=PONG, body=bytes(7) + b"\x01"))
    raw.session.tick(70.0)
    assert raw.receive() == [rsio.ExtensionMessage(type=PING, body=bytes(7) + b"\x02")]
    raw.session.tick(80.0)
    assert raw.goodbye_reason() == "keepalive"
