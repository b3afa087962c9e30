"""The four shells of a client as a contract sees them: a program that is written once, with
``async``, runs over each of them.

A shell is a way to wait: tasks of trio, tasks of asyncio over connections of asyncio or of trio, or
calls that block. The methods of a
`BlockingPeer` and of a `BlockingStream` are async and never wait, so their program is a coroutine
that runs to its end in one step.
"""

import asyncio
import functools
import gc
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final, Self, TypeVar

import trio
from trio.testing import wait_all_tasks_blocked

import penstock
from penstock import aio, blocking
from penstock.aio._peer import AsyncioBlock
from penstock.api import StreamTimeout
from penstock.guest import connecting_over_trio
from tests._real_time import HANGS_AFTER

T = TypeVar("T")

LOOK_SECONDS = 0.002
"""Seconds between two looks at what another thread does."""


class _Mark:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


END: Final = _Mark("END")
"""Returned by a read if the stream has ended."""

WAITS: Final = _Mark("WAITS")
"""Returned by a read that had to wait, and was given up."""

Act = Callable[[], object]


class Shell(ABC):
    """One way to wait."""

    name: str
    connect_now: Callable[..., Any]
    """The function `connect` of the shell, as a program calls it."""

    @abstractmethod
    def run(self, program: Coroutine[Any, Any, T]) -> T:
        """Run a program. Afterwards nothing of it is left."""

    def connect(self, url: str, **options: Any) -> AbstractAsyncContextManager[Any]:
        """Connect for the length of a block. The options are those that all shells have."""
        return self.connect_now(url, **options)

    def read_on(self, url: str, name: str, **options: Any) -> AbstractAsyncContextManager[Any]:
        """Open a stream that goes on over the next connection, if its publisher has positions."""
        return self._read_on(url, name, **options)

    @asynccontextmanager
    async def _read_on(
        self, url: str, name: str, *, reconnect: Any, **options: Any
    ) -> AsyncIterator[Any]:
        async with (
            self.connect(url, reconnect=reconnect) as peer,
            peer.subscribe(name, **options) as stream,
        ):
            yield stream

    @abstractmethod
    async def within(self, seconds: float, ask: Callable[[], Awaitable[T]]) -> T:
        """Wait for `ask()`. Raises TimeoutError if it takes longer."""

    @abstractmethod
    async def attempt(self, read: Callable[[], Awaitable[Any]], meanwhile: Act | None) -> Any:
        """Return what `read` returns, or END.
        If it waits, `meanwhile` is called once; if it waits then, it is given up.
        """

    @abstractmethod
    async def pause(self) -> None:
        """Let others run for a moment."""

    async def until(self, is_true: Callable[[], object]) -> None:
        """Wait until `is_true()`; peers are served meanwhile."""
        ends = time.monotonic() + HANGS_AFTER
        while not is_true():
            assert time.monotonic() < ends, "it did not happen"
            await self.pause()


