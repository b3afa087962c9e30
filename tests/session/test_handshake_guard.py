"""Bytes and time before both hellos are bounded."""

import pytest

from penstock.api import Role
from penstock.protocols import rsio
from penstock.session import ConnectionState
from tests.session._outside_extension import Outsider
from tests.session._pair import RawPeer, limits_with

HELLO = rsio.encode(rsio.ClientHello(version=0, extensions=tuple(range(1, 9))))


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_a_hello_that_is_too_long_is_refused_however_it_is_cut(step: int) -> None:
    """Received bytes are counted, not decoded ones."""
    most = len(HELLO) - 2
    raw = RawPeer(limits=limits_with(preauth_bytes=most))
    for at in range(0, most, step):
        raw.send(HELLO[at : min(at + step, most)])
    assert raw.session.state is ConnectionState.FRESH
    raw.send(HELLO[most : most + 1])
    assert raw.goodbye_reason() == "limit:hello"


def test_bytes_after_the_hello_are_not_counted() -> None:
    """The bound is on the hello only."""
    raw = RawPeer(limits=limits_with(preauth_bytes=20)).handshake()
    for _ in range(50):
        raw.send(rsio.Request(subscriber=9, demand=1))
    assert raw.session.state is ConnectionState.OPEN


@pytest.mark.parametrize("role", list(Role))
def test_a_hello_must_come_within_handshake_timeout(role: Role) -> None:
    """On either side; tick() returns the deadline."""
    raw = RawPeer(role, limits=limits_with(handshake_timeout=4.0))
    assert raw.session.tick(3.9) == 4.0
    raw.session.tick(4.0)
    assert raw.session.close_reason[0] == "limit:handshake"


def test_a_part_of_a_hello_leaves_nothing_to_do() -> None:
    """receive() returns False, as for any chunk whose messages were all acted on."""
    raw = RawPeer(limits=limits_with(preauth_bytes=len(HELLO)))
    assert not raw.session.receive(HELLO[:3], 0.0)
    assert not raw.session.receive(HELLO[3:], 0.0)
    assert raw.session.state is ConnectionState.OPEN


def test_messages_behind_the_hello_are_more_to_do() -> None:
    """receive() returns True while it is asked for fewer messages than have come, and
    so it is called again.
    """
    raw = RawPeer()
    assert raw.session.receive(
        HELLO + rsio.encode(rsio.Request(subscriber=9, demand=1)) * 2, 0.0, most=1
    )
    assert raw.session.receive(b"", 0.0, most=1)
    assert not raw.session.receive(b"", 0.0)


def test_messages_of_a_peer_that_is_held_are_more_to_do() -> None:
    """They are kept while an extension examines the peer,
    and the rest of a chunk must not wait for the next one.
    """
    raw = RawPeer(extensions=[Outsider(holds=True)])
    hello = rsio.encode(rsio.ClientHello(extensions=(200,)))
    assert raw.session.receive(
        hello + rsio.encode(rsio.Request(subscriber=9, demand=1)) * 2, 0.0, most=1
    )
    assert raw.session.state is ConnectionState.GREETING
    assert raw.session.receive(b"", 0.0, most=1)
    assert not raw.session.receive(b"", 0.0)
