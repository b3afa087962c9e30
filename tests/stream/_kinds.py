"""The Streams of penstock, each with a publisher that a test drives by hand: no connection, no
clock, no thread.

A test is an async function that gets a `StreamKind`. It runs as a program of that kind would run: on
trio, on asyncio, or without an event loop. So one body states one promise for all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from functools import partial, wraps
from typing import Any, Final

import pytest

from penstock import aio, blocking
from penstock.api import Positions, StreamTimeout
from penstock.client import StreamOpening
from penstock.core import Stream
from penstock.reader import StreamBuffer
from penstock.runtime.connection import RemoteOpening
from penstock.spi import Serializer, load_elements
from penstock.streams import Source, open_into
from penstock.testing import ManualPublisher
from tests._shells import (
    END,
    WAITS,
    Act,
    AioShell,
    BlockingShell,
    BlockingStream,
    Shell,
    TrioShell,
)

LARGEST: Final = 1000
"""Bytes that an element may have."""


class StreamKind(ABC):
    """One kind of Stream."""

    name: str
    is_remote = True
    """The stream has what only streams over a connection have: memory, types, a window of bytes."""
    shell: Shell

    @abstractmethod
    def block(
        self, publisher: ManualPublisher, demand: int, loader: Serializer | None, window: int | None
    ) -> Any:
        """Return the block around a stream: an async context manager."""

    def run(self, body: Callable[["StreamKind"], Awaitable[None]]) -> None:
        """Run a test."""
        program: Any = body(self)
        self.shell.run(program)

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

    # --- reading: returns the element, END, or WAITS; the failure of the stream is raised

    async def next(self, stream: Any, *, meanwhile: Act | None = None) -> Any:
        """Read one element."""
        return await self.shell.attempt(stream.__anext__, meanwhile)

    async def batch(self, stream: Any, *, meanwhile: Act | None = None) -> Any:
        """Read one list."""
        return await self.shell.attempt(stream.batches().__anext__, meanwhile)

    async def buffer(self, stream: Any, *, meanwhile: Act | None = None) -> Any:
        """Read one piece of memory."""
        return await self.shell.attempt(stream.buffers().__anext__, meanwhile)

    async def all(self, stream: Any) -> list[Any]:
        """Read by element until the end, or until the reader has to wait."""
        got = []
        while (element := await self.next(stream)) not in (END, WAITS):
            got.append(element)
        return got


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


class OnTrio(StreamKind):
    """A stream inside one process."""

    name = "trio"
    is_remote = False
    shell = TrioShell()

    def block(
        self, publisher: ManualPublisher, demand: int, loader: Serializer | None, window: int | None
    ) -> Any:
        return open_into(Stream[Any](demand=demand), _Attached(publisher, loader, window))


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
    session = None  # read after a refusal

    def __init__(self, publisher: ManualPublisher) -> None:
        self._publisher = publisher

    def subscribe(self, target: Any, subscriber: Any, window: Any = None) -> None:
        self._publisher.subscribe(subscriber)


def _opening(demand: int, loader: Serializer | None, window: int | None) -> StreamOpening:
    return StreamOpening("name", demand, loader, window or 0, LARGEST, goes_on=False)


class _MayCountBytes(StreamBuffer[Any]):
    """A stream that has a window of bytes only if its opening has one."""

    __slots__ = ()

    def count_bytes(self, most: int, largest: int) -> Any:
        return super().count_bytes(most, largest) if most else None


class _AioStream(_MayCountBytes, aio.Stream[Any]):
    """As a program gets it."""


class _BlockingStream(_MayCountBytes, blocking.Stream[Any]):
    """As a program gets it."""


class _AioConnection:
    """Stands for a connection of asyncio."""

    def __init__(self, publisher: ManualPublisher) -> None:
        self.endpoint = _Endpoint(publisher)

    def flush(self) -> None:
        """Do nothing."""


class OnAsyncio(StreamKind):
    """A stream of `penstock.aio`."""

    name = "aio"
    shell = AioShell()

    def block(
        self, publisher: ManualPublisher, demand: int, loader: Serializer | None, window: int | None
    ) -> Any:
        async def connection_with_room() -> Any:
            return _AioConnection(publisher)

        return _AioStream(_opening(demand, loader, window), connection_with_room)


class _BlockingKeeper:
    """Stands for the connection of a blocking client.
    A wait runs what the test does meanwhile, and is too long otherwise.
    """

    connection = None

    def __init__(self, publisher: ManualPublisher, shell: BlockingShell) -> None:
        self._endpoint = _Endpoint(publisher)
        self._shell = shell

    def open_stream(self, subscribe_to: Callable[[Any], None], timeout: float | None) -> None:
        subscribe_to(self._endpoint)

    def take(
        self,
        connection: None,
        take: Callable[[], Any],
        is_readable: Callable[[], bool],
        timeout: float | None,
    ) -> Any:
        taken = take()
        if taken is None and not is_readable():
            meanwhile, self._shell.meanwhile = self._shell.meanwhile, None
            if meanwhile is not None:
                meanwhile()
            if not is_readable():
                raise StreamTimeout("an element did not come in time")
            taken = take()
        return taken

    def attend(
        self, connection: None, act: Callable[..., Any], *arguments: Any, **options: Any
    ) -> Any:
        return act(*arguments, **options)


class Blocking(StreamKind):
    """A stream of `penstock.blocking`."""

    name = "blocking"
    shell: BlockingShell = BlockingShell()

    def block(
        self, publisher: ManualPublisher, demand: int, loader: Serializer | None, window: int | None
    ) -> Any:
        keeper: Any = _BlockingKeeper(publisher, self.shell)
        stream = _BlockingStream(keeper, _opening(demand, loader, window), None)
        return BlockingStream(stream, self.shell)


KINDS: Final[Sequence[StreamKind]] = (OnTrio(), RemoteOnTrio(), OnAsyncio(), Blocking())


def arrive(publisher: ManualPublisher, elements: Sequence[Any]) -> None:
    """Let elements arrive together, within demand."""
    assert len(elements) <= publisher.outstanding
    publisher.subscription.emitted += len(elements)
    publisher.subscription.signal("on_next_many", elements)


def tell_position(publisher: ManualPublisher, first: int) -> None:
    """Let the publisher tell the position of its next element."""
    publisher.subscription.signal("on_fact", Positions(first, 0, None))


def _contract(
    kinds: Sequence[StreamKind],
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    def decorate(body: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @wraps(body)
        def test(kind: StreamKind, **parameters: Any) -> None:
            kind.run(partial(body, **parameters))

        return pytest.mark.parametrize("kind", kinds, ids=lambda each: each.name)(test)

    return decorate


of_each_stream = _contract(KINDS)
"""The promise holds for each kind of Stream."""

of_remote_streams = _contract([each for each in KINDS if each.is_remote])
"""The promise holds for each kind of Stream over a connection."""
