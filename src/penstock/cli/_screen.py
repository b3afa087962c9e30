"""Standard output and the progress line, which may be on one terminal:
elements never share a row with the line.

Rules of this file:

* The line is erased before elements are written. It is drawn again later, by `Progress`, and never
  on a row that an element has begun.
* Each write happens in a worker thread: a terminal that is stopped (Ctrl-S) or slow blocks it, and
  the run loop must go on, because it answers keepalives. One lock orders the threads.
* A cancelled command abandons its thread.
  After `finish`, an abandoned thread writes no further piece.
"""

import os
import select
import sys
from collections.abc import Iterable
from contextlib import suppress
from threading import Lock
from time import monotonic
from typing import Final

from penstock.api import UsageError

ERASE: Final = b"\r\x1b[K"
"""To the first column, and erase the row from there."""

PIECE: Final = 64 << 10
"""Bytes to write at a time, at most.
Between two pieces an abandoned thread sees that the command has ended.
"""

QUIET_SECONDS: Final = 0.1
"""If stdout is a pipe, the reading program may print to the same terminal. The line is erased for
it if nothing was written for this time, and is not drawn again before this time: the program needs
it to print. Elements that come faster are not for human eyes, and would hide the line all the time.
"""

MESSAGE_SECONDS: Final = 0.02
"""Seconds that a message waits for a thread that is writing. It waits in the run loop, so a slow
terminal must not hold it up for longer.
"""

FINISH_SECONDS: Final = 0.2
"""Seconds to wait for a thread that still writes.
A terminal that is stopped must not delay the end of the command.
"""


class Screen:
    """Writes elements to standard output, and a line that is redrawn to `line_file`, the
    descriptor of a terminal, or None for no line.
    """

    def __init__(self, *, line_file: int | None) -> None:
        self._line_file = line_file
        self._lock = Lock()
        self._line = ""  # the text that is drawn
        self._last_write = 0.0
        self._no_line_before = 0.0
        self._row_is_begun = False
        self._is_finished = False

    def write(self, elements: Iterable[bytes], *, file: int, is_terminal: bool) -> None:
        """Write elements. Raises BrokenPipeError if no program reads them any more, and
        UsageError for other failures. Blocks.
        """
        with self._lock:
            now = monotonic()
            is_seldom = now - self._last_write >= QUIET_SECONDS
            self._last_write = now
            if is_terminal or is_seldom:
                self._erase()
            self._no_line_before = now + QUIET_SECONDS if is_seldom and not is_terminal else 0.0
            piece = bytearray()
            try:
                for element in elements:
                    piece += element
                    if len(piece) >= PIECE:
                        self._write_piece(file, piece)
            finally:  # if an element cannot be formatted, those before it are written
                if piece:
                    self._row_is_begun = is_terminal and not piece.endswith(b"\n")
                    self._write_piece(file, piece)

    def draw(self, line: str) -> None:
        """Draw the line, unless it is drawn already or an element has begun the row. Blocks."""
        with self._lock:
            if (
                self._is_finished
                or self._line_file is None
                or self._row_is_begun
                or line == self._line
            ):
                return
            if monotonic() < self._no_line_before:
                return
            self._line = line
            self._write_line(ERASE + line.encode("ascii", "replace"))

    def before_message(self, text: str) -> None:
        """Erase the line, because `text` follows on standard error. The line is not drawn again
        before `text` has had time to follow. Waits for a thread that is writing, but not for long.
        """
        if self._lock.acquire(timeout=MESSAGE_SECONDS):
            try:
                self._erase()
                self._no_line_before = monotonic() + QUIET_SECONDS
                self._row_is_begun = not text.endswith("\n")
            finally:
                self._lock.release()

    def finish(self, summary: str) -> None:
        """Erase the line and write `summary` as a line, if it is not empty. Later calls write
        nothing. Blocks for `FINISH_SECONDS`.
        """
        self._is_finished = True
        if self._line_file is None:
            if summary:
                sys.stderr.write(f"{summary}\n")
                sys.stderr.flush()
        elif self._lock.acquire(timeout=FINISH_SECONDS):
            try:
                # ERASE also if no line is drawn: the terminal may have echoed ^C on this row.
                begin = b"\n" if self._row_is_begun else ERASE
                self._write_line(
                    begin + (f"{summary}\n".encode("ascii", "replace") if summary else b"")
                )
            finally:
                self._lock.release()

    def _erase(self) -> None:
        if self._line:
            self._line = ""
            self._write_line(ERASE)

    def _write_line(self, data: bytes) -> None:
        if self._line_file is not None:
            with suppress(OSError):  # the terminal is gone; elements may go elsewhere
                os.write(self._line_file, data)

    def _write_piece(self, file: int, piece: bytearray) -> None:
        # Emptied before the write: if the write fails, the caller must not write the same bytes
        # again.
        left = memoryview(bytes(piece))
        piece.clear()
        try:
            while left and not self._is_finished:
                left = left[_write_some(file, left[:PIECE]) :]
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UsageError(f"cannot write to standard output: {error.strerror}") from None


def _write_some(file: int, data: memoryview) -> int:
    while True:
        try:
            return os.write(file, data)
        except BlockingIOError:
            # Another program that shares the terminal or the pipe has set O_NONBLOCK.
            select.select((), (file,), ())
