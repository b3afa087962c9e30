"""`serve` for programs on asyncio."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from os import PathLike
from types import TracebackType
from typing import Any, Unpack

import trio

from penstock.api import Credentials, Extension, Limits, UsageError
from penstock.client import NoOptions
from penstock.core import Report, log_violation
from penstock.guest._guest_run import GuestRun, TrioCall
from penstock.guest._service import Service
from penstock.recording import Recorder
from penstock.runtime import Server as TrioServer
from penstock.runtime import serve as serve_in_trio
from penstock.spi import Registry, ServerStatistics, TransportOptions, Url


def serve(  # noqa: PLR0913  # the options of `penstock.serve`
    service: Service,
    *urls: str,
    limits: Limits | None = None,
    extensions: Sequence[Extension] | None = None,
    registry: Registry | None = None,
    options: TransportOptions | None = None,
    credentials: Credentials | None = None,
    record: Recorder | str | PathLike[str] | None = None,
    resume: bool = False,
    insecure: bool = False,
    on_violation: Report = log_violation,
    **unknown: Unpack[NoOptions],
) -> AbstractAsyncContextManager["Server"]:
    """Serve `service` at each of `urls` for the length of an ``async with`` block of a program on
    asyncio. `urls` and `options` are those of `penstock.serve`.

    trio runs in the loop of the program, in the same thread, for as long as a block is open. The
    functions of the service run in tasks of asyncio, and have ended when the block is left. If a
    task is cancelled inside the block, the server drains first, as on every way out of it.
    Raises UsageError as `penstock.serve` does, and for a service that is no `Service` of
    `penstock.aio`.
    """
    if not isinstance(service, Service):
        raise UsageError(
            f"penstock.aio.serve() was given {service!r} to serve; give a penstock.aio.Service, "
            "whose functions run on asyncio. The functions of a penstock.Service run on trio: "
            "penstock.serve() serves them"
        )
    return _Block(
        serve_in_trio(
            service,
            *urls,
            limits=limits,
            extensions=extensions,
            registry=registry,
            options=options,
            credentials=credentials,
            record=record,
            resume=resume,
            insecure=insecure,
            on_violation=on_violation,
            **unknown,
        )
    )


class Server:
    """A service that is being served. Use it in the loop of asyncio that serves."""

    def __init__(self, server: TrioServer, run: GuestRun) -> None:
        self._server = server
        self._run = run

    @property
    def addresses(self) -> tuple[Url, ...]:
        """The URLs at which clients reach it, with the real ports. Each has a `host` and a `port`,
        and `connect` takes it.
        """
        return self._server.addresses

    @property
    def refused(self) -> Mapping[str, int]:
        """The number of refused connections since the start, by reason. It stays up to date."""
        return self._server.refused

    def statistics(self) -> ServerStatistics:
        """Return the counts of the server since it began to listen, and the bytes that it holds
        now, as `penstock.Server.statistics` does.
        """
        return self._server.statistics()

    def waits_for(self) -> dict[str, int]:
        """Return the streams that clients read now:
        the name or pattern of each publisher, with the number of its streams.
        """
        return self._server.waits_for()

    async def wait_over(self) -> None:
        """Wait until no client is connected and none can connect any more."""
        await self._run.begin(self._server.wait_over).result()

    async def drain(
        self,
        seconds: float | None = None,
        *,
        on_waiting: Callable[[Mapping[str, int], float], object] | None = None,
    ) -> None:
        """Take no new connections and streams, let the streams that run end, and return when no
        client is connected, as `penstock.Server.drain` does.
        """

        async def drain() -> None:
            await self._server.drain(seconds, on_waiting=on_waiting)

        await self._run.begin(drain).result()

    def __repr__(self) -> str:
        return repr(self._server)


class _Block(AbstractAsyncContextManager[Server]):
    """The block of a server of trio, entered and left in a task of trio."""

    def __init__(self, block: AbstractAsyncContextManager[TrioServer]) -> None:
        self._block = block
        self._stack = AsyncExitStack()
        self._leave = trio.Event()
        self._call: TrioCall[None]
        self._was_cancelled_here = False

    async def __aenter__(self) -> Server:
        run = await self._stack.enter_async_context(GuestRun.of_this_loop())
        entered: asyncio.Future[TrioServer] = asyncio.get_running_loop().create_future()
        self._call = run.begin(self._host, entered)
        try:
            await asyncio.wait((entered, self._call.future), return_when=asyncio.FIRST_COMPLETED)
        except BaseException as error:
            self._call.scope.cancel()
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        if not entered.done():
            # It could not listen: the call has the error.
            async with self._stack:
                await self._call.result()
        task = asyncio.current_task()
        if task is not None:
            # The tasks of a server have boundaries: only a fault of penstock, or an interrupt, ends
            # it before its block.
            self._call.future.add_done_callback(lambda _: self._on_ended(task))
        return Server(entered.result(), run)

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

    async def _host(self, entered: "asyncio.Future[TrioServer]") -> None:
        async with self._block as server:
            if not entered.done():
                entered.set_result(server)
            await self._leave.wait()

    def _on_ended(self, task: "asyncio.Task[Any]") -> None:
        if not self._leave.is_set():
            self._was_cancelled_here = True
            task.cancel()
