"""A log with a bounded rate."""

import logging

import pytest
import trio
import trio.testing

from penstock.api import NotAvailable, PublicError, printable, text_of
from penstock.core import LimitedLog, limited_log, log_violation, place_of
from penstock.core._limited_log import BYTES_AT_ONCE, MAX_KINDS

LOGGER = logging.getLogger("penstock.test.limited")


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_flood_of_one_kind_is_cut_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    """The burst is written, then one line when its budget has grown by one;
    that line says how many were left out.
    """
    clock = Clock()
    log = LimitedLog(LOGGER, burst=3, per_second=0.5, clock=clock)
    with caplog.at_level(logging.INFO, LOGGER.name):
        assert [
            log.write(logging.INFO, "flood", "line %d", number) for number in range(1000)
        ].count(True) == 3
        clock.now += 2
        assert log.write(logging.INFO, "flood", "line %d", 1000)
        assert not log.write(logging.INFO, "flood", "line %d", 1001)
    assert caplog.messages == [
        "line 0",
        "line 1",
        "line 2",
        "line 1000 (997 lines like this one were left out before it)",
    ]


def test_a_flood_of_one_kind_hides_no_line_of_another(caplog: pytest.LogCaptureFixture) -> None:
    """Each kind has its own burst, and a quiet time fills it again, but not above the burst."""
    clock = Clock()
    log = LimitedLog(LOGGER, burst=2, per_second=1, clock=clock)
    with caplog.at_level(logging.INFO, LOGGER.name):
        assert [log.write(logging.INFO, kind, "x") for kind in ("a", "a", "a", "b")] == [
            True,
            True,
            False,
            True,
        ]
        clock.now += 1000
        assert [log.write(logging.INFO, "a", "x") for _ in range(3)] == [True, True, False]


def test_the_table_of_kinds_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """Kinds beyond the bound share one budget."""
    log = LimitedLog(LOGGER, burst=1, clock=Clock())
    with caplog.at_level(logging.INFO, LOGGER.name):
        assert [log.write(logging.INFO, f"kind {number}", "x") for number in range(1000)].count(
            True
        ) == MAX_KINDS + 1
    assert len(log._kinds) == MAX_KINDS + 1


def test_flush_says_how_many_lines_were_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """At the level of these lines, once, and nothing for a kind without any."""
    log = LimitedLog(LOGGER, burst=1, clock=Clock())
    with caplog.at_level(logging.INFO, LOGGER.name):
        for _ in range(1500):
            log.write(logging.WARNING, "flood", "a line")
        log.write(logging.INFO, "calm", "another line")
        assert log.has_left_out
        log.flush()
        assert not log.has_left_out
        log.flush()
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, "a line"),
        (logging.INFO, "another line"),
        (logging.WARNING, "flood: 1,499 lines were left out"),
    ]