class TrioShell(Shell):
    """`penstock.connect`, on trio."""

    name = "trio"

    def connect_now(
        self, url: str, *, publishers: Mapping[str, Any] | None = None, **options: Any
    ) -> Any:
        if publishers is not None:
            service = penstock.Service()
            for name, made in publishers.items():
                service.publish(name, made)
            options["service"] = service
        return penstock.connect(url, **options)

    def read_on(self, url: str, name: str, **options: Any) -> AbstractAsyncContextManager[Any]:
        return penstock.subscribe(f"{url}/{name}", **options)

    def run(self, program: Coroutine[Any, Any, T]) -> T:
        async def main() -> T:
            with trio.fail_after(HANGS_AFTER):
                return await program

        return trio.run(main)

    async def within(self, seconds: float, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            with trio.fail_after(seconds):
                return await ask()
        except trio.TooSlowError:
            raise TimeoutError from None

    async def attempt(self, read: Callable[[], Awaitable[Any]], meanwhile: Act | None) -> Any:
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

    async def pause(self) -> None:
        await trio.sleep(LOOK_SECONDS)


class AioShell(Shell):
    """`penstock.aio.connect`, on asyncio."""

    name = "asyncio"
    connect_now = staticmethod(aio.connect)

    def run(self, program: Coroutine[Any, Any, T]) -> T:
        failures: list[dict[str, Any]] = []

        async def main() -> T:
            asyncio.get_running_loop().set_exception_handler(
                lambda _, context: failures.append(context)
            )
            async with asyncio.timeout(HANGS_AFTER):
                result = await program
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, left
            return result

        result = asyncio.run(main())
        gc.collect()
        assert not failures, failures
        return result

    async def within(self, seconds: float, ask: Callable[[], Awaitable[T]]) -> T:
        async with asyncio.timeout(seconds):
            return await ask()

    async def attempt(self, read: Callable[[], Awaitable[Any]], meanwhile: Act | None) -> Any:
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

    async def pause(self) -> None:
        await asyncio.sleep(LOOK_SECONDS)


class GuestShell(AioShell):
    """`penstock.aio.connect` over connections of trio, as for ``ws://`` and with `resume`."""

    name = "asyncio over trio"

    def connect_now(self, url: str, **options: Any) -> Any:
        return AsyncioBlock(*connecting_over_trio(url, **options))


class BlockingShell(Shell):
    """`penstock.blocking.connect`, for programs that block."""

    name = "blocking"
    connect_now = staticmethod(blocking.connect)

    def __init__(self) -> None:
        self.timeout = HANGS_AFTER
        self.meanwhile: Act | None = None
        """Called once in the next wait, by the stand-in for a connection."""
        self._peers: list[blocking.Peer] = []

    def run(self, program: Coroutine[Any, Any, T]) -> T:
        try:
            program.send(None)
        except StopIteration as done:
            result: T = done.value
            return result
        raise AssertionError("a program that blocks has waited in another way")

    def connect(self, url: str, **options: Any) -> AbstractAsyncContextManager[Any]:
        # Made here and not in the block: a mistake in the arguments is an error of the call.
        return self._connected(self.connect_now(url, **options))

    @asynccontextmanager
    async def _connected(self, block: Any) -> AsyncIterator["BlockingPeer"]:
        with block as peer:
            self._peers.append(peer)
            try:
                yield BlockingPeer(peer, self)
            finally:
                self._peers.remove(peer)

    async def within(self, seconds: float, ask: Callable[[], Awaitable[T]]) -> T:
        before, self.timeout = self.timeout, seconds
        try:
            return await ask()
        except StreamTimeout:
            raise TimeoutError from None
        finally:
            self.timeout = before

    async def attempt(self, read: Callable[[], Awaitable[Any]], meanwhile: Act | None) -> Any:
        self.meanwhile = meanwhile
        try:
            return await _ended(read)
        except StreamTimeout:
            return WAITS

    async def pause(self) -> None:
        for peer in self._peers:
            peer.run(LOOK_SECONDS)
        if not self._peers or not self._peers[0].is_connected:
            time.sleep(LOOK_SECONDS)  # noqa: ASYNC251  # nothing else runs in a program that blocks


class BlockingPeer:
    """A peer whose calls block, with the methods of the others."""

    def __init__(self, peer: blocking.Peer, shell: BlockingShell) -> None:
        self._peer = peer
        self._shell = shell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._peer, name)

    async def wait_accepted(self) -> None:
        self._peer.wait_accepted(timeout=self._shell.timeout)

    async def request(self, *arguments: Any, **options: Any) -> Any:
        return self._peer.request(*arguments, timeout=self._shell.timeout, **options)

    async def position_at(self, *arguments: Any) -> int:
        return self._peer.position_at(*arguments, timeout=self._shell.timeout)

    def subscribe(self, *arguments: Any, **options: Any) -> "BlockingStream":
        return BlockingStream(
            self._peer.subscribe(*arguments, timeout=self._shell.timeout, **options), self._shell
        )


class BlockingStream:
    """A stream whose reader blocks, with the methods of the others."""

    def __init__(self, stream: blocking.Stream[Any], shell: BlockingShell) -> None:
        self._stream = stream
        self._shell = shell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __repr__(self) -> str:
        return repr(self._stream)

    async def __aenter__(self) -> Self:
        self._stream.__enter__()
        return self

    async def __aexit__(self, *failure: object) -> None:
        self._stream.__exit__(*failure)

    def __aiter__(self) -> "BlockingStream":
        return self

    async def __anext__(self) -> Any:
        self._stream._timeout = self._shell.timeout  # the timeout of the test, which may change
        for element in self._stream:
            return element
        raise StopAsyncIteration

    def batches(self) -> AsyncIterator[list[Any]]:
        return _stepping(self._stream.batches())

    def buffers(self) -> AsyncIterator[bytes]:
        return _stepping(self._stream.buffers())


async def _ended(read: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return await read()
    except StopAsyncIteration:
        return END


async def _stepping(pieces: Iterator[T]) -> AsyncIterator[T]:
    for piece in pieces:
        yield piece


SHELLS: dict[str, Callable[[], Shell]] = {
    kind.name: kind for kind in (TrioShell, AioShell, GuestShell, BlockingShell)
}


def over_each_shell(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test, whose first parameter is `shell`, in the way of that shell."""

    @functools.wraps(test)
    def run(*, shell: Shell, **fixtures: Any) -> None:
        shell.run(test(shell=shell, **fixtures))

    return run
