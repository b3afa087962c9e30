"""Begins a task of asyncio inside a task of trio, and makes its first step there.

Why: most functions never wait, and then neither loop spends a pass on them. From Python 3.12 on
asyncio does this itself. Before that, `_Begun` does it with the functions that asyncio documents
for foreign kinds of tasks.
"""

import asyncio
import sys
from collections.abc import Coroutine
from contextvars import Context, copy_context
from typing import Any

from sniffio import thread_local

from penstock.guest._inside_trio import can_step_out, step_in, step_out


def begin_task(coroutine: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
    """Begin a task for `coroutine`, which has a copy of the context variables of the caller."""
    loop = asyncio.get_running_loop()
    if not can_step_out():
        return loop.create_task(coroutine, name=name)
    # Libraries for several loops look here for the loop that they run in.
    library, thread_local.name = thread_local.name, "asyncio"
    task_of_trio = step_out()
    try:
        if sys.version_info >= (3, 12):
            return asyncio.Task(coroutine, loop=loop, name=name, eager_start=True)
        context = copy_context()
        begun = _Begun(coroutine)
        task = loop.create_task(begun, name=name, context=context)
        begun.begin(task, loop, context)
        return task
    finally:
        step_in(task_of_trio)
        thread_local.name = library


class _Begun(Coroutine[Any, Any, None]):
    """A coroutine whose first step is made before its task makes one."""

    __slots__ = ("_coroutine", "_end", "_is_ahead", "_trap")

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._coroutine = coroutine
        self._is_ahead = False
        self._trap: Any = None  # what the first step waits for
        self._end: BaseException | None = None  # with what the first step has ended

    def begin(
        self, task: "asyncio.Task[None]", loop: asyncio.AbstractEventLoop, context: Context
    ) -> None:
        """Make the first step, as a step of `task`."""
        self._is_ahead = True
        asyncio.tasks._enter_task(loop, task)  # noqa: SLF001  # documented, for kinds of tasks
        try:
            self._trap = context.run(self._coroutine.send, None)
        except BaseException as end:  # raised again in the step of the task
            self._end = end
        finally:
            asyncio.tasks._leave_task(loop, task)  # noqa: SLF001  # as above

    def send(self, value: None, /) -> Any:
        if not self._is_ahead:
            return self._coroutine.send(value)
        self._is_ahead = False
        if self._end is not None:
            raise self._end
        return self._trap

    def throw(self, *error: Any) -> Any:
        # A task that is cancelled before its own first step throws here.
        self._is_ahead = False
        if self._end is not None:
            raise self._end
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Any:
        return self._coroutine.__await__()
