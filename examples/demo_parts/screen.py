"""The display of the demo: a panel that is redrawn in place on a terminal,
and one plain line a second elsewhere.

The display goes to standard error, and the table at the end to standard output, so
that each can be redirected.
"""

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import NamedTuple, TextIO

import trio

FRAME_SECONDS = 0.08
LINE_SECONDS = 1.0
BAR_WIDTH = 30


class Gauge(NamedTuple):
    """One line of the panel: a label, a text, and the part of its bar that is full (0 to 1),
    or None without a bar.
    """

    label: str
    text: str
    filled: float | None = None


class Finding(NamedTuple):
    """One claim of a scene, the measurement, and whether the measurement shows the claim."""

    claim: str
    seen: str
    shown: bool


class Screen:
    """The running display. `watch` draws gauges; `say` writes lines that stay."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream = stream
        self.live = is_terminal(stream)
        self._ink = Ink(stream)
        self._drawn = 0  # lines of the panel that are on the terminal now
        self._started = perf_counter()

    def title(self, number: int, title: str, story: str) -> None:
        """Write the title and the story of a scene."""
        width = min(shutil.get_terminal_size().columns, 120) - 4
        told = textwrap.wrap(" ".join(story.split()), width)
        self.say(
            "",
            self._ink.bold(f"{number}  {title}"),
            *(f"   {self._ink.dim(line)}" for line in told),
        )

    def say(self, *lines: str) -> None:
        """Write lines that stay, above the panel."""
        self._stream.write(self._erasure() + "".join(f"{line.rstrip()}\n" for line in lines))
        self._stream.flush()

    async def watch(self, gauges: Callable[[], Iterable[Gauge]]) -> None:
        """Draw the gauges every `FRAME_SECONDS` until cancelled; the last state stays."""
        try:
            while True:
                self._draw(list(gauges()))
                await trio.sleep(FRAME_SECONDS if self.live else LINE_SECONDS)
        finally:
            self._draw(list(gauges()))
            self._drawn = 0

    def _draw(self, gauges: list[Gauge]) -> None:
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            lines = [self._line(gauge, width) for gauge in gauges]
            # In one write, so that the panel does not flicker.
            self._stream.write(self._erasure() + "".join(f"{line}\n" for line in lines))
            self._drawn = len(lines)
        else:
            facts = "; ".join(f"{gauge.label} {gauge.text}" for gauge in gauges)
            self._stream.write(
                f"   {perf_counter() - self._started:5.1f} s  {facts}".rstrip() + "\n"
            )
        self._stream.flush()

    def _line(self, gauge: Gauge, width: int) -> str:
        room = max(0, min(BAR_WIDTH, width - 60))
        bar = self._ink.bar(gauge.filled, room) if gauge.filled is not None else " " * room
        text = f"{gauge.text}"[: max(0, width - room - 22)]
        return f"   {gauge.label[:16]:<16} {bar}  {text}"

    def _erasure(self) -> str:
        """Return the control sequence that erases the panel:
        move to its first line, clear from there.
        """
        drawn, self._drawn = self._drawn, 0
        return f"\x1b[{drawn}F\x1b[J" if drawn else ""


class Ink:
    """Colours and bars, in the characters that the stream can encode."""

    def __init__(self, stream: TextIO) -> None:
        self._coloured = is_terminal(stream) and "NO_COLOR" not in os.environ
        self._full, self._hollow = ("█", "░") if _can_write("█░✓✗", stream) else ("#", ".")
        self.yes, self.no = ("✓", "✗") if self._full == "█" else ("yes", "NO")

    def bar(self, filled: float, width: int) -> str:
        """Return a bar of `width` characters, `filled` (0 to 1) of it full."""
        full = max(0, min(width, round(filled * width)))
        return self._in("36", self._full * full) + self._in("2", self._hollow * (width - full))

    def bold(self, text: str) -> str:
        """Return the text in bold."""
        return self._in("1", text)

    def dim(self, text: str) -> str:
        """Return the text dimmed."""
        return self._in("2", text)

    def verdict(self, *, shown: bool) -> str:
        """Return the mark of a finding: yes or no."""
        return self._in("32", self.yes) if shown else self._in("31;1", self.no)

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._coloured and text else text


def is_terminal(stream: TextIO) -> bool:
    """Return True if this stream is a terminal that can redraw."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _can_write(glyphs: str, stream: TextIO) -> bool:
    try:
        glyphs.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
