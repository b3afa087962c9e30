"""Keeps the connection of a client on asyncio.

Rules of this file:

* A connection has no task. With a policy to reconnect one task makes the connection again, and
  each connection to a server that drains has a task that leaves it when nothing runs on it. They
  end before the block is left.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from penstock.aio._waiter import new_waiter
from penstock.api import ConnectionLost, PenstockError, UsageError
from penstock.client import (
    LOOK_SECONDS,
    NOW,
    ConnectionKeeper,
    EndpointSettings,
    GiveUp,
    PeerEndpoint,
    TryAfter,
)
from penstock.session import own_copy
from penstock.spi import LiveStream, PeerStatistics


class OpenedConnection(Protocol):
    """One connection as a client on asyncio uses it: that of asyncio, or that of trio."""

    @property
    def endpoint(self) -> PeerEndpoint:
        """The session of the connection, with its calls."""

    def flush(self) -> None:
        """Send what waits, as far as the transport takes it."""

    async def wait_opened(self) -> None:
        """Wait until both sides have said hello, or the connection is over."""

    async def wait_room(self) -> None:
        """Wait until a request may be queued, or the connection is over."""

    async def wait_over(self) -> None:
        """Wait until the connection is over."""

    @property
    def is_quiet(self) -> bool:
        """Nothing runs, and the transport has taken every byte."""

    def statistics(self) -> PeerStatistics:
        """Return the counts of the connection, and the bytes that it holds now."""

    def streams(self) -> list[LiveStream]:
        """Return a record for each stream and request that is open now."""

    async def leave(self) -> None:
        """Say goodbye, close, and end all publishers."""


Open = Callable[[EndpointSettings], Awaitable[OpenedConnection]]
"""Opens a connection. Raises ConnectionLost if no server answers in time."""


class AsyncioKeeper(ConnectionKeeper[OpenedConnection]):
    """Keeps the connection of one client. It belongs to one event loop."""

    def __init__(self, settings: EndpointSettings, open_connection: Open) -> None:
        super().__init__(settings)
        self._open_connection = open_connection
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise UsageError(
                "penstock.aio.connect() needs asyncio, and no loop of it runs here; in a program "
                "on trio use penstock.connect(), and without a loop penstock.blocking.connect()"
            ) from None
        self._task: asyncio.Task[None] | None = None
        self._left = asyncio.Event()  # the program leaves the block
        # Connections to servers that drain, on which something runs.
        self._leaving: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Connect, and let a task make the connection again if there is a policy for that.
        Raises the error of the last attempt.
        """
        self.use(await self._connect(NOW))
        if self.settings.reconnect is not None:
            self._task = self._loop.create_task(
                self._keep_connected(), name="penstock reconnecting"
            )

    async def current(self) -> OpenedConnection:
        """Wait while the connection is away, and return it. Raises the error of the last attempt
        if no further one is made.
        """
        if asyncio.get_running_loop() is not self._loop:
            raise UsageError(
                "this peer belongs to another event loop; connect in the loop, and in the "
                "thread, that uses it"
            )
        reconnector = self.reconnector
        if self.needs_next:
            # Here, because the task that reconnects has perhaps not had a turn yet.
            reconnector.on_away()
        while reconnector.is_away:
            waiter, resolve = new_waiter()
            reconnector.when_connected(resolve)
            await waiter
        reconnector.check()
        return self.connection

    async def with_room(self) -> OpenedConnection:
        """Return the connection when it is open and has room."""
        connection = await self.current()
        await connection.wait_room()
        return connection

    async def leave(self) -> None:
        """Say goodbye and close; a further connection is not made."""
        self.stop()
        self._left.set()
        try:
            if self._task is not None:
                self._task.cancel()
                await asyncio.wait((self._task,))
        finally:
            try:
                await self.connection.leave()
            finally:
                # A cancellation of this task cancels them, and they abort their connections.
                await asyncio.gather(*self._leaving)

    # --- inside

    async def _connect(self, decision: TryAfter | GiveUp) -> OpenedConnection:
        """Return a connection, after as many attempts as the policy permits.
        Raises the error of the last one.
        """
        while isinstance(decision, TryAfter):
            await asyncio.sleep(decision.seconds)
            self.reconnector.on_attempt()
            try:
                return await self._open_connection(self.settings)
            except ConnectionLost as error:
                decision = self.reconnector.on_lost(error, opened_at=None, now=self._loop.time())
        raise own_copy(decision.error)

    async def _keep_connected(self) -> None:
        """Make the connection again, each time that it is lost."""
        try:
            while True:
                connection = self.connection
                await self._wait_unusable(connection)
                decision = self.after_loss(self._loop.time())
                if not connection.endpoint.is_over:
                    self._leave_later(connection)
                elif isinstance(decision, TryAfter):
                    await connection.leave()
                self.use(await self._connect(decision))
        except PenstockError as error:
            self.reconnector.give_up(error)

    async def _wait_unusable(self, connection: OpenedConnection) -> None:
        """Wait until the connection is over, or its server drains."""
        drain = connection.endpoint.session.streams.drain
        drains, drain.on_peer_draining = new_waiter()
        if drain.is_peer_draining:
            return
        over = self._loop.create_task(connection.wait_over(), name="penstock connection over")
        try:
            await asyncio.wait((over, drains), return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.cancel()
            await asyncio.wait((over,))

    def _leave_later(self, connection: OpenedConnection) -> None:
        """Leave a server that drains when nothing runs any more. It may leave first."""
        task = self._loop.create_task(
            self._leave_when_quiet(connection), name="penstock leaving a server that drains"
        )
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _leave_when_quiet(self, connection: OpenedConnection) -> None:
        try:
            # Looking, because a stream that ends during normal service must not pay for a drain.
            while not (self._left.is_set() or connection.endpoint.is_over or connection.is_quiet):
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._left.wait()
        finally:
            await connection.leave()
