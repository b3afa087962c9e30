"""The peer as a program on asyncio sees it, and the block around its connection.

Rules of this file:

* A connection has no task. With a policy to reconnect one task makes the connection again;
  it ends before the block is left.
* A stream that runs and a request that waits when the connection is lost end with ConnectionLost.
  New ones wait for the next connection. With a policy to reconnect, a stream whose publisher has
  positions goes on over that one: its reader subscribes again.
"""

import asyncio
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, TypeVar, Unpack, overload

from penstock.aio._connection import AsyncioConnection
from penstock.aio._open import open_connection
from penstock.aio._stream import Stream
from penstock.aio._waiter import new_waiter
from penstock.api import ConnectionLost, PenstockError, UsageError
from penstock.client import (
    NOW,
    AnswerBuffer,
    EndpointSettings,
    GiveUp,
    Reconnector,
    SerializerOrName,
    StreamOptions,
    TryAfter,
    raise_refusal,
    request_opening,
    stream_opening,
)
from penstock.reader import DEFAULT_DEMAND
from penstock.session import own_copy
from penstock.spi import PeerIdentity, PeerStatistics

T = TypeVar("T")


class Peer:
    """The other side of a connection. Use it in the event loop that has connected."""

    def __init__(
        self, settings: EndpointSettings, connection: AsyncioConnection, reconnector: Reconnector
    ) -> None:
        self.settings: EndpointSettings = settings
        """The settings of `connect`."""
        self._loop = asyncio.get_running_loop()
        self._connection = connection
        self._reconnector = reconnector

    # --- facts

    @property
    def identity(self) -> PeerIdentity:
        """The identity of the peer: its address, its certificate, its principal."""
        return self._connection.endpoint.identity

    @property
    def is_connected(self) -> bool:
        """True until the connection is over."""
        return self._connection.endpoint.reason is None

    @property
    def opened_at(self) -> float | None:
        """When both sides had said hello, on the clock of the event loop; None if they have not."""
        return self._connection.endpoint.opened_at

    def statistics(self) -> PeerStatistics:
        """Return the counts of the connection, and the bytes that it holds now. With a policy to
        reconnect they are those of the last connection.
        """
        return self._connection.statistics()

    async def wait_accepted(self) -> None:
        """Wait until the peer has said hello. Raises Rejected or ConnectionLost if it will not."""
        connection = await self._current()
        await connection.wait_until(lambda: connection.endpoint.opened_at is not None)
        connection.endpoint.raise_reason()

    # --- streams

    @overload
    def subscribe(
        self,
        publisher: str,
        *,
        type: type[T],
        demand: int = ...,
        **options: Unpack[StreamOptions],
    ) -> Stream[T]: ...
    @overload
    def subscribe(
        self,
        publisher: str,
        *,
        type: object = ...,
        demand: int = ...,
        **options: Unpack[StreamOptions],
    ) -> Stream[Any]: ...
    def subscribe(
        self,
        publisher: str,
        *,
        type: Any = None,
        demand: int = DEFAULT_DEMAND,
        **options: Unpack[StreamOptions],
    ) -> Stream[Any]:
        """Open a stream from the peer's publisher for the length of an ``async with`` block.

        `type` is the type of the elements: with a dataclass they arrive as JSON, and are objects of
        it. `serializer` must be the publisher's. Without both the elements are bytes. At most
        `demand` elements are under way or buffered, and fewer if they are large: as many as fit
        into `window_bytes`. `start` and `stop` are for publishers with a log: a position,
        ``"earliest"`` or ``"latest"``; the stream has the elements from `start` up to, and not
        with, `stop`, and `Stream.position` is that of the next one.
        A refusal and a failure are raised from the iteration: Rejected, PublisherFailed,
        ConnectionLost. Leaving the block cancels.
        """
        opening = stream_opening(self.settings, publisher, kind=type, demand=demand, **options)
        return Stream(self, opening)

    # --- requests

    @overload
    async def request(
        self, name: str, payload: object = ..., *, type: type[T], serializer: SerializerOrName = ...
    ) -> T: ...
    @overload
    async def request(
        self, name: str, payload: object = ..., *, type: None = ..., serializer: None = ...
    ) -> bytes: ...
    @overload
    async def request(
        self,
        name: str,
        payload: object = ...,
        *,
        type: Any = ...,
        serializer: SerializerOrName = ...,
    ) -> Any: ...
    async def request(
        self,
        name: str,
        payload: object = None,
        *,
        type: Any = None,
        serializer: SerializerOrName = None,
    ) -> Any:
        """Ask what the peer offers under `name` for one value, and return it;
        `payload` goes along; None means that no payload is sent.

        The peer answers with `Service.request`, or with the first element of a publisher of that
        name. `type` is the type of the answer: a class that is sent as JSON, or str; without it the
        answer is bytes. A payload is sent in the same way, by its own type.
        A cancel here cancels there. Raises Rejected, PublisherFailed and ConnectionLost as streams
        do, ProtocolError for an answer that cannot be read, and UsageError for a name or a payload
        that cannot be sent.
        """
        opening = request_opening(self.settings, name, payload, kind=type, serializer=serializer)
        connection = await self._current()
        endpoint = connection.endpoint
        if opening.needs_hello(endpoint):
            await connection.wait_until(lambda: endpoint.opened_at is not None)
            endpoint.raise_reason()
        await connection.wait_until(lambda: endpoint.has_room)
        answer = AnswerBuffer()
        opening.open(endpoint, answer)
        try:
            if not answer.is_over:
                waiter, answer.wake = new_waiter()
                connection.flush()
                await waiter
            data = answer.take()
        finally:
            answer.give_up()
            connection.flush()
        return opening.value(data)

    # --- for streams and for the block

    async def connection_with_room(self) -> AsyncioConnection:
        """Return the connection when it is open and has room."""
        connection = await self._current()
        await connection.wait_until(lambda: connection.endpoint.has_room)
        return connection

    def use(self, connection: AsyncioConnection) -> None:
        """Go on over that connection."""
        # Replaced before the waiting tasks are woken: they use it at once.
        self._connection = connection
        self._reconnector.on_connected()

    def __repr__(self) -> str:
        return f"<peer {self.identity}{'' if self.is_connected else ', gone'}>"

    # --- inside

    async def _current(self) -> AsyncioConnection:
        if asyncio.get_running_loop() is not self._loop:
            raise UsageError(
                "this peer belongs to another event loop; connect in the loop, and in the "
                "thread, that uses it"
            )
        reconnector = self._reconnector
        if self._connection.endpoint.is_closing:
            # Here, because the task that reconnects has perhaps not had a turn yet.
            reconnector.on_away()
        while reconnector.is_away:
            waiter, resolve = new_waiter()
            reconnector.when_connected(resolve)
            await waiter
        reconnector.check()
        return self._connection


