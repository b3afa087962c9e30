"""Counting leaks: tasks, generators and watched objects that are left.

::

    census = LeakCensus()
    census.watch(subscriber, "the subscriber")
    ...                                   # the code that must leave nothing behind
    del subscriber
    assert census.leaks() == []

Rules of this file

* The census counts the tasks of the running trio run. Outside a run it counts no tasks.
* A watched generator leaks if it is not closed, even if the test refers to it:
  closing is the promise.
* Any other watched object leaks if it still exists. `gc.collect` runs only if reference counting
  did not free the object, because a full collection takes longer than most tests.
"""

import gc
import inspect
import weakref
from types import AsyncGeneratorType, GeneratorType
from typing import Any

import trio


def live_tasks() -> list[trio.lowlevel.Task]:
    """Return every task of the running trio run except trio's system tasks.
    Outside a run the list is empty.
    """
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
    """Return the ancestor of the current task that trio's root task started. In a system task,
    that is the system task's own ancestor.
    """
    task, root = trio.lowlevel.current_task(), trio.lowlevel.current_root_task()
    while task.parent_nursery is not None and task.parent_nursery.parent_task is not root:
        task = task.parent_nursery.parent_task
    return task


def is_dropped(reference: "weakref.ref[Any]") -> bool:
    """Return whether the object has been freed.
    Collects garbage, generation by generation, until it has been.
    """
    for generation in (0, 1, 2):
        if reference() is None:
            return True
        gc.collect(generation)
    return reference() is None


def referrers(reference: "weakref.ref[Any]") -> list[str]:
    """Return a short text for each object that refers directly to the target,
    to find out why it is not dropped.
    """
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
    """The tasks at its creation, and the objects given to `watch`. `leaks()` names what is left."""

    def __init__(self) -> None:
        self._tasks = set(map(id, live_tasks()))
        self._generators: list[tuple[str, Any]] = []
        self._objects: list[tuple[str, weakref.ref[Any]]] = []

    def watch(self, target: Any, label: str) -> None:
        """Watch an object, which must be freed, or a generator, which must be closed."""
        if isinstance(target, (AsyncGeneratorType, GeneratorType)):
            self._generators.append((label, target))
        else:
            self._objects.append((label, weakref.ref(target)))

    def leaks(self) -> list[str]:
        """Return a line for each new task, open generator and watched object that is left."""
        return [*self._left_tasks(), *self._open_generators(), *self._left_objects()]

    def _left_tasks(self) -> list[str]:
        return [
            f"task {task.name} still runs" for task in live_tasks() if id(task) not in self._tasks
        ]

    def _open_generators(self) -> list[str]:
        return [
            f"generator {label} is not closed"
            for label, generator in self._generators
            if _frame(generator) is not None
        ]

    def _left_objects(self) -> list[str]:
        left = [
            (label, reference) for label, reference in self._objects if not is_dropped(reference)
        ]
        return [
            f"{label} is still referred to by {', '.join(referrers(reference)) or 'something'}"
            for label, reference in left
        ]


def _frame(generator: Any) -> Any:
    return generator.ag_frame if isinstance(generator, AsyncGeneratorType) else generator.gi_frame
