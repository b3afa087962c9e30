"""Begins a task of asyncio inside a task of trio, and makes its first step there.

Why: most functions never wait, and then neither loop spends a pass on them. From Python 3.12 on
asyncio does this itself. Before that, a task gives its first step to `call_soon` of its loop, and
`_begin_and_step` takes the step there.
"""

import asyncio
import sys
from collections.abc import Coroutine
from contextvars import copy_context
from typing import Any

from penstock.guest._inside_trio import step_in, step_out


def begin_task(coroutine: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
    """Begin a task for `coroutine`, which has a copy of the context variables of the caller."""
    loop = asyncio.get_running_loop()
    task_of_trio = step_out()
    if task_of_trio is None:
        return loop.create_task(coroutine, name=name)
    try:
        if sys.version_info >= (3, 12):
            return asyncio.Task(coroutine, loop=loop, name=name, eager_start=True)
        return _begin_and_step(coroutine, loop, name)
    finally:
        step_in(task_of_trio)


def _begin_and_step(
    coroutine: Coroutine[Any, Any, None], loop: Any, name: str
) -> "asyncio.Task[None]":
    call_soon, context = loop.call_soon, copy_context()
    steps: list[Any] = []

    def take_step(callback: Any, *args: Any, **options: Any) -> Any:
        if options.get("context") is context:
            return steps.append(callback)
        # The collector may run in here, and a finalizer may call the loop.
        return call_soon(callback, *args, **options)

    try:
        loop.call_soon = take_step
    except AttributeError:  # a loop of another kind, whose methods cannot be hidden
        return asyncio.Task(coroutine, loop=loop, name=name, context=context)
    try:
        task = asyncio.Task(coroutine, loop=loop, name=name, context=context)
    finally:
        owner: Any = getattr(call_soon, "__self__", None)
        if owner is loop:
            del loop.call_soon
        else:  # the program has hidden the method of the loop before
            loop.call_soon = call_soon
    context.run(steps[0])
    return task