class AsyncioBlock(AbstractAsyncContextManager[Peer]):
    """The block around a connection."""

    _peer: Peer
    _connection: AsyncioConnection

    def __init__(self, settings: EndpointSettings) -> None:
        self._settings = settings
        self._reconnector = Reconnector(
            settings.reconnect, settings.registry.events, str(settings.url)
        )
        self._keeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Peer:
        self._connection = await self._connect(NOW)
        self._peer = Peer(self._settings, self._connection, self._reconnector)
        self._reconnector.on_connected()
        if self._settings.reconnect is not None:
            self._keeper = asyncio.get_running_loop().create_task(
                self._keep_connected(), name="penstock reconnecting"
            )
        return self._peer

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        endpoint = self._connection.endpoint
        was_ending = endpoint.is_closing  # its reason is known once both sides have said goodbye
        try:
            if self._keeper is not None:
                self._keeper.cancel()
                await asyncio.wait((self._keeper,))
                # Streams and requests of other tasks wait for a connection that does not come.
                self._reconnector.give_up(ConnectionLost("this side closed the connection"))
        finally:
            await self._connection.leave()
        if error is None and was_ending:
            raise_refusal(endpoint.reason, self._settings)

    # --- inside

    async def _connect(self, decision: TryAfter | GiveUp) -> AsyncioConnection:
        """Return a connection, after as many attempts as the policy permits.
        Raises the error of the last one.
        """
        while isinstance(decision, TryAfter):
            await asyncio.sleep(decision.seconds)
            self._reconnector.on_attempt()
            try:
                connection = await open_connection(self._settings)
            except ConnectionLost as error:
                decision = self._reconnector.on_lost(error, opened_at=None, now=_now())
            else:
                connection.on_open = self._reconnector.on_open
                return connection
        raise own_copy(decision.error)

    async def _keep_connected(self) -> None:
        """Make the connection again, each time that it is lost."""
        try:
            while True:
                connection = self._connection
                await connection.wait_until(lambda: False)
                endpoint = connection.endpoint
                decision = self._reconnector.on_lost(
                    endpoint.reason, opened_at=endpoint.opened_at, now=_now()
                )
                if isinstance(decision, TryAfter):
                    await connection.leave()
                self._connection = await self._connect(decision)
                self._peer.use(self._connection)
        except PenstockError as error:
            self._reconnector.give_up(error)


def _now() -> float:
    return asyncio.get_running_loop().time()
