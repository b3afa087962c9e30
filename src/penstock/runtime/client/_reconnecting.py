"""`connect()` with a policy to reconnect:
a block with a peer whose connection is made again when it is lost.

Rules of this file:

* One task makes one connection after another. Each connection runs in a task of its own.
* A server that drains is left when it says so: new streams and requests wait for the next
  connection. A running stream goes on over the old connection until it ends.
* A connection that has opened when the program leaves the block is closed.
"""

from functools import partial
from types import TracebackType
from typing import Any

import trio

from penstock.api import ConnectionLost, PenstockError
from penstock.client import LOOK_SECONDS, NOW, GiveUp, Reconnector, TryAfter, late
from penstock.runtime.client._open_connection import OpenConnection
from penstock.runtime.client._reconnecting_peer import ReconnectingPeer
from penstock.runtime.connection import ConnectionTask, Peer, is_quiet
from penstock.session import own_copy
from penstock.spi import Connection


class ReconnectingConnection(OpenConnection):
    """The block around a connection that this side makes again when it is lost."""

    _peer: ReconnectingPeer

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._reconnector = Reconnector(
            self._client.reconnect, self._client.registry.events, str(self._url)
        )
        # Connections to servers that drain, on which something runs.
        self._draining: set[ConnectionTask] = set()
        # Set when the program leaves the block: then nothing is made again.
        self._left = trio.Event()
        self._away = trio.CancelScope()  # around the attempts to connect again

    async def _first_connection(self, nursery: trio.Nursery) -> Connection:
        # The policy counts for the first connection too:
        # a client may start a little earlier than its server.
        return await self._connect_after(NOW, nursery)

    def _make_peer(self) -> Peer:
        self._peer = ReconnectingPeer(self._connection, self._settings.registry, self._reconnector)
        self._reconnector.on_connected()
        return self._peer

    async def _run(self, nursery: trio.Nursery) -> None:
        try:
            await self._keep_connected(nursery)
        except PenstockError as error:
            self._reconnector.give_up(error)
        finally:
            # However it ends: what waits for a connection would wait without end.
            self._reconnector.give_up(ConnectionLost("this side closed the connection"))

    async def _keep_connected(self, nursery: trio.Nursery) -> None:
        """Run one connection after another. Raises the error of the last attempt."""
        while True:
            connection = self._connection
            # In tasks: the connection opens while it runs,
            # and runs on while the next one is made if its server drains.
            nursery.start_soon(self._report_open, connection)
            needs_next = trio.Event()
            connection.session.streams.drain.on_peer_draining = partial(
                self._on_draining, nursery, connection, needs_next
            )
            nursery.start_soon(self._run_one, nursery, connection, needs_next)
            await needs_next.wait()
            if self._left.is_set():
                return
            decision = self._reconnector.on_lost(
                connection.reason, opened_at=connection.opened_at, now=trio.current_time()
            )
            # Leaving the block of the program must end a wait between two attempts,
            # which may be 30 seconds long.
            with trio.CancelScope() as self._away:
                transport = await self._connect_after(decision, nursery)
                # The program may have left just when the transport had opened: then no cancel
                # comes, and nothing else knows of it.
                if self._left.is_set():
                    await self._abort(transport)
                    return
                await self._make_connection(transport)
            if self._left.is_set():
                return
            self._peer.use(self._connection)

    async def _run_one(
        self, nursery: trio.Nursery, connection: ConnectionTask, needs_next: trio.Event
    ) -> None:
        try:
            await connection.run(nursery)
        finally:
            # Also after a failure: the loop above would wait without end.
            needs_next.set()

    def _on_draining(
        self, nursery: trio.Nursery, connection: ConnectionTask, needs_next: trio.Event
    ) -> None:
        # Here and not in the task that waits:
        # requests from now on must not go over this connection.
        self._reconnector.on_away()
        self._draining.add(connection)
        nursery.start_soon(self._leave_when_quiet, connection)
        needs_next.set()

    async def _leave_when_quiet(self, connection: ConnectionTask) -> None:
        """Leave a server that drains when nothing runs any more. It may leave first."""
        # Polling: a stream that ends during normal service must not pay for a drain that may come.
        while connection.reason is None and not is_quiet(connection):  # noqa: ASYNC110  # for that reason
            await trio.sleep(LOOK_SECONDS)
        self._draining.discard(connection)
        if connection.reason is None:
            connection.leave("")

    async def _connect_after(
        self, decision: TryAfter | GiveUp, nursery: trio.Nursery
    ) -> Connection:
        """Return a transport connection, after as many attempts as the policy permits.
        Raises the error of the last one.
        """
        while isinstance(decision, TryAfter):
            await trio.sleep(decision.seconds)
            self._reconnector.on_attempt()
            try:
                return await self._open_in_time(nursery)
            except trio.TooSlowError:
                error = late(self._client)
            except ConnectionLost as lost:
                error = lost
            decision = self._reconnector.on_lost(error, opened_at=None, now=trio.current_time())
        # A copy, because several tasks may raise this exception:
        # each raise adds to the traceback of the object.
        raise own_copy(decision.error)

    async def _report_open(self, connection: ConnectionTask) -> None:
        await connection.is_open.wait()
        if connection.reason is None:
            self._reconnector.on_open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Before the cancel: the task that it wakes looks here, and makes no further attempt if the
        # program has left the block.
        self._left.set()
        self._away.cancel()
        # The base class leaves the current connection only;
        # those to servers that drain are left here.
        for connection in [each for each in self._draining if each.reason is None]:
            connection.leave("")
        await super().__aexit__(kind, error, trace)
