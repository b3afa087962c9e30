"""Counts the signals of one stream as they pass, and makes the rows of its tap.

Rules of this file:

* The counter trusts no other count: it judges those of the stream.
* Times come from the clock that never goes back. The wall clock was read once, so that files of
  several processes have one time.
* An exception of a tap ends its recording, and is logged. The stream goes on.
"""

import logging
from collections.abc import Callable
from time import perf_counter_ns, time_ns
from typing import Final

from penstock.api import SignalKind, SignalTap, text_of
from penstock.core._limited_log import limited_log, place_of

LONGEST_ROW: Final = 1_000_000_000
"""Nanoseconds after which elements get a row although no other signal came."""

# Once for the process: the wall clock may be set while a recording runs.
_SINCE_1970: Final = time_ns() - perf_counter_ns()

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_ON_NEXT: Final = SignalKind.ON_NEXT

LOG: Final = "penstock.recording"
"""The logger of taps and recorders."""


class SignalCounter:
    """Counts for one tap."""

    __slots__ = ("_count", "_each", "_first", "_last", "_longest", "_record", "_size")

    def __init__(self, tap: SignalTap) -> None:
        self._record: Callable[[SignalKind, int, int, int, int, int], None] = tap.record
        self._each = tap.each_signal
        self._count = self._size = self._first = self._last = self._longest = 0

    def elements(self, n: int, size: int, /) -> int:
        """Count `n` elements of `size` bytes that are about to pass.
        Return the time, for `returned`.
        """
        now = perf_counter_ns()
        if not self._count:
            self._first = now
        self._count += n
        self._size += size
        self._last = now
        # A row each second at least: a long stream of elements alone would otherwise show nothing
        # before its end.
        if self._each or now - self._first >= LONGEST_ROW:
            self.flush()
        return now

    def signal(self, kind: SignalKind, n: int = 0, _error: BaseException | None = None, /) -> int:
        """Make the row of another signal that is about to pass, after that of the elements before
        it. Return the time.
        """
        # First, so that the rows have the order of the signals.
        if self._count:
            self.flush()
        now = perf_counter_ns()
        at, longest, self._longest = now + _SINCE_1970, self._longest, 0
        try:
            self._record(kind, n, 0, at, at, longest)
        except Exception as error:  # boundary: as in `flush`
            self._give_up(error)
        return now

    def returned(self, began: int, /) -> None:
        """Note how long the signal that began at `began` has taken."""
        # The longest since the last row: among a thousand fast calls one slow call must be seen.
        took = perf_counter_ns() - began
        if took > self._longest:  # noqa: PLR1730  # max() takes twice as long, and this runs for each signal
            self._longest = took

    def flush(self) -> None:
        """Make the row of the elements that were counted."""
        count, size, self._count, self._size = self._count, self._size, 0, 0
        longest, self._longest = self._longest, 0
        try:
            self._record(
                _ON_NEXT, count, size, self._first + _SINCE_1970, self._last + _SINCE_1970, longest
            )
        except Exception as error:
            # boundary: a tap is code of a plugin or of the user, and must not end the stream
            # that it watches.
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._record = _ignore
        text = "the tap of a stream raised %s: %s; it gets no more rows of this stream"
        limited_log(LOG).write(
            logging.ERROR, place_of(error), text, type(error).__name__, text_of(error), error=error
        )


def _ignore(kind: SignalKind, n: int, size: int, first: int, last: int, longest: int, /) -> None:
    """Take a row in the place of a tap that has failed."""
