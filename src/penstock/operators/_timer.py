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
from penstock.operators._stage import stopped


class Timer:
    """Calls ``ring()`` at the moment that was set, and ``fail(error)`` where it cannot."""

    __slots__ = ("_fail", "_label", "_moment", "_ring", "_scope", "_sleep", "_task")

    def __init__(self, scope: Scope, label: str, *, ring: Callable[[], None], fail: Callable[[BaseException], None]) -> None:
        self._scope = scope
        self._label = label
        self._ring: Callable[[], None] | None = ring
        self._fail: Callable[[BaseException], None] | None = fail
        self._moment = inf
        self._sleep: trio.CancelScope | None = None
        self._task: trio.CancelScope | None = None

    def set(self, seconds: float) -> float:
        """Ring `seconds` from now, and not at the moment that was set before; return the moment."""
        moment = self._moment = trio.current_time() + seconds
        if self._task is None:
            self._start()
        elif self._sleep is not None and moment < self._sleep.deadline:
            self._sleep.deadline = moment
        return moment

    def unset(self) -> None:
        """Do not ring, until it is set again."""
        self._moment = inf

    def stop(self) -> None:
        """End the task. Nothing rings any more, and the stage is forgotten."""
        self._ring = self._fail = None
        if self._task is not None:
            self._task.cancel()

    def _start(self) -> None:
        try:
            self._task = self._scope.spawn(self._run, name=f"penstock timer of {self._label}")
        except UsageError as closed:
            self._give_up(closed)

    async def _run(self) -> None:
        try:
            while self._ring is not None:
                with trio.CancelScope(deadline=self._moment) as self._sleep:
                    await trio.sleep_forever()
                # The moment may have been moved while this task slept, or was on its way from sleep to here.
                if trio.current_time() >= self._moment and self._ring is not None:
                    self._moment = inf
                    self._ring()
        finally:
            self._give_up(stopped(self._label))  # nothing, unless this task was cancelled while the stage was live

    def _give_up(self, error: BaseException) -> None:
        if self._fail is not None:
            self._fail(error)
