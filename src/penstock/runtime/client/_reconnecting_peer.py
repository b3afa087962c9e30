"""The peer of a connection that is made again when it is lost.

Rules of this file:

* A stream that runs and a request that waits when the connection is lost end with its
  `ConnectionLost`. They are not repeated: the peer may have acted on them.
* A stream or a request that the program asks for while the connection is away waits for the next
  one. It fails with the last error if the policy gives up.
* A stream or a request that a draining server refuses goes over the next connection. It had not
  begun, so nothing is lost or repeated.
* A source looks for the connection each time that it is attached,
  so a pipe with `retry` goes on over the next connection.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, cast

import trio

from penstock.api import Rejected, Subscriber, Subscription, add_demand
from penstock.client import Reconnector, was_moved
from penstock.core import Relay, Scope
from penstock.runtime.connection import ConnectionTask, Peer, RemoteOpening, RemoteStream
from penstock.spi import Registry
from penstock.streams import Source

Block = AbstractAsyncContextManager[RemoteStream[Any]]


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
        made and the program is not cancelled. Checkpoints only if it waits.
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
        if reconnector.failure() is not None:
            # A scope around the block that is cancelled ends the attempts. The program is to see
            # its own cancellation, and not what follows from it.
            await trio.lowlevel.checkpoint_if_cancelled()
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

    async def fire_and_forget(self, *arguments: Any, **options: Any) -> None:
        """Send as `Peer.fire_and_forget` does, once the connection is there."""
        await self.wait_connected()
        await super().fire_and_forget(*arguments, **options)

    async def metadata_push(self, metadata: bytes) -> None:
        """Send as `Peer.metadata_push` does, once the connection is there."""
        await self.wait_connected()
        await super().metadata_push(metadata)

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

    def request_channel(self, *arguments: Any, **options: Any) -> Block:
        """Open a channel as `Peer.request_channel` does, once the connection is there."""
        make = super().request_channel
        make(*arguments, **options)  # a mistake in the arguments is raised here
        # Not opened anew after a drain: its elements may be those of an iterator.
        return _WaitingOpening(self, lambda: make(*arguments, **options), moves=False)

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
                if not was_moved(refused, connection.session):
                    raise


class _WaitingOpening(AbstractAsyncContextManager[RemoteStream[Any]]):
    """The block around a stream that begins when the connection is there."""

    __slots__ = ("_block", "_make", "_moves", "_peer")

    _block: Block

    def __init__(
        self, peer: ReconnectingPeer, make: Callable[[], Block], *, moves: bool = True
    ) -> None:
        """With `moves`, a stream that a draining peer refuses is opened anew."""
        self._peer = peer
        self._make = make
        self._moves = moves

    async def __aenter__(self) -> RemoteStream[Any]:
        await self._peer.wait_connected()
        # Made after the wait: made earlier it would belong to the connection that was lost,
        # and fail at once.
        self._block = block = self._make()
        if self._moves:
            # The object of the block is known: `Peer` has made it.
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


class ReopenAfterDrain(Source[Any]):
    """A publisher of the peer, as `make` returns it for the connection of that time."""

    __slots__ = ("_make", "_peer")

    def __init__(self, peer: ReconnectingPeer, make: Callable[[], Any]) -> None:
        self._peer = peer
        self._make = make

    def attach(self, subscriber: Subscriber[Any], scope: Scope | None = None) -> None:
        _MovingStream(self._peer, self._make, subscriber, scope).open()


class _MovingStream(Relay[Any]):
    """One stream, until it has begun over one of the connections.
    From then on it only passes signals on.
    """

    __slots__ = (
        "_connection",
        "_is_subscribed",
        "_make",
        "_peer",
        "_reader",
        "_requested",
        "_scope",
    )

    def __init__(
        self,
        peer: ReconnectingPeer,
        make: Callable[[], Any],
        subscriber: Subscriber[Any],
        scope: Scope | None,
    ) -> None:
        super().__init__(subscriber)
        self._peer = peer
        self._make = make
        self._scope = scope
        # The stream at the end of the pipe, which knows what was read: its bytes are counted.
        self._reader = subscriber if scope is None else scope.reader
        self._is_subscribed = False
        # All of it is due again, because a stream that was refused has brought no element.
        self._requested = 0

    def open(self) -> None:
        """Subscribe over the connection of this time."""
        self._connection = self._peer.current()
        # Made anew: an object that is kept would belong to the connection that drains.
        self._make().attach(self, self._scope, self._reader)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if not self._is_subscribed:
            self._is_subscribed = True
            super().on_subscribe(subscription)
        elif self._subscriber is not None:
            # rule 2.5: one on_subscribe, for any number of connections.
            self._upstream = subscription
            if self._requested:
                subscription.request(self._requested)
        else:
            # The subscriber has cancelled while this stream was being opened.
            subscription.cancel()

    def on_error(self, error: BaseException, /) -> None:
        if self._subscriber is not None and was_moved(error, self._connection.session):
            # The stream of the old connection is over:
            # a request from now on only adds to `_requested`.
            self._upstream = None
            self._peer.when_connected(self._on_connected)
        else:
            super().on_error(error)

    def request(self, n: int, /) -> None:
        self._requested = add_demand(self._requested, n)
        super().request(n)

    # --- inside

    def _on_connected(self, error: Exception | None) -> None:
        if error is not None:
            super().on_error(error)
        elif self._subscriber is not None:  # it may have cancelled between two connections
            self.open()
