"""The deadlines of one connection: a watcher says when it is due, and is not asked before.

Rules of this file:

* A deadline that moves away costs nothing. Its watcher is asked at the old time, and returns the
  new one then. So no message and no element moves a deadline.
* A deadline that comes nearer is told with `hasten`.
* A watcher is asked first when the connection is open, unless it was added with a time. The
  handshake and the goodbye have one deadline each, which the session keeps.
* A connection has a handful of watchers. The least of eight numbers is found faster than a heap is
  kept in order, so they stand in a list.
"""

from collections.abc import Callable
from math import inf
from typing import Protocol


class Watcher(Protocol):
    """Does something at a time."""

    due: float
    """When it is asked next; `inf` if it is not. `Deadlines` keeps this attribute."""

    def look(self, now: float, /) -> float | None:
        """Do what is due at the time `now`. Return when to be asked again, or None."""


class Deadlines:
    """When the watchers of one connection are due."""

    __slots__ = ("_is_over", "_watchers", "earliest", "is_open", "on_earlier")

    def __init__(self) -> None:
        self._watchers: tuple[Watcher, ...] = ()  # asked in the order in which they were added
        self.is_open: bool = False
        self._is_over = False
        self.earliest: float = inf
        """When a watcher is due."""
        self.on_earlier: Callable[[float], object] | None = None
        """Called with a time before `earliest` at which `Session.tick` must be called."""

    def add(self, watcher: Watcher, due: float = inf) -> None:
        """Ask `watcher` at `due`, or as soon as the connection is open."""
        watcher.due = inf
        if not self._is_over:
            self._watchers += (watcher,)
            self.hasten(watcher, -inf if self.is_open and due == inf else due)

    def open(self) -> None:
        """Ask each watcher that has no time: the connection is open."""
        self.is_open = True
        for watcher in self._watchers:
            if watcher.due == inf:
                self.hasten(watcher, -inf)

    def remove(self, watcher: Watcher) -> None:
        """Ask `watcher` no more."""
        self._watchers = tuple(each for each in self._watchers if each is not watcher)

    def hasten(self, watcher: Watcher, due: float) -> None:
        """Ask `watcher` at `due`, unless it is asked before."""
        if due < watcher.due and not self._is_over:
            watcher.due = due
            if due < self.earliest:
                self.earliest = due
                if self.on_earlier is not None:
                    self.on_earlier(due)

    def run(self, now: float) -> float | None:
        """Ask the watchers that are due. Return when to call again, or None."""
        if now >= self.earliest:
            for watcher in self._watchers:
                if self._is_over:
                    return None  # one of them has closed the connection
                if now >= watcher.due:
                    watcher.due = inf
                    due = watcher.look(now)
                    # It may have been hastened while it looked.
                    if due is not None and due < watcher.due:
                        watcher.due = due
            self.earliest = min((watcher.due for watcher in self._watchers), default=inf)
        return None if self.earliest == inf else self.earliest

    def change_phase(self) -> None:
        """Let `Session.tick` be called: another deadline counts from now on."""
        if self.on_earlier is not None:
            self.on_earlier(-inf)

    def clear(self) -> None:
        """Ask nothing more: the connection is closing."""
        # Their references to the session would be a circle.
        self._is_over, self._watchers = True, ()
        self.change_phase()
