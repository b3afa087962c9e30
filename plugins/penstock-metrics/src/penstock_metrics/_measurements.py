"""The servers and connections that are collected, and a snapshot of all of them,
taken from any thread.

Rules of this file:

* Statistics are read in the run of trio to which their server or connection belongs: another thread
  could read a table while it changes. `take` sends its question there, and waits for the answer. In
  the run itself it asks at once.
* A server counts once, also if several collect it: the program, and a page of a transport.
* A counter never becomes smaller. The counts of a server or a connection stay in `_ended` when it
  is no longer collected.
* Nothing raises out of `take` because a run of trio has ended:
  the last record that was taken counts then.
"""

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Lock
from types import TracebackType

import trio

from penstock.spi import PeerStatistics, ServerStatistics
from penstock_metrics._publishers import MOST_LABELS, Labels
from penstock_metrics._snapshot import Measured, Snapshot


class Collected(AbstractContextManager["Collected"]):
    """A server or a connection that is collected, until `close`;
    most programs use it as a ``with`` block.
    """

    def __init__(self, measurements: "Measurements", source: Measured) -> None:
        self._measurements = measurements
        self.read: Callable[[], ServerStatistics | PeerStatistics] = source.statistics
        """Returns the record of now. Equal for all that collect one server or connection."""
        # This call comes first: outside of trio it raises the error that says what to do.
        self._last = self.read()
        self._token = trio.lowlevel.current_trio_token()

    def close(self) -> None:
        """Collect it no longer. The totals of its counters stay. Call it in the same run of
        trio; a second call does nothing.
        """
        self._measurements.remove(self)

    def take(self) -> ServerStatistics | PeerStatistics | None:
        """Return the record of now, or None if the run of trio has ended."""
        try:
            if _current_token() is self._token:
                self._last = self.read()
            else:
                self._last = trio.from_thread.run_sync(self.read, trio_token=self._token)
        except trio.RunFinishedError:
            return None
        return self._last

    @property
    def last(self) -> ServerStatistics | PeerStatistics:
        """The last record that was taken."""
        return self._last

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Measurements:
    """Everything that is measured in a process."""

    def __init__(self, *, most_labels: int = MOST_LABELS) -> None:
        self._collected: dict[Collected, None] = {}
        self._ended = Snapshot()
        # Threads that ask at the same time must not both count a server that has ended.
        self._lock = Lock()
        self._labels = Labels(most_labels)

    def collect(self, source: Measured) -> Collected:
        """Collect a server or a connection from now on.
        Call this in the run of trio in which it runs.
        """
        collected = Collected(self, source)
        with self._lock:
            self._collected[collected] = None
        return collected

    def remove(self, collected: Collected) -> None:
        """Collect it no longer, and keep its totals."""
        last = collected.take() or collected.last
        with self._lock:
            if collected in self._collected:
                del self._collected[collected]
                if all(other.read != collected.read for other in self._collected):
                    self._ended.add_ended(last, self._labels)

    def take(self) -> Snapshot:
        """Return the numbers of now, from any thread."""
        # The lock is not held here: this may wait for a run of trio, and a task of
        # that run may be about to call `remove`.
        with self._lock:
            collected = {one.read: one for one in self._collected}
        taken = [(one, one.take()) for one in collected.values()]
        with self._lock:
            # One that was removed from `_collected` meanwhile is in `_ended` already.
            reads = {one.read for one in self._collected}
            for one, statistics in taken:
                if statistics is None and one.read in reads:
                    self._ended.add_ended(one.last, self._labels)
                    for each in [each for each in self._collected if each.read == one.read]:
                        del self._collected[each]
            snapshot = copy.deepcopy(self._ended)
            for one, statistics in taken:
                if statistics is not None and one.read in reads:
                    snapshot.add(statistics, self._labels)
        return snapshot


def _current_token() -> trio.lowlevel.TrioToken | None:
    try:
        return trio.lowlevel.current_trio_token()
    except RuntimeError:
        return None
