"""What a session says to people."""

from penstock.session._words import shown


def test_a_peers_words_cannot_write_on_a_terminal() -> None:
    """Nor fill it: they are escaped, and cut."""
    assert shown("\x1b[31mred\n") == r"'\x1b[31mred\n'"
    assert len(shown("x" * 10_000)) == 202
    assert shown("") == "no reason given"


def test_a_reason_that_somebody_can_act_on_says_how() -> None:
    """Whoever speaks to a port that serves another protocol needs another URL."""
    assert shown("protocol:not-served").startswith("'protocol:not-served' (another protocol is served there")
