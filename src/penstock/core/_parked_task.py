"""Park one task until another call wakes it.

This does for one task what `trio.Event` does for many. It makes no object for each wait, and it can be used again.

Rules of this file:

* At most one task is parked here at a time. The owner ensures that, or checks `task` before it parks.
* `wake` may be called when no task is parked: then it does nothing, and nothing is remembered. So the owner changes its own state first,
  and a task that is about to park looks at that state before it parks.
"""

from typing import Any

import trio


class ParkedTask:
    """The place where one task waits. `task` is that task, or None; it is public because hot paths compare it before they call `wake`."""

    __slots__ = ("task",)

    def __init__(self) -> None:
        self.task: trio.lowlevel.Task | None = None

    async def park(self) -> None:
        """Wait until `wake` is called. Checkpoints; if cancelled, the task is no longer parked."""
        self.task = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._on_cancel)

    def wake(self) -> None:
        """Let the parked task go on in the next scheduler pass, if there is one."""
        task = self.task
        if task is not None:
            # First reschedule, then forget. From a foreign thread reschedule() raises, and then the task must still be parked here:
            # otherwise no later call could wake it.
            trio.lowlevel.reschedule(task)
            self.task = None

    def _on_cancel(self, _raise_cancel: Any) -> trio.lowlevel.Abort:
        self.task = None
        return trio.lowlevel.Abort.SUCCEEDED
