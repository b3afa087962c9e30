"""When the elements of a range were appended, as a task learns it.

Rules of this file:

* A log tells its times in pieces of one time, as many as it likes: the next question goes on from
  the end of the last piece. Pieces are dropped when their elements were handed over.
* Spark counts microseconds.
"""

import json
from typing import Any

import numpy as np

from penstock.api import ProtocolError, shown


class Times:
    """The times of the elements from a position up to, and not with, `end`."""

    def __init__(self, start: int) -> None:
        self.end: int = start
        self._stops = np.empty(0, np.int64)
        self._moments = np.empty(0, np.int64)

    def add(self, answer: bytes, name: str) -> None:
        """Add what a log has answered. Raises ProtocolError for pieces that do not go on."""
        try:
            starts, stops, seconds = zip(*json.loads(answer), strict=True)
            pieces = np.array(starts, np.int64), np.array(stops, np.int64)
            # `round` raises for a number that no time has.
            moments = np.array([round(each * 1e6) for each in seconds], np.int64)
        except (ValueError, TypeError, OverflowError, RecursionError):
            raise ProtocolError(f"the server sent {shown(answer)} as the times of {name}") from None
        goes_on = np.array_equal(pieces[0], np.concatenate(([self.end], pieces[1][:-1])))
        if not goes_on or (pieces[0] >= pieces[1]).any():
            raise ProtocolError(
                f"the server sent times of {name} that do not go on at {self.end:,}: "
                f"{shown(answer)}"
            )
        self._stops = np.concatenate((self._stops, pieces[1]))
        self._moments = np.concatenate((self._moments, moments))
        self.end = int(pieces[1][-1])

    def take(self, start: int, stop: int) -> Any:
        """Return the times of these elements in microseconds, and forget those before `stop`."""
        first = np.searchsorted(self._stops, start, "right")
        last = np.searchsorted(self._stops, stop, "left") + 1
        edges = np.concatenate(([start], self._stops[first : last - 1], [stop]))
        found = np.repeat(self._moments[first:last], np.diff(edges))
        done = np.searchsorted(self._stops, stop, "right")
        self._stops, self._moments = self._stops[done:], self._moments[done:]
        return found
