"""The task of a server that sends what was queued while no reader was at work, for all of its
connections.

Why: a topic with 10,000 subscribers woke 10,000 tasks for each element, and a connection that had
just sent one kept a task of 3 KiB for some seconds. Nearly every such send is taken whole by the
socket at once, and needs no task of its own.

Rules of this file:

* It only tries (`Writer.flush`). Where the transport takes less, the writer of that connection
  starts its own task, and this one has no more to do with it.
* Other tasks run after `Limits.turn` seconds.
* While it does not run, each writer has its own task: `add` is called only if `is_running`.
"""

from time import monotonic
from typing import Protocol

import trio

from penstock.core import ParkedTask


class SharedWriter:
    """Sends for the connections of one server."""

    __slots__ = ("_parked", "_turn", "_waiting", "is_running")

    def __init__(self, turn: float) -> None:
        self._turn = turn
        self._parked = ParkedTask()
        # Bounded by the connections of the server.
        self._waiting: dict[QueuedWriter, None] = {}
        self.is_running: bool = False
        """Whether the task runs."""

    def add(self, writer: "QueuedWriter") -> None:
        """Let `writer` send soon."""
        self._waiting[writer] = None
        if self._parked.task is not None:
            self._parked.wake()

    async def run(self) -> None:
        """Send, until this is cancelled. Then the writers send by themselves."""
        self.is_running = True
        try:
            while True:
                if not self._waiting:
                    await self._parked.park()
                await self._send_all()
        finally:
            self.is_running = False
            for writer in self._waiting:
                writer.wake()

    async def _send_all(self) -> None:
        waiting, ends = self._waiting, monotonic() + self._turn
        while waiting:
            writer = next(iter(waiting))
            # Before the send, in which it may be added again.
            del waiting[writer]
            try:
                writer.flush()
            except Exception as fault:
                # boundary: one connection. It ends with this, and the others go on.
                writer.fail_with(fault)
            if waiting and monotonic() >= ends:
                await trio.lowlevel.checkpoint()
                ends = monotonic() + self._turn


class QueuedWriter(Protocol):
    """The writer of a connection, as this file uses it."""

    def flush(self) -> None:
        """Send as far as the transport takes it; the writer's own task sends the rest."""

    def wake(self) -> None:
        """Let the writer's own task send."""

    def fail_with(self, fault: Exception) -> None:
        """End the connection with a fault of this side."""
