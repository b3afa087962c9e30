"""The peer as a program sees it: the other side of an open connection, to subscribe to
and to send requests to.
"""

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final, TypeVar, Unpack, overload

import trio
from trio.lowlevel import checkpoint_if_cancelled, current_task

from penstock.api import (
    ContentTypes,
    Model,
    PositionedName,
    Positions,
    Request,
    Subscriber,
    Time,
    UsageError,
    on_fact_of,
)
from penstock.client import (
    SerializerOrName,
    StreamOptions,
    check_name,
    checked_stream,
    position_in,
    position_question,
)
from penstock.core import Scope, Stream, check_in_trio
from penstock.reader import DEFAULT_DEMAND
from penstock.runtime.connection._channel_elements import OwnElements
from penstock.runtime.connection._connection import ConnectionTask, statistics_of
from penstock.runtime.connection._decoder import AnnouncedSerializer, AwaitingSerializer
from penstock.runtime.connection._live_streams import joined
from penstock.runtime.connection._remote_stream import RemoteStream
from penstock.runtime.connection._requests import AnswerSubscriber
from penstock.runtime.service import FoundStream, Publication
from penstock.session import DEMAND_SIZE, check_length, own_copy, target_of, why_unsupported
from penstock.spi import (
    LiveStream,
    PeerIdentity,
    PeerStatistics,
    Registry,
    Serializer,
    encode_payload,
    load_answer,
    resolve_serializer,
)
from penstock.streams import Source, Streamable, as_source

T = TypeVar("T")

# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_RESPONSE: Final = Model.RESPONSE