def test_a_level_that_is_switched_off_costs_no_budget(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is written, and nothing is counted as left out."""
    log = LimitedLog(LOGGER, burst=1, clock=Clock())
    with caplog.at_level(logging.WARNING, LOGGER.name):
        assert not any(log.write(logging.INFO, "kind", "x") for _ in range(5))
        assert not log.has_left_out
        assert log.write(logging.WARNING, "kind", "x")


def test_a_line_is_one_line_without_control_characters(caplog: pytest.LogCaptureFixture) -> None:
    """A peer's words are escaped, also if they look like a format; letters of all scripts stay."""
    log = LimitedLog(LOGGER, clock=Clock())
    with caplog.at_level(logging.INFO, LOGGER.name):
        log.write(logging.INFO, "kind", "name %s", "%s \x1b[2J\n\r\x9b\u202e é 水")
        log.write(logging.INFO, "kind", "100 % of it, without values")
    assert caplog.messages == [
        "name %s \\x1b[2J\\n\\r\\x9b\\u202e é 水",
        "100 % of it, without values",
    ]


def test_the_traceback_of_an_error_is_written(caplog: pytest.LogCaptureFixture) -> None:
    """As the logger writes it."""
    log = LimitedLog(LOGGER, clock=Clock())
    error = ValueError("broken")
    log.write(logging.ERROR, "kind", "it failed", error=error)
    assert caplog.records[0].exc_info is not None
    assert caplog.records[0].exc_info[1] is error


def test_printable_keeps_a_printable_text() -> None:
    """The same object: most texts need nothing."""
    text = "127.0.0.1:53142"
    assert printable(text) is text
    assert printable("a\ud800b") == "a\\ud800b"


def test_all_kinds_together_are_bounded_in_bytes(caplog: pytest.LogCaptureFixture) -> None:
    """An attacker with many names, or with long ones, cannot write more than the bytes of the
    log; later they grow again.
    """
    clock = Clock()
    log = LimitedLog(LOGGER, burst=1000, bytes_per_second=100, clock=clock)
    with caplog.at_level(logging.INFO, LOGGER.name):
        written = [
            log.write(logging.INFO, f"kind {number % 50}", "x" * 5_000) for number in range(1000)
        ].count(True)
        assert written == len(caplog.records) < BYTES_AT_ONCE / 1_000
        clock.now += 60
        assert [log.write(logging.INFO, "kind 1", "x" * 5_000) for _ in range(50)].count(
            True
        ) == 60 * 100 // 1_064 + 1
    assert (
        sum(len(record.getMessage()) for record in caplog.records)
        < BYTES_AT_ONCE + 60 * 100 + 2_000
    )


def test_a_kind_that_was_quiet_makes_room_for_a_new_one(caplog: pytest.LogCaptureFixture) -> None:
    """Else the first names of a long-lived process would have the table until it ends."""
    clock = Clock()
    log = LimitedLog(LOGGER, burst=1, per_second=1, clock=clock)
    with caplog.at_level(logging.INFO, LOGGER.name):
        for number in range(MAX_KINDS):
            assert log.write(logging.INFO, f"old {number}", "x")
        clock.now += 1
        assert [log.write(logging.INFO, f"new {number}", "x") for number in range(MAX_KINDS)].count(
            True
        ) == MAX_KINDS
        assert len(log._kinds) == MAX_KINDS


def test_a_traceback_is_written_escaped_and_indented(caplog: pytest.LogCaptureFixture) -> None:
    """The usual formatter writes it, which would not escape the text of the exception."""
    log = LimitedLog(LOGGER, clock=Clock())
    log.write(logging.ERROR, "kind", "it failed", error=ValueError("x\nERROR forged\x1b[2J"))
    written = logging.Formatter("%(levelname)s %(message)s").format(caplog.records[0])
    first, *rest = written.split("\n")
    assert first == "ERROR it failed"
    assert all(line.startswith("  ") and line.isprintable() for line in rest)
    assert rest[-1] == "  ValueError: x\\nERROR forged\\x1b[2J"


def test_left_out_is_set_while_flush_would_write() -> None:
    """A task can wait for it, so no timer runs while all is quiet."""
    log = LimitedLog(LOGGER, burst=1, clock=Clock())
    log.write(logging.WARNING, "kind", "x")
    assert not log.left_out.is_set()
    log.write(logging.WARNING, "kind", "x")
    assert log.left_out.is_set()
    log.flush()
    assert not log.left_out.is_set()


def test_a_run_of_trio_has_one_log_of_a_name_and_the_next_run_another() -> None:
    """The clock of a run is its own, and so is the budget."""

    async def find() -> tuple[LimitedLog, LimitedLog]:
        return limited_log("penstock.test.limited"), limited_log("penstock.test.limited")

    first, second = trio.run(find), trio.run(find, clock=trio.testing.MockClock())
    assert first[0] is first[1]
    assert second[0] is second[1]
    assert first[0] is not second[0]
    assert limited_log("penstock.test.limited") is not limited_log("penstock.test.limited")


async def test_the_default_hook_for_faults_is_bounded(
    caplog: pytest.LogCaptureFixture, mock_clock: trio.testing.MockClock
) -> None:
    """The same fault a thousand times is ten lines; another one still has room; an exception
    without a text raises nothing.
    """

    class Unprintable(Exception):
        def __str__(self) -> str:
            raise ValueError

    def raised_here(error: Exception) -> Exception:
        with pytest.raises(type(error)) as caught:
            raise error
        return caught.value

    for number in range(1000):
        log_violation(raised_here(ValueError(f"fault {number}")))
    log_violation(raised_here(KeyError("another")))
    log_violation(Unprintable())
    assert len(caplog.records) == 12
    assert caplog.messages[-1] == "Unprintable, whose __str__ raised"
    assert all(
        record.name == "penstock" and record.levelno == logging.ERROR for record in caplog.records
    )


def test_the_place_of_an_error_is_its_type_and_the_line_that_raised_it() -> None:
    """Not its text, which a peer may have chosen."""

    def fail(text: str) -> None:
        raise ValueError(text)

    places = set()
    for text in ("a", "b"):
        with pytest.raises(ValueError, match=text) as failed:
            fail(text)
        places.add(place_of(failed.value))
        assert text_of(failed.value) == text
    (place,) = places
    assert place.startswith("ValueError at ")
    assert place_of(ValueError("never raised")) == "ValueError"


def test_an_answer_to_a_peer_is_no_error_in_the_log_of_faults(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A PublicError has no traceback, and a program that logs errors only has no line of it."""
    log_violation(PublicError("out of stock"))
    log_violation(NotAvailable("not yours"))
    assert caplog.records == []
    with caplog.at_level(logging.INFO, "penstock"):
        log_violation(PublicError("out of\nstock"))
    assert [
        (record.levelname, record.getMessage(), record.exc_info) for record in caplog.records
    ] == [("INFO", "PublicError: out of\\nstock", None)]


def test_a_log_is_made_without_a_look_at_the_clock() -> None:
    """A server is made before the run of trio begins, whose clock its log uses."""
    assert not LimitedLog(LOGGER, clock=trio.current_time).has_left_out
