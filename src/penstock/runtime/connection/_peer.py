"""The peer, as a program sees it: whoever is at the other end of an open connection."""

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final

import trio

from penstock.api import Model, PenstockError, PluginError, ProtocolError, Request, Subscriber, Subscription, UsageError
from penstock.core import DEFAULT_DEMAND, Scope, Source
from penstock.plugins import PeerIdentity, Registry, Serializer
from penstock.runtime.connection._connection import ConnectionTask
from penstock.runtime.connection._pending_answer import PendingAnswer
from penstock.runtime.connection._remote_stream import RemoteStream

DEMAND_SIZE: Final = 8
"""Bytes that the initial demand of a stream takes of its request's frame."""


class Peer:
    """The other side of a connection: subscribe to what it publishes."""

    def __init__(self, conversation: ConnectionTask, registry: Registry) -> None:
        self._conversation = conversation
        self._registry = registry

    @property
    def identity(self) -> PeerIdentity:
        """Who is there, as far as the transport can tell."""
        return self._conversation.connection.peer

    @property
    def is_connected(self) -> bool:
        """The connection is not over."""
        return self._conversation.reason is None

    async def wait_accepted(self) -> None:
        """Return when the peer has said hello. Raises why it will not: Rejected, or ConnectionLost. Checkpoints."""
        await self._conversation.is_open.wait()
        if self._conversation.reason is not None:
            raise self._conversation.reason

    def source(self, publisher: str, *, serializer: str = "bytes") -> Source[Any]:
        """Return the peer's publisher as a source, for `pipe`, sinks, and callback users."""
        return RemoteSource(self._conversation, publisher, self._loader(serializer))

    def subscribe(
        self, publisher: str, *, demand: int = DEFAULT_DEMAND, serializer: str = "bytes"
    ) -> AbstractAsyncContextManager[RemoteStream[Any]]:
        """Open a stream from the peer's publisher for the length of an ``async with`` block.

        `serializer` must be the publisher's. A refusal and a failure are raised from the iteration: Rejected, PublisherFailed,
        ConnectionLost. Leaving the block cancels. Entering raises where its task is cancelled, and waits for nothing; leaving checkpoints,
        unless the stream's reader has waited within the last 5 ms.
        """
        return _RemoteOpening(RemoteSource(self._conversation, publisher, self._loader(serializer)), demand)

    # --- requests that carry data

    async def request_response(self, data: bytes | str, *, serializer: str = "bytes") -> Any:
        """Ask for one value, and return it.

        `data` says what for, in the peer's own terms; a publisher's name leads to its first element. Cancelled, it cancels there.
        Raises Rejected, PublisherFailed and ConnectionLost as streams do, and UsageError for data that is too long, and where the
        connection speaks a protocol without such requests (RS.io). Checkpoints.
        """
        asking, request, loader = self._conversation.asking, self._request(Model.RESPONSE, data), self._loader(serializer)
        await asking.wait_room()
        answer = PendingAnswer(asking.company)
        if loader is None and asking.is_plain:
            answer.subscription = asking.ask(request, answer)
        else:
            RemoteSource(self._conversation, request, loader).attach(answer)
        return await answer.receive()

    async def fire_and_forget(self, data: bytes | str) -> None:
        """Tell the peer something that has no answer: it may take it or not. Returns when it is on its way.

        Raises as `request_response` does. Checkpoints.
        """
        request = self._request(Model.FIRE_AND_FORGET, data)
        await trio.lowlevel.checkpoint()
        await self._conversation.asking.wait_room()
        self._conversation.session.fire(request)

    def request_stream(
        self, data: bytes | str, *, demand: int = DEFAULT_DEMAND, serializer: str = "bytes"
    ) -> AbstractAsyncContextManager[RemoteStream[Any]]:
        """Ask for a stream, for the length of an ``async with`` block, as `subscribe` does.

        `data` is as for `request_response`, and so is what it raises.
        """
        return _RemoteOpening(self._requesting(Model.STREAM, data, serializer), demand)

    def request_subscription(
        self, data: bytes | str, *, demand: int = DEFAULT_DEMAND, serializer: str = "bytes"
    ) -> AbstractAsyncContextManager[RemoteStream[Any]]:
        """Ask for a stream that has no end of its own: if its publisher ends, it fails. Otherwise as `request_stream`."""
        return _RemoteOpening(self._requesting(Model.SUBSCRIPTION, data, serializer), demand)

    def _requesting(self, model: Model, data: bytes | str, serializer: str) -> "RemoteSource":
        return RemoteSource(self._conversation, self._request(model, data), self._loader(serializer))

    def _request(self, model: Model, data: bytes | str) -> Request:
        session = self._conversation.session
        if model not in session.dialect.models:
            raise UsageError(
                f"this connection speaks {session.dialect.name}, which has no {model.value}: use subscribe(), "
                "or connect with reactivesocket+…://"
            )
        said = _request_data(data)
        most = session.limits.max_frame - (DEMAND_SIZE if model in (Model.STREAM, Model.SUBSCRIPTION) else 0)
        if len(said) > most:
            raise UsageError(f"request data of {len(said)} bytes; {most} is the most, for requests are not split (Limits.max_frame)")
        return Request(model, said)

    def _loader(self, serializer: str) -> Serializer | None:
        return None if serializer == "bytes" else self._registry.serializer(serializer)

    def __repr__(self) -> str:
        return f"<peer {self.identity}{'' if self.is_connected else ', gone'}>"


