"""`penstock cat` on a real terminal:
rows of elements, one line of progress, and no control sequence of a server.
"""

import os
import re
import signal

import pytest

from tests._real_time import HANGS_AFTER
from tests.cli._programs import line_of, penstock
from tests.cli._pseudo_terminal import CTRL_C, CTRL_S, penstock_on, python_on, terminal

SUMMARY = r"\d+ elements? in \d+\.\d s, \d+/s"


@pytest.mark.heavy
@pytest.mark.parametrize("columns", [80, 24, 5, 1, 0])
def test_elements_never_share_a_row_with_the_progress_line(address: str, columns: int) -> None:
    """On a terminal of any width, also one that does not tell it: after the end each row is an
    element, and the last one the summary.
    """
    with terminal(columns or 80) as screen:
        if not columns:
            screen.resize(0)
        with penstock_on(screen, "cat", f"{address}/slowly/4") as program:
            assert screen.read_until_end_of(program) == 0
        text = screen.written.decode()
        assert screen.lines_drawn() or columns == 1
        assert max(map(len, screen.lines_drawn()), default=0) < (columns or 80)
        assert [row for row in re.split(r"\r\n|\r\x1b\[K", text) if row.startswith("element ")] == [
            f"element {n}" for n in range(4)
        ]
        assert re.search(SUMMARY + r"\r\n$", text)
        if columns in {80, 0}:
            rows = screen.rows()
            assert rows[:-1] == [f"element {number}" for number in range(4)]
            assert re.fullmatch(SUMMARY, rows[-1])
        assert screen.cursor_column == 0


def test_the_line_fits_after_the_terminal_was_resized(address: str) -> None:
    """The width is that of the time of drawing, not that of the start."""
    with (
        terminal(80) as screen,
        penstock_on(screen, "cat", f"{address}/slowly/1000") as program,
    ):
        screen.read_until(b"asked for, 0 buffered")
        screen.resize(30)
        screen.read_until(b"\n")  # a line that was begun before is erased by now
        screen.read_until(b"\n")
        begin = len(screen.lines_drawn())
        screen.read_until(b"element 9\r\n")
        after = screen.lines_drawn()[begin + 1 :]
        assert after
        assert max(map(len, after)) < 30
        screen.type(CTRL_C)
        assert screen.read_until_end_of(program) == 130


@pytest.mark.parametrize("style", ["text", "raw", "json"])
def test_a_hostile_server_cannot_control_the_terminal(address: str, style: str) -> None:
    """No ESC, C0, DEL, C1, bidirectional or hidden character of an element is written.
    The text of each is, as an escape.
    """
    name = "hostile-json" if style == "json" else "hostile"
    with (
        terminal(160) as screen,
        penstock_on(screen, "cat", f"{address}/{name}", "--format", style) as program,
    ):
        assert screen.read_until_end_of(program) == 0
        assert screen.controls() == set()
        shown = "".join(screen.rows())
    for escape in (
        (r"\u001b", r"\u009b", r"\u202e", r"\udc41")
        if style == "json"
        else (r"\x1b", r"\x9b", r"\u202e", r"\xff")
    ):
        assert escape in shown


def test_an_error_of_a_hostile_server_cannot_control_the_terminal(address: str) -> None:
    """The text of its error is one row, and the progress line is gone."""
    with (
        terminal(400) as screen,
        penstock_on(screen, "cat", f"{address}/hostile-error") as program,
    ):
        assert screen.read_until_end_of(program) == 1
        assert screen.controls() == set()
        rows = screen.rows()
    assert len(rows) == 2
    assert rows[0] == "one"
    assert rows[1].startswith("penstock: ")
    assert r"\x1b]0;owned\x07" in rows[1]


def test_into_a_pipe_the_bytes_stay_as_they_are(address: str) -> None:
    """Although standard error is a terminal, which shows the progress and the summary."""
    with terminal() as screen:
        with penstock("cat", f"{address}/hostile", "--quiet") as plain:
            expected, _ = plain.communicate(timeout=HANGS_AFTER)
        read, write = os.pipe()
        with penstock_on(screen, "cat", f"{address}/hostile", stdout=write) as program:
            os.close(write)
            with open(read, "rb") as pipe:  # noqa: PTH123  # a descriptor has no path
                got = pipe.read()
            assert screen.read_until_end_of(program) == 0
    assert got == expected
    assert b"\x1b]0;owned\x07" in got
    assert b"\xff\xe2\x82\n" in got
    assert len(screen.rows()) == 1
    assert re.fullmatch(SUMMARY, screen.rows()[0])


def test_elements_on_a_terminal_and_messages_in_a_file(address: str) -> None:
    """Then no line is drawn: the terminal has the elements only, the file the summary only."""
    with terminal() as screen:
        read, write = os.pipe()
        with penstock_on(screen, "cat", f"{address}/slowly/3", stderr=write) as program:
            os.close(write)
            assert screen.read_until_end_of(program) == 0
        with open(read, "rb") as pipe:  # noqa: PTH123  # a descriptor has no path
            assert re.fullmatch(SUMMARY + "\n", pipe.read().decode())
    assert screen.rows() == ["element 0", "element 1", "element 2"]
    assert b"\x1b" not in screen.written


