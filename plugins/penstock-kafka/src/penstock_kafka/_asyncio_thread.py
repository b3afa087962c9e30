"""A thread with a loop of asyncio, for a client library that needs one, and the way between its
tasks and those of trio.

Rules of this file:

* The thread calls trio with `run_sync_soon` only. If the run has ended, no task waits.
* A call that is cancelled in trio is cancelled in the loop, and is not waited for.
* `aclose` cancels all tasks of the loop, then runs `at_end` for at most a second, and joins the
  thread. In this order: a task that connects while connections are closed would leave one open.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

import trio

from penstock.api import LogError, UsageError

T = TypeVar("T")

LONGEST_END: Final = 1.0
"""Seconds: a broker that has stopped does not hold up the end."""


class AsyncioThread:
    """A loop of asyncio in another thread. Raises LogError if the program has no file for it."""

    def __init__(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        try:
            self._loop = asyncio.new_event_loop()
        except OSError as error:
            raise LogError(
                f"no loop of asyncio for the client of Kafka: {error}. Raise the limit on open "
                "files of this program (ulimit -n)"
            ) from error
        self._ended = trio.Event()
        # A daemon, because a program that raises out of trio.run() must be able to end.
        self._thread = threading.Thread(target=self._run, name="penstock kafka", daemon=True)
        self.at_end: Callable[[], Coroutine[Any, Any, None]] | None = None
        """Closes what the tasks have used."""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    async def call(self, function: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
        """Return what a coroutine function of asyncio returns in the loop. Raises UsageError if
        `aclose` ends it before. Checkpoints.
        """
        done = trio.Event()
        future = asyncio.run_coroutine_threadsafe(function(*args), self._loop)
        future.add_done_callback(lambda _: self.tell(done.set))
        try:
            await done.wait()
        except trio.Cancelled:
            future.cancel()
            raise
        if future.cancelled():
            raise UsageError("it was closed while a task used it: leave its block after the task")
        return future.result()

    def post(self, function: Callable[..., object], *args: Any) -> None:
        """Call a function in the loop. In trio."""
        self._loop.call_soon_threadsafe(function, *args)

    def tell(self, function: Callable[..., object], *args: Any) -> None:
        """Call a function in trio. In the loop."""
        with suppress(trio.RunFinishedError):  # the tasks that waited are gone
            self._token.run_sync_soon(function, *args)

    async def aclose(self) -> None:
        """Cancel all tasks of the loop, and end the thread. Checkpoints."""
        self.post(self._loop.stop)
        # Bounded: the tasks of the loop are cancelled.
        with trio.CancelScope(shield=True):
            await self._ended.wait()
            await trio.to_thread.run_sync(self._thread.join)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.run_until_complete(self._end())
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()
            self.tell(self._ended.set)

    async def _end(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_END):
                if self.at_end is not None:
                    await self.at_end()
        # A connection closes its socket in later steps of the loop.
        for _ in range(3):
            await asyncio.sleep(0)
