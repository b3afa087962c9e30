"""Elements and the progress line are written in an order in which neither destroys the other."""

import os
import select
import threading
from collections.abc import Iterator

import pytest

from penstock.api import UsageError
from penstock.cli import _screen
from penstock.cli._screen import ERASE, PIECE, Screen
from tests._real_time import HANGS_AFTER


class Pipes:
    """Standard output and standard error as pipes, whose bytes are read as from one terminal."""

    def __init__(self) -> None:
        self._read, self.file = os.pipe()
        os.set_blocking(self._read, False)

    def text(self) -> bytes:
        try:
            return os.read(self._read, 1 << 20)
        except BlockingIOError:
            return b""

    def close_reader(self) -> None:
        os.close(self._read)
        self._read = os.open(os.devnull, os.O_RDONLY)

    def close(self) -> None:
        os.close(self._read)
        os.close(self.file)


@pytest.fixture
def tty() -> Iterator[Pipes]:
    pipes = Pipes()
    yield pipes
    pipes.close()


def test_the_line_is_erased_before_elements(tty: Pipes) -> None:
    """And drawn only if it is asked for again."""
    screen = Screen(line_file=tty.file)
    screen.draw("1 element")
    screen.write([b"a\n", b"b\n"], file=tty.file, is_terminal=True)
    assert tty.text() == ERASE + b"1 element" + ERASE + b"a\nb\n"
    screen.write([b"c\n"], file=tty.file, is_terminal=True)
    assert tty.text() == b"c\n"


def test_a_line_that_is_drawn_is_not_drawn_again(tty: Pipes) -> None:
    """It would flicker for nothing."""
    screen = Screen(line_file=tty.file)
    screen.draw("1 element")
    screen.draw("1 element")
    assert tty.text() == ERASE + b"1 element"


def test_the_line_is_not_drawn_on_a_row_of_an_element(tty: Pipes) -> None:
    """Its erasure would destroy the element. The summary begins a new row."""
    screen = Screen(line_file=tty.file)
    screen.write([b"a"], file=tty.file, is_terminal=True)
    screen.draw("1 element")
    assert tty.text() == b"a"
    screen.finish("done")
    assert tty.text() == b"\ndone\n"


