"""What a session says to people."""

from penstock.session._words import explained, shown


def test_a_peers_words_cannot_write_on_a_terminal() -> None:
    """Nor fill it: they are escaped, and cut."""
    assert shown("\x1b[31mred\n") == r"'\x1b[31mred\n'"
    assert len(shown("x" * 10_000)) == 202
    assert shown("") == "no reason given"


def test_a_reason_that_somebody_can_act_on_says_how() -> None:
    """Whoever speaks to a port that serves another protocol needs another URL."""
    assert shown("protocol:not-served").startswith("'protocol:not-served' (another protocol is served there")


def test_what_a_peer_did_is_told_in_words_where_they_are_known() -> None:
    """A peer that is silent has broken nothing; the reasons of other extensions are theirs."""
    assert explained("keepalive").startswith("the peer gave no sign of life (Limits.keepalive")
    assert explained("mine") == "mine"
