"""The private names of trio that a guest run uses. trio has no public ones for these.

Without them, in a future release of trio, the guest run waits in a thread of trio, and a task of
asyncio makes its first step in its own loop: slower, and as right.
"""

from typing import Any, Final

import outcome
import trio
from sniffio import thread_local


def _run_module() -> Any:
    return getattr(getattr(trio, "_core", None), "_run", None)


def can_watch() -> bool:
    """Return whether another loop can wait for a guest run: trio has a selector that is a file, as
    it has not on Windows, and tells what it has taken from it.
    """
    run = _run_module()
    manager = getattr(run, "TheIOManager", None)
    return (
        hasattr(getattr(run, "GuestState", None), "unrolled_run_next_send")
        and hasattr(getattr(run, "Runner", None), "guest_tick_scheduled")
        and (hasattr(manager, "_epoll") or hasattr(manager, "_kqueue"))
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


def hold(make_pass: Any) -> None:
    """Note that the pass is not made yet. trio makes its selector ready then when a plain call
    makes a task runnable or changes the next deadline.
    """
    make_pass.__self__.runner.guest_tick_scheduled = False


def release(make_pass: Any) -> None:
    """Note that the pass is made now, and let it have the events that are there."""
    state: Any = make_pass.__self__
    state.runner.guest_tick_scheduled = True
    # Else it would not know of them: it would do nothing, and look for events at its end.
    state.unrolled_run_next_send = outcome.capture(state.runner.io_manager.get_events, 0)


def step_out() -> Any:
    """Let plain code inside a task of trio run as if it ran outside: a call of trio that needs a
    task fails there, and does not change this one. Return what `step_in` takes; None if nothing
    was done: no task of trio runs here, or its run is not the guest of a loop. Where trio hosts the
    loop, as trio-asyncio does, its tasks are not inside of the loop.
    """
    task = getattr(_CONTEXT, "task", None)
    if task is None or not _CONTEXT.runner.is_guest:
        return None
    del _CONTEXT.task
    # Libraries for several loops look here for the loop that they run in.
    thread_local.name = "asyncio"
    return task


def step_in(task: Any) -> None:
    """Go on in the task."""
    thread_local.name = "trio"
    _CONTEXT.task = task


_CONTEXT: Final[Any] = getattr(_run_module(), "GLOBAL_RUN_CONTEXT", None)
