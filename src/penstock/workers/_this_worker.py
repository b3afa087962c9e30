"""The facts of a worker for the code of its service: `this_worker`."""

from collections.abc import Awaitable, Callable
from typing import Final

import trio


class Worker:
    """The process that serves, as one of several. `this_worker` returns it."""

    def __init__(self, number: int = 0, count: int = 1) -> None:
        """A program that does not run in workers is the only one of its kind."""
        self.number: int = number
        """From 0 to `count` - 1. The process that takes the place of a worker has its number, and
        so has that of the next version: for a while both of them run.
        """
        self.count: int = count
        """The number of workers."""
        self._turn: Turn = Turn(is_own=True)

    async def run_alone(self, function: Callable[[], Awaitable[object]]) -> None:
        """Run an async function in one worker at a time: call this in each of them. Checkpoints.

        It waits until no other worker runs one. When the function returns, this returns too, and
        the turn goes to another worker that waits. If a worker dies, another one has its turn at
        once. When the next version of the program serves, or this worker drains, the function is
        cancelled, and this waits until it is cancelled too: the next version goes on. What only one
        process may do belongs into the function: write a `DiskLog`, read from a queue, publish the
        ticks of a clock. A server in one process runs the function at once.
        """
        turn = self._turn
        await turn.wait()
        try:
            with turn.scope():
                await function()
        finally:
            turn.end()
        if turn.has_ended:
            # The streams of this worker may go on for some time, and need what stands around this
            # call.
            await trio.sleep_forever()

    def __repr__(self) -> str:
        return f"<worker {self.number} of {self.count}>"


class Turn:
    """The turn of this worker to run alone."""

    def __init__(
        self,
        *,
        is_own: bool = False,
        ask: Callable[[], object] = lambda: None,
        give_back: Callable[[], object] = lambda: None,
    ) -> None:
        """`is_own`: there are no other processes. `ask` tells the parent that this worker waits,
        and `give_back` that it has had its turn.
        """
        self._is_own = is_own
        self._ask = ask
        self._give_back = give_back
        # Those that wait, and run, in this process: one after another.
        self._lock = trio.Lock()
        self._given = trio.Event()
        self._running: trio.CancelScope | None = None
        self.has_ended: bool = False
        """No function runs in this process any more."""

    async def wait(self) -> None:
        """Wait for the turn. Checkpoints."""
        await self._lock.acquire()
        if self._is_own or self.has_ended:
            return
        self._given = trio.Event()
        self._ask()
        try:
            await self._given.wait()
        except BaseException:
            # It may have been given in the same pass.
            self._give_back()
            self._lock.release()
            raise

    def give(self) -> None:
        """Let the waiting function run."""
        self._given.set()

    def scope(self) -> trio.CancelScope:
        """Return the scope of the function that runs."""
        self._running = trio.CancelScope()
        if self.has_ended:
            self._running.cancel()
        return self._running

    def end(self) -> None:
        """The function has ended."""
        self._running = None
        if not self._is_own:
            self._give_back()
        self._lock.release()

    def end_for_good(self) -> None:
        """End the function: the worker drains, and the turn is for another one."""
        self.has_ended = True
        self._given.set()
        if self._running is not None:
            self._running.cancel()


_workers: Final[list[Worker]] = []


def this_worker() -> Worker:
    """Return the worker that this process is. A process that was not started by `serve_workers` is
    the only one: its number is 0, and the count is 1.

    It can be called while the module of the service is imported.
    """
    if not _workers:
        _workers.append(Worker())
    return _workers[0]


def set_worker(number: int, count: int, turn: Turn) -> None:
    """Note which worker this process is, before the service is imported."""
    worker = Worker(number, count)
    worker._turn = turn  # noqa: SLF001 (the same file)
    _workers[:] = [worker]
