"""The screen of `penstock top`: drawn by rich, steered by keys.

Rules of this file:

* A screen is drawn when a look is complete or a key is pressed, each second while figures are old,
  and at most `MOST_A_SECOND` times.
  rich writes it in one piece on the alternate screen, so nothing flickers.
* The terminal is put back as it was on every way out.
* Keys are read without waiting, when the terminal has some.
* A sequence of a key that is not known is passed over whole: its characters are no keys.
"""

import argparse
import math
import os
import re
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

from penstock.api import UsageError
from penstock.cli._demand_map import DemandMap, follow
from penstock.cli._printable import printable
from penstock.cli._top_view import (
    BACKSPACE,
    DOWN,
    END,
    ENTER,
    ESCAPE,
    HOME,
    PAGE_DOWN,
    PAGE_UP,
    UP,
    View,
    screen_of,
)

MOST_A_SECOND: Final = 10
"""Drawings a second."""

NAMES: Final = {
    "\x1b[A": UP,
    "\x1bOA": UP,
    "\x1b[B": DOWN,
    "\x1bOB": DOWN,
    "\x1b[5~": PAGE_UP,
    "\x1b[6~": PAGE_DOWN,
    "\x1b[H": HOME,
    "\x1bOH": HOME,
    "\x1b[1~": HOME,
    "\x1b[7~": HOME,
    "\x1b[F": END,
    "\x1bOF": END,
    "\x1b[4~": END,
    "\x1b[8~": END,
    "\r": ENTER,
    "\n": ENTER,
    "\x7f": BACKSPACE,
    "\x08": BACKSPACE,
    "\x1b": ESCAPE,
}
"""What terminals send for keys without a character."""

ESCAPE_SECONDS: Final = 0.05
"""How long the rest of a sequence may take. An escape that nothing follows is the key."""

_CODE: Final = re.compile(
    # With more than one escape: some terminals send it before the sequence for Alt. Two brackets
    # are the function keys of the Linux console. The last two are Alt and a character, and a key.
    r"\x1b+(?:\[\[?[0-?]*[ -/]*[@-Z\\-~]?|O[0-?]*[@-~]?)|\x1b[^\x1b]|.",
    re.DOTALL,
)
_BEGUN: Final = re.compile(r"\x1b+(?:\[\[?[0-?]*[ -/]*|O[0-?]*)?\Z")
"""A sequence that may go on."""

_HEADING: Final = Style(bold=True)
_CURSOR: Final = Style(reverse=True)
_COLOURS: Final = {
    "publisher": Style(color="yellow"),
    "network": Style(color="red"),
    "demand": Style(color="cyan"),
}


async def show(maps: Sequence[DemandMap], view: View, options: argparse.Namespace) -> None:
    """Draw the streams until the person quits. Raises UsageError for a terminal that can show no
    screen, or that sends no keys.
    """
    console, changed = Console(highlight=False), trio.Event()
    # rich draws nothing on it, and the command would show nothing for as long as it runs.
    if console.is_dumb_terminal or not console.is_terminal:
        raise UsageError(
            f"this terminal can show no screen (TERM={printable(os.environ.get('TERM', ''))}); "
            "give --plain, or --once"
        )
    if not sys.stdin.isatty():
        raise UsageError(
            "standard input is no terminal, and the screen of top takes keys from it; "
            "give --plain, or --once"
        )

    def change() -> None:
        changed.set()

    with (
        raw_keys(sys.stdin.fileno()) as file,
        Live(console=console, screen=True, auto_refresh=False) as live,
    ):
        async with trio.open_nursery() as nursery:

            async def read_maps() -> None:
                def change_unless_paused() -> None:
                    if not view.is_paused:
                        change()

                await follow(maps, options, change_unless_paused, change_unless_paused)

            async def read_keys() -> None:
                rest = ""
                while not view.is_over:
                    typed = ""
                    with trio.move_on_after(ESCAPE_SECONDS if rest else math.inf):
                        await trio.lowlevel.wait_readable(file)
                        typed = os.read(file, 1024).decode(errors="ignore")
                    keys, rest = keys_in(rest + typed, is_all=not typed)
                    for key in keys:
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


def keys_in(typed: str, *, is_all: bool) -> tuple[list[str], str]:
    """Return the known keys in what the terminal has sent, and the sequence at its end that may go
    on; none of these if that `is_all`.
    """
    begun = None if is_all else _BEGUN.search(typed)
    end = len(typed) if begun is None else begun.start()
    codes = _CODE.findall(typed[:end])
    keys = [NAMES.get(code, code) for code in codes if code in NAMES or code[0] != "\x1b"]
    return keys, typed[end:]


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
