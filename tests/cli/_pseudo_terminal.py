"""A real terminal for the command:
a pseudo-terminal, and an emulator that shows what its user sees.
"""

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, TextIO

import pyte

from tests._real_time import HANGS_AFTER
from tests.cli._programs import ROOT, interruptible

ROWS: Final = 24
ERASE: Final = b"\r\x1b[K"
CTRL_C: Final = b"\x03"
CTRL_S: Final = b"\x13"
"""It stops a terminal: writes to it block."""
POLL_SECONDS: Final = 0.1
"""Seconds until it is looked at again whether a program has ended:
its terminal stays open, so nothing else tells.
"""
STANDARD: Final = {"stdin": 0, "stdout": 1, "stderr": 2}


class Terminal:
    """A pseudo-terminal. It shows what it has been read to:
    a terminal that is not read is a slow one.
    """

    def __init__(self, columns: int = 80) -> None:
        self._own, self.file = os.openpty()
        self._screen = pyte.HistoryScreen(columns, ROWS, history=10_000, ratio=1)
        self._stream = pyte.ByteStream(self._screen)
        self.written = b""
        """All bytes that programs wrote, as the terminal got them."""
        self.resize(columns)

    def resize(self, columns: int) -> None:
        """Change the width, as the user does with the window."""
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        if columns:
            self._screen.resize(ROWS, columns)

    def as_text_file(self) -> TextIO:
        """Return the terminal as a program's standard file."""
        return os.fdopen(self.file, "w", closefd=False, encoding="utf-8")

    def type(self, keys: bytes) -> None:
        """Press keys: ``CTRL_C``, ``CTRL_S``."""
        os.write(self._own, keys)

    def read_until(self, text: bytes) -> None:
        """Read until programs have written `text` to the terminal after all
        that was read before.
        """
        begin = len(self.written)
        while text not in self.written[begin:]:
            assert self._read(HANGS_AFTER), f"{text!r} did not come; the rows: {self.rows()}"

    def read_until_end_of(self, program: "subprocess.Popen[bytes]") -> int:
        """Read until the program ends and the terminal has no more; return the status."""
        while program.poll() is None:
            self._read(POLL_SECONDS)
        while self._read(0.0):
            pass
        return program.returncode

    def _read(self, patience: float) -> bool:
        if not select.select([self._own], [], [], patience)[0]:
            return False
        data = os.read(self._own, 1 << 16)
        self.written += data
        self._stream.feed(data)
        return True

    def rows(self) -> list[str]:
        """Return the rows that the user sees, and those that were scrolled off,
        without empty ones at the end.
        """
        above = [
            "".join(row[column].data for column in range(self._screen.columns))
            for row in self._screen.history.top
        ]
        rows = [row.rstrip() for row in (*above, *self._screen.display)]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    @property
    def cursor_column(self) -> int:
        return self._screen.cursor.x

    def lines_drawn(self) -> list[str]:
        """Return each text that was written after an erased row and was erased again: the
        progress line at its times.
        """
        return [
            part.decode() for part in self.written.split(ERASE)[1:-1] if part and b"\n" not in part
        ]

    def controls(self) -> set[str]:
        """Return the control characters and sequences that programs wrote, except the end of a
        row and the erasure of one.
        """
        text = (
            self.written.decode("utf-8", "backslashreplace")
            .replace("\r\n", "")
            .replace(ERASE.decode(), "")
        )
        return {letter for letter in text if not letter.isprintable()}

    def close(self) -> None:
        os.close(self._own)
        os.close(self.file)


@contextmanager
def terminal(columns: int = 80) -> Iterator[Terminal]:
    """Open a terminal for the length of a block."""
    opened = Terminal(columns)
    try:
        yield opened
    finally:
        opened.close()


def penstock_on(
    screen: Terminal, *arguments: str, **files: int
) -> AbstractContextManager["subprocess.Popen[bytes]"]:
    """Run the command in a new session on the terminal. `stdin`, `stdout` and `stderr` may be
    other files, TERM another terminal.
    """
    return python_on(screen, "-m", "penstock", *arguments, **files)


@contextmanager
def python_on(
    screen: Terminal, *arguments: str, **files: int
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run Python in the same way."""
    standard = {name: files.get(name, screen.file) for name in STANDARD}
    with interruptible():
        program = subprocess.Popen(
            # A session that has no terminal gets the first one that it opens, so that Ctrl-C there
            # is a signal.
            [
                "sh",
                "-c",
                f': <>{os.ttyname(screen.file)}; exec "$@"',
                "sh",
                sys.executable,
                *arguments,
            ],
            cwd=ROOT,
            env={**os.environ, "TERM": os.environ.get("TEST_TERM", "xterm-256color")},
            start_new_session=True,
            **standard,
        )
    try:
        yield program
    finally:
        program.send_signal(signal.SIGKILL)
        program.wait()
