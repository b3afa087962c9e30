"""The loop that a web server runs on, as an application uses it: trio, or asyncio with trio as its
guest.

Rules of this file:

* Requests are answered in tasks of trio. `receive` and `send` of a web server are called in tasks
  of the loop that runs it.
* `receive` is not called again after it has told that the client has gone: some web servers never
  return from such a call.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import Context
from functools import partial
from typing import Any, Protocol

import trio

import penstock
from penstock import aio
from penstock.api import ConnectionLost, UsageError

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Event(Protocol):
    """An event of a loop."""

    def set(self) -> None: ...
    async def wait(self) -> object: ...


class Client:
    """The client of one request, for a task of trio."""

    def __init__(
        self,
        *,
        receive: Receive,
        send: Send,
        watch: Callable[[Callable[[Receive], Awaitable[None]]], object],
    ) -> None:
        """`receive` and `send` are called in trio. `watch` calls its argument in a task of the web
        server's loop, with the `receive` of that.
        """
        self.receive: Receive = receive
        """Returns the next message, in trio. For a client that is not watched."""
        self._send = send
        self._watch = watch
        self._gone = trio.Event()
        self._is_watched = False

    async def send(self, message: Message) -> None:
        """Give `message` to the web server. Raises ConnectionLost if the client has gone, as far as
        that is known.
        """
        # Some web servers drop what is sent to a client that has gone, and others raise OSError.
        if self._gone.is_set():
            raise ConnectionLost("the client has gone")
        try:
            await self._send(message)
        except OSError as error:
            raise ConnectionLost("the client has gone") from error

    def watch(self) -> None:
        """Learn from now on whether the client has gone."""
        if not self._is_watched:
            self._is_watched = True
            self._watch(self._wait)

    async def wait_gone(self) -> None:
        """Return when the client has gone."""
        self.watch()
        await self._gone.wait()

    async def _wait(self, receive: Receive) -> None:
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            self._gone.set()


Answer = Callable[[Client], Awaitable[None]]


class WebLoop(ABC):
    """One run of a loop."""

    @abstractmethod
    def is_over(self) -> bool:
        """Return whether it has ended without telling its tasks."""

    @abstractmethod
    def refuse(self, service: penstock.Service) -> None:
        """Raise UsageError if the functions of `service` run on the other loop."""

    @abstractmethod
    def serve(
        self, service: penstock.Service, url: str, options: dict[str, Any]
    ) -> AbstractAsyncContextManager[Any]:
        """Return the block that serves `service`."""

    @abstractmethod
    def event(self) -> Event:
        """Return a new event."""

    @abstractmethod
    def begin(self, function: Callable[[], Awaitable[None]], name: str) -> None:
        """Begin a task that is cancelled when the program ends."""

    @abstractmethod
    async def answer(self, function: Answer, receive: Receive, send: Send) -> None:
        """Call `function` in a task of trio, with the client of a request."""


class TrioLoop(WebLoop):
    """A run of trio."""

    def __init__(self) -> None:
        self._token = trio.lowlevel.current_trio_token()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrioLoop) and other._token is self._token

    def __hash__(self) -> int:
        return hash(self._token)

    def is_over(self) -> bool:
        return False  # it cancels its tasks before it ends

    def refuse(self, service: penstock.Service) -> None:
        if isinstance(service, aio.Service):
            raise UsageError(
                f"AsgiApp was given {service!r}, a penstock.aio.Service, whose functions run on "
                "asyncio, and this web server runs on trio. Make a penstock.Service(), or run a "
                "web server on asyncio"
            )

    def serve(
        self, service: penstock.Service, url: str, options: dict[str, Any]
    ) -> AbstractAsyncContextManager[Any]:
        return penstock.serve(service, url, **options)

    def event(self) -> Event:
        return trio.Event()

    def begin(self, function: Callable[[], Awaitable[None]], name: str) -> None:
        trio.lowlevel.spawn_system_task(function, name=name, context=Context())

    async def answer(self, function: Answer, receive: Receive, send: Send) -> None:
        async with trio.open_nursery() as nursery:

            def watch(wait: Callable[[Receive], Awaitable[None]]) -> None:
                nursery.start_soon(wait, receive)

            await function(Client(receive=receive, send=send, watch=watch))
            nursery.cancel_scope.cancel()


class AsyncioLoop(WebLoop):
    """A loop of asyncio, or of uvloop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks = set[asyncio.Task[None]]()  # a loop keeps none

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AsyncioLoop) and other._loop is self._loop

    def __hash__(self) -> int:
        return hash(self._loop)

    def is_over(self) -> bool:
        return self._loop.is_closed()

    def refuse(self, service: penstock.Service) -> None:
        if not isinstance(service, aio.Service):
            raise UsageError(
                f"AsgiApp was given {service!r}, a penstock.Service, whose functions run on trio, "
                "and this web server runs on asyncio. Make a penstock.aio.Service(), or run a web "
                "server on trio: hypercorn --worker-class trio"
            )

    def serve(
        self, service: penstock.Service, url: str, options: dict[str, Any]
    ) -> AbstractAsyncContextManager[Any]:
        assert isinstance(service, aio.Service)  # noqa: S101  # for mypy: `refuse` has examined it
        return aio.serve(service, url, **options)

    def event(self) -> Event:
        return asyncio.Event()

    def begin(self, function: Callable[[], Awaitable[None]], name: str) -> None:
        async def run() -> None:
            await function()

        # The task outlives the request that has begun it, so it has no variables of that.
        task = self._loop.create_task(run(), name=name, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def answer(self, function: Answer, receive: Receive, send: Send) -> None:
        task: asyncio.Task[None] | None = None

        def watch(wait: Callable[[Receive], Awaitable[None]]) -> None:
            async def run() -> None:
                await wait(receive)

            nonlocal task
            task = self._loop.create_task(run(), name="penstock asgi client")

        client = Client(
            receive=partial(aio.in_asyncio, receive),
            send=partial(aio.in_asyncio, send),
            watch=watch,
        )
        try:
            await aio.in_trio(function, client)
        finally:
            if task is not None:
                task.cancel()
                await asyncio.wait((task,))
                with suppress(asyncio.CancelledError):
                    task.result()


def current_loop() -> WebLoop:
    """Return the loop that runs this task. Raises UsageError if none does."""
    # asyncio is asked first: a task of it may make its first step inside a task of trio.
    try:
        if asyncio.current_task() is not None:
            return AsyncioLoop()
    except RuntimeError:
        pass
    if trio.lowlevel.in_trio_task():
        return TrioLoop()
    raise UsageError(
        "an AsgiApp is called by a web server on asyncio or on trio, and neither runs this code"
    )
