"""The elements of one subscription, for a task of asyncio."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, TypeVar

from penstock.aio._keeper import OpenedConnection
from penstock.aio._waiter import new_waiter
from penstock.api import ConnectionLost, UsageError
from penstock.client import ClientStream, StreamOpening
from penstock.session import own_copy

T = TypeVar("T")
R = TypeVar("R")


class Stream(ClientStream[T], AbstractAsyncContextManager["Stream[T]"], AsyncIterator[T]):
    """A stream of the peer: an ``async with`` block, in which one task iterates it by element, by
    `batches` or by `buffers`.

    A failure of the publisher is raised from the iteration, and completion ends the loop. Leaving
    the block cancels the stream. A task that is cancelled while it waits has taken nothing: no
    element is lost if the stream is read on.
    """

    def __init__(
        self,
        opening: StreamOpening,
        connection_with_room: Callable[[], Awaitable[OpenedConnection]],
    ) -> None:
        """`connection_with_room` returns the connection when it is open and has room."""
        super().__init__(opening)
        self._connection_with_room = connection_with_room
        self._connection: OpenedConnection | None = None

    async def __aenter__(self) -> "Stream[T]":
        self._enter()
        await self._open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cancel()

    # --- reading

    def __aiter__(self) -> "Stream[T]":
        return self

    async def __anext__(self) -> T:
        """Return the next element. Waits only if none has arrived."""
        while True:
            # One step of the iterator: cheaper than next() and an exception.
            for element in self._slice:
                return element
            await self._read(self._take_slice)

    def batches(self) -> AsyncIterator[list[T]]:
        """Iterate over lists of all elements that have arrived, never empty. The fastest way to
        read.

        With a serializer a list has up to 256 elements: they are loaded when they are taken.
        """
        return _Pieces(lambda: self._read(self._take_batch))

    def buffers(self) -> AsyncIterator[bytes]:
        """Iterate over packed elements as memory: each time all that has arrived, a whole number of
        elements, and never empty.

        For publishers with a fixed ``element_size``; others raise UsageError from the iteration.
        """
        self._in_pieces = True
        return _Pieces(lambda: self._read(self._take_buffer))

    # --- steering

    def request(self, n: int) -> None:
        super().request(n)
        self._flush()

    def cancel(self) -> None:
        super().cancel()
        self._flush()

    # --- inside

    async def _read(self, take: Callable[[], R]) -> R:
        """Return what `take` returns once it need not wait.
        Raises StopAsyncIteration at the end of the stream.
        """
        self._check_open("async with")
        while True:
            taken = self._try(take)
            self._flush()
            if taken is not None:
                return taken
            if self._has_ended():
                raise StopAsyncIteration
            if self._is_cut:
                await self._go_on()
            elif not self._arrived:
                await self._wait()

    async def _wait(self) -> None:
        if self._reader is not None:
            raise UsageError(
                "two tasks read this stream at once; one subscription has one reader. "
                "Subscribe twice, or use a queue"
            )
        waiter, self._reader = new_waiter()
        try:
            await waiter
        finally:
            self._reader = None

    async def _open(self) -> None:
        connection = await self._connection_with_room()
        self._subscribe_to(connection.endpoint)
        self._connection = connection
        connection.flush()

    async def _go_on(self) -> None:
        """Subscribe over the next connection."""
        try:
            await self._open()
        except ConnectionLost as error:  # no further attempt is made
            self._fail(own_copy(error))

    def _flush(self) -> None:
        if self._connection is not None and self._connection.endpoint.has_output:
            self._connection.flush()


class _Pieces(AsyncIterator[R]):
    """Iterates with a function.
    (No async generator: one that is left early would have to be closed.)
    """

    def __init__(self, next_piece: Callable[[], Coroutine[Any, Any, R]]) -> None:
        self._next_piece = next_piece

    async def __anext__(self) -> R:
        return await self._next_piece()
