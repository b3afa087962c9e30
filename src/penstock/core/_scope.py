"""A scope owns everything that runs behind a subscription: it can spawn, be cancelled, and be awaited until all has stopped.

`Publisher.subscribe` is a plain call, yet generators, timers and retries need tasks, and a pipe is built where no nursery exists.
So a blueprint is attached *with* a scope, and whoever opens the stream says which one: the block of `subscribe()`, or the nursery
that was given to `source.publisher(nursery)`.

Rules of this file:

* A task of ours never raises an `Exception` into the nursery: what goes wrong after nobody listens any more goes to `fail`.
  Nor does it raise a `Cancelled` that came from inside the task; only one from outside, or an interrupt, is the nursery's affair.
* Each task has its own cancel scope, so that one stream can stop while its neighbours in the same nursery run on.
* `cancel` asks each task to stop in the task's own way, because a generator that rests at a `yield` is closed and not cancelled.
* A scope keeps no list of what has ended.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine
from math import inf
from typing import Any, Final, Protocol, TypeAlias, cast

import trio

from penstock.api import RuleViolation, UsageError
from penstock.core._arguments import check_function, check_seconds

Report: TypeAlias = Callable[[Exception], None]
"""What is told of a fault when no subscriber is left to hear it. It must return; what it raises is logged."""

CLEANUP_SECONDS: Final = 5.0
"""How long a generator's own cleanup may take: enough for a goodbye over a network, little enough for a person who waits."""

_log = logging.getLogger("penstock")


def log_violation(error: Exception) -> None:
    """The default `on_violation` hook: one line and the traceback, in the logger ``penstock``."""
    _log.error("%s", error, exc_info=error)


class Runner(Protocol):
    """What runs tasks: a nursery is one."""

    def start_soon(self, function: Callable[..., Coroutine[Any, Any, None]], /, *args: Any, name: str) -> None:
        """Run an async function in a task, soon. Raises RuntimeError where it has closed."""


class Scope:
    """The owner of the tasks behind one subscription."""

    __slots__ = ("_drained", "_nursery", "_on_drained", "_on_failure", "_on_violation", "_tasks", "cleanup_timeout")

    def __init__(
        self,
        nursery: Runner | trio.Nursery,
        *,
        on_violation: Report = log_violation,
        on_failure: Report | None = None,
        cleanup_timeout: float = CLEANUP_SECONDS,
        on_drained: Callable[[], None] | None = None,
    ) -> None:
        """`on_drained` is called each time that the last of the tasks has ended."""
        self._nursery = nursery
        self._on_drained = on_drained
        self._on_violation = on_violation
        self._on_failure = on_failure or on_violation
        self._tasks: dict[trio.CancelScope, Callable[[], None]] = {}  # each running task, and how to stop it
        self._drained: trio.lowlevel.ParkingLot | None = None
        self.cleanup_timeout: float = cleanup_timeout

    @property
    def running(self) -> int:
        """How many tasks have not ended yet."""
        return len(self._tasks)

    def spawn(self, work: Callable[[], Awaitable[None]], *, name: str, stop: Callable[[], None] | None = None) -> trio.CancelScope:
        """Start `work` as a task of this scope and return the cancel scope that ends it.

        `stop` is how `cancel` ends it, where there is a gentler way than to cancel the cancel scope.
        Raises UsageError where the nursery has closed: the subscription has outlived what was to run it.
        """
        cancel_scope = trio.CancelScope()
        try:
            self._nursery.start_soon(self._run, work, cancel_scope, name=name)
        except RuntimeError as closed:
            raise UsageError(
                f"{name} cannot start: the nursery that this publisher was bound to has closed. "
                "Keep that nursery open for as long as its subscribers live, or use `async with subscribe(...)`"
            ) from closed
        self._tasks[cancel_scope] = cancel_scope.cancel if stop is None else stop
        return cancel_scope

    def cancel(self) -> None:
        """Stop every task of this scope. It may be called any number of times."""
        for stop in tuple(self._tasks.values()):
            stop()

    async def wait_stopped(self) -> None:
        """Return when no task of this scope is left. Checkpoints."""
        await trio.lowlevel.checkpoint()
        while self._tasks:
            if self._drained is None:
                self._drained = trio.lowlevel.ParkingLot()
            await self._drained.park()

    def violation(self, error: RuleViolation) -> None:
        """Tell the `on_violation` hook that an object of somebody's broke a rule and was cut off."""
        tell(self._on_violation, error)

    def fail(self, error: Exception) -> None:
        """Tell of a failure after which no subscriber listens any more: of cleanup, mostly."""
        tell(self._on_failure, error)

    def sift(self, raised: BaseException) -> BaseException | None:
        """Tell of the failures in `raised`; return what is left, which is the nursery's affair: an interrupt, or its own cancellation."""
        failures, rest = _split(raised, Exception)
        if failures is not None:
            self.fail(cast("Exception", failures))
        if rest is not None and trio.current_effective_deadline() > -inf:
            # Nobody outside is cancelled: a Cancelled here belongs to a cancel scope that this task itself has left in disorder.
            rest = _split(rest, trio.Cancelled)[1]
        return rest

    def pass_on(self, raised: BaseException) -> None:
        """Tell of the failures in `raised`, which is being handled; raise what is left, as `sift` finds it."""
        rest = self.sift(raised)
        try:
            if rest is raised:
                raise rest
            if rest is not None:
                raise rest from None
        finally:
            del raised, rest  # they refer to this frame, and through it to all that the task held

    async def _run(self, work: Callable[[], Awaitable[None]], cancel_scope: trio.CancelScope) -> None:
        try:
            with cancel_scope:
                await work()
        except BaseException as raised:  # sifted: an interrupt and a cancellation from outside go on
            self.pass_on(raised)
        finally:
            del self._tasks[cancel_scope]
            if not self._tasks:
                if self._drained is not None:
                    self._drained.unpark_all()
                if self._on_drained is not None:
                    self._on_drained()


def _split(raised: BaseException, kind: type[BaseException]) -> tuple[BaseException | None, BaseException | None]:
    """Return what of `raised` is of a kind, and what is not; it may be a group or an exception by itself."""
    if isinstance(raised, BaseExceptionGroup):
        return raised.split(kind)
    return (raised, None) if isinstance(raised, kind) else (None, raised)


def tell(hook: Report, error: Exception) -> None:
    """Call `hook` about `error`; what the hook itself raises is logged."""
    try:
        hook(error)
    except Exception:  # boundary: a hook of the user's; its own fault must not take down the stream that reports to it
        _log.exception("the on_violation hook raised while it was told of: %s", error)


def check_hook(on_violation: Report) -> Report:
    """Return `on_violation` where it can be called; else raise UsageError."""
    return check_function(on_violation, "on_violation", "one argument, the exception to tell of")


def check_cleanup_timeout(seconds: float) -> float:
    """Return `seconds` where cleanup can have it for its deadline; else raise UsageError."""
    return check_seconds(seconds, "cleanup_timeout", zero=True)
