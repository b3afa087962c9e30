"""The block around a connection that this side opens.
When the block has been left, no task of the connection runs.

Rules of this file:

* The tasks of the connection run in a nursery of the block.
  Leaving the block says goodbye within its deadline, and closes.
* An exception of the body leaves the block unchanged. A lost connection is raised from the streams,
  where a task waits for it, and not from the block. A refusal by the peer is raised from the block
  as well: without a stream nothing else would report it.
* A failure while the connection is made is an exception of that `async with` alone:
  the nursery is left properly first.
"""

from contextlib import AbstractAsyncContextManager
from types import TracebackType

import attrs
import trio

from penstock.api import ConnectionLost, PenstockError, PluginError, Role, shown
from penstock.client import ClientBlock, ClientSettings, late, raise_refusal, with_extensions
from penstock.core import check_in_trio
from penstock.runtime.client._redial import (
    ClientHandover,
    ClientResumption,
    NotNowError,
    judge,
    run_or_cut,
)
from penstock.runtime.connection import (
    ConnectionEvents,
    ConnectionSettings,
    ConnectionTask,
    MemoryBudget,
    Peer,
    close,
    exit_nursery,
    new_connection,
)
from penstock.runtime.service import Service
from penstock.session import Resume, Resuming
from penstock.spi import Connection, Events


