"""The peer of a client without trio, and its connection, which is made again when it is lost.

Each shell derives from both: a keeper opens connections in the way of its shell, and the peer adds
the calls of a program. This module and `Reconnector` decide when the next connection is made, and
which calls use it.

Rules of this file:

* A stream that runs and a request that waits when the connection is lost end with ConnectionLost.
  New ones wait for the next connection. With a policy to reconnect, a stream whose publisher has
  positions goes on over that one: its reader subscribes again.
* With a policy to reconnect, a server that drains is left when it says so: new streams and requests
  go over the next connection, and so do those that it refuses. A running stream goes on over the
  old connection until it ends.
"""

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from penstock.api import ByteWindow, ConnectionLost, Subscriber, UsageError
from penstock.client._failures import raise_refusal, was_moved
from penstock.client._reconnector import GiveUp, Reconnector, TryAfter
from penstock.client._settings import EndpointSettings
from penstock.session import Session
from penstock.spi import PeerIdentity


class PeerEndpoint(Protocol):
    """One connection as a peer, its streams and its requests use it: an `Endpoint`, or a connection
    of trio.
    """

    on_opened: Callable[[], None]
    """Called when both sides have said hello."""

    @property
    def session(self) -> Session:
        """The session of the connection."""

    @property
    def identity(self) -> PeerIdentity:
        """The identity of the peer."""

    @property
    def opened_at(self) -> float | None:
        """When both sides had said hello, if they have."""

    @property
    def reason(self) -> Exception | None:
        """Why the connection is over, once it is."""

    @property
    def is_over(self) -> bool:
        """Nothing is sent or received any more, except the answer to a goodbye."""

    @property
    def is_closing(self) -> bool:
        """One side has said goodbye, or the connection is over."""

    @property
    def has_room(self) -> bool:
        """A request may be queued. On a closing connection the request itself raises."""

    @property
    def has_output(self) -> bool:
        """The owner has something to send."""

    def subscribe(
        self, target: Any, subscriber: Subscriber[Any], window: ByteWindow | None = None
    ) -> None:
        """Open a stream to a publisher of the peer."""

    def raise_reason(self) -> None:
        """Raise why the connection is over, if it is."""


class HasEndpoint(Protocol):
    """A transport connection of a shell."""

    @property
    def endpoint(self) -> PeerEndpoint:
        """The session of the connection, with its calls."""


C = TypeVar("C", bound=HasEndpoint)


class ConnectionKeeper(Generic[C]):
    """Keeps the connection of one client."""

    connection: C
    """The connection of this time. With a policy to reconnect it may be over."""

    def __init__(self, settings: EndpointSettings) -> None:
        self.settings: EndpointSettings = settings
        self.reconnector: Reconnector = Reconnector(
            settings.reconnect, settings.registry.events, str(settings.url)
        )
        self._was_ending = False  # before this side has left

    @property
    def needs_next(self) -> bool:
        """The connection takes no new stream or request, and the next one may: it ends, or there is
        a policy to reconnect and its server drains.
        """
        endpoint = self.endpoint
        return endpoint.is_closing or (
            self.settings.reconnect is not None and endpoint.session.streams.drain.is_peer_draining
        )

    @property
    def endpoint(self) -> PeerEndpoint:
        """The endpoint of the connection."""
        return self.connection.endpoint

    def use(self, connection: C) -> None:
        """Go on over that connection."""
        # Replaced before what waits is woken: it uses the connection at once.
        self.connection = connection
        endpoint = connection.endpoint
        endpoint.on_opened = self.reconnector.on_open
        if endpoint.opened_at is not None and not endpoint.is_over:
            self.reconnector.on_open()  # its hello came first
        self.reconnector.on_connected()

    def after_loss(self, now: float) -> TryAfter | GiveUp:
        """Decide what follows the connection, which is over, or whose server drains."""
        endpoint = self.endpoint
        return self.reconnector.on_lost(endpoint.reason, opened_at=endpoint.opened_at, now=now)

    def moves(self, error: BaseException, connection: C) -> bool:
        """Return whether a request that has failed over that connection goes over the next one: its
        server drains, and the request had not begun.
        """
        return self.settings.reconnect is not None and was_moved(error, connection.endpoint.session)

    def stop(self) -> None:
        """Make no further connection: the program leaves the block."""
        # The reason of an end is known once both sides have said goodbye.
        self._was_ending = self.endpoint.is_closing
        if self.settings.reconnect is not None:
            # Streams and requests of other tasks may wait for a connection that does not come.
            self.reconnector.give_up(ConnectionLost("this side closed the connection"))

    def raise_refusal(self) -> None:
        """Raise a refusal of the peer, if it has ended the connection. Call it after `stop`, when
        the connection is closed.
        """
        if self._was_ending:
            raise_refusal(self.endpoint.reason, self.settings)


class ClientBlock:
    """The block around the connection of a client."""

    _is_entered: bool = False

    def _enter(self) -> None:
        """Begin the block. Raises UsageError for a second time: it has one connection."""
        if self._is_entered:
            raise UsageError(
                "this block of connect() was entered before; call connect() again for another one"
            )
        self._is_entered = True


class ClientPeer:
    """The calls of a program to the other side of a connection that need not wait."""

    _keeper: ConnectionKeeper[Any]

    def __init__(self, keeper: ConnectionKeeper[Any]) -> None:
        self._keeper = keeper

    @property
    def settings(self) -> EndpointSettings:
        """The settings of `connect`."""
        return self._keeper.settings

    @property
    def identity(self) -> PeerIdentity:
        """The identity of the peer: its address, its certificate, its principal."""
        return self._keeper.endpoint.identity

    @property
    def is_connected(self) -> bool:
        """True until the connection is over, as far as this side has heard: a client that blocks
        listens while it waits.
        """
        return self._keeper.endpoint.reason is None

    @property
    def opened_at(self) -> float | None:
        """When both sides had said hello, on the clock of the event loop, or on `time.monotonic`
        if there is none; None if they have not.
        """
        return self._keeper.endpoint.opened_at

    def __repr__(self) -> str:
        return f"<peer {self.identity}{'' if self.is_connected else ', gone'}>"
