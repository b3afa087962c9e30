"""Counting task steps, and cancelling before the k-th: the instrument of a cancellation sweep.

A step is one stretch of a task between two checkpoints. Under a seeded scheduler the steps of a run are the same every time, so
"cancelled at every single step" is a loop over k::

    steps = run_virtual(cancel_at_step, None, scenario).steps
    for k in range(1, steps + 1):
        outcome = run_virtual(cancel_at_step, k, scenario)
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, TypeVarTuple

import trio

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome(Generic[T]):
    """How a stepped run ended: its task steps, whether the cancellation was delivered, and the value if it returned one."""

    steps: int
    was_cancelled: bool
    value: T | None


class _StepCounter(trio.abc.Instrument):
    """Counts the steps of one task and its descendants; before the k-th it cancels the scope."""

    def __init__(self, root: trio.lowlevel.Task, scope: trio.CancelScope, cancel_before: int | None) -> None:
        self.steps = 0
        self._root = root
        # What the task has started already is a neighbour of the function, not a part of it.
        self._foreign = set(root.child_nurseries)
        self._scope = scope
        self._cancel_before = cancel_before

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if not self._is_ours(task):
            return
        self.steps += 1
        if self.steps == self._cancel_before:
            self._scope.cancel()

    def _is_ours(self, task: trio.lowlevel.Task) -> bool:
        while task is not self._root:
            if task.parent_nursery is None or task.parent_nursery in self._foreign:
                return False
            task = task.parent_nursery.parent_task
        return True


async def cancel_at_step(k: int | None, async_fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> StepOutcome[T]:
    """Run `async_fn(*args)` here, and cancel it just before its k-th task step (None: only count).

    Its steps are those of this task and of all that it starts. Where it ends earlier, nothing is cancelled.
    Checkpoints as the function does; raises what it raises.
    """
    scope = trio.CancelScope()
    counter = _StepCounter(trio.lowlevel.current_task(), scope, k)
    value: T | None = None
    # One step begins where we are: a sweep that starts at 1 must meet the function's first checkpoint too.
    await trio.lowlevel.checkpoint()
    trio.lowlevel.add_instrument(counter)
    try:
        with scope:
            value = await async_fn(*args)
    finally:
        trio.lowlevel.remove_instrument(counter)
    return StepOutcome(steps=counter.steps, was_cancelled=scope.cancelled_caught, value=value)
