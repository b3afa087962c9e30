"""Blocks of trio that tasks of asyncio enter, and streams that they read there.

Rules of this file:

* One task of trio enters the block, waits, and leaves it, as trio demands.
* The block of asyncio is left when that of trio was left.
* A read that is cancelled has taken nothing, or keeps what it has taken for the next one.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from operator import length_hint
from types import TracebackType
from typing import Any, Generic, TypeVar

import trio

from penstock.api import UsageError
from penstock.core import Stream as TrioStream
from penstock.guest._guest_run import GuestRun, GuestUse, TrioCall
from penstock.runtime import subscribe as subscribe_in_trio

B = TypeVar("B")
R = TypeVar("R")
T = TypeVar("T")


class TrioBlock(AbstractAsyncContextManager[R], Generic[B, R]):
    """A block of trio as one of asyncio."""

    def __init__(
        self, block: AbstractAsyncContextManager[B], made: Callable[[B, GuestRun], R]
    ) -> None:
        """`made` returns what the program has in the block."""
        self._block: AbstractAsyncContextManager[B] | None = block  # None once it was entered
        self._made = made
        self._stack = AsyncExitStack()
        self._leave = trio.Event()
        self._call: TrioCall[None]
        self._was_cancelled_here = False

    async def __aenter__(self) -> R:
        block, self._block = self._block, None
        if block is None:
            raise UsageError(
                "this block was entered before; make another one: call serve(), subscribe() or "
                "in_trio_block() again"
            )
        run = await self._stack.enter_async_context(GuestUse())
        entered: asyncio.Future[B] = asyncio.get_running_loop().create_future()
        self._call = run.begin(self._host, block, entered)
        try:
            await asyncio.wait((entered, self._call.future), return_when=asyncio.FIRST_COMPLETED)
        except BaseException as error:
            self._call.scope.cancel()
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        if not entered.done():
            # It could not be entered: the call has the error.
            async with self._stack:
                await self._call.result()
        task = asyncio.current_task()
        if task is not None:
            # As a nursery of trio does: what fails in the block ends the code inside.
            self._call.future.add_done_callback(lambda _: self._on_ended(task))
        return self._made(entered.result(), run)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        async with self._stack:
            self._leave.set()
            task = asyncio.current_task()
            if self._was_cancelled_here and task is not None:
                task.uncancel()
            await self._call.result()

    async def _host(
        self, block: AbstractAsyncContextManager[B], entered: "asyncio.Future[B]"
    ) -> None:
        async with block as value:
            if not entered.done():
                entered.set_result(value)
            await self._leave.wait()

    def _on_ended(self, task: "asyncio.Task[Any]") -> None:
        if not self._leave.is_set():
            self._was_cancelled_here = True
            task.cancel()


def in_trio_block(
    block: AbstractAsyncContextManager[B],
) -> AbstractAsyncContextManager[B]:
    """Enter an ``async with`` block of trio from a task of asyncio:
    ``async with aio.in_trio_block(penstock.connect("ws://…")) as peer``.

    One task of trio enters it, and leaves it when the block of asyncio ends. The methods of the
    object that it gives are called with `in_trio`. If the block of trio fails meanwhile, the task
    inside is cancelled, and leaving raises the failure.
    """
    return TrioBlock(block, lambda value, _: value)


class Reading(AsyncIterator[T]):
    """A stream of trio, for one task of asyncio that iterates it."""

    def __init__(self, stream: TrioStream[T], run: GuestRun) -> None:
        self._stream = stream
        self._run = run
        self._pieces = stream.batches()
        self._left: Iterator[T] = iter(())

    async def __anext__(self) -> T:
        while True:
            # One step of the iterator: cheaper than next() and an exception.
            for element in self._left:
                return element
            await self._read()

    def batches(self) -> AsyncIterator[list[T]]:
        """Iterate over lists of all elements that have arrived, never empty."""
        return _Batches(self)

    def request(self, n: int) -> None:
        """Request `n` elements more, in a stream with ``demand=0``."""
        self._stream.request(n)

    @property
    def position(self) -> int:
        """The position of the next element of a log, as `penstock.Stream.position` tells it."""
        # The stream below counts all that were read with one step.
        return self._stream.position - length_hint(self._left)

    @property
    def position_if_known(self) -> int | None:
        """The same, or None if the publisher has no positions, or they are not known yet."""
        position = self._stream.position_if_known
        return None if position is None else position - length_hint(self._left)

    async def take_all(self) -> list[T]:
        """Return the elements that were read and not taken, or those of the next read."""
        if not (left := list(self._left)):
            await self._read()
            left = list(self._left)
        return left

    async def _read(self) -> None:
        call = self._run.begin(anext, self._pieces)
        try:
            await call.result()
        finally:
            # The pieces may be there although this task was cancelled.
            future = call.future
            if future.done() and not future.cancelled() and future.exception() is None:
                self._left = iter(future.result())


class _Batches(AsyncIterator[list[T]]):
    def __init__(self, reading: Reading[T]) -> None:
        self._reading = reading

    async def __anext__(self) -> list[T]:
        return await self._reading.take_all()


def subscribe(source: Any, **options: Any) -> AbstractAsyncContextManager[Reading[Any]]:
    """Open `source` as a stream for the length of an ``async with`` block of asyncio. `source` and
    `options` are those of `penstock.subscribe`: a pipe, a topic, a log, or a URL of any scheme.

    One task iterates it, by element or by `batches`. At most twice the demand is under way,
    buffered, or read and not taken. A failure is raised from the iteration. When the block has been
    left, everything behind the stream has stopped.
    """
    return TrioBlock(subscribe_in_trio(source, **options), Reading)