def test_the_line_makes_room_for_a_message(tty: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a message has not ended its row, no line is drawn."""
    now = 100.0
    monkeypatch.setattr(_screen, "monotonic", lambda: now)
    screen = Screen(line_file=tty.file)
    screen.draw("1 element")
    screen.before_message("half ")
    now = 101.0
    screen.draw("2 elements")
    assert tty.text() == ERASE + b"1 element" + ERASE
    screen.before_message("whole\n")
    screen.draw("2 elements")
    assert tty.text() == b""  # the message is not written yet
    now = 102.0
    screen.draw("2 elements")
    assert tty.text() == ERASE + b"2 elements"


def test_a_message_does_not_wait_for_a_slow_terminal(tty: Pipes) -> None:
    """It is written in the run loop. Most threads that hold the screen have erased the line."""
    screen = Screen(line_file=tty.file)
    with screen._lock:
        screen.before_message("x\n")
    assert tty.text() == b""


def test_a_message_waits_until_a_thread_has_drawn_the_line(
    tty: Pipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line would come between the message and its row."""
    monkeypatch.setattr(_screen, "MESSAGE_SECONDS", HANGS_AFTER)
    screen = Screen(line_file=tty.file)
    real, is_drawing, may_draw = os.write, threading.Event(), threading.Event()

    def slow_write(file: int, data: bytes) -> int:
        is_drawing.set()
        may_draw.wait(HANGS_AFTER)
        return real(file, data)

    monkeypatch.setattr(os, "write", slow_write)
    drawing = threading.Thread(target=screen.draw, args=["1 element"])
    drawing.start()
    is_drawing.wait(HANGS_AFTER)
    threading.Timer(0.01, may_draw.set).start()
    screen.before_message("x\n")
    drawing.join()
    assert tty.text() == ERASE + b"1 element" + ERASE


def test_for_a_pipe_the_line_is_erased_before_elements_that_are_seldom(
    tty: Pipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reading program may print on the same terminal.
    Elements that come fast would hide the line.
    """
    now = 100.0
    monkeypatch.setattr(_screen, "monotonic", lambda: now)
    elements, screen = Pipes(), Screen(line_file=tty.file)
    for now, erased in ((101.0, ERASE), (101.01, b""), (102.0, ERASE)):
        screen.draw(f"{now}")
        tty.text()
        screen.write([b"a\n"], file=elements.file, is_terminal=False)
        assert tty.text() == erased
    elements.close()


def test_for_a_pipe_the_line_is_not_drawn_until_its_reader_has_had_time_to_print(
    tty: Pipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that is drawn at once would be on the row on which the reading program prints."""
    times = iter([100.0, 100.01, 100.2])
    monkeypatch.setattr(_screen, "monotonic", lambda: next(times))
    elements, screen = Pipes(), Screen(line_file=tty.file)
    screen.write([b"a\n"], file=elements.file, is_terminal=False)
    screen.draw("1 element")
    assert tty.text() == b""
    screen.draw("1 element")
    assert tty.text() == ERASE + b"1 element"
    elements.close()


def test_after_the_end_nothing_is_written(tty: Pipes) -> None:
    """A cancelled command abandons the thread that writes. Bytes that it writes later would be
    mixed with the prompt of the shell.
    """
    screen = Screen(line_file=tty.file)
    screen.finish("")
    tty.text()
    screen.write([b"late\n"], file=tty.file, is_terminal=True)
    screen.draw("late")
    assert tty.text() == b""


def test_the_end_does_not_wait_for_a_terminal_that_is_stopped(
    tty: Pipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summary is lost then, and not the time of the user."""
    monkeypatch.setattr(_screen, "FINISH_SECONDS", 0.0)
    screen = Screen(line_file=tty.file)
    with screen._lock:
        screen.finish("done")
    assert tty.text() == b""


def test_elements_before_one_that_cannot_be_formatted_are_written(tty: Pipes) -> None:
    """Once, and then the error is raised."""

    def elements() -> Iterator[bytes]:
        yield b"a\n"
        raise UsageError("no")

    with pytest.raises(UsageError, match="no"):
        Screen(line_file=None).write(elements(), file=tty.file, is_terminal=True)
    assert tty.text() == b"a\n"


def test_large_elements_are_written_in_pieces(tty: Pipes) -> None:
    """All of their bytes, also to a file that does not block: another program may have set that
    on a terminal that both use.
    """
    os.set_blocking(tty.file, False)
    size, got = 5 * PIECE + 1, bytearray()
    writing = threading.Thread(
        target=lambda: Screen(line_file=None).write([bytes(size)], file=tty.file, is_terminal=False)
    )
    writing.start()
    while len(got) < size:
        _wait_readable(tty)
        got += tty.text()
    writing.join()
    assert got == bytes(size)


def _wait_readable(tty: Pipes) -> None:

    select.select([tty._read], [], [])


def test_a_reader_that_has_ended_is_a_broken_pipe(tty: Pipes) -> None:
    """The command ends without an error then."""
    tty.close_reader()
    with pytest.raises(BrokenPipeError):
        Screen(line_file=None).write([b"a\n"], file=tty.file, is_terminal=False)


def test_a_full_device_is_a_usage_error() -> None:
    """It names standard output."""
    full = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(
        UsageError, match="cannot write to standard output: No space left on device"
    ):
        Screen(line_file=None).write([b"a\n"], file=full, is_terminal=False)
    os.close(full)


def test_a_line_that_cannot_be_written_is_no_error(tty: Pipes) -> None:
    """The terminal was closed. Elements may go elsewhere."""
    elements = Pipes()
    tty.close_reader()
    screen = Screen(line_file=tty.file)
    screen.draw("1 element")
    screen.write([b"a\n"], file=elements.file, is_terminal=False)
    screen.finish("done")
    assert elements.text() == b"a\n"
    elements.close()


def test_without_a_line_the_summary_is_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    """In a log file, for example. An empty one writes nothing."""
    Screen(line_file=None).finish("")
    Screen(line_file=None).finish("3 elements")
    assert capsys.readouterr().err == "3 elements\n"