class Peer:
    """The other side of a connection: subscribe to its publishers."""

    def __init__(self, connection: ConnectionTask, registry: Registry) -> None:
        self._connection = connection
        self._registry = registry

    @property
    def identity(self) -> PeerIdentity:
        """The identity of the peer: its address, its certificate, its principal."""
        return self._connection.identify()

    @property
    def is_connected(self) -> bool:
        """True until the connection is over."""
        return self._connection.reason is None

    @property
    def opened_at(self) -> float | None:
        """When both sides had said hello, on trio's clock; None if they have not."""
        return self._connection.opened_at

    def statistics(self) -> PeerStatistics:
        """Return the counts of the connection, and the bytes that it holds now. It looks at each
        open stream once; call it in the run of trio.
        """
        check_in_trio("Peer.statistics()")
        return statistics_of(self._connection)

    def streams(self) -> list[LiveStream]:
        """Return a record for each stream and request of the connection that is open now, in both
        directions: what it has moved, what waits, and what for. Call it in the run of trio.

        `LiveStream.waits_on` names streams of the connection. `Server.streams` joins those of all
        connections.
        """
        check_in_trio("Peer.streams()")
        return joined(tuple(self._connection.open_streams()))

    async def wait_accepted(self) -> None:
        """Wait until the peer has said hello. Raises Rejected or ConnectionLost if it will not.
        Checkpoints.
        """
        check_in_trio("Peer.wait_accepted()")
        await self._connection.is_open.wait()
        if self._connection.reason is not None:
            raise own_copy(self._connection.reason)  # any number of tasks may wait, and wait again

    @overload
    def source(
        self,
        publisher: str,
        *,
        type: type[T],
        **options: Unpack[StreamOptions],
    ) -> Source[T]: ...
    @overload
    def source(
        self,
        publisher: str,
        *,
        type: object = ...,
        **options: Unpack[StreamOptions],
    ) -> Source[Any]: ...
    def source(
        self,
        publisher: str,
        *,
        type: Any = None,
        **options: Unpack[StreamOptions],
    ) -> Source[Any]:
        """Return the peer's publisher as a source, for `pipe`, sinks and callbacks.
        The options are those of `subscribe`.
        """
        return self._source(publisher, type, options)

    @overload
    def subscribe(
        self,
        publisher: str,
        *,
        type: type[T],
        demand: int = ...,
        **options: Unpack[StreamOptions],
    ) -> AbstractAsyncContextManager[RemoteStream[T]]: ...
    @overload
    def subscribe(
        self,
        publisher: str,
        *,
        type: object = ...,
        demand: int = ...,
        **options: Unpack[StreamOptions],
    ) -> AbstractAsyncContextManager[RemoteStream[Any]]: ...
    def subscribe(
        self,
        publisher: str,
        *,
        type: Any = None,
        demand: int = DEFAULT_DEMAND,
        **options: Unpack[StreamOptions],
    ) -> AbstractAsyncContextManager[RemoteStream[Any]]:
        """Open a stream from the peer's publisher for the length of an ``async with`` block.

        `type` is the type of the elements: with a dataclass they arrive as JSON, and are objects of
        it. `serializer` must be the publisher's. Without both the elements are read as the
        publisher announces, and are bytes if it announces nothing. A refusal and a failure are
        raised from the iteration: Rejected, PublisherFailed, ConnectionLost. If elements are large,
        fewer than `demand` are asked for: as many as fit into `window_bytes`, which is
        `Limits.window_bytes` by default. `start` and `stop` are for publishers with a log: a
        position, ``"earliest"`` or ``"latest"``; the stream has the elements from `start` up to,
        and not with, `stop`, and `RemoteStream.position` is that of the next one.
        Leaving the block cancels. Entering raises Cancelled if the task is cancelled, and does not
        wait; leaving checkpoints, unless the reader of the stream has waited within the last 5 ms.
        """
        return RemoteOpening(self._source(publisher, type, options), demand)

    # --- requests by name

    @overload
    async def request(
        self,
        name: str,
        payload: object = ...,
        *,
        type: type[T],
        serializer: SerializerOrName = ...,
        metadata: bytes | None = ...,
    ) -> T: ...
    @overload
    async def request(
        self,
        name: str,
        payload: object = ...,
        *,
        type: None = ...,
        serializer: None = ...,
        metadata: bytes | None = ...,
    ) -> bytes: ...
    @overload
    async def request(
        self,
        name: str,
        payload: object = ...,
        *,
        type: Any = ...,
        serializer: SerializerOrName = ...,
        metadata: bytes | None = ...,
    ) -> Any: ...
    async def request(
        self,
        name: str,
        payload: object = None,
        *,
        type: Any = None,
        serializer: SerializerOrName = None,
        metadata: bytes | None = None,
    ) -> Any:
        """Ask what the peer offers under `name` for one value, and return it;
        `payload` goes along; None means that no payload is sent.

        The peer answers with `Service.request`, or with the first element of a publisher of that
        name. `type` is the type of the answer: a class that is sent as JSON, or str; without it the
        answer is bytes. A payload is sent in the same way, by its own type.
        `serializer` names another format for both. `metadata` goes beside the payload; only RSocket
        has it. A cancel here cancels there.
        Raises Rejected, PublisherFailed and ConnectionLost as streams do, ProtocolError for an
        answer that cannot be read, and UsageError for a name or a payload that cannot be sent. On
        RS.io a payload needs the extension *requests* on both sides. Checkpoints.
        """
        connection = self._connection
        # A mistake in the arguments is raised before anything is sent or waited for.
        media_type = self._media_type()
        loader = resolve_serializer(self._registry, serializer, type, media_type)
        data = encode_payload(self._registry, serializer, payload, media_type)
        check_name(name, connection.session.channel.limits)
        self._check_metadata(metadata)
        try:
            await checkpoint_if_cancelled()
        except RuntimeError:
            # Of trio, outside of trio. Not checked before each request: that would cost a call.
            check_in_trio("Peer.request()")
            raise
        # Extensions are known when the peer's hello has come.
        if data is not None and Model.RESPONSE not in connection.session.channel.dialect.models:
            await self.wait_accepted()
        # Only now: on RS.io the form of the request depends on the extensions of the peer.
        target = target_of(connection.session.channel, name, data, metadata)
        requests = connection.requests
        if not requests.has_room:
            await requests.wait_for_room()
        answer = requests.ask(target)
        try:
            received = await answer.receive()
        finally:
            # A publisher may go on after its first element. Here and not with the element: the end
            # of most requests follows in the same chunk, and then nothing is cancelled.
            answer.give_up()
        # Read here and not in the reader task: a slow serializer holds up this task alone.
        return received if loader is None else load_answer(loader, name, received)

    async def position_at(self, name: str, time: Time) -> int:
        """Return the position of the first element of the peer's log that was appended at `time` or
        later, for ``subscribe(name, start=position)``: that of the oldest element if older ones
        were dropped, and that of the next one if none is as late.

        `time` is a datetime with a time zone, its text, or seconds since 1970. A log with several
        partitions needs one, as in ``"orders?partition=east"``. Raises UsageError without it and
        for a value that is no time, and what `request` raises. Checkpoints.
        """
        return position_in(await self.request(position_question(name, time)), name)

    # --- requests that carry data

    @overload
    async def request_response(
        self,
        data: bytes | str,
        *,
        type: type[T],
        serializer: SerializerOrName = ...,
        metadata: bytes | None = ...,
    ) -> T: ...
    @overload
    async def request_response(
        self,
        data: bytes | str,
        *,
        type: object = ...,
        serializer: SerializerOrName = ...,
        metadata: bytes | None = ...,
    ) -> Any: ...
    async def request_response(
        self,
        data: bytes | str,
        *,
        type: Any = None,
        serializer: SerializerOrName = None,
        metadata: bytes | None = None,
    ) -> Any:
        """Ask for one value, and return it. `type` and `serializer` are those of `subscribe`, and
        `metadata` is that of `request`.

        The meaning of `data` is up to the peer; a publisher's name leads to its first element.
        A cancel here cancels there.
        Raises Rejected, PublisherFailed and ConnectionLost as streams do, and UsageError for data
        that is too long, and if the connection has no such requests: RS.io needs the extension
        *requests* on both sides. Checkpoints.
        """
        # Everything that can be refused is refused before the wait:
        # it may last for as long as the outbox is full.
        # Each call that this path does not make is a hundredth of a request.
        # So the usual cases are decided here.
        connection = self._connection
        requests = connection.requests
        loader = (
            None
            if serializer is type is None
            else resolve_serializer(self._registry, serializer, type, self._media_type())
        )
        dialect = connection.session.channel.dialect
        if (
            _RESPONSE in dialect.models
            and data.__class__ is bytes
            and metadata is None
            and len(data) <= requests.usual_data
        ):
            request = Request(_RESPONSE, data)
        else:
            # RS.io's extension for it is known when the peer's hello has come.
            if _RESPONSE not in dialect.models and not connection.is_open.is_set():
                await self.wait_accepted()
            request = self._request(_RESPONSE, data, metadata=metadata)
        try:
            await checkpoint_if_cancelled()
        except RuntimeError:
            check_in_trio("Peer.request_response()")
            raise
        # Asked here first: most requests find room, and a coroutine
        # that does nothing costs a twentieth of a request.
        if requests.outbox.room() <= 0:
            await requests.wait_for_room()
        # The short way for most requests: no source, no decoder, and no subscriber.
        if loader is None:
            return await requests.ask(request).receive()
        answer = AnswerSubscriber(requests.batcher)
        RemoteSource(self._connection, request, loader).attach(answer)
        return await answer.receive()

    async def fire_and_forget(
        self, data: object, *, name: str | None = None, metadata: bytes | None = None
    ) -> None:
        """Send a message that has no answer; the peer may drop it.
        Returns when the message is queued.

        `name` is what the peer offers under it, `data` its payload, as for `request`, and
        `metadata` goes beside it. Only RSocket has these.

        Raises as `request_response` does. Checkpoints.
        """
        request = self._request(Model.FIRE_AND_FORGET, data, name, metadata=metadata)
        # A loop that sends messages without an answer must let the writer run:
        # nothing else would make it wait.
        try:
            await trio.lowlevel.checkpoint()
        except RuntimeError:
            check_in_trio("Peer.fire_and_forget()")
            raise
        # No demand is granted for these messages. The room in the outbox is their only bound.
        await self._connection.requests.wait_for_room()
        self._connection.session.streams.fire(request)

    async def metadata_push(self, metadata: bytes) -> None:
        """Send metadata about the connection, which has no answer; the peer may drop it.
        Returns when it is queued.

        Raises UsageError if the connection has no such messages: RSocket has them. Checkpoints.
        """
        request = self._request(Model.METADATA_PUSH, metadata)
        await trio.lowlevel.checkpoint()
        # The room in the outbox is the only bound, as for `fire_and_forget`.
        await self._connection.requests.wait_for_room()
        self._connection.session.streams.fire(request)

    @overload
    def request_stream(
        self,
        data: object,
        *,
        type: type[T],
        name: str | None = ...,
        demand: int = ...,
        serializer: SerializerOrName = ...,
        metadata: bytes | None = ...,
    ) -> AbstractAsyncContextManager[RemoteStream[T]]: ...
    @overload
    def request_stream(
        self,
        data: object,
        *,
        type: object = ...,
        name: str | None = ...,
        demand: int = ...,
        serializer: SerializerOrName = ...,
        metadata: bytes | None = ...,
    ) -> AbstractAsyncContextManager[RemoteStream[Any]]: ...
    def request_stream(
        self,
        data: object,
        *,
        type: Any = None,
        name: str | None = None,
        demand: int = DEFAULT_DEMAND,
        serializer: SerializerOrName = None,
        metadata: bytes | None = None,
    ) -> AbstractAsyncContextManager[RemoteStream[Any]]:
        """Ask for a stream, for the length of an ``async with`` block, as `subscribe` does.

        `data` and the exceptions are those of `request_response`. `name` is what the peer offers
        under it, `data` its payload, which is sent as for `request`, and `metadata` goes beside it;
        only RSocket has these.
        """
        request = self._request(Model.STREAM, data, name, serializer, metadata)
        loader = self._loader(serializer, type)
        return RemoteOpening(RemoteSource(self._connection, request, loader), demand)

    def request_channel(
        self,
        elements: Streamable[Any],
        *,
        name: str | None = None,
        type: Any = None,
        demand: int = DEFAULT_DEMAND,
        serializer: SerializerOrName = None,
        metadata: bytes | None = None,
    ) -> AbstractAsyncContextManager[RemoteStream[Any]]:
        """Send `elements` as the peer requests them, and get a stream back, for the length of an
        ``async with`` block, as `subscribe` does. Each direction has its own demand.

        `name` is what the peer offers under it; without one the peer decides. `metadata` goes with
        the request. `type` and `serializer` are those of both directions; without them the elements
        that are sent are bytes. The first element opens the channel: without one nothing is sent,
        and the stream ends as `elements` do. Leaving the block cancels both directions, unless the
        stream has ended. Raises UsageError if the connection has no channels: RSocket has them.
        """
        channel = self._connection.session.channel
        if Model.CHANNEL not in channel.dialect.models:
            raise UsageError(why_unsupported(channel.dialect.name, Model.CHANNEL))
        if name is not None:
            check_name(name, channel.limits)
        sent = Publication(
            as_source(elements), serializer, 0, type, "the elements of request_channel()"
        )
        self._check_metadata(metadata)
        writer = sent.find_serializer(self._registry, self._content_types())
        found = FoundStream(sent, writer, is_single=False)
        request = Request(Model.CHANNEL, b"", metadata, name, OwnElements(found))
        return ChannelOpening(
            RemoteSource(self._connection, request, self._loader(serializer, type)), demand, self
        )

    @overload
    def request_subscription(
        self,
        data: bytes | str,
        *,
        type: type[T],
        demand: int = ...,
        serializer: SerializerOrName = ...,
    ) -> AbstractAsyncContextManager[RemoteStream[T]]: ...
    @overload
    def request_subscription(
        self,
        data: bytes | str,
        *,
        type: object = ...,
        demand: int = ...,
        serializer: SerializerOrName = ...,
    ) -> AbstractAsyncContextManager[RemoteStream[Any]]: ...
    def request_subscription(
        self,
        data: bytes | str,
        *,
        type: Any = None,
        demand: int = DEFAULT_DEMAND,
        serializer: SerializerOrName = None,
    ) -> AbstractAsyncContextManager[RemoteStream[Any]]:
        """Ask for a stream that never completes: if its publisher completes, the stream fails.
        Otherwise as `request_stream`.
        """
        return RemoteOpening(
            self._requesting(Model.SUBSCRIPTION, data, self._loader(serializer, type)), demand
        )

    def _source(self, publisher: str, kind: Any, options: StreamOptions) -> "RemoteSource":
        limits = self._connection.session.channel.limits
        name, window_bytes = checked_stream(publisher, limits, options)
        loader = self._loader(options.get("serializer"), kind)
        return RemoteSource(self._connection, name, loader, window_bytes)

    def _requesting(
        self, model: Model, data: bytes | str, loader: Serializer | None
    ) -> "RemoteSource":
        return RemoteSource(self._connection, self._request(model, data), loader)

    def _request(
        self,
        model: Model,
        data: object,
        name: str | None = None,
        serializer: SerializerOrName = None,
        metadata: bytes | None = None,
    ) -> Request:
        channel = self._connection.session.channel
        # Here, and not in the dialect: a request that cannot be sent must not use up a stream id.
        if model not in channel.dialect.models:
            raise UsageError(why_unsupported(channel.dialect.name, model))
        if isinstance(data, bytes):
            encoded: bytes = data
        elif name is None:
            encoded = _request_data(data)
        else:
            payload = encode_payload(self._registry, serializer, data, self._media_type())
            encoded = b"" if payload is None else payload
        self._check_metadata(metadata)
        # Most data is far below the limit: the exact one is looked up for the rest.
        if len(encoded) > channel.limits.max_frame - DEMAND_SIZE:
            check_length(channel, model, len(encoded))
        if name is not None:
            check_name(name, channel.limits)
            if not channel.dialect.has_routes:
                raise UsageError(
                    f"name={name!r}: this connection speaks {channel.dialect.name}, where a "
                    f"{model.value} has data and no name; connect with rsocket+…://, or put the "
                    "name into the data"
                )
        return Request(model, encoded, metadata, name)

    def _check_metadata(self, metadata: bytes | None) -> None:
        dialect = self._connection.session.channel.dialect
        if metadata is not None and not dialect.has_routes:
            raise UsageError(
                f"metadata= was given, and this connection speaks {dialect.name}, where a request "
                "has data alone; connect with rsocket+…://, or leave it out"
            )

    def _content_types(self) -> ContentTypes | None:
        """Return the MIME types of the connection, in a protocol that names them."""
        # Optional: most dialects lack it.
        return getattr(self._connection.session.channel.dialect, "content_types", None)

    def _media_type(self) -> str | None:
        types = self._content_types()
        return None if types is None else types.data

    def _loader(self, serializer: SerializerOrName, kind: Any) -> Serializer | None:
        if serializer is kind is None:
            # Neither was given: the announcement of the publisher decides,
            # and without one the elements stay bytes.
            return AnnouncedSerializer(self._registry)
        return resolve_serializer(self._registry, serializer, kind, self._media_type())

    def __repr__(self) -> str:
        return f"<peer {self.identity}{'' if self.is_connected else ', gone'}>"


