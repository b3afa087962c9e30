"""Progress: one line that is renewed where somebody looks, and silence elsewhere."""

import io
import sys

import pytest
import trio

from penstock.cli._progress import Progress
from penstock.core import Stream


class Terminal(io.StringIO):
    """Somebody looks."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def stream() -> Stream[object]:
    return Stream(demand=4)


async def test_a_terminal_gets_a_line_that_is_renewed(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, stream: Stream[object]
) -> None:
    """Twice a second, in place; and in the end what it was."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    progress = Progress(stream)
    with trio.move_on_after(1.2):
        await progress.show()
    progress.sum_up()
    told = sys.stderr.getvalue()  # type: ignore[attr-defined]  # the fake's own method
    assert told.count("0 elements, 0/s") == 2
    assert told.endswith("0/s\n")


async def test_where_nobody_looks_there_is_only_the_sum(capsys: pytest.CaptureFixture[str], stream: Stream[object]) -> None:
    """No line that is renewed in a file."""
    progress = Progress(stream)
    await progress.show()
    progress.sum_up()
    told = capsys.readouterr().err
    assert told.startswith("0 elements in ")
    assert "\r" not in told


def test_a_stream_that_waits_for_demand_says_so(stream: Stream[object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks at a standstill sees whose turn it is."""
    starved: Stream[object] = Stream(demand=0)
    assert "starved" not in Progress(stream).line()
    assert ("starved" in Progress(starved).line()) is starved.statistics().starved