class OpenConnection(ClientBlock, AbstractAsyncContextManager[Peer]):
    """The block around a connection that this side opens."""

    def __init__(self, client: ClientSettings, service: Service) -> None:
        self._client = client
        self._url = client.url
        self._settings = ConnectionSettings(
            service=service,
            registry=client.registry,
            limits=client.limits,
            on_violation=client.on_violation,
            # A budget for this connection alone: only the connections of a server share one.
            budget=MemoryBudget(client.limits.memory_budget),
        )
        self._connection: ConnectionTask
        self._tasks: trio.Nursery

    async def __aenter__(self) -> Peer:
        check_in_trio("connect()")
        self._enter()
        # First, so that entering checkpoints also if everything below is refused at once.
        await trio.lowlevel.checkpoint()
        # Strict groups: `exit_nursery` relies on a group,
        # and takes a single exception out of it again.
        self._nursery = trio.open_nursery(strict_exception_groups=True)
        nursery = await self._nursery.__aenter__()
        self._nursery_scope, self._tasks = nursery.cancel_scope, nursery
        try:
            await self._make_connection(await self._first_connection(nursery))
            # Only when everything was made: a task that runs cannot be taken back without a
            # goodbye.
            peer = self._make_peer()
            # Before the tasks run: a handler may look for the peer with the first message.
            self._connection.introduce(peer)
            nursery.start_soon(self._run, nursery)
        except BaseException as error:
            # The nursery must be left here, after every kind of failure: trio ends the whole run if
            # an open nursery is dropped.
            nursery.cancel_scope.cancel()
            await exit_nursery(self._nursery, error, on_violation=self._settings.on_violation)
            if isinstance(error, trio.TooSlowError):
                # The error of trio would name neither the address nor the limit.
                raise late(self._client) from None
            raise
        return peer

    # --- overridden by a block that reconnects

    async def _first_connection(self, nursery: trio.Nursery) -> Connection:
        return await self._open_in_time(nursery)

    def _make_peer(self) -> Peer:
        return Peer(self._connection, self._settings.registry)

    async def _run(self, nursery: trio.Nursery) -> None:
        await self._connection.run(nursery)

    # --- inside

    async def _open_in_time(self, nursery: trio.Nursery) -> Connection:
        # One deadline for the transport and its handshake.
        # The hello of the protocol has its own, inside the session.
        with trio.fail_after(self._settings.limits.handshake_timeout):
            return await self._open_transport(nursery)

    async def _open_transport(self, nursery: trio.Nursery) -> Connection:
        transport = self._settings.registry.transport(self._url.transport)
        try:
            connection = self._checked(
                await transport.connect(self._url, options=self._client.options, nursery=nursery)
            )
            try:
                await connection.handshake(nursery)
            # A cancel as well: the transport would stay open, and nothing else knows of it.
            except BaseException:
                await self._abort(connection)
                raise
        # UsageError and ConnectionLost are what a transport may raise;
        # TooSlowError is the deadline around this call.
        except (PenstockError, trio.TooSlowError):
            raise
        except Exception as error:  # boundary: a transport may be a plugin
            raise PluginError(
                f"the transport {self._url.transport!r} raised, where only UsageError and "
                f"ConnectionLost are due: {error!r}"
            ) from error
        return connection

    def _checked(self, made: object) -> Connection:
        # Checked here: an AttributeError from the depth of the session would not name the
        # transport.
        if isinstance(made, Connection):
            return made
        raise PluginError(
            f"the transport {self._url.transport!r} returned {shown(made)} from connect(), where a "
            "penstock.spi.Connection is due"
        )

    async def _make_connection(self, connection: Connection) -> None:
        """Make the connection task.
        A dialect or an extension that raises here ends this connection only.
        """
        client = self._client
        dialect, settings = client.spoken(connection.facts.protocol, framed=connection.framed)
        resumption = ClientResumption(client.limits, self._dial) if client.resume else None
        if resumption is not None:
            settings = with_extensions(dialect, settings, Resume(resumption))
        try:
            self._connection = new_connection(
                connection,
                self._settings,
                role=Role.CLIENT,
                events=ConnectionEvents(
                    self._settings.registry.events, address=str(self._url), accepted=False
                ),
                offers=[(dialect, settings)],
                resumption=resumption,
            )
        # Nothing else knows of this transport yet, so it is closed here.
        except BaseException:
            await self._abort(connection)
            raise

    async def _dial(self, token: bytes, received: int, kept: int) -> tuple[Connection, bytes, int]:
        """Connect again, and ask the server to go on with a connection that was lost.
        See `Dial`.
        """
        handover = ClientHandover(token, received, kept)
        try:
            connection = await self._open_in_time(self._tasks)
        # Nothing has answered yet, and the next attempt may find a server.
        except ConnectionLost as lost:
            raise NotNowError(str(lost)) from None
        except trio.TooSlowError:
            raise NotNowError(str(late(self._client))) from None
        # A fault of a plugin, or of the options: each further attempt would meet it.
        except PenstockError as error:
            raise ConnectionLost(str(error)) from error
        try:
            # The hello lists no encodings, so this connection stays in the encoding of its hello.
            extensions = attrs.evolve(self._client.extensions, encodings=())
            client = attrs.evolve(self._client, extensions=extensions, setup=b"")
            dialect, settings = client.spoken(connection.facts.protocol, framed=connection.framed)
            # A connection that serves nothing and calls no observer: it asks one question, and then
            # its transport is the next link.
            task = new_connection(
                connection,
                attrs.evolve(self._settings, service=Service()),
                role=Role.CLIENT,
                events=ConnectionEvents(Events(), address=str(self._url), accepted=False),
                offers=[(dialect, with_extensions(dialect, settings, Resuming(handover.takeover)))],
                handover=handover,
            )
            await run_or_cut(task)
        finally:
            # The transport was not handed over, so it is closed here.
            # Shielded, because a cancel may have come.
            if handover.connection is None:
                with trio.CancelScope(shield=True):
                    await self._abort(connection)
        if handover.connection is None or handover.takeover.said is None:
            raise judge(task.reason, task.session.close_reason[0])
        return handover.connection, *handover.takeover.said

    async def _abort(self, connection: Connection) -> None:
        # An abort that raises is reported: the error that led here must reach the caller.
        await close(
            connection,
            in_good_order=False,
            seconds=self._settings.limits.goodbye_timeout,
            on_violation=self._settings.on_violation,
        )

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            # An empty reason: the program is done, and nothing went wrong.
            self._connection.leave("")
        except BaseException as raised:  # a subscriber's on_error, or a plugin's dialect
            # The nursery must be left in any case. An open one would end the whole run:
            # "Nursery stack corrupted".
            self._nursery_scope.cancel()
            await exit_nursery(self._nursery, raised, on_violation=self._settings.on_violation)
            raise
        await exit_nursery(self._nursery, error, on_violation=self._settings.on_violation)
        # An exception of the body goes first: it is nearer to the mistake than a refusal.
        # A block that reconnects has tried again. If it gave up, its streams have got the error.
        if error is None:
            raise_refusal(self._connection.reason, self._client)
