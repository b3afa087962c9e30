"""The Streams of penstock, each with a publisher that a test drives by hand: no connection, no
clock, no thread.

A test is an async function that gets a `Shell`. `Shell.run` runs it as a program of that kind would
run: on trio, on asyncio, or without an event loop. So one body states one promise for all of them.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial, wraps
from typing import Any, Final

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from penstock import aio, blocking
from penstock.api import Limits, Positions, StreamTimeout
from penstock.client import StreamOpening
from penstock.core import Stream
from penstock.reader import StreamBuffer
from penstock.runtime.connection import RemoteOpening
from penstock.spi import Serializer, load_elements
from penstock.streams import Source, open_into
from penstock.testing import ManualPublisher, run_virtual


class _Mark:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


END: Final = _Mark("END")
"""What a read returns if the stream has ended."""

WAITS: Final = _Mark("WAITS")
"""What a read returns if it had to wait, and was given up."""

LARGEST: Final = 1000
"""Bytes that an element may have."""

Act = Callable[[], object]


class Shell(ABC):
    """One kind of Stream."""

    name: str
    is_remote = True
    """The stream has what only streams over a connection have: memory, types, a window of bytes."""

    @abstractmethod
    def run(self, body: Callable[["Shell"], Awaitable[None]]) -> None:
        """Run a test."""

    @abstractmethod
    def block(
        self, publisher: ManualPublisher, demand: int, loader: Serializer | None, window: int | None
    ) -> Any:
        """Return the block around a stream: an async context manager."""

    @abstractmethod
    async def attempt(self, read: Callable[[], Any], meanwhile: Act | None) -> Any:
        """Return what `read` returns.
        If it waits, `meanwhile` is called once; if it waits then, it is given up.
        """

    def open(
        self,
        publisher: ManualPublisher,
        *,
        demand: int = 256,
        loader: Serializer | None = None,
        window: int | None = None,
    ) -> Any:
        """Return the block around a stream that subscribes to `publisher`."""
        return self.block(publisher, demand, loader, window)

    def window_of(self, stream: Any) -> Any:
        """Return the window of a stream, to which a connection adds the bytes of its elements."""
        return stream._window

    # --- reading: what was read, END, or WAITS; the failure of the stream is raised

    async def next(self, stream: Any, *, meanwhile: Act | None = None) -> Any:
        """Read one element."""
        return await self.attempt(stream.__anext__, meanwhile)

    async def batch(self, stream: Any, *, meanwhile: Act | None = None) -> Any:
        """Read one list."""
        return await self.attempt(stream.batches().__anext__, meanwhile)

    async def buffer(self, stream: Any, *, meanwhile: Act | None = None) -> Any:
        """Read one piece of memory."""
        return await self.attempt(stream.buffers().__anext__, meanwhile)

    async def all(self, stream: Any) -> list[Any]:
        """Read by element until the end, or until the reader has to wait."""
        got = []
        while (element := await self.next(stream)) not in (END, WAITS):
            got.append(element)
        return got


async def _ended(read: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return await read()
    except StopAsyncIteration:
        return END


class _Attached(Source[Any]):
    """A source that subscribes to a publisher without guards."""

    def __init__(
        self, publisher: ManualPublisher, loader: Serializer | None, window: int | None
    ) -> None:
        self._publisher = publisher
        self._loader = loader
        self._window = window

    def attach(self, subscriber: Any, scope: Any = None) -> None:
        if self._loader is not None:
            subscriber.load_with(partial(load_elements, self._loader))
        if self._window is not None:
            subscriber.count_bytes(self._window, LARGEST)
        self._publisher.subscribe(subscriber)


class OnTrio(Shell):
    """A stream inside one process."""

    name = "trio"
    is_remote = False

    def run(self, body: Callable[[Shell], Awaitable[None]]) -> None:
        run_virtual(body, self)

    def block(
        self, publisher: ManualPublisher, demand: int, loader: Serializer | None, window: int | None
    ) -> Any:
        return open_into(Stream[Any](demand=demand), _Attached(publisher, loader, window))

    async def attempt(self, read: Callable[[], Any], meanwhile: Act | None) -> Any:
        result: list[Any] = []
        failure: list[BaseException] = []

        async def run() -> None:
            try:
                result.append(await _ended(read))
            except Exception as error:  # raised in the test
                failure.append(error)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await wait_all_tasks_blocked()
            if not result and not failure and meanwhile is not None:
                meanwhile()
                await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        if failure:
            raise failure.pop()
        return result[0] if result else WAITS


class RemoteOnTrio(OnTrio):
    """A stream over a connection."""

    name = "trio, remote"
    is_remote = True

    def block(
        self, publisher: ManualPublisher, demand: int, loader: Serializer | None, window: int | None
    ) -> Any:
        source: Any = _Attached(publisher, loader, window)
        return RemoteOpening(source, demand)


class _Endpoint:
    """Stands for an open connection of a client: its only stream reads `publisher`."""

    has_output = False

    def __init__(self, publisher: ManualPublisher) -> None:
        self._publisher = publisher

    def subscribe(self, target: Any, subscriber: Any, window: Any = None) -> None:
        self._publisher.subscribe(subscriber)


class _Settings:
    limits = Limits(max_element=LARGEST, max_frame=LARGEST, max_name=LARGEST, window_bytes=LARGEST)


class _Host:
    """Stands for the peer of a client."""

    settings: Any = _Settings()

    def __init__(self, publisher: ManualPublisher) -> None:
        self.endpoint = _Endpoint(publisher)


class _AioHost(_Host):
    async def connection_with_room(self) -> Any:
        return self

    def flush(self) -> None:
        """Do nothing."""


def _opening(demand: int, loader: Serializer | None, window: int | None) -> StreamOpening:
    return StreamOpening("name", demand, loader, window or 0, goes_on=False)


class _MayCountBytes(StreamBuffer[Any]):
    """A stream that has a window of bytes only if its opening has one."""

    __slots__ = ()

    def count_bytes(self, most: int, largest: int) -> Any:
        return super().count_bytes(most, largest) if most else None


class _AioStream(_MayCountBytes, aio.Stream[Any]):
    """As a program gets it."""


class _BlockingStream(_MayCountBytes, blocking.Stream[Any]):
    """As a program gets it."""


class OnAsyncio(Shell):
    """A stream of `penstock.aio`."""

    name = "aio"

    def run(self, body: Callable[[Shell], Awaitable[None]]) -> None:
        async def main() -> None:
            await body(self)

        asyncio.run(main())

    def block(
        self, publisher: ManualPublisher, demand: int, loader: Serializer | None, window: int | None
    ) -> Any:
        return _AioStream(_AioHost(publisher), _opening(demand, loader, window))

    async def attempt(self, read: Callable[[], Any], meanwhile: Act | None) -> Any:
        task = asyncio.ensure_future(_ended(read))
        await self._settle()
        if not task.done() and meanwhile is not None:
            meanwhile()
            await self._settle()
        if not task.done():
            task.cancel()
        with suppress(asyncio.CancelledError):
            return await task
        return WAITS

    @staticmethod
    async def _settle() -> None:
        loop = asyncio.get_running_loop()
        for _ in range(5):
            turn = loop.create_future()
            loop.call_soon(turn.set_result, None)
            await turn


class _BlockingHost(_Host):
    """Stands for the peer of a blocking client.
    A wait runs `meanwhile`, and is too long otherwise.
    """

    meanwhile: Act | None = None

    def open_stream(self, subscribe_to: Callable[[Any], None], timeout: float | None) -> None:
        subscribe_to(self.endpoint)

    def take(
        self, take: Callable[[], Any], is_readable: Callable[[], bool], timeout: float | None
    ) -> Any:
        taken = take()
        if taken is None and not is_readable():
            meanwhile, self.meanwhile = self.meanwhile, None
            if meanwhile is not None:
                meanwhile()
            if not is_readable():
                raise StreamTimeout("an element did not come in time")
            taken = take()
        return taken

    def attend(self, act: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        return act(*arguments, **options)


class AwaitedBlock:
    """A ``with`` block that is entered with ``async with``, as those of the other kinds."""

    def __init__(self, block: Any) -> None:
        self._block = block

    async def __aenter__(self) -> Any:
        return self._block.__enter__()

    async def __aexit__(self, *error: object) -> None:
        self._block.__exit__(*error)


class Blocking(Shell):
    """A stream of `penstock.blocking`."""

    name = "blocking"

    def run(self, body: Callable[[Shell], Awaitable[None]]) -> None:
        coroutine: Any = body(self)
        with suppress(StopIteration):
            coroutine.send(None)
            raise AssertionError("a test waited for something else than its stream")

    def block(
        self, publisher: ManualPublisher, demand: int, loader: Serializer | None, window: int | None
    ) -> Any:
        self._host = _BlockingHost(publisher)
        return AwaitedBlock(_BlockingStream(self._host, _opening(demand, loader, window), None))

    async def attempt(self, read: Callable[[], Any], meanwhile: Act | None) -> Any:
        self._host.meanwhile = meanwhile
        try:
            return next(read(), END)
        except StreamTimeout:
            return WAITS

    async def next(self, stream: Any, *, meanwhile: Act | None = None) -> Any:
        return await self.attempt(stream.__iter__, meanwhile)

    async def batch(self, stream: Any, *, meanwhile: Act | None = None) -> Any:
        return await self.attempt(stream.batches, meanwhile)

    async def buffer(self, stream: Any, *, meanwhile: Act | None = None) -> Any:
        return await self.attempt(stream.buffers, meanwhile)


SHELLS: Final[Sequence[Shell]] = (OnTrio(), RemoteOnTrio(), OnAsyncio(), Blocking())


def arrive(publisher: ManualPublisher, elements: Sequence[Any]) -> None:
    """Let elements arrive together, within demand."""
    assert len(elements) <= publisher.outstanding
    publisher.subscription.emitted += len(elements)
    publisher.subscription.signal("on_next_many", elements)


def tell_position(publisher: ManualPublisher, first: int) -> None:
    """Let the publisher tell the position of its next element."""
    publisher.subscription.signal("on_fact", Positions(first, 0, None))


def _contract(
    shells: Sequence[Shell],
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    def decorate(body: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @wraps(body)
        def test(shell: Shell, **parameters: Any) -> None:
            shell.run(partial(body, **parameters))

        return pytest.mark.parametrize("shell", shells, ids=lambda each: each.name)(test)

    return decorate


of_each_stream = _contract(SHELLS)
"""The promise holds for each kind of Stream."""

of_remote_streams = _contract([each for each in SHELLS if each.is_remote])
"""The promise holds for each kind of Stream over a connection."""
