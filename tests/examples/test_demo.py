"""The demo: its output with and without a terminal, its table of findings, and the scenes
that run on virtual time.

The other scenes measure the machine, start programs or open sockets, in real time. `nox -s demo` runs them.
"""

import importlib
import inspect
import io
import sys
from pathlib import Path

import pytest
import trio
import trio.testing

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import demo
from demo_parts import leaving, multicast, network, programs, recovery
from demo_parts.screen import Finding, Gauge, Screen
from demo_parts.table import write_table

SHOWN = Finding("water flows downhill", "it does", shown=True)
NOT_SHOWN = Finding("water flows uphill", "it does not", shown=False)


class Terminal(io.StringIO):
    """A text stream with a chosen `isatty` and a chosen encoding."""

    def __init__(self, *, tty: bool = True, encoding: str = "utf-8") -> None:
        super().__init__()
        self._tty = tty
        self._encoding = encoding

    @property
    def encoding(self) -> str:
        return self._encoding

    def isatty(self) -> bool:
        return self._tty


@pytest.fixture(autouse=True)
def _environment_with_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


async def _watched(screen: Screen, seconds: float) -> None:
    with trio.move_on_after(seconds):
        await screen.watch(lambda: [Gauge("level", "7 of 10", 0.7)])


@pytest.mark.parametrize("scene", [multicast, recovery, leaving], ids=lambda scene: scene.__name__)
def test_scene_shows_all_its_findings(scene) -> None:
    """Each scene that runs on virtual time shows at least two findings, and all of them hold."""
    findings = trio.run(
        scene.play, Screen(io.StringIO()), clock=trio.testing.MockClock(autojump_threshold=0)
    )
    assert [finding for finding in findings if not finding.shown] == []
    assert len(findings) >= 2


async def test_stream_that_is_not_a_terminal_gets_plain_lines(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The screen prints one line a second and one at the end, without escape sequences."""
    stream = Terminal(tty=False)
    screen = Screen(stream)
    screen.title(1, "A scene", "What it is about.")
    await _watched(screen, 2.5)
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().count("level 7 of 10") == 4


async def test_terminal_gets_a_panel_that_is_redrawn(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Each frame first moves the cursor one line up and clears the screen below it, which
    removes the previous frame.
    """
    stream = Terminal()
    await _watched(Screen(stream), 1.0)
    frames = stream.getvalue().split("\x1b[1F\x1b[J")
    assert len(frames) > 10
    assert all(frame.count("\n") == 1 for frame in frames)
    assert "█" in frames[0]


def test_dumb_terminal_is_not_live(monkeypatch: pytest.MonkeyPatch) -> None:
    """With TERM=dumb, which editors and build logs set, the screen does not redraw."""
    monkeypatch.setenv("TERM", "dumb")
    assert not Screen(Terminal()).live


async def test_ascii_terminal_gets_ascii(autojump_clock: trio.testing.MockClock) -> None:
    """If the encoding of the stream is ASCII, bars, marks and rules are ASCII."""
    stream = Terminal(encoding="ascii")
    await _watched(Screen(stream), 0.1)
    write_table({"1  A scene": [SHOWN, NOT_SHOWN]}, stream=stream)
    assert stream.getvalue().isascii()
    assert "##" in stream.getvalue()


def test_table_marks_a_finding_that_was_not_shown() -> None:
    """One finding that is not shown makes `write_table` return False, and its line is marked."""
    stream = Terminal(tty=False)
    assert write_table({"1  A scene": [SHOWN]}, stream=stream)
    assert not write_table({"1  A scene": [SHOWN, NOT_SHOWN]}, stream=stream)
    assert "✗ water flows uphill" in stream.getvalue()
    assert "1 of 2 shown" in stream.getvalue()


def test_a_scene_that_is_left_out_is_counted_apart() -> None:
    """It is no failure, and the table says why it is missing."""
    stream = Terminal(tty=False)
    assert write_table({"1  A scene": [SHOWN]}, {"Apache Spark": "there is no java"}, stream)
    assert "1 of 1 shown in 1 scene" in stream.getvalue()
    assert "left out: 1 scene\n    Apache Spark: there is no java\n" in stream.getvalue()


def test_a_scene_without_its_package_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether its module fails to import, or says itself what is missing."""
    monkeypatch.setenv("COLUMNS", "118")
    monkeypatch.setitem(sys.modules, "trustme", None)
    monkeypatch.delitem(sys.modules, "demo_parts.network")
    monkeypatch.setattr("demo_parts.one_port.find_spec", lambda name: None)
    assert trio.run(demo.main, ["network", "one_port"])
    printed = capsys.readouterr().out
    assert "0 of 0 shown in 0 scenes" in printed
    assert "network: the package 'trustme' is not installed" in printed
    assert "not installed: penstock-http, penstock-websocket" in printed


@pytest.mark.parametrize("name", demo.SCENES)
def test_each_scene_has_what_the_demo_uses(name: str) -> None:
    """A title that fits its line, a story, and a function that plays; each can be imported without
    its libraries, or names the missing one.
    """
    scene = importlib.import_module(f"demo_parts.{name}")
    assert len(scene.TITLE) < 60
    assert scene.STORY
    assert inspect.iscoroutinefunction(scene.play)
    assert isinstance(getattr(scene, "missing", str)(), str)


def test_no_color_removes_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR the table has no escape sequences."""
    coloured, plain = Terminal(), Terminal()
    write_table({"1  A scene": [SHOWN]}, stream=coloured)
    monkeypatch.setenv("NO_COLOR", "1")
    write_table({"1  A scene": [SHOWN]}, stream=plain)
    assert "\x1b" in coloured.getvalue()
    assert "\x1b" not in plain.getvalue()


def test_refused_connection_is_reported_in_words() -> None:
    """Port 1 refuses connections.
    The finding is not shown, and it quotes the error of `penstock cat`.
    """
    subscriber = network.Subscriber("tcp://", "tcp://127.0.0.1:1/")
    trio.run(subscriber.watch)
    trio.run(subscriber.hurry)
    finding = subscriber.judge()
    assert not finding.shown
    assert finding.seen.startswith("penstock: ")


def test_server_that_does_not_start_is_reported_in_words() -> None:
    """If the server program exits before it serves,
    `DidNotStart` quotes the error of the program.
    """

    async def start() -> None:
        async with programs.serving("tcp://256.0.0.1:0"):
            raise AssertionError("it must not start")

    with pytest.raises(programs.DidNotStart, match=r"penstock: .*256\.0\.0\.1"):
        trio.run(start)


def test_scenes_are_chosen_by_name_or_left_out() -> None:
    """A name that no scene has ends the program, and lists those that there are."""
    assert demo.chosen([]) == list(demo.SCENES)
    assert demo.chosen(["cut", "leaving"]) == ["cut", "leaving"]
    others = demo.chosen(["--without", "spark_pipeline"])
    assert [*others, "spark_pipeline"] == list(demo.SCENES)
    for words in (["nosuch"], ["--without", "nosuch"]):
        with pytest.raises(SystemExit, match="no scenes: nosuch; there are: fast_and_slow"):
            demo.chosen(words)
