"""Counting what is left: tasks, generators and watched objects, before and after.

::

    census = LeakCensus()
    census.watch(subscriber, "the subscriber")
    ...                                   # everything that should leave nothing behind
    del subscriber
    assert census.leaks() == []

Rules of this file

* Tasks are those of the running trio run, taken when the census is made; without a run there are none.
* A watched generator leaks when it is not closed, even if it is referred to by the test: that it was closed is the promise.
* Any other watched object leaks when it still exists. Reference counting is asked first and the collector only then, because a full
  collection costs more than most tests.
"""

import gc
import inspect
import weakref
from types import AsyncGeneratorType, GeneratorType
from typing import Any

import trio


def live_tasks() -> list[trio.lowlevel.Task]:
    """Return every task of the running trio run but its own system tasks; outside a run, none."""
    if not trio.lowlevel.in_trio_run():
        return []
    found: list[trio.lowlevel.Task] = []
    waiting = [_main_task()]
    while waiting:
        task = waiting.pop()
        found.append(task)
        waiting += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return found


def _main_task() -> trio.lowlevel.Task:
    """The ancestor of this task that trio's own root task started; from a system task it is that one."""
    task, root = trio.lowlevel.current_task(), trio.lowlevel.current_root_task()
    while task.parent_nursery is not None and task.parent_nursery.parent_task is not root:
        task = task.parent_nursery.parent_task
    return task


def is_dropped(reference: "weakref.ref[Any]") -> bool:
    """Return whether the object is gone, after collecting as much garbage as it takes to know."""
    for generation in (0, 1, 2):
        if reference() is None:
            return True
        gc.collect(generation)
    return reference() is None


def referrers(reference: "weakref.ref[Any]") -> list[str]:
    """Return short texts for what refers to the object, one level deep: where to look when it is not dropped."""
    target = reference()
    if target is None:
        return []
    here = inspect.currentframe()
    return [_named(holder) for holder in gc.get_referrers(target) if holder is not here]


def _named(holder: object) -> str:
    if inspect.isframe(holder):
        return f"the frame of {holder.f_code.co_qualname} at line {holder.f_lineno}"
    if isinstance(holder, dict):
        return f"a dict with keys {sorted(map(str, holder))[:8]}"
    return f"a {type(holder).__module__}.{type(holder).__qualname__}"


class LeakCensus:
    """What lived when it was made, and what was given to `watch`: `leaks()` names what is left of it."""

    def __init__(self) -> None:
        self._tasks = set(map(id, live_tasks()))
        self._generators: list[tuple[str, Any]] = []
        self._objects: list[tuple[str, weakref.ref[Any]]] = []

    def watch(self, target: Any, label: str) -> None:
        """Watch an object (it must be gone) or a generator (it must be closed)."""
        if isinstance(target, (AsyncGeneratorType, GeneratorType)):
            self._generators.append((label, target))
        else:
            self._objects.append((label, weakref.ref(target)))

    def leaks(self) -> list[str]:
        """Return a line for each task, generator and object that is left."""
        return [*self._left_tasks(), *self._open_generators(), *self._left_objects()]

    def _left_tasks(self) -> list[str]:
        return [f"task {task.name} still runs" for task in live_tasks() if id(task) not in self._tasks]

    def _open_generators(self) -> list[str]:
        return [f"generator {label} is not closed" for label, generator in self._generators if _frame(generator) is not None]

    def _left_objects(self) -> list[str]:
        left = [(label, reference) for label, reference in self._objects if not is_dropped(reference)]
        return [f"{label} is still referred to by {', '.join(referrers(reference)) or 'something'}" for label, reference in left]


def _frame(generator: Any) -> Any:
    return generator.ag_frame if isinstance(generator, AsyncGeneratorType) else generator.gi_frame
