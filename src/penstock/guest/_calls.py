"""The two calls that cross between the loops: `in_trio` and `in_asyncio`.

Rules of this file:

* A task belongs to one loop for its whole life. The caller waits for a new task of the other loop,
  which has a copy of its context variables.
* A caller that is cancelled cancels that task, and goes on when it has ended. A task of asyncio
  that has not ended `CLEANUP_SECONDS` after its cancel is left alone, and the caller gets a
  `CleanupTimeout`.
* A loop that ends cancels all of its tasks at once: those of calls, and those that wait for trio.
  That does not count as a failure of a call. Its caller is about to be cancelled, and waits for
  that.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import outcome
import trio

from penstock.api import CleanupTimeout, PublisherFailed
from penstock.core import CLEANUP_SECONDS, WOKEN, name_of
from penstock.guest._begin_task import begin_task
from penstock.guest._guest_run import GuestUse

T = TypeVar("T")


async def in_trio(function: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Call ``function(*args)``, an async function of trio, from a task of asyncio, and return what
    it returns.

    It runs in a task of trio in the same thread, with a copy of the context variables of this task.
    If this task is cancelled, so is that one, and this call ends when it has ended. trio runs as a
    guest of the loop for as long as this call takes, and as long as a block of `serve` is open.
    """
    async with GuestUse() as run:
        return await run.begin(function, *args).result()


async def in_asyncio(function: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Call ``function(*args)``, an async function of asyncio, from a task of trio that is a guest
    of asyncio, and return what it returns. May checkpoint.

    It runs in a task of asyncio in the same thread, with a copy of the context variables of this
    task. If this task is cancelled, so is that one, and this call ends when it has ended. It raises
    `CleanupTimeout` if that takes more than 5 seconds: the task of asyncio runs on then.
    """
    call: AsyncioCall[T] = AsyncioCall(function, args, {})
    # Most functions never wait, and their task has ended before this.
    return call.result() if call.is_over else await call.wait()


class AsyncioCall(Generic[T]):
    """A call that runs in a task of asyncio, for a task of trio that waits for it."""

    __slots__ = (
        "_caller",
        "_error",
        "_function",
        "_raise_cancel",
        "_task",
        "_timer",
        "_value",
        "is_over",
    )

    def __init__(
        self, function: Callable[..., Awaitable[T]], args: tuple[Any, ...], options: dict[str, Any]
    ) -> None:
        self._function = function
        self._value: T
        self._error: BaseException | None = None
        self.is_over: bool = False
        """Whether there is a result."""
        self._caller: trio.lowlevel.Task | None = None  # while it waits
        self._raise_cancel: Callable[[], Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task = begin_task(self._run(args, options), "penstock call")

    def result(self) -> T:
        """Return what the function has returned, or raise what it has raised. Once."""
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
            return self._value
        finally:
            del error  # its traceback refers to this frame

    async def wait(self) -> T:
        """Wait in a task of trio until the call has ended, and return what it has returned."""
        self._caller = trio.lowlevel.current_task()
        # For a task that is cancelled before its first step.
        self._task.add_done_callback(self._on_done)
        await trio.lowlevel.wait_task_rescheduled(self._on_cancel)
        return self.result()

    # --- inside

    async def _run(self, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        try:
            self._value = await self._function(*args, **options)
        except Exception as error:  # boundary: the code of the program; its caller gets it
            self._tell(explained(error, name_of(self._function)))
        else:
            self._tell()

    def _on_done(self, task: "asyncio.Task[None]") -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self.is_over:
            return
        if self._raise_cancel is not None:
            self._tell(outcome.capture(self._raise_cancel).error)
        else:
            ended = "CancelledError" if task.cancelled() else type(task.exception()).__name__
            error = PublisherFailed(
                f"{name_of(self._function)} ended with {ended}, and no one had cancelled it"
            )
            loop = task.get_loop()
            if task.cancelled() and is_ending(loop):
                self._timer = loop.call_later(CLEANUP_SECONDS, self._tell, error)
            else:
                self._tell(error)

    def _on_cancel(self, raise_cancel: Callable[[], Any]) -> trio.lowlevel.Abort:
        if self._task.done():  # the loop ends
            if self._timer is not None:
                self._timer.cancel()
            return trio.lowlevel.Abort.SUCCEEDED
        self._raise_cancel = raise_cancel
        self._task.cancel()
        self._timer = asyncio.get_running_loop().call_later(CLEANUP_SECONDS, self._give_up)
        return trio.lowlevel.Abort.FAILED  # the caller goes on when the task has ended

    def _give_up(self) -> None:
        self._tell(runs_on(name_of(self._function), CLEANUP_SECONDS))

    def _tell(self, error: BaseException | None = None) -> None:
        if not self.is_over:
            self.is_over, self._error = True, error
            if self._caller is not None:
                trio.lowlevel.reschedule(self._caller, WOKEN)


def is_ending(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether each task of `loop` is being cancelled, as at the end of `asyncio.run`."""
    return all(task.cancelling() for task in asyncio.all_tasks(loop))


def runs_on(label: str, seconds: float) -> CleanupTimeout:
    """Return the error for a task of asyncio that does not end after its cancel."""
    return CleanupTimeout(
        f"the task of {label} was cancelled, and has not ended within {seconds:g} s. It runs on, "
        "because nothing can stop a task of asyncio. Let CancelledError pass in it, and keep its "
        "`finally` short"
    )


def explained(error: BaseException, label: str) -> Exception:
    """Return the error for the task of trio that waits. It says what to do about a call of the
    other loop.
    """
    if not isinstance(error, Exception):
        return PublisherFailed(f"{label} ended with {type(error).__name__}")
    if isinstance(error, RuntimeError) and (
        "Task got bad yield" in str(error) or "must be called from async context" in str(error)
    ):
        error.add_note(
            f"{label} runs on asyncio, and has called an async function of trio. Await functions "
            "of asyncio there, or cross with penstock.aio.in_trio"
        )
    return error
