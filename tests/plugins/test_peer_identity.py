"""Who is there, and what is known about a connection."""

import dataclasses

import pytest

from penstock.plugins import Certificate, ConnectionFacts, PeerIdentity


def test_a_peer_is_told_by_its_address_and_its_certificate() -> None:
    """What ends up in a log line."""
    assert str(PeerIdentity(address="127.0.0.1:1")) == "127.0.0.1:1"
    assert str(PeerIdentity(address="127.0.0.1:1", certificate=Certificate(subject="CN=alice"))) == "127.0.0.1:1 (CN=alice)"


def test_nothing_is_assumed_about_a_connection() -> None:
    """Whoever knows no better claims neither safety nor nearness, and nobody can change the record that all share."""
    facts = ConnectionFacts()
    assert (facts.secure, facts.local, facts.half_close, facts.protocol, dict(facts.details)) == (False, False, False, None, {})
    with pytest.raises(TypeError):
        facts.details["x"] = "y"  # type: ignore[index]  # that it cannot be done is the point
    with pytest.raises(dataclasses.FrozenInstanceError):
        facts.secure = True  # type: ignore[misc]  # the same
