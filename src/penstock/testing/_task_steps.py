"""Counts task steps and cancels before the k-th step: the instrument of a cancellation sweep.

A step is the part of a task between two checkpoints. Under a seeded scheduler the steps of a run
are the same every time, so a test can cancel at every single step, with a loop over k::

    steps = run_virtual(cancel_at_step, None, scenario).steps
    for k in range(1, steps + 1):
        outcome = run_virtual(cancel_at_step, k, scenario)
"""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar, TypeVarTuple

import attrs
import trio

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@attrs.frozen(kw_only=True)
class StepOutcome(Generic[T]):
    """How a run with counted steps ended: the number of steps, whether the cancel was delivered,
    and the returned value, or None.
    """

    steps: int
    was_cancelled: bool
    value: T | None


class _StepCounter(trio.abc.Instrument):
    """Counts the steps of one task and its descendants,
    and cancels the scope before the k-th step.
    """

    def __init__(
        self, root: trio.lowlevel.Task, scope: trio.CancelScope, cancel_before: int | None
    ) -> None:
        self.steps = 0
        self._root = root
        # Children that the task had before do not belong to the function that is counted.
        self._foreign = set(root.child_nurseries)
        self._scope = scope
        self._cancel_before = cancel_before

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if not self._is_counted(task):
            return
        self.steps += 1
        if self.steps == self._cancel_before:
            self._scope.cancel()

    def _is_counted(self, task: trio.lowlevel.Task) -> bool:
        while task is not self._root:
            if task.parent_nursery is None or task.parent_nursery in self._foreign:
                return False
            task = task.parent_nursery.parent_task
        return True


async def cancel_at_step(
    k: int | None, async_fn: Callable[[*Ts], Awaitable[T]], *args: *Ts
) -> StepOutcome[T]:
    """Run `async_fn(*args)` here, and cancel it just before its k-th task step (None: only count).

    The steps are those of this task and of the tasks that the function starts.
    If it ends earlier, nothing is cancelled.
    Checkpoints as the function does; raises what it raises.
    """
    scope = trio.CancelScope()
    counter = _StepCounter(trio.lowlevel.current_task(), scope, k)
    value: T | None = None
    # This checkpoint begins step 1. Without it, a sweep from k=1 would not cancel at the function's
    # first checkpoint.
    await trio.lowlevel.checkpoint()
    trio.lowlevel.add_instrument(counter)
    try:
        with scope:
            value = await async_fn(*args)
    finally:
        trio.lowlevel.remove_instrument(counter)
    return StepOutcome(steps=counter.steps, was_cancelled=scope.cancelled_caught, value=value)
