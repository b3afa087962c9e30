"""The screen of `penstock top`: drawn by rich, steered by keys.

Rules of this file:

* A screen is drawn when a look is complete or a key is pressed, and at most `MOST_A_SECOND` times.
  rich writes it in one piece on the alternate screen, so nothing flickers.
* The terminal is put back as it was on every way out.
* Keys are read without waiting, when the terminal has some.
"""

import argparse
import os
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import trio
from rich.console import Console
from rich.live import Live
from rich.style import Style
from rich.text import Text

from penstock.cli._demand_map import DemandMap, follow
from penstock.cli._top_view import BACKSPACE, DOWN, ENTER, ESCAPE, UP, View, screen_of

MOST_A_SECOND: Final = 10
"""Drawings a second."""

NAMES: Final = {
    "\x1b[A": UP,
    "\x1bOA": UP,
    "\x1b[B": DOWN,
    "\x1bOB": DOWN,
    "\r": ENTER,
    "\n": ENTER,
    "\x7f": BACKSPACE,
    "\x08": BACKSPACE,
    "\x1b": ESCAPE,
}
"""What terminals send for keys without a character."""

_HEADING: Final = Style(bold=True)
_CURSOR: Final = Style(reverse=True)
_COLOURS: Final = {
    "publisher": Style(color="yellow"),
    "network": Style(color="red"),
    "demand": Style(color="cyan"),
}


async def show(maps: Sequence[DemandMap], view: View, options: argparse.Namespace) -> None:
    """Draw the streams until the person quits."""
    console, changed = Console(highlight=False), trio.Event()

    def change() -> None:
        changed.set()

    with (
        raw_keys(sys.stdin.fileno()) as file,
        Live(console=console, screen=True, auto_refresh=False) as live,
    ):
        async with trio.open_nursery() as nursery:

            async def read_maps() -> None:
                await follow(maps, options, lambda: None if view.is_paused else change())

            async def read_keys() -> None:
                while not view.is_over:
                    await trio.lowlevel.wait_readable(file)
                    for key in keys_in(os.read(file, 1024).decode(errors="ignore")):
                        view.press(key)
                    change()
                nursery.cancel_scope.cancel()

            nursery.start_soon(read_maps)
            nursery.start_soon(read_keys)
            while True:
                lines, cursor = screen_of(maps, view, width=console.width, height=console.height)
                live.update(drawn(lines, cursor), refresh=True)
                await trio.sleep(1 / MOST_A_SECOND)
                await changed.wait()
                changed = trio.Event()


def drawn(lines: Sequence[str], cursor: int | None) -> Text:
    """Return the lines with their styles. Nothing in a line is markup."""
    text = Text(no_wrap=True, overflow="crop", end="")
    for number, line in enumerate(lines):
        style = Style()
        if number == cursor:
            style = _CURSOR
        elif number <= 1 or number == len(lines) - 1:
            style = _HEADING
        else:
            style = _COLOURS.get(line.rpartition(" ")[2], style)
        text.append(line + ("\n" if number + 1 < len(lines) else ""), style)
    return text


def keys_in(typed: str) -> Iterator[str]:
    """Yield the keys in what the terminal has sent."""
    at = 0
    while at < len(typed):
        found = next((code for code in NAMES if len(code) > 1 and typed.startswith(code, at)), "")
        code = found or typed[at]
        yield NAMES.get(code, code)
        at += len(code)


@contextmanager
def raw_keys(file: int) -> Iterator[int]:
    """Read each key by itself, and show none, for the length of the block."""
    before = termios.tcgetattr(file)
    try:
        # Not raw: Ctrl-C stays a signal, which ends the command in good order.
        tty.setcbreak(file)
        yield file
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)
