"""A scope owns the tasks of one subscription: it starts them, cancels them, and waits until they
have ended.

`Publisher.subscribe` is a plain call, but generators, timers and retries need tasks, and a pipe is
built before there is a nursery.
So a source is attached together with a scope, and the code that opens the stream provides it: the
block of `subscribe()`, or the nursery given to `source.publisher(nursery)`.

Rules of this file:

* A task of a scope never raises an `Exception` into the nursery. A failure that no subscriber can
  receive goes to `report_failure`.
* A task never raises a `Cancelled` that began inside the task. Only a cancellation from outside, or
  an interrupt, reaches the nursery.
* Each task has its own cancel scope, so that one stream can stop while other streams in the same
  nursery run on.
* `cancel` stops each task in the task's own way.
  A generator that is suspended at a `yield` must be closed and not cancelled.
* A scope keeps no reference to a task that has ended.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine
from math import inf
from typing import Any, Final, Protocol, TypeAlias, cast

import trio

from penstock.api import NotAvailable, PublicError, UsageError, text_of
from penstock.core._arguments import check_function, check_seconds
from penstock.core._limited_log import limited_log, place_of
from penstock.core._source_memory import SourceMemory

Report: TypeAlias = Callable[[Exception], None]
"""A hook that receives faults that no subscriber can receive any more. It must return; if it
raises, that exception is logged.
"""

CLEANUP_SECONDS: Final = 5.0
"""Seconds that a generator's own cleanup may take:
enough for a goodbye over a network, short for a person who waits.
"""

LOG: Final = "penstock"
"""The name of the logger for faults."""


def log_violation(error: Exception) -> None:
    """The default `on_violation` hook: a line and the traceback, in the logger ``penstock``, at a
    bounded rate (`LimitedLog`).

    A `PublicError` or `NotAvailable` is an answer and no fault:
    it is a line of the level ``INFO`` without a traceback.
    """
    # A peer can make a faulty publisher raise as often as it likes.
    if isinstance(error, PublicError | NotAvailable):
        limited_log(LOG).write(
            logging.INFO, place_of(error), "%s: %s", type(error).__name__, text_of(error)
        )
    else:
        limited_log(LOG).write(logging.ERROR, place_of(error), "%s", text_of(error), error=error)


def has_closed(nursery: trio.Nursery) -> bool:
    """Return whether no task can start in `nursery` any more."""
    # A task lists the nurseries whose blocks it has not left yet.
    return nursery not in nursery.parent_task.child_nurseries


class Runner(Protocol):
    """An object that runs tasks, such as a nursery."""

    def start_soon(
        self, function: Callable[..., Coroutine[Any, Any, None]], /, *args: Any, name: str
    ) -> None:
        """Run an async function in a new task. Raises RuntimeError if the runner has closed."""


class Scope:
    """The owner of the tasks of one subscription."""

    __slots__ = (
        "_drained",
        "_nursery",
        "_on_drained",
        "_on_failure",
        "_tasks",
        "begun",
        "cleanup_timeout",
        "max_hold_up",
        "memory",
        "on_violation",
        "reader",
    )

    def __init__(
        self,
        nursery: Runner | trio.Nursery,
        *,
        on_violation: Report = log_violation,
        on_failure: Report | None = None,
        cleanup_timeout: float = CLEANUP_SECONDS,
        on_drained: Callable[[], None] | None = None,
        max_hold_up: float = inf,
        memory: SourceMemory | None = None,
    ) -> None:
        """`on_drained` is called each time that the last running task has ended.

        `max_hold_up` is how many seconds a publisher of many subscribers may wait for this one:
        see `Topic`. `memory` counts what sources hold for the peer that the stream belongs to.
        """
        self._nursery = nursery
        self._on_drained = on_drained
        self.on_violation: Report = on_violation
        """The hook for a foreign object that broke a rule and was disconnected.
        Give it to `report`.
        """
        self._on_failure = on_failure or on_violation
        # Each running task, or scope inside this one that has running tasks, and the function
        # that stops it.
        self._tasks: dict[trio.CancelScope | ChildScope, Callable[[], None]] = {}
        # Made by the first `wait_stopped`.
        # Most scopes belong to `publisher(nursery)`, where nothing waits for them.
        self._drained: trio.lowlevel.ParkingLot | None = None
        self.cleanup_timeout: float = cleanup_timeout
        self.max_hold_up: float = max_hold_up
        self.memory: SourceMemory | None = memory
        """Counts what sources hold for a peer; None in a stream that no peer reads."""
        self.reader: Any = None
        """The `Stream` at the end of the pipe, if there is one:
        sources of a network let it count their bytes.
        """
        self.begun: int = 0
        """How many tasks have been started, here or by a publisher that runs elsewhere.
        `take_until` sees by it whether elements may still come.
        """

    @property
    def running(self) -> int:
        """The number of tasks that have not ended yet."""
        return len(self._tasks)

    def spawn(
        self,
        work: Callable[[], Awaitable[None]],
        *,
        name: str,
        stop: Callable[[], None] | None = None,
    ) -> trio.CancelScope:
        """Start `work` as a task of this scope and return the cancel scope around it.

        `cancel` calls `stop` to end the task; by default it cancels the cancel scope.
        Raises UsageError if the nursery has closed:
        the subscription has outlived the nursery that was to run it.
        """
        cancel_scope = trio.CancelScope()
        # The task is entered into _tasks after start_soon(): if that raises, no task exists that
        # would remove it again. That is early enough, because start_soon() only schedules the task.
        try:
            self._nursery.start_soon(self._run, work, cancel_scope, name=name)
        except RuntimeError as closed:
            raise UsageError(
                f"{name} cannot start: the nursery that this publisher was bound to has closed. "
                "Keep that nursery open for as long as its subscribers live, or use `async with "
                "subscribe(...)`"
            ) from closed
        self._tasks[cancel_scope] = cancel_scope.cancel if stop is None else stop
        self.begun += 1
        return cancel_scope

    def cancel(self) -> None:
        """Stop every task of this scope. May be called any number of times."""
        # A copy: `stop` may end a subscription, and that may start another task of this scope.
        for stop in tuple(self._tasks.values()):
            stop()

    async def wait_stopped(self) -> None:
        """Return when no task of this scope runs any more. Checkpoints."""
        await trio.lowlevel.checkpoint()
        # A loop: between the wake-up and this task's next step, another task may have been started.
        while self._tasks:
            if self._drained is None:
                self._drained = trio.lowlevel.ParkingLot()
            await self._drained.park()

    def report_failure(self, error: Exception) -> None:
        """Pass on a failure that no subscriber can receive any more, such as one of cleanup."""
        report(self._on_failure, error)

    def report_failures(self, raised: BaseException) -> BaseException | None:
        """Report the failures in `raised`. Return the rest, which the nursery must get: an
        interrupt, or a cancellation from outside.
        """
        failures, rest = _split(raised, Exception)
        if failures is not None:
            self.report_failure(cast("Exception", failures))
        if rest is not None and trio.current_effective_deadline() > -inf:
            # No cancel scope around this task is cancelled. So this Cancelled belongs to a cancel
            # scope that the task itself exited in the wrong order, and would cancel tasks that have
            # nothing to do with it.
            rest = _split(rest, trio.Cancelled)[1]
        return rest

    def report_and_reraise(self, raised: BaseException) -> None:
        """Report the failures in `raised`, which is being handled. Raise the rest, if
        `report_failures` returns one.
        """
        rest = self.report_failures(raised)
        try:
            if rest is raised:
                raise rest
            if rest is not None:
                raise rest from None
        finally:
            # The traceback refers to this frame. Without this line both, and every element that the
            # task held, would live until the next run of the garbage collector.
            del raised, rest

    async def _run(
        self, work: Callable[[], Awaitable[None]], cancel_scope: trio.CancelScope
    ) -> None:
        try:
            with cancel_scope:  # catches the Cancelled of `cancel`; any other exception goes on
                await work()
        except BaseException as raised:
            # report_and_reraise raises interrupts and cancellations from outside again.
            self.report_and_reraise(raised)
        finally:
            # It is forgotten also if an interrupt is raised: wait_stopped() must not wait forever.
            self._forget(cancel_scope)

    def _forget(self, ended: "trio.CancelScope | ChildScope") -> None:
        del self._tasks[ended]
        if not self._tasks:
            if self._drained is not None:
                self._drained.unpark_all()
            if self._on_drained is not None:
                self._on_drained()


class ChildScope(Scope):
    """A scope inside another one, for the tasks of one stream of many:
    it tells when these have stopped.

    `cancel` of the outer scope cancels this one, which stops each task in its own way. The tasks
    run in the nursery of the outer scope:
    if each were a task of the outer scope as well, it would have a second coroutine and a second
    cancel scope, which are 1.2 kB a stream.
    """

    __slots__ = ("_outer",)

    def __init__(
        self,
        outer: Scope,
        *,
        on_violation: Report,
        on_drained: Callable[[], None],
        memory: SourceMemory | None = None,
    ) -> None:
        super().__init__(
            outer._nursery,  # noqa: SLF001  # the same class
            on_violation=on_violation,
            cleanup_timeout=outer.cleanup_timeout,
            on_drained=on_drained,
            max_hold_up=outer.max_hold_up,
            memory=memory or outer.memory,
        )
        self._outer = outer

    def spawn(
        self,
        work: Callable[[], Awaitable[None]],
        *,
        name: str,
        stop: Callable[[], None] | None = None,
    ) -> trio.CancelScope:
        cancel_scope = super().spawn(work, name=name, stop=stop)
        self._outer._tasks[self] = self.cancel  # noqa: SLF001  # the same class
        self._outer.begun += 1
        return cancel_scope

    def _forget(self, ended: "trio.CancelScope | ChildScope") -> None:
        try:
            super()._forget(ended)
        finally:
            # on_drained belongs to the caller, and wait_stopped() of the outer scope must not wait
            # forever.
            if not self._tasks:
                self._outer._forget(self)  # noqa: SLF001  # the same class


def _split(
    raised: BaseException, kind: type[BaseException]
) -> tuple[BaseException | None, BaseException | None]:
    """Return the part of `raised` that is of this kind, and the rest;
    `raised` may be a group or a single exception.
    """
    if isinstance(raised, BaseExceptionGroup):
        return raised.split(kind)
    return (raised, None) if isinstance(raised, kind) else (None, raised)


def report(hook: Report, error: Exception) -> None:
    """Call `hook` with `error`. If the hook raises, log its exception."""
    try:
        hook(error)
    except Exception as raised:
        # boundary: the user's hook. An error in it must not end the stream that reports to it.
        what = "the on_violation hook raised while it was told of"
        limited_log(LOG).write(
            logging.ERROR, f"{what} {place_of(error)}", "%s: %s", what, text_of(error), error=raised
        )


def check_hook(on_violation: Report) -> Report:
    """Return `on_violation` if it can be called; else raise UsageError."""
    return check_function(on_violation, "on_violation", "one argument, the exception to report")


def check_cleanup_timeout(seconds: float) -> float:
    """Return `seconds` if it can be a deadline for cleanup; else raise UsageError."""
    return check_seconds(seconds, "cleanup_timeout", zero=True)
