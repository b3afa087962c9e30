"""Streams that a draining server refuses are opened again over the next connection. They had not
begun, so nothing is lost or repeated.
"""

from collections.abc import Callable
from typing import Any, Protocol

from penstock.api import Rejected, Subscriber, Subscription, add_demand
from penstock.core import Relay, Scope
from penstock.runtime.connection import ConnectionTask
from penstock.streams import Source


class NextConnection(Protocol):
    """The peer of a connection that is made again."""

    def current(self) -> ConnectionTask:
        """Return the connection of this time."""

    def when_connected(self, act: Callable[[Exception | None], None], /) -> None:
        """Call `act` with None as soon as there is a connection for new streams, or with an
        error if none comes. Perhaps at once.
        """


def was_moved(error: BaseException, connection: ConnectionTask) -> bool:
    """Return whether a draining peer has refused a stream
    or a request of `connection` before it began.
    """
    return (
        isinstance(error, Rejected)
        and error.temporary
        and not error.processed
        and connection.session.streams.drain.is_peer_draining
    )


class ReopenAfterDrain(Source[Any]):
    """A publisher of the peer, as `make` returns it for the connection of that time."""

    __slots__ = ("_make", "_peer")

    def __init__(self, peer: NextConnection, make: Callable[[], Any]) -> None:
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
        peer: NextConnection,
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
        if self._subscriber is not None and was_moved(error, self._connection):
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
