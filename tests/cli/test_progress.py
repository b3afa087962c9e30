"""The progress of a stream: a line that fits into the terminal
and is drawn ten times a second at most, and a summary.
"""

import dataclasses
import math
import os
import sys
from itertools import pairwise

import pytest
import trio
import trio.testing

from penstock.api import StreamStatistics
from penstock.cli import _progress
from penstock.cli._progress import Progress, columns, line_file, shown
from penstock.cli._screen import Screen
from penstock.core import Stream


class Recorder(Screen):
    """A screen that records with the time of the virtual clock."""

    def __init__(self) -> None:
        super().__init__(line_file=None)
        self.drawn: list[tuple[float, str]] = []
        self.summaries: list[str] = []

    def draw(self, line: str) -> None:
        self.drawn.append((round(trio.current_time(), 3), line))

    def finish(self, summary: str) -> None:
        self.summaries.append(summary)


@pytest.fixture
def without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The virtual clock does not wait for threads."""

    async def run_sync(function, *arguments, abandon_on_cancel):
        assert abandon_on_cancel
        await trio.lowlevel.checkpoint()
        return function(*arguments)

    monkeypatch.setattr(trio.to_thread, "run_sync", run_sync)


@pytest.fixture
def stream() -> Stream[object]:
    return Stream(demand=4)


async def test_the_line_is_drawn_at_most_ten_times_a_second(
    autojump_clock, without_threads, stream: Stream[object]
) -> None:
    """A tenth of a second after the start for the first time:
    a command that ends sooner has its summary only.
    """
    screen = Recorder()
    async with shown(Progress(stream), screen, 2, quiet=False):
        await trio.sleep(1.05)
    times = [time for time, _ in screen.drawn]
    assert len(times) == 10
    assert min(after - before for before, after in pairwise(times)) >= 0.099
    assert screen.drawn[0][1] == "0 elements, 0/s, 0 asked for, 0 buffered"
    assert len(screen.summaries) == 1
    assert screen.summaries[0].startswith("0 elements in 1.")


async def test_without_a_terminal_no_line_is_drawn(
    autojump_clock, without_threads, stream: Stream[object]
) -> None:
    """A log file gets the summary."""
    screen = Recorder()
    async with shown(Progress(stream), screen, None, quiet=False):
        await trio.sleep(1)
    assert screen.drawn == []
    assert len(screen.summaries) == 1


@pytest.mark.parametrize(
    ("file", "quiet", "summaries"), [(2, False, 1), (2, True, 0), (None, False, 0)]
)
async def test_a_cancelled_command_has_a_summary_on_a_terminal(
    file: int | None,
    quiet: bool,
    summaries: int,
    autojump_clock,
    without_threads,
    stream: Stream[object],
) -> None:
    """Ctrl-C cancels it. In a log file, one line less would be missed less."""
    screen = Recorder()
    with trio.CancelScope() as scope:
        async with shown(Progress(stream), screen, file, quiet=quiet):
            scope.cancel()
            await trio.sleep(math.inf)
    assert len([summary for summary in screen.summaries if summary]) == summaries


async def test_after_an_error_the_error_is_the_only_line(
    autojump_clock, without_threads, stream: Stream[object]
) -> None:
    """The screen is finished without a summary."""
    screen = Recorder()
    with pytest.RaisesGroup(ZeroDivisionError):
        async with shown(Progress(stream), screen, 2, quiet=False):
            raise ZeroDivisionError
    assert screen.summaries == [""]


class FiftyTaken(Stream[object]):
    def statistics(self) -> StreamStatistics:
        return dataclasses.replace(super().statistics(), taken=50)


async def test_the_rate_is_the_mean_of_two_seconds(mock_clock: trio.testing.MockClock) -> None:
    """Later than that, elements from before do not count."""
    progress = Progress(FiftyTaken())
    mock_clock.jump(0.1)
    assert progress.line(80).startswith("50 elements, 500/s, ")
    for _ in range(18):
        mock_clock.jump(0.1)
        progress.line(80)
    mock_clock.jump(0.1)
    assert progress.line(80).startswith("50 elements, 25/s, ")
    mock_clock.jump(0.1)
    assert progress.line(80).startswith("50 elements, 0/s, ")


async def test_elements_that_are_not_written_do_not_count(
    mock_clock: trio.testing.MockClock,
) -> None:
    """The stream has taken a batch of 50, and `cat --count 3` writes three of it."""
    progress = Progress(FiftyTaken(), 3)
    mock_clock.jump(0.1)
    assert progress.line(80).startswith("3 elements, 30/s, ")
    assert progress.summary() == "3 elements in 0.1 s, 30/s"


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (80, "0 elements, 0/s, 0 asked for, 0 buffered, starved: waiting for demand"),
        (69, "0 elements, 0/s, 0 asked for, 0 buffered"),
        (41, "0 elements, 0/s, 0 asked for, 0 buffered"),
        (40, "0 elements, 0/s, 0 asked for"),
        (11, "0 elements"),
        (10, "0 element"),
        (2, "0"),
        (1, ""),
        (0, ""),
    ],
)
async def test_the_line_fits_into_the_terminal(width: int, line: str, autojump_clock) -> None:
    """One column stays free, because some terminals wrap after the last one. Parts are left out
    as a whole, as far as possible.
    """
    starved: Stream[object] = Stream(demand=0)
    assert Progress(starved).line(width) == line


def test_the_width_of_a_file_that_is_no_terminal_is_assumed() -> None:
    """As that of a terminal which does not tell it."""
    read, write = os.pipe()
    assert columns(write) == 80
    os.close(read)
    os.close(write)


class Terminal:
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 7


@pytest.mark.parametrize(
    ("terminal", "quiet", "file"),
    [("xterm", False, 7), ("xterm", True, None), ("dumb", False, None), ("", False, None)],
)
def test_the_line_needs_a_terminal_that_can_erase(
    terminal: str, quiet: bool, file: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a user who has not asked for quiet."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", terminal)
    assert line_file(quiet=quiet) == file


def test_a_file_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither is a closed one."""
    assert line_file(quiet=False) is None
    monkeypatch.setattr(_progress.sys, "stderr", None)
    assert line_file(quiet=False) is None
