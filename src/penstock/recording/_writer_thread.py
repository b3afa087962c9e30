"""The thread that takes rows from the taps and writes them.

Rules of this file:

* The rows of a subscription are kept together until a row group is full:
  a reader of the files has few, long pieces then.
* If the disk refuses something, the file that was being written is dropped, and its rows are
  counted. The thread tries again later.
* What the streams were is kept until it is written: a later file may have rows of them.
"""

import logging
import threading
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Final

from penstock.core import LimitedLog
from penstock.recording._columns import ROW_BYTES
from penstock.recording._tap import Intake, StreamFacts

if TYPE_CHECKING:
    from penstock.recording._files import RecordFiles

LOG: Final = "penstock.recording"
"""The logger."""

INTERVAL: Final = 0.25
"""Seconds between two looks at the taps.
The room for rows lasts as long at a million rows a second.
"""

GROUP_ROWS: Final = 262_144
"""Rows of a row group: 14 MiB before compression."""

PAUSE: Final = 5.0
"""Seconds after a failure of the disk in which nothing is written."""

MOST_NEW: Final = 65_536
"""Streams that are in no file yet. If there are more, the file ends early:
many short streams must not fill the memory.
"""

STOP_SECONDS: Final = 30.0
"""Seconds that `WriterThread.stop` waits for a disk that hangs."""


class WriterThread(threading.Thread):
    """Writes the rows of one recorder."""

    def __init__(
        self, files: "RecordFiles", intake: Intake, *, rotate_seconds: float, rotate_bytes: int
    ) -> None:
        # A daemon: a disk that hangs must not keep the program from ending.
        super().__init__(name="penstock recorder", daemon=True)
        self._files = files
        self._intake = intake
        self._rotate = rotate_seconds, rotate_bytes
        self._is_stopping = threading.Event()
        # Bounded by GROUP_ROWS and the rows of one look.
        self._held: dict[int, tuple[StreamFacts, bytearray]] = {}
        self._held_rows = 0
        # streams that are in no file yet; bounded by MOST_NEW, and `max_rows` more at the end.
        self._new: list[StreamFacts] = []
        self._in_file = 0  # rows of the file that is being written
        self._refused_until = 0.0
        self._has_failed = False
        # Not `limited_log`, which may use the clock of trio: trio does not run in this thread.
        self._lines = LimitedLog(logging.getLogger(LOG))
        self.rows: int = 0
        """Rows that were written."""
        self.refused: int = 0
        """Rows that the disk refused."""

    def run(self) -> None:
        """Write until `stop` is called."""
        began, (seconds, size) = monotonic(), self._rotate
        self._attempt(self._write_process)
        while not self._is_stopping.wait(INTERVAL):
            self._take()
            if self._held_rows >= GROUP_ROWS:
                self._write()
            is_large = self._files.size >= size or len(self._new) >= MOST_NEW
            if is_large or monotonic() - began >= seconds:
                began = monotonic()
                self._end_file()
        self._refused_until = 0.0  # the last attempt
        self._take(all_new=True)
        self._end_file(is_over=True)

    def stop(self) -> None:
        """Write what waits, and end."""
        self._is_stopping.set()
        if threading.current_thread() is not self:
            self.join(STOP_SECONDS)

    # --- inside

    def _take(self, *, all_new: bool = False) -> None:
        intake = self._intake
        # The others wait in the intake. If the disk refuses for long, it leaves out
        # and counts those that find no room.
        while intake.begun and (all_new or len(self._new) < MOST_NEW):
            self._new.append(intake.begun.popleft())
        for _ in range(len(intake.waiting)):
            tap = intake.waiting.popleft()
            rows = tap.take()
            _, held = self._held.setdefault(tap.recorded.subscription, (tap.recorded, bytearray()))
            held += rows
            self._held_rows += len(rows) // ROW_BYTES
        intake.room = intake.max_rows

    def _write(self) -> None:
        if not self._held:
            return
        held, rows, self._held, self._held_rows = self._held, self._held_rows, {}, 0
        # Counted first: if it fails, all rows of the file are counted as refused.
        self._in_file += rows
        self.rows += rows
        if monotonic() < self._refused_until:
            self._count_refused()
        else:
            self._attempt(lambda: self._files.write_signals(held.values()))

    def _end_file(self, *, is_over: bool = False) -> None:
        self._write()
        if monotonic() >= self._refused_until:
            self._finish()
        # At the end in any case: it is small, and tells how many rows are missing.
        if is_over or monotonic() >= self._refused_until:
            self._attempt(lambda: self._write_process(is_over=is_over))

    def _finish(self) -> None:
        if self._attempt(self._files.finish):
            self._in_file = 0
            # Only then: they would fail as well, and the last attempt, at the end, is for the rows.
            if self._new and self._attempt(lambda: self._files.write_subscriptions(self._new)):
                self._new = []

    def _write_process(self, *, is_over: bool = False) -> None:
        intake = self._intake
        dropped = intake.dropped + self.refused
        self._files.write_process(
            rows=self.rows,
            dropped=dropped,
            streams_left_out=intake.streams_left_out,
            is_over=is_over,
        )

    def _count_refused(self) -> None:
        self.refused += self._in_file
        self.rows -= self._in_file
        self._in_file = 0

    def _attempt(self, write: Callable[[], object]) -> bool:
        """Write something. If the disk refuses, drop the file and return False."""
        try:
            write()
        # A boundary: the disk refuses, or the library that writes raises. Otherwise the thread
        # would end, and all later rows would be lost.
        except Exception as error:
            self._files.give_up()
            self._count_refused()
            self._refused_until = monotonic() + PAUSE
            # Once until it works again: the reason stays the same,
            # and the count is in the file of the process.
            if not self._has_failed:
                text = (
                    "the recorder cannot write to %s: %s. It drops rows and counts them, and "
                    "tries again each %g s"
                )
                self._lines.write(logging.ERROR, "disk", text, self._files.folder, error, PAUSE)
            self._has_failed = True
            return False
        self._has_failed = False
        return True
