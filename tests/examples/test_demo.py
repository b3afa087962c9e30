"""The parts of the demo: its output on a terminal and in a file, its judgement, and three of its scenes on virtual time.

The other scenes measure processor time and memory or start programs: `nox -s demo` runs those.
"""

import io
import sys
from pathlib import Path

import pytest
import trio
import trio.testing

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from demo_parts import leaving, multicast, network, programs, recovery
from demo_parts.screen import Finding, Gauge, Screen
from demo_parts.table import write_table

SHOWN = Finding("water flows downhill", "it does", shown=True)
NOT_SHOWN = Finding("water flows uphill", "it does not", shown=False)


class Terminal(io.StringIO):
    """A fake terminal, perhaps with an encoding that has ASCII only."""

    def __init__(self, *, tty: bool = True, encoding: str = "utf-8") -> None:
        super().__init__()
        self.tty = tty
        self.says = encoding

    @property
    def encoding(self) -> str:
        return self.says

    def isatty(self) -> bool:
        return self.tty


@pytest.fixture(autouse=True)
def _a_capable_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


async def _watched(screen: Screen, seconds: float) -> None:
    with trio.move_on_after(seconds):
        await screen.watch(lambda: [Gauge("level", "7 of 10", 0.7)])


@pytest.mark.parametrize("scene", [multicast, recovery, leaving], ids=lambda scene: scene.__name__)
def test_a_scene_shows_what_it_claims(scene) -> None:
    """Each finding of the scene is shown. On virtual time the scene takes no time."""
    findings = trio.run(scene.play, Screen(io.StringIO()), clock=trio.testing.MockClock(autojump_threshold=0))
    assert [finding for finding in findings if not finding.shown] == []
    assert len(findings) >= 2


async def test_without_a_terminal_there_are_plain_lines(autojump_clock: trio.testing.MockClock) -> None:
    """One line a second and one at the end, without control characters."""
    stream = Terminal(tty=False)
    screen = Screen(stream)
    screen.title(1, "A scene", "What it is about.")
    await _watched(screen, 2.5)
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().count("level 7 of 10") == 4


async def test_a_terminal_gets_a_panel_that_is_redrawn(autojump_clock: trio.testing.MockClock) -> None:
    """Each frame clears the frame before it: the cursor moves up one line, and the rest of the screen is cleared."""
    stream = Terminal()
    await _watched(Screen(stream), 1.0)
    frames = stream.getvalue().split("\x1b[1F\x1b[J")
    assert len(frames) > 10
    assert all(frame.count("\n") == 1 for frame in frames)
    assert "█" in frames[0]


def test_a_terminal_that_cannot_redraw_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Editors and build logs set TERM=dumb: the demo writes plain lines there."""
    monkeypatch.setenv("TERM", "dumb")
    assert not Screen(Terminal()).live


async def test_an_ascii_terminal_gets_ascii(autojump_clock: trio.testing.MockClock) -> None:
    """Bars, marks and rules have characters of the stream's encoding only."""
    stream = Terminal(encoding="ascii")
    await _watched(Screen(stream), 0.1)
    write_table({"1  A scene": [SHOWN, NOT_SHOWN]}, stream)
    assert stream.getvalue().isascii()
    assert "##" in stream.getvalue()


def test_the_table_marks_a_finding_that_was_not_shown() -> None:
    """One such finding makes the whole demo fail."""
    stream = Terminal(tty=False)
    assert write_table({"1  A scene": [SHOWN]}, stream)
    assert not write_table({"1  A scene": [SHOWN, NOT_SHOWN]}, stream)
    assert "✗ water flows uphill" in stream.getvalue()
    assert "1 of 2 shown" in stream.getvalue()


def test_no_colour_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR the layout stays and the colours are gone."""
    coloured, plain = Terminal(), Terminal()
    write_table({"1  A scene": [SHOWN]}, coloured)
    monkeypatch.setenv("NO_COLOR", "1")
    write_table({"1  A scene": [SHOWN]}, plain)
    assert "\x1b" in coloured.getvalue()
    assert "\x1b" not in plain.getvalue()


def test_a_failed_connection_is_a_finding_with_the_error() -> None:
    """No server listens at port 1: the finding is not shown, and has the error of `penstock cat`."""
    subscriber = network.Subscriber("tcp://", "tcp://127.0.0.1:1/")
    trio.run(subscriber.watch)
    trio.run(subscriber.hurry)
    finding = subscriber.judge()
    assert not finding.shown
    assert finding.seen.startswith("penstock: ")


def test_a_server_that_does_not_start_raises_with_its_error() -> None:
    """The exception has the output of the server, and comes as soon as the server ends."""

    async def start() -> None:
        async with programs.serving("tcp://256.0.0.1:0"):
            raise AssertionError("it must not start")

    with pytest.raises(programs.DidNotStart, match=r"penstock: .*256\.0\.0\.1"):
        trio.run(start)
