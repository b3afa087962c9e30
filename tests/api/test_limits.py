"""The record of limits: frozen, complete, and with the evidence for each limit."""

import ast
import inspect
import re
from dataclasses import FrozenInstanceError, fields, replace
from itertools import pairwise
from pathlib import Path

import pytest

import penstock
from penstock.api import Limits, UsageError
from penstock.api import _limits as module
from penstock.session import CONNECTION_REASONS


def test_limits_are_frozen() -> None:
    """A connection relies on its limits; a changed copy is another record."""
    limits = Limits()
    with pytest.raises(FrozenInstanceError):
        limits.max_frame = 1  # type: ignore[misc]  # the test is that this raises
    assert replace(limits, max_frame=1).max_frame == 1
    assert limits.max_frame == 1 << 20


def test_limits_are_given_by_name() -> None:
    """Fifty numbers by position could not be read."""
    with pytest.raises(TypeError):
        Limits(1.0)  # type: ignore[misc]  # the test is that this raises


def test_each_limit_has_its_evidence() -> None:
    """A text below each field says what it bounds, and why the default has its value."""
    (record,) = (
        node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ClassDef)
    )
    told = {
        field.target.id
        for field, after in pairwise(record.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(after, ast.Expr)
    }
    assert {field.name for field in fields(Limits)} == told


@pytest.mark.parametrize("name", [field.name for field in fields(Limits)])
def test_a_limit_that_makes_no_sense_is_refused(name: str) -> None:
    """Zero, a negative number, and anything but a number; the message names the field."""
    for nonsense in (0, -1, "many", True, float("nan")):
        with pytest.raises(UsageError, match=name):
            replace(Limits(), **{name: nonsense})


def test_the_bound_on_idle_subscriptions_may_be_left_out() -> None:
    """None means that idle streams have no bound."""
    assert Limits(idle_subscription_age=None).idle_subscription_age is None


ROOT = Path(__file__).parents[2]
SOURCES = Path(penstock.__file__).parent
IN_SESSION, IN_RUNTIME = "tests/session/test_limits.py", "tests/runtime/test_limits.py"
TOO_LONG, RATE = (
    "test_a_length_above_its_limit_is_refused",
    "test_a_rate_may_be_used_up_but_not_exceeded",
)

REACHED: dict[str, tuple[str, str]] = {
    "handshake_timeout": (IN_RUNTIME, "test_a_hello_has_a_deadline"),
    "tls_timeout": (IN_RUNTIME, "test_the_handshake_of_a_transport_has_a_deadline"),
    "preauth_bytes": (
        "tests/session/test_session.py",
        "test_too_much_before_the_hello_ends_the_connection",
    ),
    "hello_extensions": (IN_SESSION, "test_a_hello_lists_at_most_hello_extensions"),
    "max_pending_handshakes": (
        "tests/runtime/server/test_serve.py",
        "test_connections_without_a_hello_are_bounded",
    ),
    "max_frame": (IN_SESSION, TOO_LONG),
    "max_element": (
        "tests/session/test_receiving_stream.py",
        "test_a_peer_that_breaks_the_contract_of_a_stream_loses_it",
    ),
    "split_outbound_at": (
        "tests/session/test_element_output.py",
        "test_large_elements_are_split_and_take_turns",
    ),
    "max_partials": (IN_SESSION, "test_unfinished_elements_of_one_stream_are_bounded"),
    "max_partials_in_all": (
        "tests/session/test_receiving_stream.py",
        "test_unfinished_elements_are_bounded_in_number_over_the_connection",
    ),
    "partial_bytes": (
        "tests/session/test_receiving_stream.py",
        "test_unfinished_elements_are_bounded_in_bytes_over_the_connection",
    ),
    "max_parts": (
        "tests/session/test_receiving_stream.py",
        "test_parts_of_one_element_are_bounded_in_number",
    ),
    "partial_age": (IN_SESSION, "test_an_unfinished_element_ends_its_stream_after_partial_age"),
    "tiny_part": (IN_SESSION, "test_tiny_part_sets_the_length_below_which_a_part_is_odd"),
    "max_name": (IN_SESSION, TOO_LONG),
    "max_error_text": (IN_SESSION, TOO_LONG),
    "max_reason": (IN_SESSION, TOO_LONG),
    "window_bytes": (
        "tests/runtime/test_streams_bounded_in_bytes.py",
        "test_a_slow_reader_of_large_elements_holds_its_window",
    ),
    "unread_bytes": (
        "tests/runtime/test_streams_bounded_in_bytes.py",
        "test_elements_that_become_large_end_their_stream_at_the_budget",
    ),
    "max_subscriptions": (
        "tests/session/test_session.py",
        "test_streams_are_bounded_in_number_with_those_that_are_stopping",
    ),
    "retired_ids": (
        "tests/session/test_session.py",
        "test_cancelled_ids_without_an_end_are_bounded",
    ),
    "late_bytes": (
        "tests/session/test_cancelled_streams.py",
        "test_late_elements_are_bounded_in_bytes",
    ),
    "churn_burst": (
        "tests/session/test_session.py",
        "test_streams_that_end_as_soon_as_they_begin_have_a_rate",
    ),
    "churn_rate": (IN_SESSION, RATE),
    "idle_subscription_age": (
        "tests/session/test_watchers.py",
        "test_an_idle_stream_ends_after_idle_subscription_age",
    ),
    "idle_connection": (
        "tests/session/test_watchers.py",
        "test_a_connection_without_streams_ends_after_idle_connection",
    ),
    "max_hold_up": (
        "tests/runtime/test_topic_over_network.py",
        "test_a_subscriber_that_requests_nothing_holds_up_a_topic_for_a_time",
    ),
    "glitch_burst": (
        "tests/session/test_session.py",
        "test_races_are_tolerated_until_the_budget_is_spent",
    ),
    "glitch_rate": (IN_SESSION, RATE),
    "control_burst": ("tests/session/test_session.py", "test_control_messages_have_a_rate"),
    "control_rate": (IN_SESSION, RATE),
    "outbound_high": (
        "tests/session/test_sending_stream.py",
        "test_a_peer_that_never_reads_costs_a_fixed_number_of_bytes",
    ),
    "outbound_control": (
        "tests/session/test_session.py",
        "test_unread_answers_are_bounded_in_number_and_bytes",
    ),
    "outbound_control_count": (
        "tests/session/test_session.py",
        "test_unread_answers_are_bounded_in_number_and_bytes",
    ),
    "write_stall": (
        "tests/runtime/connection/test_send_deadline.py",
        "test_a_peer_that_takes_a_byte_now_and_then_is_given_up",
    ),
    "min_drain": (
        "tests/runtime/connection/test_send_deadline.py",
        "test_a_slow_peer_that_takes_enough_is_kept",
    ),
    "resume_timeout": (
        "tests/runtime/connection/test_resumption.py",
        "test_a_connection_that_cannot_be_resumed_is_lost_for_good",
    ),
    "resume_bytes": (
        "tests/runtime/server/test_resumable.py",
        "test_publishers_wait_for_acknowledgements",
    ),
    "receive_chunk": (IN_RUNTIME, "test_a_receive_takes_no_more_than_the_chunk"),
    "turn": (IN_RUNTIME, "test_other_tasks_get_a_turn_while_a_chunk_is_decoded"),
    "goodbye_timeout": (
        IN_RUNTIME,
        "test_a_goodbye_without_an_answer_is_waited_for_until_its_deadline",
    ),
    "linger": (IN_RUNTIME, "test_the_answering_side_waits_for_the_other_to_close"),
    "drain": (IN_RUNTIME, "test_a_shutdown_takes_no_longer_than_its_drain"),
    "keepalive": (
        "tests/extensions/test_keepalive.py",
        "test_a_silent_peer_gets_a_ping_and_then_the_connection_ends",
    ),
    "keepalive_timeout": (
        "tests/extensions/test_keepalive.py",
        "test_the_peer_has_keepalive_timeout_seconds_to_answer",
    ),
    "keepalive_least": (
        "tests/extensions/test_keepalive.py",
        "test_more_than_keepalive_strikes_early_pings_end_the_connection",
    ),
    "keepalive_strikes": (
        "tests/extensions/test_keepalive.py",
        "test_more_than_keepalive_strikes_early_pings_end_the_connection",
    ),
    "max_connections": (
        "tests/runtime/server/test_serve.py",
        "test_connections_are_bounded_in_number",
    ),
    "max_connections_per_address": (
        "tests/runtime/server/test_serve.py",
        "test_connections_from_one_address_are_bounded",
    ),
    "accept_rate": (IN_RUNTIME, "test_accepting_keeps_its_rate"),
    "memory_budget": (
        "tests/runtime/connection/test_memory_budget.py",
        "test_the_connection_that_holds_most_is_cut_and_the_others_go_on",
    ),
}
"""Each field, and the test that reaches it with a smaller one."""


def test_each_limit_has_a_test_that_reaches_it() -> None:
    """A new field, or a removed one, must be changed here too:
    a bound that no test reaches may not work.
    """
    assert list(REACHED) == [field.name for field in fields(Limits)]


IN_WORDS = {"churn_burst": "churn", "glitch_burst": "glitches", "control_burst": "controls"}
"""Fields, and what tests of sessions call them: `tests.session._pair.limits_with`."""


@pytest.mark.parametrize("name", REACHED)
def test_the_test_that_reaches_a_limit_exists_and_sets_it(name: str) -> None:
    """The function exists, and its file gives the field another value."""
    path, function = REACHED[name]
    text = (ROOT / path).read_text(encoding="utf-8")
    assert f"def {function}(" in text
    by_prefix = name.rsplit("_", 1)[0] if function == RATE else name
    said = rf"""\b({name}|{IN_WORDS.get(name, name)})=|"{by_prefix}\""""
    assert re.search(said, text), f"{path} never says {name}="


@pytest.mark.parametrize("name", [field.name for field in fields(Limits)])
def test_each_limit_is_read_by_the_code(name: str) -> None:
    """A field that no code reads bounds nothing."""
    readers = [path for path in SOURCES.rglob("*.py") if path.name != "_limits.py"]
    assert any(
        re.search(rf"limits\.{name}\b", path.read_text(encoding="utf-8")) for path in readers
    )


PAGE = ROOT / "docs/reference/limits.md"


def _parts() -> dict[str, list[str]]:
    """Return the paragraphs of each field's docstring, by its name."""
    (record,) = (
        node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ClassDef)
    )
    found = {}
    for field, after in pairwise(record.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            assert isinstance(after, ast.Expr)
            assert isinstance(after.value, ast.Constant)
            found[field.target.id] = re.split(r"\n\s*\n", inspect.cleandoc(str(after.value.value)))
    return found


def test_each_limit_says_what_it_bounds_its_effect_and_its_reason() -> None:
    """The page of limits is made from these three parts (docs/_ext/tables_from_code.py)."""
    lacking = [
        name
        for name, parts in _parts().items()
        if len(parts) != 3
        or not parts[1].startswith("Reached: ")
        or not parts[2].startswith("Why: ")
    ]
    assert lacking == []


def test_the_page_of_limits_shows_each_section() -> None:
    """A section of the record is a comment `# --- name`; the page has its table."""
    sections = re.findall(r"^    # --- (.+)$", inspect.getsource(module), re.MULTILINE)
    shown = re.findall(r"^```\{limits\} (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown == sections


def test_the_page_of_limits_lists_every_token() -> None:
    """Each token of a limit stands in the code, on this page, and in the table of reasons."""
    sources = "".join(path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py"))
    reasons = {reason.token for reason in CONNECTION_REASONS}
    page = PAGE.read_text(encoding="utf-8") + inspect.getsource(module)
    told = set(re.findall(r"`(limit:\w+)`", page))
    assert told == set(re.findall(r'"(limit:\w+)"', sources))
    assert sorted(token for token in told if token not in reasons) == []
