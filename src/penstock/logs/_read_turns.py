"""Turns at the one connection that reads a file.

Rules of this file:

* One task has the turn at a time.
* Owners take turns, and the tasks of one owner go in their order. So a peer that opens a thousand
  streams waits for its own reads, and another peer waits for one of them.
"""

from collections.abc import Hashable

import trio

from penstock.core import WOKEN


class ReadTurns:
    """The turns of one file."""

    def __init__(self) -> None:
        self._is_taken = False
        # Bounded by the streams of the log. An owner with a waiting task is in it; the next one
        # is the first.
        self._waiting: dict[Hashable, dict[trio.lowlevel.Task, None]] = {}

    async def take(self, owner: Hashable) -> None:
        """Wait for a turn of `owner`; `pass_on` ends it. Checkpoints if it has to wait."""
        # No context manager: a thousand streams may wait here, and each would hold two frames more.
        if not self._is_taken:
            self._is_taken = True
            return
        task = trio.lowlevel.current_task()
        self._waiting.setdefault(owner, {})[task] = None

        def forget(_: object) -> trio.lowlevel.Abort:
            tasks = self._waiting[owner]
            del tasks[task]
            if not tasks:
                del self._waiting[owner]
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(forget)

    def pass_on(self) -> None:
        """Give the turn to the first task of the next owner. Nobody can take it in between."""
        if not self._waiting:
            self._is_taken = False
            return
        owner = next(iter(self._waiting))
        # Taken out and put in again: its other tasks wait for the turns of all others.
        tasks = self._waiting.pop(owner)
        task = next(iter(tasks))
        del tasks[task]
        if tasks:
            self._waiting[owner] = tasks
        trio.lowlevel.reschedule(task, WOKEN)
