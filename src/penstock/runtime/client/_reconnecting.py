"""`connect()` with a policy to reconnect:
a block with a peer whose connection is made again when it is lost.

Rules of this file:

* A stream that runs and a request that waits when the connection is lost end with its
  `ConnectionLost`. They are not repeated: the peer may have acted on them.
* A stream or a request that the program asks for while the connection is away waits for the next
  one. It fails with the last error if the policy gives up.
* A server that drains is left when it says so: later requests wait for the next connection, and
  those that the server has refused also go over it. A running stream goes on over the old
  connection until it ends.
* A source looks for the connection each time that it is attached,
  so a pipe with `retry` goes on over the next connection.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import Any, Final, cast

import trio

from penstock.api import ConnectionLost, PenstockError, Rejected
from penstock.client import NOW, GiveUp, Reconnector, TryAfter, late
from penstock.runtime.client._open_connection import OpenConnection
from penstock.runtime.client._reopen_after_drain import ReopenAfterDrain, was_moved
from penstock.runtime.connection import ConnectionTask, Peer, RemoteOpening, RemoteStream, is_quiet
from penstock.session import own_copy
from penstock.spi import Connection, Registry
from penstock.streams import Source

Block = AbstractAsyncContextManager[RemoteStream[Any]]

LOOK_SECONDS: Final = 0.05
"""Seconds between two looks at a connection to a server that drains:
it is left when nothing runs on it any more.
"""


class ReconnectingPeer(Peer):
    """The peer of a connection that is made again."""

    def __init__(
        self, connection: ConnectionTask, registry: Registry, reconnector: Reconnector
    ) -> None:
        super().__init__(connection, registry)
        self._reconnector = reconnector

    # --- for the block around it

    def use(self, connection: ConnectionTask) -> None:
        """Go on over that connection."""
        # Replaced before the waiting tasks are woken: they use it at once.
        self._connection = connection
        # Handlers find the peer that the program has, and not that of a lost connection.
        connection.introduce(self)
        self._reconnector.on_connected()

    # --- for streams that move to the next connection

    def current(self) -> ConnectionTask:
        """Return the connection of this time."""
        return self._connection

    def when_connected(self, act: Callable[[Exception | None], None], /) -> None:
        """Call `act` with None as soon as there is a connection for new streams,
        or with an error if none comes.
        """
        self._reconnector.when_connected(lambda: act(self._reconnector.failure()))

    # --- for the program

    async def wait_connected(self) -> None:
        """Wait while the connection is away. Raises the last error if no further attempt is
        made. Checkpoints only if it waits.
        """
        reconnector = self._reconnector
        if self._connection.reason is not None:
            # Here, because the task that connects again has perhaps not had a turn yet.
            reconnector.on_away()
        # A loop: the next connection may be lost before this task runs.
        while reconnector.is_away:
            back = trio.Event()
            reconnector.when_connected(back.set)
            await back.wait()
        reconnector.check()

    async def wait_accepted(self) -> None:
        """Wait until a peer has said hello, over this connection or the next one."""
        await self.wait_connected()
        await super().wait_accepted()

    async def request(self, *arguments: Any, **options: Any) -> Any:
        """Ask as `Peer.request` does, once the connection is there."""
        return await self._ask(super().request, *arguments, **options)

    async def request_response(self, *arguments: Any, **options: Any) -> Any:
        """Ask as `Peer.request_response` does, once the connection is there."""
        return await self._ask(super().request_response, *arguments, **options)

    async def fire_and_forget(self, data: bytes | str) -> None:
        """Send as `Peer.fire_and_forget` does, once the connection is there."""
        await self.wait_connected()
        await super().fire_and_forget(data)

    def source(self, *arguments: Any, **options: Any) -> Source[Any]:
        """Return a source that uses the connection of the time at which it is attached."""
        make = super().source
        make(*arguments, **options)  # a mistake in the arguments is raised here
        return ReopenAfterDrain(self, lambda: make(*arguments, **options))

    def subscribe(self, *arguments: Any, **options: Any) -> Block:
        """Open a stream as `Peer.subscribe` does, once the connection is there."""
        make = super().subscribe
        return self._opening(lambda: make(*arguments, **options))

    def request_stream(self, *arguments: Any, **options: Any) -> Block:
        """Open a stream as `Peer.request_stream` does, once the connection is there."""
        make = super().request_stream
        return self._opening(lambda: make(*arguments, **options))

    def request_subscription(self, *arguments: Any, **options: Any) -> Block:
        """Open a stream as `Peer.request_subscription` does, once the connection is there."""
        make = super().request_subscription
        return self._opening(lambda: make(*arguments, **options))

    def _opening(self, make: Callable[[], Block]) -> Block:
        make()  # a mistake in the arguments is raised here
        return _WaitingOpening(self, make)

    async def _ask(
        self, ask: Callable[..., Awaitable[Any]], *arguments: Any, **options: Any
    ) -> Any:
        """Ask over one connection after another, until one of them is not refused
        because its server drains.
        """
        while True:
            await self.wait_connected()
            connection = self._connection
            try:
                return await ask(*arguments, **options)
            except Rejected as refused:
                if not was_moved(refused, connection):
                    raise


class _WaitingOpening(AbstractAsyncContextManager[RemoteStream[Any]]):
    """The block around a stream that begins when the connection is there."""

    __slots__ = ("_block", "_make", "_peer")

    _block: Block

    def __init__(self, peer: ReconnectingPeer, make: Callable[[], Block]) -> None:
        self._peer = peer
        self._make = make

    async def __aenter__(self) -> RemoteStream[Any]:
        await self._peer.wait_connected()
        # Made after the wait: made earlier it would belong to the connection that was lost,
        # and fail at once.
        self._block = block = self._make()
        # The object behind the block is known: `Peer` has made it.
        opening = cast("RemoteOpening", block)
        opening.source = ReopenAfterDrain(
            self._peer, lambda: cast("RemoteOpening", self._make()).source
        )
        return await self._block.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._block.__aexit__(kind, error, trace)


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
                await self._make_connection(await self._connect_after(decision, nursery))
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
