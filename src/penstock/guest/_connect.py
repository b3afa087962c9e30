"""`penstock.aio.connect` for connections that run on trio: every transport and protocol, and those
that can be resumed.

Rules of this file:

* The peer, its streams and its requests are those of a client on asyncio. They use the session of a
  connection of trio by plain calls, and trio sends, receives and keeps the deadlines.
* The block of a connection of trio is entered and left by a task of trio.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Unpack

import trio

from penstock.api import ByteWindow, Rejected, Subscriber, UsageError
from penstock.client import (
    AioOptions,
    EndpointSettings,
    client_settings,
    refuse_unknown,
    registry_of,
    with_publishers,
)
from penstock.guest._blocks import TrioBlock
from penstock.guest._guest_run import GuestRun
from penstock.guest._service import Service
from penstock.runtime import (
    ConnectionTask,
    OpenConnection,
    connectable,
    is_quiet,
    joined,
    statistics_of,
)
from penstock.runtime import Peer as TrioPeer
from penstock.session import Session, ignore, own_copy
from penstock.spi import (
    LiveStream,
    PeerIdentity,
    PeerStatistics,
    Url,
    build_registry,
    check_permitted,
    parse_url,
)

_Block = TrioBlock[TrioPeer, GuestRun]

Open = Callable[[EndpointSettings], Awaitable["DialledConnection"]]
"""Opens a connection. Raises ConnectionLost if no server answers in time."""


def connecting_over_trio(
    url: str | Url,
    *,
    publishers: Mapping[str, Any] | None = None,
    service: Service | None = None,
    **options: Unpack[AioOptions],
) -> tuple[EndpointSettings, Open]:
    """Return the settings of a client, and what opens its connections over trio. The arguments are
    those of `penstock.aio.connect`. Raises UsageError.
    """
    refuse_unknown("connect()", options, {"publishers", "service", *AioOptions.__annotations__})
    parsed = parse_url(url)
    check_permitted(parsed, options.get("transports"))
    options["registry"] = registry = registry_of(options.get("registry"), build_registry)
    parsed = connectable(registry, url, parsed)
    if service is None:
        offered = Service()
    elif publishers is not None:
        raise UsageError(
            "publishers= and service= were both given; add the publishers to the service"
        )
    elif isinstance(service, Service):
        offered = service
    else:
        raise UsageError(
            f"penstock.aio.connect() was given service={service!r}; give a penstock.aio.Service: "
            "what the peer may subscribe to"
        )
    authenticate = options.get("authenticate")
    if callable(authenticate):
        options["authenticate"] = offered.called(authenticate)
    settings = with_publishers(client_settings(parsed, **options), publishers)
    for name, published in settings.publishers.items():
        offered.publish(name, published.open, type=published.type, serializer=published.serializer)
    return settings, partial(_open, offered)


async def _open(service: Service, settings: EndpointSettings) -> "DialledConnection":
    made = _GuestBlock(settings, service)
    block = TrioBlock(made, lambda _, run: run)
    run = await block.__aenter__()
    return DialledConnection(made.endpoint, run, block)


class GuestConnection:
    """A connection of trio, for a peer on asyncio."""

    def __init__(self, endpoint: "GuestEndpoint", run: GuestRun) -> None:
        self.endpoint: GuestEndpoint = endpoint
        """Its session."""
        self._run = run

    def flush(self) -> None:
        """Do nothing: trio sends what is queued."""

    async def wait_opened(self) -> None:
        """Wait until both sides have said hello, or the connection is over."""
        await self._run.begin(self.endpoint.task.is_open.wait).result()

    async def wait_room(self) -> None:
        """Wait until a request may be queued, or the connection is over."""
        if not self.endpoint.has_room:
            await self._run.begin(self.endpoint.task.requests.wait_for_room).result()

    async def wait_over(self) -> None:
        """Wait until the connection is over."""
        await self._run.begin(self.endpoint.task.over.wait).result()

    @property
    def is_quiet(self) -> bool:
        """Nothing runs, and the transport has taken every byte."""
        return is_quiet(self.endpoint.task)

    def statistics(self) -> PeerStatistics:
        """Return the counts of the connection, and the bytes that it holds now."""
        endpoint = self.endpoint
        # When it is over, trio may have ended, and its clock with it.
        return endpoint.last_statistics or statistics_of(endpoint.task)

    def streams(self) -> list[LiveStream]:
        """Return a record for each stream and request that is open now."""
        endpoint = self.endpoint
        return [] if endpoint.is_over else joined(tuple(endpoint.task.open_streams()))


class DialledConnection(GuestConnection):
    """A connection that this side has opened."""

    def __init__(self, endpoint: "GuestEndpoint", run: GuestRun, block: _Block) -> None:
        super().__init__(endpoint, run)
        self._block = block

    async def leave(self) -> None:
        """Say goodbye, close, and end all publishers."""
        # A refusal is raised from the block of asyncio.
        with suppress(Rejected):
            await self._block.__aexit__(None, None, None)


class GuestEndpoint:
    """The session of a connection of trio, with what a client on asyncio asks of it."""

    has_output: bool = False
    """Always: trio sends what is queued."""

    def __init__(self, task: ConnectionTask) -> None:
        self.task: ConnectionTask = task
        """The connection of trio."""
        self.on_opened: Callable[[], None] = ignore
        """Called when both sides have said hello."""
        self.opened_at: float | None = None
        """When both sides had said hello, on the clock of asyncio, if they have."""
        self.last_statistics: PeerStatistics | None = None
        """Its counts once it is over."""

    async def report_opened(self) -> None:
        """Call `on_opened` when both sides have said hello. Runs in a task of trio."""
        await self.task.is_open.wait()
        if self.task.opened_at is not None:
            self.opened_at = asyncio.get_running_loop().time()
            self.on_opened()

    @property
    def session(self) -> Session:
        """The session of the connection."""
        return self.task.session

    @property
    def identity(self) -> PeerIdentity:
        """The identity of the peer."""
        return self.task.identify()

    @property
    def reason(self) -> Exception | None:
        """Why the connection is over, once it is."""
        return self.task.reason

    @property
    def is_over(self) -> bool:
        """Nothing is sent or received any more, except the answer to a goodbye."""
        return self.session.state.is_over

    @property
    def is_closing(self) -> bool:
        """One side has said goodbye, or the connection is over."""
        return self.session.state.is_closing

    @property
    def has_room(self) -> bool:
        """A request may be queued. On a closing connection the request itself raises."""
        return self.task.requests.has_room

    def subscribe(
        self, target: Any, subscriber: Subscriber[Any], window: ByteWindow | None = None
    ) -> None:
        """Open a stream to a publisher of the peer."""
        self.task.requests.subscribe(target, subscriber, window)

    def raise_reason(self) -> None:
        """Raise why the connection is over, if it is."""
        if self.reason is not None:
            # A copy: an exception that is raised twice collects the frames of both.
            raise own_copy(self.reason)


class _GuestBlock(OpenConnection):
    """The block around a connection of trio, which tells its endpoint what happens."""

    endpoint: GuestEndpoint

    def _make_peer(self) -> TrioPeer:
        self.endpoint = GuestEndpoint(self._connection)
        return super()._make_peer()

    async def _run(self, nursery: trio.Nursery) -> None:
        nursery.start_soon(self.endpoint.report_opened)
        try:
            await super()._run(nursery)
        finally:
            self.endpoint.last_statistics = statistics_of(self.endpoint.task)
