"""The table of reasons: how a reason is shown, and
that its text never decides the kind of error.
"""

import pytest

from penstock.api import PRIVATE
from penstock.session import (
    CONNECTION_REASONS,
    STREAM_REASONS,
    connection_reason,
    explain_connection_end,
    explain_stream_end,
    no_room_refusal,
)
from penstock.session._reasons import DRAINING, NO_SUCH, REFUSED, SHOWN_CHARACTERS, explain_own


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (NO_SUCH, "check its name and its parameters"),
        (DRAINING, "try another server, or the same one later"),
        (REFUSED, "Limits.max_subscriptions"),
        (PRIVATE, "look into the log of the other side"),
    ],
)
def test_a_text_that_penstock_sends_is_followed_by_advice(text: str, advice: str) -> None:
    """The text comes first, then when penstock sends it, then the advice."""
    assert explain_stream_end(text).startswith(f"{text} (penstock says this if ")
    assert advice in explain_stream_end(text)


def test_another_text_is_shown_as_it_is_without_control_characters() -> None:
    """A publisher's text stays. Characters that a terminal would obey are escaped."""
    assert explain_stream_end("ausverkauft: für heute") == "ausverkauft: für heute"
    assert explain_stream_end("\x1b[2Jboo\n") == "\\x1b[2Jboo\\n"


def test_the_reason_of_a_goodbye_is_escaped_and_cut() -> None:
    """A peer's text can neither control a terminal nor fill it."""
    assert explain_connection_end("\x1b[31mred\n") == r"'\x1b[31mred\n'"
    assert len(explain_connection_end("x" * 10_000)) == SHOWN_CHARACTERS + 2
    assert explain_connection_end("") == "no reason given"


def test_a_known_reason_of_a_goodbye_has_advice() -> None:
    """A client on a port of another protocol reads which URL to use."""
    told = explain_connection_end("protocol:not-served")
    for url in ("tcp:// speaks RS.io", "reactivesocket+tcp:// ReactiveSocket", "rsocket+tcp:// RS"):
        assert url in told


def test_a_reason_names_the_two_sides_from_the_readers_view() -> None:
    """For `keepalive` the side that closes reads that the peer was silent,
    and the peer reads that it was silent itself.
    """
    assert explain_own("keepalive").startswith("the peer gave no sign of life (Limits.keepalive")
    assert "this side gave no sign of life" in explain_connection_end("keepalive")
    assert explain_own("mine") == "mine"


def test_a_reason_with_a_parameter_is_found_by_its_token() -> None:
    """A number after a blank is not part of the token."""
    found = connection_reason("limit:name 1025 > 1024")
    assert found is not None
    assert found.token == "limit:name"
    assert connection_reason("limit:na") is None


def test_a_sentence_that_begins_like_a_token_is_not_explained() -> None:
    """rsocket-java refuses a SETUP with this text: there was no lost connection."""
    assert explain_connection_end("resume not supported") == "'resume not supported'"


@pytest.mark.parametrize(
    "reason", [*CONNECTION_REASONS, *STREAM_REASONS], ids=lambda reason: reason.token or "none"
)
def test_only_reasons_before_the_handshake_say_that_nothing_was_done(reason: object) -> None:
    """The peer may have acted, unless the reason comes in the place of a hello:
    no version in common, or no room.
    """
    before_hello = {"version", "places:connections", "places:address"}
    assert reason.may_have_acted is (reason.token not in before_hello)  # type: ignore[attr-defined]  # a Reason


def test_tokens_are_unique() -> None:
    """Each table has one row for a token."""
    for table in (CONNECTION_REASONS, STREAM_REASONS):
        assert len({reason.token for reason in table}) == len(table)


@pytest.mark.parametrize("token", ["places:connections", "places:address"])
def test_no_room_is_a_refusal_that_may_be_tried_again(token: str) -> None:
    """It says who must act, and what to try."""
    refusal = no_room_refusal(token, processed=False)
    assert refusal is not None
    assert (refusal.temporary, refusal.processed) == (True, False)
    assert "the operator of the server can raise the limit" in str(refusal)
    assert "Limits.max_connections" in str(refusal)


@pytest.mark.parametrize("text", ["", "drain", "limit:hello", "places", "my own words"])
def test_no_other_reason_is_a_lack_of_room(text: str) -> None:
    """A server may have let the client in, or never will."""
    assert no_room_refusal(text, processed=True) is None
