"""Messages that come while an extension holds the peer:
kept within Limits.preauth_bytes, and acted on in order.
"""

import pytest

from penstock.protocols import rsio
from penstock.session import ConnectionState
from tests.session._outside_extension import Meeting, Outsider
from tests.session._pair import Pair, RawPeer, ScriptedPublisher, limits_with

SUBSCRIBE = rsio.Subscribe(publisher="s", subscriber=0, demand=1)


def held_peer(extension: Outsider, most: int = 1000) -> RawPeer:
    raw = RawPeer(limits=limits_with(preauth_bytes=most), extensions=[extension])
    raw.delegate.publishers["s"] = ScriptedPublisher()
    raw.send(rsio.ClientHello(extensions=(200,)))
    raw.receive()
    return raw


def test_subscribe_request_and_cancel_wait_and_are_replayed_in_order() -> None:
    """Nothing is answered before the extension lets the peer in; the principal is known then."""
    there = Outsider(holds=True)
    raw = held_peer(there)
    other = rsio.Subscribe(publisher="s", subscriber=1, demand=0)
    raw.send(SUBSCRIBE, rsio.Request(subscriber=0, demand=2), other, rsio.Cancel(subscriber=1))
    assert raw.delegate.served == []
    assert not raw.delegate.is_open
    assert raw.receive() == []
    there.link.admit("alice")
    assert raw.delegate.principal == "alice"
    assert raw.delegate.is_open
    assert [stream.id for stream in raw.delegate.served] == [0, 1]
    assert raw.delegate.served[0].available + raw.delegate.served[0].reserved == 3
    assert raw.delegate.publishers["s"].cancels == 1
    # Later messages no longer wait.
    raw.send(rsio.Subscribe(publisher="s", subscriber=2, demand=0))
    assert len(raw.delegate.served) == 3


@pytest.mark.parametrize("extra", [0, 1])
def test_messages_are_counted_as_encoded(extra: int) -> None:
    """One byte above the limit ends the connection, with both numbers."""
    name = "n" * (100 + extra)
    size = len(rsio.encode(rsio.Subscribe(publisher=name, subscriber=0, demand=1)))
    raw = held_peer(Outsider(holds=True), most=size - extra)
    raw.send(rsio.Subscribe(publisher=name, subscriber=0, demand=1))
    if extra:
        assert raw.goodbye_reason() == f"limit:auth {size} > {size - 1}"
    else:
        assert raw.session.state is ConnectionState.GREETING


def test_a_message_that_does_not_fit_is_refused_on_its_length() -> None:
    """Before its body, and with what has come before."""
    raw = held_peer(Outsider(holds=True), most=100)
    raw.send(bytes([0x60, 100]) + b"x")
    assert raw.session.state is ConnectionState.GREETING
    raw = held_peer(Outsider(holds=True), most=100)
    raw.send(bytes([0x60, 101]) + b"x")
    assert raw.goodbye_reason() == "limit:auth 101 > 100"


def test_a_goodbye_is_taken_at_once() -> None:
    """The kept messages are forgotten."""
    there = Outsider(holds=True)
    raw = held_peer(there)
    raw.send(SUBSCRIBE, rsio.Goodbye(reason=""))
    assert raw.session.state is ConnectionState.CLOSED_BY_PEER
    there.link.admit()
    assert raw.delegate.served == []


def test_a_peer_that_is_held_for_too_long_is_refused() -> None:
    """The time is that of the handshake."""
    raw = held_peer(Outsider(holds=True))
    raw.session.tick(raw.session.channel.limits.handshake_timeout)
    assert raw.goodbye_reason() == "limit:handshake"


def test_a_refusal_may_come_at_a_later_time() -> None:
    """Until then the connection is neither open nor closed;
    of two refusals the earlier one counts.
    """
    there = Outsider(holds=True)
    raw = held_peer(there)
    there.link.break_off("other", at=0.3)
    there.link.break_off("private", at=0.25)
    there.link.break_off("late", at=0.25)
    assert raw.session.tick(0.1) == 0.25
    assert raw.session.state is ConnectionState.GREETING
    raw.session.tick(0.25)
    assert raw.goodbye_reason() == "private"


def test_two_extensions_that_hold_must_both_let_the_peer_in() -> None:
    """A second call of the first one does not count for the other."""

    class Second(Outsider):
        id = 201
        codes = frozenset({0x61})

    first, second = Outsider(holds=True), Second(holds=True)
    raw = RawPeer(extensions=[first, second])
    raw.send(rsio.ClientHello(extensions=(200, 201)))
    first.link.admit()
    first.link.admit()
    assert not raw.delegate.is_open
    second.link.admit()
    assert raw.delegate.is_open


@pytest.mark.parametrize("listed", [(), (200,)])
def test_an_extension_meets_a_peer_that_does_not_have_it(listed: tuple[int, ...]) -> None:
    """The extension can also hold such a peer."""
    there = Meeting(holds=True)
    raw = RawPeer(extensions=[there])
    raw.send(rsio.ClientHello(extensions=listed), SUBSCRIBE)
    assert there.named("meet") == ([] if listed else [(None,)])
    assert raw.delegate.served == []
    there.link.admit()
    assert len(raw.delegate.served) == 1


def test_an_extension_that_raises_while_it_meets_the_peer_ends_the_connection() -> None:
    """The peer is not let in."""
    raw = RawPeer(extensions=[Meeting(raises="meet")])
    raw.send(rsio.ClientHello(), SUBSCRIBE)
    assert raw.delegate.served == []
    assert raw.goodbye_reason() == "internal"


def test_an_extension_that_lets_the_peer_in_at_once_holds_nothing() -> None:
    """Hold and admit inside `open`."""

    class Quick(Outsider):
        def note(self, name: str, *arguments: object) -> None:
            super().note(name, *arguments)
            if name == "open":
                self.link.admit("bob")

    pair = Pair(extensions=[Outsider()], server_extensions=[Quick(holds=True)])
    pair.server.publishers["s"] = ScriptedPublisher()
    pair.subscribe("s", 1)
    pair.settle()
    assert pair.server.principal == "bob"
    assert len(pair.server.served) == 1
