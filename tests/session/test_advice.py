"""What arrives as a few words is shown with what to try."""

import pytest

from penstock.session._advice import DRAINING, NO_SUCH, PRIVATE, REFUSED, advised


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (NO_SUCH, "check its name and its parameters"),
        (DRAINING, "try another server, or the same one later"),
        (REFUSED, "Limits.max_subscriptions"),
        (PRIVATE, "why is in the log of its side"),
    ],
)
def test_each_text_of_ours_comes_with_advice(text: str, says: str) -> None:
    """The words on the wire first, then what to try."""
    assert advised(text).startswith(f"{text}: ")
    assert says in advised(text)


def test_other_texts_are_shown_as_they_are_but_for_what_a_terminal_would_obey() -> None:
    """They are the publisher's own words."""
    assert advised("ausverkauft: für heute") == "ausverkauft: für heute"
    assert advised("\x1b[2Jboo\n") == "\\x1b[2Jboo\\n"
