"""Taps are told the signals of one stream, so that they can be recorded and judged later.

Rules of this file:

* A tap gets rows, in the order of the signals.
  A row stands for neighbouring elements, or for one other signal.
* The row of a signal is made before the signal is passed on.
  So the rows of signals that it causes come after it.
* Demand is exact: each request has a row, and between two of them it cannot grow.
"""

import enum
from typing import Protocol, runtime_checkable


class SignalKind(enum.IntEnum):
    """The signal that a row stands for.
    The numbers are those of recorded files, and never change.
    """

    ON_SUBSCRIBE = 1
    """The subscriber gets its subscription."""

    REQUEST = 2
    """The subscriber requests `n` elements."""

    ON_NEXT = 3
    """`n` elements have passed."""

    CANCEL = 4
    """The subscriber cancels."""

    ON_COMPLETE = 5
    """The publisher completes."""

    ON_ERROR = 6
    """The publisher fails."""


@runtime_checkable
class SignalTap(Protocol):
    """Takes the rows of one stream."""

    each_signal: bool
    """True for a row for each call of `on_next`; False for one row for all elements between two
    other signals, and for each second.
    """

    def record(
        self, kind: SignalKind, n: int, size: int, first: int, last: int, longest: int, /
    ) -> None:
        """Take one row. It is called inline, so it must be quick and must not wait.

        `n` is the demand of a request or the number of elements, `size` is the number of bytes of
        those elements that are bytes. `first` and `last` are the times of the first and the last
        signal of the row, in nanoseconds since 1970. `longest` is the longest time in nanoseconds
        that one of the signals took that have returned since the row before.
        """


class MakesTaps(Protocol):
    """Makes taps for streams inside a process, as a `penstock.recording.Recorder` does."""

    def tap(self, name: str, /) -> SignalTap | None:
        """Return the tap of a new stream, or None to leave it alone. `name` is for people."""
