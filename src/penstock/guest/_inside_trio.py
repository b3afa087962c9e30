"""The private names of trio that a guest run uses. trio has no public ones for these.

Without them, in a future release of trio, the guest run waits in a thread of trio, and a task of
asyncio makes its first step in its own loop: slower, and as right.
"""

from typing import Any, Final

import outcome
import trio


def _run_module() -> Any:
    return getattr(getattr(trio, "_core", None), "_run", None)


def can_watch() -> bool:
    """Return whether another loop can wait for a guest run: trio has a selector that is a file, as
    it has not on Windows, and tells what it has taken from it.
    """
    run = _run_module()
    manager = getattr(run, "TheIOManager", None)
    return hasattr(getattr(run, "GuestState", None), "unrolled_run_next_send") and (
        hasattr(manager, "_epoll") or hasattr(manager, "_kqueue")
    )


def selector_file() -> int:
    """Return the file of the selector of the run of trio in this thread."""
    manager: Any = _run_module().GLOBAL_RUN_CONTEXT.runner.io_manager
    selector: Any = getattr(manager, "_epoll", None) or manager._kqueue  # noqa: SLF001  # see above
    return int(selector.fileno())


def has_events(make_pass: Any) -> bool:
    """Return whether the pass has events for tasks, which nothing will announce again."""
    taken: Any = make_pass.__self__.unrolled_run_next_send
    return not isinstance(taken, outcome.Value) or bool(taken.value)


def can_step_out() -> bool:
    """Return whether `step_out` works here: a task of trio runs, in a run that is the guest of a
    loop. Where trio hosts the loop, as trio-asyncio does, its tasks are not inside of the loop.
    """
    return hasattr(_CONTEXT, "task") and getattr(_CONTEXT.runner, "is_guest", False)


def step_out() -> Any:
    """Let plain code inside a task of trio run as if it ran outside: a call of trio that needs a
    task fails there, and does not change this one. Return what `step_in` takes.
    """
    task = _CONTEXT.task
    del _CONTEXT.task
    return task


def step_in(task: Any) -> None:
    """Go on in the task."""
    _CONTEXT.task = task


_CONTEXT: Final[Any] = getattr(_run_module(), "GLOBAL_RUN_CONTEXT", None)
