"""A task of asyncio whose steps a plain call can make, while it waits for one.

Why: a task that waits for demand would go on in the next pass of its loop, and its elements would
be signalled in the next pass of trio. Both together cost as much as some fifty elements.

Rules of this file:

* A step is made with the task as the current one of asyncio, and in its context. The functions for
  that are those that asyncio documents for foreign kinds of tasks.
* A step that ends at another wait is handed to the task, which goes on from there by itself.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextvars import Context, copy_context
from typing import Any, Final

from penstock.guest._inside_trio import step_in, step_out


class Stepped(Coroutine[Any, Any, None]):
    """Runs a coroutine as a task, which waits for `step` with ``await NEXT_STEP``."""

    __slots__ = (
        "_context",
        "_coroutine",
        "_end",
        "_is_ahead",
        "_loop",
        "_on_pause",
        "_trap",
        "_waiting",
        "task",
    )

    task: "asyncio.Task[None]"
    """The task."""

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, None],
        name: str,
        on_pause: Callable[[], object],
    ) -> None:
        """`on_pause` is called after each step that the task makes by itself, but for the last."""
        self._coroutine = coroutine
        self._on_pause = on_pause
        self._loop = asyncio.get_running_loop()
        self._context: Context = copy_context()
        self._waiting: asyncio.Future[None] | None = None  # while the task waits for a step
        self._is_ahead = False  # a step was made that the task does not know yet
        self._trap: Any = None  # what that step waits for
        self._end: BaseException | None = None  # with what it has ended
        self.task = self._loop.create_task(self, name=name, context=self._context)

    def step(self) -> None:
        """Make the next step if the task waits for one, now or in the next pass of the loop."""
        waiting, self._waiting = self._waiting, None
        if waiting is None or waiting.done():
            return  # it runs, waits for something else, or is about to be cancelled
        task_of_trio = step_out()
        if task_of_trio is None:
            waiting.set_result(None)
            return
        loop, task = self._loop, self.task
        try:
            asyncio.tasks._enter_task(loop, task)  # noqa: SLF001  # documented, for kinds of tasks
        except RuntimeError:  # another task of asyncio makes its step
            step_in(task_of_trio)
            waiting.set_result(None)
            return
        try:
            self._trap = self._context.run(self._coroutine.send, None)
        except BaseException as end:  # raised again in the step of the task
            self._end, self._is_ahead = end, True
        else:
            self._is_ahead = self._trap is not NEXT_STEP
        finally:
            asyncio.tasks._leave_task(loop, task)  # noqa: SLF001  # as above
            step_in(task_of_trio)
        if not self._is_ahead:
            self._waiting = waiting
        elif not waiting.done():  # the step may have cancelled its own task
            waiting.set_result(None)

    # --- for the task

    def send(self, value: None, /) -> Any:
        if self._is_ahead:
            self._is_ahead = False
            if self._end is not None:
                raise self._end
            return self._trap
        trap = self._wait(self._coroutine.send(value))
        self._on_pause()
        return trap

    def throw(self, *error: Any) -> Any:
        self._waiting = None
        if self._is_ahead:
            self._is_ahead = False
            if self._end is not None:
                raise self._end
        trap = self._wait(self._coroutine.throw(*error))
        self._on_pause()
        return trap

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Any:
        return self._coroutine.__await__()

    def _wait(self, trap: Any) -> Any:
        if trap is not NEXT_STEP:
            return trap
        waiting = self._waiting = self._loop.create_future()
        # The object that a task yields for ``await waiting``.
        return next(waiting.__await__())


class _NextStep:
    """The object that a coroutine yields to wait for the next step."""

    def __await__(self) -> Iterator["_NextStep"]:
        # A generator would be an object and a frame more in each step.
        return iter((self,))


NEXT_STEP: Final[Any] = _NextStep()
"""Await it to wait for the next `Stepped.step`, in the coroutine that it runs."""
