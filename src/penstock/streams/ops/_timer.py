"""`Timer`: one deadline that can be moved, and one task that sleeps until it. For stages.

Rules of this file:

* The task starts at the first `set` and ends at `stop`.
  The stage that owns the timer calls `stop` in `_release`.
* Moving the deadline later only stores a number, because stages do it for each element. The task
  sees it when it wakes up, and sleeps again. Moving it earlier changes the deadline of the sleeping
  scope.
* If the task is cancelled from outside while the stage is live, the stage fails.
  Otherwise the stream would hang.
"""

from collections.abc import Callable
from math import inf

import trio

from penstock.api import UsageError
from penstock.core import Scope
from penstock.streams.ops._stage import stopped_error


class Timer:
    """Calls ``on_deadline()`` when the deadline has passed, or ``fail(error)``
    if its task cannot run.
    """

    __slots__ = (
        "_deadline",
        "_fail",
        "_label",
        "_on_deadline",
        "_scope",
        "_sleep_scope",
        "_task_scope",
    )

    def __init__(
        self,
        scope: Scope,
        label: str,
        *,
        on_deadline: Callable[[], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._scope = scope
        self._label = label
        self._on_deadline: Callable[[], None] | None = on_deadline
        self._fail: Callable[[BaseException], None] | None = fail
        self._deadline = inf
        self._sleep_scope: trio.CancelScope | None = None
        self._task_scope: trio.CancelScope | None = None

    def set(self, seconds: float) -> float:
        """Set the deadline to `seconds` from now and return it. It replaces the deadline before."""
        deadline = self._deadline = trio.current_time() + seconds
        if self._task_scope is None:
            self._start()
        elif self._sleep_scope is not None and deadline < self._sleep_scope.deadline:
            # Only if earlier: changing it reorders trio's heap of deadlines.
            self._sleep_scope.deadline = deadline
        return deadline

    def clear(self) -> None:
        """Remove the deadline."""
        self._deadline = inf

    def stop(self) -> None:
        """End the task and drop the references to the owner. No callback follows."""
        self._on_deadline = self._fail = None
        if self._task_scope is not None:
            self._task_scope.cancel()

    def _start(self) -> None:
        try:
            self._task_scope = self._scope.spawn(self._run, name=f"penstock timer of {self._label}")
        except UsageError as closed:
            self._fail_stage(closed)

    async def _run(self) -> None:
        try:
            while self._on_deadline is not None:
                with trio.CancelScope(deadline=self._deadline) as self._sleep_scope:
                    await trio.sleep_forever()
                # The deadline may have moved while this task slept, or after its sleep ended
                # and before it ran.
                if trio.current_time() >= self._deadline and self._on_deadline is not None:
                    self._deadline = inf  # first, because the callback may call set()
                    self._on_deadline()
        finally:
            # No effect after stop(); the task was cancelled while the stage was live.
            self._fail_stage(stopped_error(self._label))

    def _fail_stage(self, error: BaseException) -> None:
        if self._fail is not None:
            self._fail(error)
