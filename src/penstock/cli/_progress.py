"""The progress of a stream: one line on the terminal of standard error, and a summary at the
end. Without a terminal only the summary.
"""

import os
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from typing import Final

import trio

from penstock.cli._screen import FINISH_SECONDS, Screen
from penstock.cli._standard_files import messages_after
from penstock.core import Stream

DRAW_SECONDS: Final = 0.1
"""Seconds from one drawing to the next, at least."""

RATE_SECONDS: Final = 2.0
"""The rate is the mean of this time.
A mean of a tenth of a second would jump between 0 and 10 for ten elements a second.
"""

BAR_COLUMNS: Final = 20

ASSUMED_COLUMNS: Final = 80
"""Columns of a terminal that does not tell its width, a serial line for example."""


def line_file(*, quiet: bool) -> int | None:
    """Return the descriptor for the progress line:
    that of standard error, if it is a terminal that can erase a row.
    """
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        return None
    # TERM is "dumb" where escape sequences would be shown as text (the shell of an editor).
    # Windows does not set it.
    if os.environ.get("TERM", "") in {"", "dumb"} and os.name != "nt":
        return None
    return sys.stderr.fileno()


class Progress:
    """Elements, rate, demand and buffer of one stream."""

    def __init__(self, stream: Stream[object], most: int | None = None) -> None:
        """`most` is the number of elements after which the command ends:
        it drops the rest of the last batch.
        """
        self._stream = stream
        self._most = most
        self._began = trio.current_time()
        # Pairs of time and elements, the oldest first: one a drawing.
        self._counts = deque([(self._began, 0)], maxlen=round(RATE_SECONDS / DRAW_SECONDS))

    def line(self, width: int) -> str:
        """Return the line for the present state, in at most `width - 1` columns: a terminal may
        wrap after its last column.
        """
        now, statistics = trio.current_time(), self._stream.statistics()
        (then, before), taken = self._counts[0], self._counted(statistics.taken)
        self._counts.append((now, taken))
        parts = [
            _elements(taken),
            f"{_rate(taken - before, now - then)}",
            f"{statistics.outstanding:,} asked for",
        ]
        parts.append(f"{statistics.buffered:,} buffered")
        if statistics.starved:
            parts.append("starved: waiting for demand")
        # Whole parts, as far as they fit: "25" of "256 asked for" would mislead.
        while len(parts) > 1 and len(", ".join(parts)) >= width:
            parts.pop()
        return ", ".join(parts)[: max(0, width - 1)]

    def summary(self) -> str:
        """Return the number of elements, the duration and the rate."""
        taken, seconds = (
            self._counted(self._stream.statistics().taken),
            trio.current_time() - self._began,
        )
        return f"{_elements(taken)} in {seconds:.1f} s, {_rate(taken, seconds)}"

    def _counted(self, taken: int) -> int:
        # A stream takes whole batches, and with --count a part of the last one is not written.
        return taken if self._most is None else min(taken, self._most)


class WriteProgress:
    """Elements that are written somewhere, their rate, and a bar if their number is known."""

    def __init__(self, total: int | None = None) -> None:
        self.written = 0
        self.repeated = 0
        """Those of them that were there before."""
        self.total = total
        self._began = trio.current_time()
        self._counts = deque([(self._began, 0)], maxlen=round(RATE_SECONDS / DRAW_SECONDS))

    @property
    def seconds(self) -> float:
        """The time since the beginning."""
        return trio.current_time() - self._began

    def add(self, count: int, *, is_new: bool = True) -> None:
        """Count elements that are written."""
        self.written += count
        if not is_new:
            self.repeated += count

    def line(self, width: int) -> str:
        """Return the line for the present state, in at most `width - 1` columns."""
        now = trio.current_time()
        then, before = self._counts[0]
        self._counts.append((now, self.written))
        parts = [_elements(self.written), _rate(self.written - before, now - then)]
        if self.repeated:
            parts.append(f"{self.repeated:,} were there")
        line = ", ".join(parts)
        if self.total:
            share = min(1.0, self.written / self.total)
            bar = "#" * round(share * BAR_COLUMNS)
            line = f"[{bar:<{BAR_COLUMNS}}] {share:4.0%}  {line}"
        return line[: max(0, width - 1)]

    def summary(self) -> str:
        """Return the number of elements, the duration and the rate."""
        more = f"; {self.repeated:,} of them were there" if self.repeated else ""
        rate = _rate(self.written, self.seconds)
        return f"{_elements(self.written)} in {self.seconds:.1f} s, {rate}{more}"


@asynccontextmanager
async def shown(
    progress: "Progress | WriteProgress", screen: Screen, file: int | None, *, quiet: bool
) -> AsyncIterator[None]:
    """Draw the line in the terminal `file` for the length of a block,
    and write the summary after it, unless `quiet`.

    An error has no summary, because the error is the only line to read.
    Ctrl-C has one on a terminal.
    """
    has_ended = False
    try:
        with messages_after(screen.before_message):
            async with trio.open_nursery() as nursery:
                if file is not None:
                    nursery.start_soon(_draw, progress, screen, file)
                yield
                nursery.cancel_scope.cancel()
        has_ended = True
    finally:
        # Without a summary after Ctrl-C, the shell's prompt would follow on the row of the line.
        is_cancelled = trio.current_effective_deadline() == -inf
        summary = (
            progress.summary()
            if not quiet and (has_ended or (is_cancelled and file is not None))
            else ""
        )
        # In a thread, because the terminal may be stopped.
        with trio.move_on_after(FINISH_SECONDS, shield=True):
            await trio.to_thread.run_sync(screen.finish, summary, abandon_on_cancel=True)


async def _draw(progress: Progress | WriteProgress, screen: Screen, file: int) -> None:
    while True:
        await trio.sleep(DRAW_SECONDS)
        await trio.to_thread.run_sync(
            screen.draw, progress.line(columns(file)), abandon_on_cancel=True
        )


def columns(file: int) -> int:
    """Return the width of a terminal, now: its user may resize it at any time."""
    try:
        width = os.get_terminal_size(file).columns
    except OSError:  # it was closed, or was never a terminal
        width = 0
    return width or ASSUMED_COLUMNS


def _elements(taken: int) -> str:
    return f"{taken:,} element{'' if taken == 1 else 's'}"


def _rate(elements: int, seconds: float) -> str:
    return f"{elements / max(seconds, 1e-9):,.0f}/s"