def _request_data(data: object) -> bytes:
    if type(data) is bytes:  # most often, and `isinstance` has more to think about
        return data
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    if not isinstance(data, str):
        raise UsageError(f"a request's data is {type(data).__name__!r}; give bytes, or a text, which goes as UTF-8")
    try:
        return data.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{data[:200]!a} cannot be a request's data: it holds half a character, which has no UTF-8") from None


def _check_name(publisher: str, most: int) -> None:
    """Refuse what the peer would refuse: a bad name there costs the whole connection, here only the call."""
    if not publisher:
        raise UsageError("subscribe(''): give the publisher's name")
    try:
        size = len(publisher.encode())
    except UnicodeEncodeError:
        raise UsageError(f"{publisher!a} is no publisher's name: it holds half a character, which has no UTF-8") from None
    if size > most:
        raise UsageError(f"a publisher's name of {size} bytes; {most} is the most (Limits.max_name)")


class RemoteSource(Source[Any]):
    """A publisher of the peer's."""

    __slots__ = ("_conversation", "_publisher", "_serializer")

    def __init__(self, conversation: ConnectionTask, publisher: str | Request, serializer: Serializer | None) -> None:
        if isinstance(publisher, str):
            _check_name(publisher, conversation.session.limits.max_name)
        self._conversation = conversation
        self._publisher = publisher
        self._serializer = serializer

    def attach(self, subscriber: Subscriber[Any], scope: Scope | None = None) -> None:
        self._conversation.asking.subscribe(
            self._publisher, subscriber if self._serializer is None else _Decoder(subscriber, self._serializer)
        )

    def __repr__(self) -> str:
        return f"<source {self._publisher} of {self._conversation.connection.peer}>"


class _RemoteOpening:
    """The block around one remote stream. No nursery: nothing of it runs on this side. (No base class: its dictionary would cost more.)"""

    __slots__ = ("_source", "_stream")

    def __init__(self, source: RemoteSource, demand: int) -> None:
        self._source: RemoteSource | None = source  # until the block is entered; an idle stream keeps nothing that it does not need
        self._stream: RemoteStream[Any] = RemoteStream(demand=demand)

    async def __aenter__(self) -> RemoteStream[Any]:
        await trio.lowlevel.checkpoint_if_cancelled()
        source, self._source = self._source, None
        if source is None:
            raise UsageError("this subscription was opened before; call subscribe() again for another one")
        source.attach(self._stream)
        return self._stream

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stream.cancel()
        if not self._stream.has_just_waited:
            await trio.lowlevel.cancel_shielded_checkpoint()


def _blamed(error: Exception, serializer: str) -> Exception:
    """Say who must act where an element cannot be read: most often it is whoever named another serializer than the publisher's."""
    if isinstance(error, ProtocolError):
        told = ProtocolError(f"{error}; is serializer={serializer!r} what the publisher has, too?", reason=error.reason)
    elif isinstance(error, PenstockError):
        return error
    else:
        return PluginError(f"the serializer {serializer!r} raised {error!r}, where only ProtocolError and UsageError are due")
    told.__cause__ = error
    return told


class _Decoder(Subscriber[bytes], Subscription):
    """Turns bytes into elements on their way from the peer."""

    __slots__ = ("_serializer", "_subscriber", "_upstream")

    _upstream: Subscription

    def __init__(self, subscriber: Subscriber[Any], serializer: Serializer) -> None:
        self._subscriber: Subscriber[Any] | None = subscriber
        self._serializer = serializer

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription
        if self._subscriber is not None:
            self._subscriber.on_subscribe(self)

    def on_next(self, element: bytes, /) -> None:
        subscriber = self._subscriber
        if subscriber is None:
            return
        try:
            loaded = self._serializer.loads(element)
        except Exception as error:  # boundary: a serializer, perhaps somebody's plugin
            self.cancel()
            subscriber.on_error(_blamed(error, self._serializer.name))
            return
        subscriber.on_next(loaded)

    def on_error(self, error: BaseException, /) -> None:
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_error(error)

    def on_complete(self, /) -> None:
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_complete()

    def request(self, n: int, /) -> None:
        self._upstream.request(n)

    def cancel(self, /) -> None:
        if self._subscriber is not None:
            self._subscriber = None
            self._upstream.cancel()