def connection_of(peer: Peer) -> tuple[ConnectionTask, Registry]:
    """Return the connection of a peer, and its registry, for a peer of another shell."""
    # No attributes of the class: those of a peer are a promise to programs.
    return peer._connection, peer._registry  # noqa: SLF001  # as above


def _request_data(data: object) -> bytes:
    if isinstance(data, bytes | bytearray | memoryview):
        # A copy of a bytearray or memoryview: the message may wait while the program changes it.
        return bytes(data)
    if not isinstance(data, str):
        raise UsageError(
            f"a request's data is {type(data).__name__!r}; give bytes, or a text, which is sent as "
            "UTF-8"
        )
    try:
        return data.encode()
    except UnicodeEncodeError:
        raise UsageError(
            f"{data[:200]!a} cannot be a request's data: it holds half a character, which has no "
            "UTF-8"
        ) from None


class RemoteSource(Source[Any]):
    """A publisher of the peer, or a request to it, as a source."""

    __slots__ = ("_connection", "_publisher", "_serializer", "_window_bytes")

    def __init__(
        self,
        connection: ConnectionTask,
        publisher: str | Request,
        serializer: Serializer | None,
        window_bytes: int | None = None,
    ) -> None:
        self._connection = connection
        self._publisher = publisher
        self._serializer = serializer
        self._window_bytes = window_bytes or connection.session.channel.limits.window_bytes

    def attach(
        self, subscriber: Subscriber[Any], scope: Scope | None = None, reader: object = None
    ) -> None:
        # The stream at the end of the pipe knows what was read.
        # Without one nothing does, and the demand alone is the bound.
        reader = reader or (subscriber if scope is None else scope.reader)
        if isinstance(self._publisher, PositionedName) and isinstance(self._publisher.start, int):
            # Known without an answer: over a protocol without the extension *position* none comes.
            tell = on_fact_of(subscriber)
            if tell is not None:
                tell(Positions(self._publisher.start))
        window = None
        # The exact class first: the abstract class Stream takes 20 times as long to compare with.
        if type(reader) is RemoteStream or isinstance(reader, Stream):
            window = reader.count_bytes(
                self._window_bytes, self._connection.session.channel.limits.max_element
            )
        serializer = self._serializer
        if serializer is not None:
            subscriber = AwaitingSerializer(subscriber, serializer)
        self._connection.requests.subscribe(self._publisher, subscriber, window)

    def __repr__(self) -> str:
        return f"<source {self._publisher} of {self._connection.connection.peer}>"


