"""The private names of trio that a guest run uses. trio has no public ones for these.

Without them, in a future release of trio, the guest run waits in a thread of trio, and a task of
asyncio makes its first step in its own loop: slower, and as right.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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
    """Return whether `stepped_out` works here."""
    return hasattr(getattr(_run_module(), "GLOBAL_RUN_CONTEXT", None), "task")


@contextmanager
def stepped_out() -> Iterator[None]:
    """Run plain code inside a task of trio as if it ran outside: a call of trio that needs a task
    fails there, and does not change this one.
    """
    context: Any = _run_module().GLOBAL_RUN_CONTEXT
    task = context.task
    del context.task
    try:
        yield
    finally:
        context.task = task
