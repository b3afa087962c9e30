"""The progress of a stream: one line on standard error, updated twice a second. Without a terminal only a summary is written."""

import sys
from time import monotonic

import trio

from penstock.core import Stream

UPDATE_SECONDS = 0.5


class Progress:
    """Elements, rate, demand and buffer of one stream."""

    def __init__(self, stream: Stream[object], *, quiet: bool = False) -> None:
        self._stream = stream
        self._began = self._last = monotonic()
        self._seen = 0
        self._is_shown = not quiet and sys.stderr.isatty()

    async def show(self) -> None:
        """Update the line until cancelled."""
        while self._is_shown:
            await trio.sleep(UPDATE_SECONDS)
            sys.stderr.write(f"\r\x1b[K{self.line()}")
            sys.stderr.flush()

    def line(self) -> str:
        """Return the line for the present state, with the rate since the last call."""
        now, statistics = monotonic(), self._stream.statistics()
        rate = (statistics.taken - self._seen) / max(now - self._last, 1e-9)
        self._last, self._seen = now, statistics.taken
        starved = ", starved: waiting for demand" if statistics.starved else ""
        return (
            f"{statistics.taken:,} elements, {rate:,.0f}/s, {statistics.outstanding:,} asked for, {statistics.buffered:,} buffered{starved}"
        )

    def write_summary(self) -> None:
        """Write the number of elements, the duration and the rate."""
        taken, seconds = self._stream.statistics().taken, monotonic() - self._began
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
        sys.stderr.write(f"{taken:,} elements in {seconds:.1f} s, {taken / max(seconds, 1e-9):,.0f}/s\n")
        sys.stderr.flush()