@pytest.mark.parametrize(
    ("variable", "value"),
    [("TERM", "dumb"), ("TERM", ""), ("NO_COLOR", "1")],
    ids=["dumb", "no TERM", "NO_COLOR"],
)
def test_a_terminal_gets_no_sequence_that_it_does_not_know(
    address: str, variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dumb terminal gets no progress line.
    No terminal gets a colour, so NO_COLOR changes nothing.
    """
    monkeypatch.setenv("TEST_TERM" if variable == "TERM" else variable, value)
    with (
        terminal() as screen,
        penstock_on(screen, "cat", f"{address}/slowly/2") as program,
    ):
        assert screen.read_until_end_of(program) == 0
    assert re.search(rb"\x1b\[[0-9;]*m", screen.written) is None
    if variable == "TERM":
        assert b"\x1b" not in screen.written
    assert screen.rows()[:2] == ["element 0", "element 1"]
    assert re.fullmatch(SUMMARY, screen.rows()[2])


def test_ctrl_c_leaves_the_summary_and_a_new_row(address: str) -> None:
    """The echo of ^C is erased with the line. The status is 130."""
    with (
        terminal() as screen,
        penstock_on(screen, "cat", f"{address}/slowly/1000") as program,
    ):
        screen.read_until(b"asked for, 0 buffered")
        screen.type(CTRL_C)
        assert screen.read_until_end_of(program) == 130
        rows = screen.rows()
        assert all(row.startswith("element ") for row in rows[:-1])
        assert re.fullmatch(SUMMARY, rows[-1])
        assert screen.cursor_column == 0


def test_raw_elements_without_a_line_break_are_not_erased(address: str) -> None:
    """The line is not drawn on a row that an element has begun,
    and the summary begins a new row.
    """
    with (
        terminal() as screen,
        penstock_on(screen, "cat", f"{address}/slowly/3", "--format", "raw") as program,
    ):
        assert screen.read_until_end_of(program) == 0
        rows = screen.rows()
    assert rows[0] == "element 0element 1element 2"
    assert re.fullmatch(SUMMARY, rows[1])


def test_ctrl_c_ends_the_command_on_a_stopped_terminal(address: str) -> None:
    """After Ctrl-S its writes block without end. Threads that wait there do not delay the end."""
    with (
        terminal() as screen,
        penstock_on(screen, "cat", f"{address}/endless") as program,
    ):
        screen.read_until(b"again")
        screen.type(CTRL_S)  # nothing reads the terminal from here on, so its buffer fills
        screen.type(CTRL_C)
        assert program.wait(HANGS_AFTER) == 130


def test_the_end_of_the_reading_program_is_quiet_on_a_terminal(address: str) -> None:
    """After `penstock cat … | head -1`: no error, status 0, and no line is left on the row of the
    prompt.
    """
    with terminal() as screen:
        read, write = os.pipe()
        with penstock_on(screen, "cat", f"{address}/endless", stdout=write) as program:
            os.close(write)
            with open(read, "rb", buffering=0) as pipe:  # noqa: PTH123  # a descriptor has no path
                assert pipe.read(6) == b"again\n"
            assert screen.read_until_end_of(program) == 0
        assert screen.rows() == []
        assert screen.cursor_column == 0


def test_the_commands_of_the_readme_show_what_it_says() -> None:
    """Two terminals: one serves until Ctrl-C, the other reads three elements, each on its row."""
    with terminal() as left, terminal() as right:
        with penstock_on(
            left, "serve", "examples.live_service:service", "tcp://127.0.0.1:0"
        ) as server:
            left.read_until(b"\n")
            address = left.rows()[0].split()[-1]
            with penstock_on(
                right, "cat", f"{address}/ticks/EURUSD", "--format", "json", "--count", "3"
            ) as reader:
                assert right.read_until_end_of(reader) == 0
            left.type(CTRL_C)
            assert left.read_until_end_of(server) == 130
        assert left.rows() == [
            f"serving blocks/{{count}}, mean, ticks/{{symbol}} at {address}",
            "^Cshutting down",
        ]
        *elements, summary = right.rows()
    assert elements == [
        f'{{"symbol": "EURUSD", "tick": {tick}, "price": {price}}}'
        for tick, price in ((1, 124), (2, 122), (3, 127))
    ]
    assert re.fullmatch(SUMMARY, summary)


WITH_A_WARNING = """
import logging, sys, threading
from penstock.cli import main
threading.Timer(1.0, logging.warning, ["careful"]).start()
sys.exit(main(sys.argv[1:]))
"""


def test_a_message_does_not_share_a_row_with_the_line(address: str) -> None:
    """A warning of any library, while the line is drawn: it goes through sys.stderr."""
    with terminal() as screen:
        with python_on(screen, "-c", WITH_A_WARNING, "cat", f"{address}/slowly/8") as program:
            assert screen.read_until_end_of(program) == 0
        rows = screen.rows()
    assert "WARNING:root:careful" in rows
    rows.remove("WARNING:root:careful")
    assert rows[:-1] == [f"element {number}" for number in range(8)]
    assert re.fullmatch(SUMMARY, rows[-1])


def test_sigterm_ends_the_line_as_well(address: str) -> None:
    """Also a signal that was not typed leaves the cursor on a new row."""
    with (
        terminal() as screen,
        penstock_on(screen, "cat", f"{address}/slowly/1000") as program,
    ):
        screen.read_until(b"asked for, 0 buffered")
        program.send_signal(signal.SIGTERM)
        assert screen.read_until_end_of(program) == 143
        assert re.fullmatch(SUMMARY, screen.rows()[-1])
        assert screen.cursor_column == 0


def test_a_lost_server_is_told_on_a_new_row() -> None:
    """The line is erased before the error is written."""
    with (
        terminal(300) as screen,
        penstock("serve", "tests.cli._service:service", "tcp://127.0.0.1:0") as server,
    ):
        address = line_of(server).split()[-1]
        with penstock_on(screen, "cat", f"{address}/slowly/1000") as program:
            screen.read_until(b"asked for, 0 buffered")
            server.kill()
            assert screen.read_until_end_of(program) == 1
    assert all(row.startswith("element ") for row in screen.rows()[:-1])
    assert screen.rows()[-1].startswith("penstock: ")
