"""The peer as a program on asyncio sees it, and the block around its connection."""

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, TypeVar, Unpack, overload

from penstock.aio._keeper import AsyncioKeeper, Open, OpenedConnection
from penstock.aio._stream import Stream
from penstock.aio._waiter import new_waiter
from penstock.api import Rejected, Time
from penstock.client import (
    AnswerBuffer,
    ClientBlock,
    ClientPeer,
    EndpointSettings,
    RequestOpening,
    SerializerOrName,
    StreamOptions,
    position_in,
    position_question,
    request_opening,
    stream_opening,
)
from penstock.reader import DEFAULT_DEMAND
from penstock.spi import LiveStream, PeerStatistics

T = TypeVar("T")


class Peer(ClientPeer):
    """The other side of a connection. Use it in the event loop that has connected."""

    _keeper: AsyncioKeeper

    def statistics(self) -> PeerStatistics:
        """Return the counts of the connection, and the bytes that it holds now. With a policy to
        reconnect they are those of the last connection.
        """
        return self._keeper.connection.statistics()

    def streams(self) -> list[LiveStream]:
        """Return a record for each stream and request of the connection that is open now, in both
        directions: what it has moved, what waits, and what for.
        """
        return self._keeper.connection.streams()

    async def wait_accepted(self) -> None:
        """Wait until the peer has said hello. Raises Rejected or ConnectionLost if it will not."""
        connection = await self._keeper.current()
        await connection.wait_opened()
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
        opening = stream_opening(
            self._keeper.settings, publisher, kind=type, demand=demand, **options
        )
        return Stream(opening, self._keeper.with_room)

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
        opening = request_opening(
            self._keeper.settings, name, payload, kind=type, serializer=serializer
        )
        while True:
            connection = await self._keeper.current()
            try:
                return opening.value(await _answer(opening, connection))
            except Rejected as refused:
                if not self._keeper.moves(refused, connection):
                    raise

    async def position_at(self, name: str, time: Time) -> int:
        """Return the position of the first element of the peer's log that was appended at `time` or
        later, for ``subscribe(name, start=position)``: that of the oldest element if older ones
        were dropped, and that of the next one if none is as late.

        `time` is a datetime with a time zone, its text, or seconds since 1970. A log with several
        partitions needs one, as in ``"orders?partition=east"``. Raises UsageError without it and
        for a value that is no time, and what `request` raises.
        """
        return position_in(await self.request(position_question(name, time)), name)


async def _answer(opening: RequestOpening, connection: OpenedConnection) -> bytes:
    """Return what the peer answers over that connection."""
    endpoint = connection.endpoint
    if opening.needs_hello(endpoint):
        await connection.wait_opened()
        endpoint.raise_reason()
    await connection.wait_room()
    answer = AnswerBuffer()
    opening.open(endpoint, answer)
    try:
        if not answer.is_over:
            waiter, answer.wake = new_waiter()
            connection.flush()
            await waiter
        data: bytes = answer.take()
        return data
    finally:
        answer.give_up()
        connection.flush()


class AsyncioBlock(ClientBlock, AbstractAsyncContextManager[Peer]):
    """The block around a connection."""

    _keeper: AsyncioKeeper

    def __init__(self, settings: EndpointSettings, open_connection: Open) -> None:
        self._settings = settings
        self._open_connection = open_connection

    async def __aenter__(self) -> Peer:
        self._enter()
        self._keeper = AsyncioKeeper(self._settings, self._open_connection)
        await self._keeper.start()
        return Peer(self._keeper)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._keeper.leave()
        if error is None:
            self._keeper.raise_refusal()
