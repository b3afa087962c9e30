"""The calls to a session other than its DataFrames. A session of Spark Connect has no SparkContext,
and other calls in its place.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Final

LOOK: Final = 0.5
"""Seconds between two looks at the progress."""

ASSUMED: Final = 16
"""Tasks at once that a session is taken to have if it does not tell."""

Show = Callable[[int, int], None]
"""Called with the number of tasks that have ended, and the number of all tasks."""


def parallelism(session: Any) -> int:
    """Return how many tasks the session runs at once."""
    context = _context(session)
    return ASSUMED if context is None else int(context.defaultParallelism)


class TaggedJobs:
    """The jobs that begin in `running`: `cancel` ends them, also from another thread."""

    def __init__(self, session: Any, tag: str) -> None:
        context = _context(session)
        # The context and not the session: a tag of a classic session does not reach the jobs of
        # toLocalIterator.
        self._calls = (
            (session.addTag, session.removeTag, session.interruptTag)
            if context is None
            else (context.addJobTag, context.removeJobTag, context.cancelJobsWithTag)
        )
        self._tag = tag

    @contextmanager
    def running(self) -> Iterator[None]:
        """Give the tag to the jobs of this thread."""
        add, remove, _ = self._calls
        add(self._tag)
        try:
            yield
        # Tags belong to a thread, and trio's threads are used again for other work.
        finally:
            remove(self._tag)

    def cancel(self) -> None:
        """Cancel the jobs that run now."""
        self._calls[2](self._tag)


@contextmanager
def settings(session: Any, values: Mapping[str, str]) -> Iterator[None]:
    """Give the session these settings in the block."""
    before = {name: session.conf.get(name, None) for name in values}
    for name, value in values.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value)


@contextmanager
def progress(session: Any, show: Show) -> Iterator[None]:
    """Call `show` while the jobs of the block run."""
    if _context(session) is None:
        handler = _handler(show)
        session.registerProgressHandler(handler)
        try:
            yield
        finally:
            session.removeProgressHandler(handler)
        return
    done = Event()
    watching = Thread(
        target=_watch, args=(session, show, done), name="progress of the audit", daemon=True
    )
    watching.start()
    try:
        yield
    finally:
        done.set()
        watching.join()


def _context(session: Any) -> Any:
    """Return the SparkContext, or None for Spark Connect, whose attribute raises."""
    return getattr(session, "sparkContext", None)


def _handler(show: Show) -> Callable[..., None]:
    # The other arguments of Spark are the tasks that run, the operation, and whether it is done.
    def handle(stages: Any, **_: Any) -> None:
        found = [*(stages or ())]
        if found:
            show(
                sum(stage.num_completed_tasks for stage in found),
                sum(stage.num_tasks for stage in found),
            )

    return handle


def _watch(session: Any, show: Show, done: Event) -> None:
    tracker = session.sparkContext.statusTracker()
    while not done.wait(LOOK):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        if known:
            show(
                sum(stage.numCompletedTasks for stage in known),
                sum(stage.numTasks for stage in known),
            )
