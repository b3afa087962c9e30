"""The records about a peer and its connection."""

import attrs
import pytest

from penstock.spi import Certificate, ConnectionFacts, PeerIdentity


def test_a_peer_is_shown_by_its_address_and_its_certificate() -> None:
    """Log lines contain this text."""
    assert str(PeerIdentity(address="127.0.0.1:1")) == "127.0.0.1:1"
    assert (
        str(PeerIdentity(address="127.0.0.1:1", certificate=Certificate(subject="CN=alice")))
        == "127.0.0.1:1 (CN=alice)"
    )


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.1", False),
        (None, False),
    ],
)
def test_a_loopback_address_is_recognised(host: str | None, expected: bool) -> None:
    """IPv4's 127.0.0.0/8, IPv6's ::1, and IPv4's in IPv6 notation; no other address."""
    assert PeerIdentity(address="x", host=host).is_loopback is expected


def test_the_default_facts_promise_nothing() -> None:
    """A transport states each fact itself.
    The record, which connections share, cannot be changed.
    """
    facts = ConnectionFacts()
    assert (facts.secure, facts.local, facts.half_close, facts.protocol, dict(facts.details)) == (
        False,
        False,
        False,
        None,
        {},
    )
    with pytest.raises(TypeError):
        facts.details["x"] = "y"  # type: ignore[index]  # that it cannot be done is the point
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        facts.secure = True  # type: ignore[misc]  # the same