class RemoteOpening:
    """The block around one remote stream. It needs no nursery:
    no task of the stream runs on this side.

    It has no base class: AbstractAsyncContextManager would give each instance a dictionary, and
    idle streams must stay small.
    """

    __slots__ = ("_stream", "source")

    def __init__(self, source: RemoteSource, demand: int) -> None:
        self.source: Source[Any] | None = source
        """The source to subscribe to. Dropped when the block is entered:
        an idle stream must stay small.
        """
        self._stream: RemoteStream[Any] = RemoteStream(demand=demand)

    async def __aenter__(self) -> RemoteStream[Any]:
        try:
            # Not a whole checkpoint: opening waits for nothing,
            # and a pass of the scheduler would be most of its cost.
            await checkpoint_if_cancelled()
        except RuntimeError:
            check_in_trio("opening a stream")
            raise
        # Taken once: entered twice, one stream would get the elements of two subscriptions.
        source, self.source = self.source, None
        if source is None:
            raise UsageError(
                "this subscription was opened before; call subscribe() again for another one"
            )
        self._stream.opener = current_task()
        source.attach(self._stream)  # type: ignore[call-arg]  # without a scope: no task of the stream runs on this side
        return self._stream

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.cancel()
        self._stream.opener = None  # the stream may be kept, and must not keep the task
        # A loop over short streams would otherwise pay one more scheduler pass for each of them.
        if not self._stream.has_just_waited:
            await trio.lowlevel.cancel_shielded_checkpoint()


class ChannelOpening(RemoteOpening):
    """The block around the stream of a channel. It is entered when the connection is open: before,
    no task can make the elements of this side.
    """

    __slots__ = ("_peer",)

    def __init__(self, source: RemoteSource, demand: int, peer: Peer) -> None:
        super().__init__(source, demand)
        self._peer = peer

    async def __aenter__(self) -> RemoteStream[Any]:
        await self._peer.wait_accepted()
        return await super().__aenter__()
