"""The progress of a stream: a line that is updated on a terminal, and only a summary elsewhere."""

import io
import sys

import pytest
import trio

from penstock.cli._progress import Progress
from penstock.core import Stream


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def stream() -> Stream[object]:
    return Stream(demand=4)


async def test_on_a_terminal_the_line_is_updated(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, stream: Stream[object]
) -> None:
    """Twice a second, in place. The summary follows at the end."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    progress = Progress(stream)
    with trio.move_on_after(1.2):
        await progress.show()
    progress.write_summary()
    err = sys.stderr.getvalue()  # type: ignore[attr-defined]  # the fake's own method
    assert err.count("0 elements, 0/s") == 2
    assert err.endswith("0/s\n")


async def test_without_a_terminal_only_the_summary_is_written(capsys: pytest.CaptureFixture[str], stream: Stream[object]) -> None:
    """A log file gets no line that is updated in place."""
    progress = Progress(stream)
    await progress.show()
    progress.write_summary()
    err = capsys.readouterr().err
    assert err.startswith("0 elements in ")
    assert "\r" not in err


def test_the_line_shows_a_stream_that_waits_for_demand(stream: Stream[object], monkeypatch: pytest.MonkeyPatch) -> None:
    """So the user sees why no elements arrive."""
    starved: Stream[object] = Stream(demand=0)
    assert "starved" not in Progress(stream).line()
    assert ("starved" in Progress(starved).line()) is starved.statistics().starved
