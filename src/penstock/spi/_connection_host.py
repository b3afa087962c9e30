"""Transports that serve_connection their accepted connections, and the server as they see it.

Rules of this file:

* Until `recognise` is called, the connection counts as a stranger: it has
  `Limits.handshake_timeout` seconds since it was accepted, and it is cut if others need its place.
* A stream that `open` has opened, and a task of `start_soon`, belong to the server and not to the
  connection. They may outlive it. They end when the server stops.
* During a shutdown `is_draining` is True. The transport ends its connections then; after
  `Limits.drain` seconds they are cancelled.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from penstock.api import Limits, Subscriber, Subscription
from penstock.spi._peer_identity import PeerIdentity
from penstock.spi._statistics import ServerStatistics
from penstock.spi._transport import Connection, Transport


class HostedSubscription(Subscription):
    """The subscription of a stream that `ConnectionHost.open` has opened."""

    __slots__ = ()

    @abstractmethod
    def collect(self) -> Sequence[bytes]:
        """Return the elements that have come since the last signal, and that were not signalled.
        They count as signalled now.

        There are such elements only if the subscriber was opened with ``collects=True``.
        """


class Reservation(ABC):
    """The place and the bytes that a server holds for a client beyond the end of a stream. Made by
    `ConnectionHost.reserve`.
    """

    __slots__ = ("taken_at",)

    # An attribute, because it is set with each answer.
    taken_at: float
    """When the client has last taken elements, in the time of trio; set it then. If the memory is
    full, a reservation whose client has taken none for a second goes first.
    """

    @abstractmethod
    def note_asked(self) -> None:
        """Note that the client has asked for elements. Until then the reservation gives way if
        others need its place. The method may be called again.
        """

    @abstractmethod
    def note_held(self, size: int, /) -> None:
        """Note that the client makes this process hold `size` bytes more, which no element brought:
        a copy that waits to be written. The server may look at once at what its clients hold, and
        call `on_cut` of any of them.
        """

    @abstractmethod
    def end(self) -> None:
        """Free the place. The method may be called again."""


class ConnectionHost(ABC):
    """The server of one connection of requests. `RequestTransport.serve_connection` gets it."""

    limits: Limits
    """The limits of the server."""

    address: str
    """The URL that is listened at."""

    statistics: Callable[[], ServerStatistics]
    """Returns the counts of the server: the method of the server itself. So those of all its
    connections are equal, and a collector counts each server once.
    """

    @property
    @abstractmethod
    def is_draining(self) -> bool:
        """Whether the server shuts down:
        no new stream may begin, and the connection should end soon.
        """

    @abstractmethod
    async def wait_draining(self) -> None:
        """Return when the server shuts down. Checkpoints."""

    @abstractmethod
    def recognise(self) -> None:
        """Note that the client has made itself known, and is a stranger no longer.
        The method may be called again.
        """

    @abstractmethod
    async def authenticate(self, scheme: str, data: bytes, peer: PeerIdentity) -> PeerIdentity:
        """Let the service examine credentials, as in `Service(authenticate=…)`. Return `peer` with
        its principal. May checkpoint.

        Without such a function `peer` itself is returned.
        A client without credentials has the scheme ``""``.
        Raises AuthRefused if they are refused, a quarter of a second after the call: a refusal does
        not tell the reason by its time. Raises a Rejected that is temporary if they were not
        examined, because too many were wrong before. The server counts both.
        """

    @abstractmethod
    def adopt(self, connection: Connection) -> str | None:
        """Serve `connection`, a part of the connection of requests, as one that was accepted:
        handshake, session, place, deadlines.

        Returns None if there is a place: then the server closes `connection` in the end. Without a
        place it returns the reason, and the caller closes `connection`.
        """

    @abstractmethod
    async def open(
        self,
        name: str,
        peer: PeerIdentity,
        subscriber: Subscriber[Any],
        *,
        protocol: str,
        collects: bool = False,
        reservation: Reservation | None = None,
        trace: str = "",
    ) -> None:
        """Subscribe `subscriber`, which takes bytes, to the publisher `name` of the service.
        May checkpoint.

        `protocol` names the protocol for observers. Each stream is reported as a separate
        connection, because it may outlive the one over which it was opened. If the subscriber has a
        method ``held()``, the bytes that it returns count against `Limits.memory_budget`. A
        publisher that fails is a PublisherFailed, whose text may be sent to the peer.

        With `collects` an element is signalled, and those that follow wait until the subscriber
        calls `HostedSubscription.collect`, until all that was requested has come, or until the end:
        a call for each element costs more than all the other work on it. Such a subscriber has
        `on_next_many`, and collects when it looks at the elements that have come.

        `reservation` is that of the same client: if the memory is full, the elements that wait here
        go first if that does. `trace` is the ``traceparent`` of the request, if it has a good one.

        Raises NotAvailable if `peer` may not open a publisher of that name, or none exists,
        LimitExceeded if `peer` has as many streams as `Limits.max_subscriptions`, or all clients
        together as many as `Limits.max_connections`, and PublisherFailed if the publisher cannot be
        made. Then nothing was signalled.
        """

    @abstractmethod
    def reserve(
        self, peer: PeerIdentity, held: Callable[[], int], on_cut: Callable[[str], None]
    ) -> Reservation:
        """Count what a client makes the server hold beyond the end of a stream, such as elements
        that it has not fetched yet.

        It takes a place of the client beside those of its streams, and the bytes that `held`
        returns count against `Limits.memory_budget`. `on_cut` is called, with a text for the
        client, if the memory is full or if others need the place: `held` must return less then, and
        the stream must be cancelled. If no place is free, the oldest reservation gives way whose
        client has asked for nothing. Raises LimitExceeded as `open` does.
        """

    @abstractmethod
    def start_soon(
        self, function: Callable[..., Awaitable[None]], /, *args: object, name: str
    ) -> None:
        """Run a task that belongs to the server.
        An exception that it raises is reported, and ends nothing else.

        Does nothing while the server shuts down.
        """

    @property
    @abstractmethod
    def logs_access(self) -> bool:
        """Whether the access log is on: make no line for it otherwise."""

    @abstractmethod
    def write_access(self, peer: PeerIdentity, kind: str, fields: str) -> None:
        """Write the line ``kind peer=… fields`` to the access log, ``penstock.access``, at a
        bounded rate; nothing if that is off.

        Escape the words of a peer with `penstock.api.quoted_text`.
        """


class RequestTransport(Transport):
    """A transport that looks after each accepted connection before a session does. It may answer
    the client itself: HTTP does.
    """

    protocol: str = "http"
    """The protocol of its requests, for the statistics of the server."""

    @abstractmethod
    async def serve_connection(
        self, connection: Connection, host: ConnectionHost, /
    ) -> Connection | None:
        """Serve an accepted connection after its handshake, in the task of the connection.

        Returns the connection that a session is to talk on: `connection`, or another one around it,
        after an upgrade for example. The session of a stranger has what is left of the time since
        the accept. Or returns None: the client has been answered, and the server closes
        `connection`. ConnectionLost and the exceptions of trio's streams mean that the client has
        gone; any other one is reported. Cancelled, it ends at once.
        """
