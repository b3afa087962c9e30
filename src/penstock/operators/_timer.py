"""A timer for a stage: one moment in the future that can be moved, and one task that waits for it.

Rules of this file:

* The task begins when a moment is first set, and ends with the stage: whoever owns a timer calls `stop` in `_release`.
* Moving the moment further away costs no more than noting it, because a stage does that for each element: the task finds out when
  it wakes, and goes back to sleep. Only a moment that comes nearer wakes the task anew.
* Where the task is cancelled from outside while the stage lives, the stage fails: a stream whose clock has stopped would hang.
"""

from collections.abc import Callable
from math import inf

import trio

from penstock.api import UsageError
from penstock.core import Scope
from penstock.operators._stage import stopped_error


class Timer:
    """Calls ``on_deadline()`` at the deadline that was set, and ``fail(error)`` where it cannot."""

    __slots__ = ("_deadline", "_fail", "_label", "_on_deadline", "_scope", "_sleep_scope", "_task_scope")

    def __init__(self, scope: Scope, label: str, *, on_deadline: Callable[[], None], fail: Callable[[BaseException], None]) -> None:
        self._scope = scope
        self._label = label
        self._on_deadline: Callable[[], None] | None = on_deadline
        self._fail: Callable[[BaseException], None] | None = fail
        self._deadline = inf
        self._sleep_scope: trio.CancelScope | None = None
        self._task_scope: trio.CancelScope | None = None

    def set(self, seconds: float) -> float:
        """Ring `seconds` from now, and not at the moment that was set before; return the moment."""
        deadline = self._deadline = trio.current_time() + seconds
        if self._task_scope is None:
            self._start()
        elif self._sleep_scope is not None and deadline < self._sleep_scope.deadline:
            self._sleep_scope.deadline = deadline
        return deadline

    def clear(self) -> None:
        """Do not ring, until it is set again."""
        self._deadline = inf

    def stop(self) -> None:
        """End the task. Nothing rings any more, and the stage is forgotten."""
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
                # The moment may have been moved while this task slept, or was on its way from sleep to here.
                if trio.current_time() >= self._deadline and self._on_deadline is not None:
                    self._deadline = inf
                    self._on_deadline()
        finally:
            self._fail_stage(stopped_error(self._label))  # nothing, unless this task was cancelled while the stage was live

    def _fail_stage(self, error: BaseException) -> None:
        if self._fail is not None:
            self._fail(error)
