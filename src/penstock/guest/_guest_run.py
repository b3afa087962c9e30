"""The run of trio that is a guest of a loop of asyncio, in the same thread.

Rules of this file:

* A loop has one guest run at a time. It begins with its first user, and has ended when its last
  user has left.
* If trio ends with an error, each task of asyncio that waits for one of its tasks gets that error.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final, Generic, TypeVar

import outcome
import trio

from penstock.api import PenstockError, UsageError
from penstock.guest._inside_trio import can_watch, selector_file
from penstock.guest._loop_waits import LoopWaits

T = TypeVar("T")


class GuestUse(AbstractAsyncContextManager["GuestRun"]):
    """The block of one user of the guest run of this loop."""

    def __init__(self) -> None:
        self._run: GuestRun

    async def __aenter__(self) -> "GuestRun":
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise UsageError(
                "penstock.aio needs asyncio, and no loop of it runs here; a program on trio has "
                "the same in penstock: connect(), subscribe(), serve()"
            ) from None
        while (run := _RUNS.get(loop)) is not None and run.is_ending:
            await wait_for(run.over)
        if run is None:
            run = GuestRun(loop)
            run.start()
            _RUNS[loop] = run
        run.users += 1
        self._run = run
        return run

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        run = self._run
        run.users -= 1
        if not run.users:
            run.end()
            # The loop may end after this block, and trio would be left in the middle.
            await wait_for(run.over)


class GuestRun:
    """The run of trio in one loop of asyncio."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._stop: trio.Event
        self._waits: LoopWaits | None = None  # None: trio waits in its thread
        self._waiting: set[asyncio.Future[Any]] = set()
        self.users: int = 0
        """How many blocks use it."""
        self.is_ending: bool = False
        """Whether its last user has left."""
        self.over: asyncio.Future[None] = loop.create_future()
        """Done when it has ended."""

    def begin(self, function: Callable[..., Awaitable[T]], *args: Any) -> "TrioCall[T]":
        """Begin ``function(*args)`` in a task of trio, which has a copy of the context variables
        of this task of asyncio.
        """
        call: TrioCall[T] = TrioCall(self._loop.create_future(), self._waiting)
        trio.lowlevel.spawn_system_task(
            call.run,
            function,
            args,
            name=f"penstock guest {getattr(function, '__qualname__', function)}",
            context=contextvars.copy_context(),
        )
        return call

    def check_caller(self, call: str) -> None:
        """Raise UsageError if `call` does not come from the loop of this run, while trio runs."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = None  # a thread without a loop
        if loop is not self._loop:
            raise UsageError(
                f"{call} was called outside the event loop that serves; call it there. A thread "
                "writes asyncio.run_coroutine_threadsafe(…, loop), or "
                "loop.call_soon_threadsafe(…)"
            )
        if not trio.lowlevel.in_trio_run():
            raise UsageError(
                f"{call} was called after the block of penstock.aio.serve; call it inside"
            )

    def start(self) -> None:
        """Begin. Raises UsageError if this thread has a run of trio."""
        if trio.lowlevel.in_trio_run():
            raise UsageError(
                "penstock.aio runs trio as a guest of the loop of asyncio, and this thread has a "
                "run of trio already: that of trio.run(), of another guest, or of a loop that was "
                "closed before its blocks of penstock.aio were left. Use another thread, or leave "
                "the earlier block first"
            )
        waits = self._waits = LoopWaits(self._loop) if can_watch() else None
        trio.lowlevel.start_guest_run(
            self._main,
            run_sync_soon_threadsafe=self._loop.call_soon_threadsafe,
            run_sync_soon_not_threadsafe=(
                self._loop.call_soon if waits is None else waits.run_soon
            ),
            done_callback=self._on_done,
            # A loop of the main thread has that file descriptor.
            host_uses_signal_set_wakeup_fd=True,
            clock=None if waits is None else waits.clock,
        )
        if waits is not None:
            waits.watch(selector_file())
        self._stop = trio.Event()

    def end(self) -> None:
        """Let trio end, unless it has failed."""
        self.is_ending = True
        if not self.over.done():
            self._stop.set()

    # --- inside

    async def _main(self) -> None:
        await self._stop.wait()

    def _on_done(self, result: "outcome.Outcome[None]") -> None:
        self.is_ending = True
        del _RUNS[self._loop]
        if self._waits is not None:
            self._waits.close()
        error = result.error if isinstance(result, outcome.Error) else None
        # An interrupt belongs to the program that runs the loop. It comes before the errors.
        if error is not None and not isinstance(error, Exception | trio.Cancelled):
            self._loop.call_soon(_raise, error)
        for future in self._waiting:
            if error is None:
                future.cancel()
            else:
                future.set_exception(_stopped(error))
        self._waiting.clear()
        self.over.set_result(None)


class TrioCall(Generic[T]):
    """A call that runs in trio, for a task of asyncio that waits for it."""

    __slots__ = ("_waiting", "future", "scope")

    def __init__(self, future: "asyncio.Future[T]", waiting: "set[asyncio.Future[Any]]") -> None:
        self.future: asyncio.Future[T] = future
        """Has the outcome; cancelled if the task of trio was."""
        self.scope: trio.CancelScope = trio.CancelScope()
        """The cancel scope around the call."""
        self._waiting = waiting
        waiting.add(future)

    async def run(self, function: Callable[..., Awaitable[T]], args: tuple[Any, ...]) -> None:
        """Make the call. Runs in a task of trio, which raises no `Exception`."""
        result: outcome.Outcome[T] | None = None
        try:
            with self.scope:
                # Inside, so that a cancellation of the scope and one from outside differ.
                try:
                    result = outcome.Value(await function(*args))
                except BaseException as error:
                    # boundary: the code of the program; its caller gets what it raises
                    if _holds_cancelled(error):
                        raise
                    result = outcome.Error(error)
        finally:
            self._end(result)

    def _end(self, result: "outcome.Outcome[T] | None") -> None:
        self._waiting.discard(self.future)
        if self.future.done():
            return  # the run has ended with an error
        if result is None:
            self.future.cancel()
        elif isinstance(result, outcome.Error):
            self.future.set_exception(result.error)
        else:
            self.future.set_result(result.unwrap())

    async def result(self) -> T:
        """Wait until the call has ended, and return what it has returned. If this task is
        cancelled, so is the call.
        """
        await wait_for(self.future, self.scope.cancel)
        return self.future.result()


async def wait_for(
    future: "asyncio.Future[Any]", on_cancel: Callable[[], object] | None = None
) -> None:
    """Wait in a task of asyncio until `future` is done. A cancellation calls `on_cancel`, and is
    raised when the future is done.
    """
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait((future,))
        except asyncio.CancelledError as error:
            cancelled = error
            if on_cancel is not None:
                on_cancel()
    if cancelled is not None:
        if not future.cancelled():
            future.exception()  # taken, so that asyncio does not log it
        raise cancelled


def _holds_cancelled(error: BaseException) -> bool:
    return isinstance(error, trio.Cancelled) or (
        isinstance(error, BaseExceptionGroup) and error.subgroup(trio.Cancelled) is not None
    )


def _stopped(error: BaseException) -> PenstockError:
    stopped = PenstockError(f"the run of trio of this loop ended with {type(error).__name__}")
    stopped.__cause__ = error
    return stopped


def _raise(error: BaseException) -> None:
    raise error


_RUNS: Final[dict[asyncio.AbstractEventLoop, GuestRun]] = {}
"""The guest run of each loop that has one."""
