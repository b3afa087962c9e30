"""The elements of one subscription, for a task of asyncio."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from penstock.aio._connection import Connection
from penstock.aio._waiter import new_waiter
from penstock.api import ConnectionLost, StreamStatistics, UsageError
from penstock.client import EndpointSettings, StreamCut, StreamEnd, StreamOpening
from penstock.session import own_copy

T = TypeVar("T")
R = TypeVar("R")


class StreamHost(Protocol):
    """The peer as its streams see it: a protocol, because the peer makes the streams."""

    settings: EndpointSettings

    async def connection_with_room(self) -> Connection:
        """Return the connection when it is open and has room."""


class Stream(AbstractAsyncContextManager["Stream[T]"], AsyncIterator[T], Generic[T]):
    """A stream of the peer: an ``async with`` block, in which one task iterates it by element,
    by `batches` or by `buffers`.

    A failure of the publisher is raised from the iteration, and completion ends the loop. Leaving
    the block cancels the stream. A task that is cancelled while it waits has taken nothing: no
    element is lost if the stream is read on.
    """

    def __init__(self, peer: StreamHost, opening: StreamOpening) -> None:
        self._peer = peer
        self._opening = opening
        self._is_opened = False
        self._connection: Connection | None = None
        self._buffer = opening.buffer(peer.settings.limits)

    async def __aenter__(self) -> "Stream[T]":
        if self._is_opened:
            raise UsageError(
                "this subscription was opened before; call subscribe() again for another one"
            )
        self._is_opened = True
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
        buffer = self._buffer
        while True:
            element: T
            # One step of the iterator; cheaper than next() and an exception.
            for element in buffer.current:
                return element
            buffer.current = iter(await self._take(buffer.take_slice))

    def batches(self) -> AsyncIterator[list[T]]:
        """Iterate over lists of all elements that have arrived, never empty.
        The fastest way to read.
        """
        return _Pieces(self._next_batch)

    def buffers(self) -> AsyncIterator[bytes]:
        """Iterate over packed elements as memory:
        each time all that has arrived, a whole number of elements, and never empty.

        For publishers with a fixed ``element_size``; others raise UsageError from the iteration.
        """
        return _Pieces(lambda: self._take(self._buffer.take_buffer))

    # --- steering

    def request(self, n: int) -> None:
        """Request `n` more elements, on a stream with ``demand=0``. Raises IllegalDemand; or
        UsageError if the demand is automatic.
        """
        self._buffer.request(n)
        self._flush()

    def cancel(self) -> None:
        """Stop the stream now: buffered elements are dropped and iteration ends.
        Leaving the block does the same.
        """
        self._buffer.cancel()
        self._flush()

    # --- facts

    @property
    def position(self) -> int | None:
        """The position of the element that the reader gets next; None if the publisher has no
        positions, or they are not known yet.

        Store it with the results of the elements before,
        and subscribe with it as ``start`` to go on.
        """
        return self._buffer.position

    @property
    def element_size(self) -> int:
        """The size of every element in bytes, or 0 if sizes differ;
        known after the publisher has accepted.
        """
        return self._buffer.element_size

    def statistics(self) -> StreamStatistics:
        """Return the state, the counts, and whether the stream is starved of demand."""
        return self._buffer.statistics()

    def __repr__(self) -> str:
        return repr(self._buffer)

    # --- inside

    async def _next_batch(self) -> list[T]:
        left = [*self._buffer.current]
        return left or await self._take(self._buffer.take_batch)

    async def _open(self) -> None:
        connection = await self._peer.connection_with_room()
        self._opening.open(connection.endpoint, self._buffer)
        self._connection = connection
        connection.flush()

    async def _go_on(self) -> None:
        """Subscribe over the next connection."""
        try:
            await self._open()
        except ConnectionLost as error:  # no further attempt is made
            self._buffer.fail(own_copy(error))

    async def _take(self, take: Callable[[], R | None]) -> R:
        """Return what `take` returns once it need not wait.
        Raises StopAsyncIteration at the end of the stream.
        """
        buffer = self._buffer
        if self._connection is None:
            raise UsageError(
                "this stream is not open; read it inside of its block: async with "
                "peer.subscribe(…) as stream"
            )
        while True:
            try:
                taken = take()
            except StreamEnd:
                raise StopAsyncIteration from None
            except StreamCut:
                await self._go_on()
                continue
            finally:
                self._flush()
            if taken is not None:
                return taken
            if buffer.wake is not None:
                raise UsageError(
                    "two tasks read this stream at once; one subscription has one reader. "
                    "Subscribe twice, or use a queue"
                )
            waiter, buffer.wake = new_waiter()
            try:
                await waiter
            finally:
                buffer.wake = None

    def _flush(self) -> None:
        if self._connection is not None and self._connection.endpoint.has_output:
            self._connection.flush()


class _Pieces(AsyncIterator[R]):
    """Iterates with a function. (No async generator:
    one that is left early would have to be closed.)
    """

    def __init__(self, next_piece: Callable[[], Coroutine[Any, Any, R]]) -> None:
        self._next_piece = next_piece

    async def __anext__(self) -> R:
        return await self._next_piece()
