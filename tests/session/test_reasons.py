"""The table of reasons: what a reason is shown as, and what its text never decides."""

import pytest

from penstock.session import CONNECTION_REASONS, STREAM_REASONS, connection_reason, explain_connection_end, explain_stream_end
from penstock.session._reasons import DRAINING, NO_SUCH, PRIVATE, REFUSED, SHOWN_CHARACTERS, explain_own


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (NO_SUCH, "check its name and its parameters"),
        (DRAINING, "try another server, or the same one later"),
        (REFUSED, "Limits.max_subscriptions"),
        (PRIVATE, "look into the log of the other side"),
    ],
)
def test_a_text_of_penstocks_own_is_followed_by_what_to_try(text: str, says: str) -> None:
    """The words on the wire come first, then when penstock says them, then what to try."""
    assert explain_stream_end(text).startswith(f"{text} (penstock says this if ")
    assert says in explain_stream_end(text)


def test_another_text_is_shown_as_it_is_without_control_characters() -> None:
    """A publisher's own words stay; what a terminal would obey is escaped."""
    assert explain_stream_end("ausverkauft: für heute") == "ausverkauft: für heute"
    assert explain_stream_end("\x1b[2Jboo\n") == "\\x1b[2Jboo\\n"


def test_the_reason_of_a_goodbye_is_escaped_and_cut() -> None:
    """A peer's words cannot write on a terminal, nor fill it."""
    assert explain_connection_end("\x1b[31mred\n") == r"'\x1b[31mred\n'"
    assert len(explain_connection_end("x" * 10_000)) == SHOWN_CHARACTERS + 2
    assert explain_connection_end("") == "no reason given"


def test_a_known_reason_of_a_goodbye_says_what_to_do() -> None:
    """A client on a port of another protocol is told which URL to write."""
    assert "a URL with tcp:// speaks RS.io" in explain_connection_end("protocol:not-served")


def test_a_reason_names_the_two_sides_from_the_readers_view() -> None:
    """The side that gives `keepalive` blames the peer; the side that gets it reads that itself was silent."""
    assert explain_own("keepalive").startswith("the peer gave no sign of life (Limits.keepalive")
    assert "this side gave no sign of life" in explain_connection_end("keepalive")
    assert explain_own("mine") == "mine"


def test_a_reason_with_a_parameter_is_found_by_its_token() -> None:
    """A number behind a blank is no part of the token."""
    found = connection_reason("limit:name 1025 > 1024")
    assert found is not None
    assert found.token == "limit:name"
    assert connection_reason("limit:nam") is None


@pytest.mark.parametrize("reason", [*CONNECTION_REASONS, *STREAM_REASONS], ids=lambda reason: reason.token or "none")
def test_only_what_comes_before_the_handshake_says_that_nothing_was_done(reason: object) -> None:
    """The peer may have acted, unless the protocol says otherwise: before a hello, or for another protocol or version."""
    harmless = {"limit:handshake", "limit:hello", "protocol:not-served", "version"}
    assert reason.may_have_acted is (reason.token not in harmless)  # type: ignore[attr-defined]  # a Reason


def test_tokens_are_unique() -> None:
    """Each table has one row for a token."""
    for table in (CONNECTION_REASONS, STREAM_REASONS):
        assert len({reason.token for reason in table}) == len(table)
