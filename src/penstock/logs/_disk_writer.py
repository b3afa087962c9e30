"""The thread that writes a log on disk.

Rules of this file:

* The thread takes all work that has come during its last sync as its next commit. So the rate of
  syncs bounds the rate of commits, and not that of elements.
* The queue is bounded by the log, which admits elements only while few enough wait
  (`MOST_AT_ONCE`).
* On a full disk, work that makes elements unnecessary is committed with the reserve of the log.
* In pauses the thread cares for the file, in small pieces. If no pause comes, it does one piece
  after many commits, so that the groups are joined after all.
* The thread calls trio only with `run_sync_soon`.
  If the run has ended, no task waits, and the thread ends.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Final, TypeAlias

import attrs
import trio

from penstock.logs._disk_reserve import Reserve, is_full
from penstock.logs._disk_store import DiskStore
from penstock.logs._readers import ReaderState
from penstock.logs._work import Append, PartitionState, Publish, Result, Stage, Work

PAUSE_SECONDS: Final = 0.05
"""Seconds without work after which the thread cares for the file. An append that comes during that
waits for some milliseconds.
"""

BRING: Final = (Append, Publish, Stage)
"""Work that brings elements: it gets nothing of the reserve."""

SHARE: Final = 3
"""The care takes at most one of SHARE + 1 seconds, so that it leaves the disk to other programs."""


@attrs.define(eq=False)
class Ticket:
    """A piece of work on its way through the thread.
    `done` is set when `result` or `error` has been.
    """

    work: Work
    done: trio.Event = attrs.Factory(trio.Event)
    result: Result = None
    error: Exception | None = None


Deliver: TypeAlias = Callable[
    [
        Sequence[Ticket],
        Sequence[Result],
        Sequence[PartitionState],
        Sequence[ReaderState],
        Exception | None,
    ],
    None,
]
"""Called in trio with the tickets of a commit, their results, the states of the partitions and of
the readers, and the error if the commit failed.
"""


class DiskWriter:
    """Commits work in a separate thread, in the order in which it was put."""

    def __init__(self, store: DiskStore, reserve: Reserve, deliver: Deliver) -> None:
        self._store = store
        self._reserve = reserve
        self._deliver = deliver
        self._token = trio.lowlevel.current_trio_token()
        self._queue: SimpleQueue[Ticket | None] = SimpleQueue()
        # A daemon, because a program that raises out of trio.run() must be able to end. Its
        # elements are committed, or were not promised.
        self.thread = threading.Thread(target=self._run, name="penstock log", daemon=True)
        self.ended = trio.Event()
        """Set when the thread has committed all work, after `stop`."""

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def put(self, ticket: Ticket) -> None:
        """Give work to the thread."""
        self._queue.put(ticket)

    def stop(self) -> None:
        """Let the thread end when it has committed all work."""
        self._queue.put(None)

    def _run(self) -> None:
        try:
            while tickets := self._next_tickets():
                self._commit(tickets)
                if self._store.is_urgent():
                    self._care()
            self._token.run_sync_soon(self.ended.set)
        except trio.RunFinishedError:
            pass  # the tasks that waited are gone

    def _next_tickets(self) -> list[Ticket]:
        """Return all work that has come, after the first piece of it came;
        an empty list after `stop`.
        """
        tickets: list[Ticket] = []
        try:
            ticket = self._first_ticket()
            while ticket is not None:
                tickets.append(ticket)
                ticket = self._queue.get_nowait()
            if tickets:
                self._queue.put(None)  # `stop` came after them: it counts after their commit
        except Empty:
            pass
        return tickets

    def _first_ticket(self) -> Ticket | None:
        """Return the next piece of work. Use pauses to care for the file."""
        pause = PAUSE_SECONDS
        while self._store.needs_care():
            try:
                return self._queue.get(timeout=pause)
            except Empty:
                pause = max(PAUSE_SECONDS, SHARE * self._care())
        return self._queue.get()

    def _care(self) -> float:
        """Do a piece of work of `DiskStore.care`, and return the seconds that it took."""
        begun = time.monotonic()
        self._store.care()
        return time.monotonic() - begun

    def _commit(self, tickets: list[Ticket]) -> None:
        results: Sequence[Result] = ()
        error: Exception | None = None
        works = [ticket.work for ticket in tickets]
        try:
            try:
                results = self._store.commit(works)
            except sqlite3.Error as failed:
                if not is_full(failed):
                    raise
                # Written over, PATH-wal needs no room.
                self._store.empty_wal()
                results = self._store.commit(works)
            self._reserve.restore()
        except sqlite3.Error as failed:
            error = failed
            if is_full(failed):
                tickets = self._make_room(tickets)
        except Exception as failed:
            # boundary: the end of a thread; the tasks that wait must learn of a fault of penstock.
            error = failed
        if tickets:
            self._report(tickets, results, error)

    def _make_room(self, tickets: list[Ticket]) -> list[Ticket]:
        """Commit with the reserve of the log what makes elements unnecessary. Return the others."""
        frees = [ticket for ticket in tickets if not isinstance(ticket.work, BRING)]
        if not (frees and self._reserve.spend()):
            return tickets
        try:
            results = self._store.commit([ticket.work for ticket in frees])
            self._report(frees, results, None)
            self._store.empty_wal()
            self._store.give_room()
            return [ticket for ticket in tickets if isinstance(ticket.work, BRING)]
        except sqlite3.Error:
            return [ticket for ticket in tickets if not ticket.done.is_set()]
        finally:
            self._reserve.take_back()

    def _report(
        self, tickets: Sequence[Ticket], results: Sequence[Result], error: Exception | None
    ) -> None:
        # Copies: the next commit may change the states before trio calls `deliver`.
        states, readers = tuple(self._store.states), tuple(self._store.readers.known.values())
        self._token.run_sync_soon(self._deliver, tickets, results, states, readers, error)
