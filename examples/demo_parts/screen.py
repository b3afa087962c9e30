"""Where the demo shows what happens: a panel that is redrawn in place on a terminal, a plain line a second anywhere else.

The running display goes to standard error, the table at the end to standard output: either can be sent elsewhere.
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
    """One thing to watch: what it is, how it stands in words, and how full it is, where it can be full."""

    label: str
    text: str
    filled: float | None = None


class Finding(NamedTuple):
    """One thing that a scene wanted to show, what was seen, and whether that is it."""

    claim: str
    seen: str
    shown: bool


class Screen:
    """The running display. `watch` draws what a function tells; `say` writes a line that stays."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream = stream
        self.live = is_terminal(stream)
        self._ink = Ink(stream)
        self._drawn = 0  # lines of the panel that stand on the terminal now
        self._started = perf_counter()

    def title(self, number: int, title: str, story: str) -> None:
        """Announce a scene."""
        width = min(shutil.get_terminal_size().columns, 120) - 4
        told = textwrap.wrap(" ".join(story.split()), width)
        self.say("", self._ink.bold(f"{number}  {title}"), *(f"   {self._ink.dim(line)}" for line in told))

    def say(self, *lines: str) -> None:
        """Write lines that stay, above the panel."""
        self._stream.write(self._erasure() + "".join(f"{line.rstrip()}\n" for line in lines))
        self._stream.flush()

    async def watch(self, gauges: Callable[[], Iterable[Gauge]]) -> None:
        """Show the gauges again and again, until cancelled; the last state stays."""
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
            self._stream.write(self._erasure() + "".join(f"{line}\n" for line in lines))  # in one go, so that nothing flickers
            self._drawn = len(lines)
        else:
            facts = "; ".join(f"{gauge.label} {gauge.text}" for gauge in gauges)
            self._stream.write(f"   {perf_counter() - self._started:5.1f} s  {facts}".rstrip() + "\n")
        self._stream.flush()

    def _line(self, gauge: Gauge, width: int) -> str:
        room = max(0, min(BAR_WIDTH, width - 60))
        bar = self._ink.bar(gauge.filled, room) if gauge.filled is not None else " " * room
        text = f"{gauge.text}"[: max(0, width - room - 22)]
        return f"   {gauge.label[:16]:<16} {bar}  {text}"

    def _erasure(self) -> str:
        """What takes the panel off the terminal: to its first line, and clear from there."""
        drawn, self._drawn = self._drawn, 0
        return f"\x1b[{drawn}F\x1b[J" if drawn else ""


class Ink:
    """Colour and bars, as far as a stream can show them."""

    def __init__(self, stream: TextIO) -> None:
        self._coloured = is_terminal(stream) and "NO_COLOR" not in os.environ
        self._full, self._hollow = ("█", "░") if _can_write("█░✓✗", stream) else ("#", ".")
        self.yes, self.no = ("✓", "✗") if self._full == "█" else ("yes", "NO")

    def bar(self, filled: float, width: int) -> str:
        """A bar of `width` characters, `filled` (0 to 1) of it full."""
        full = max(0, min(width, round(filled * width)))
        return self._in("36", self._full * full) + self._in("2", self._hollow * (width - full))

    def bold(self, text: str) -> str:
        """Text that stands out."""
        return self._in("1", text)

    def dim(self, text: str) -> str:
        """Text that stands back."""
        return self._in("2", text)

    def verdict(self, *, shown: bool) -> str:
        """The mark for a finding."""
        return self._in("32", self.yes) if shown else self._in("31;1", self.no)

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._coloured and text else text


def is_terminal(stream: TextIO) -> bool:
    """Whether somebody looks at this stream on a terminal that can redraw."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _can_write(glyphs: str, stream: TextIO) -> bool:
    try:
        glyphs.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
