"""Serving: listeners, an accept loop that nobody can take down, and a shutdown that ends within its deadline.

Rules of this file:

* Each connection is a task with a boundary around it: whatever happens in it, the server, the others and the listener go on.
* What has not said hello is bounded in number and time, counted from the accept on; so are the connections in all, from one address,
  and per second.
* Leaving the block stops accepting first, then says goodbye to everybody, within `Limits.drain`.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self

import trio

from penstock.api import ConnectionLost, Extension, Limits, Role, UsageError
from penstock.core import Report, log_violation, tell
from penstock.plugins import Connection, Listener, Registry, TransportOptions, Url, build_registry, parse_url
from penstock.runtime.connection._connection import ConnectionTask
from penstock.runtime.connection._event_reporting import ConnectionEvents
from penstock.runtime.connection._exit_nursery import exit_nursery
from penstock.runtime.connection._extensions_for import NegotiableExtensions, negotiable
from penstock.runtime.connection._new_connection import (
    check_transport,
    dialects_at,
    new_connection,
    protocols_of,
    settings_for,
    unserved_at,
)
from penstock.runtime.connection._peer import Peer
from penstock.runtime.server._memory_budget import MemoryBudget
from penstock.runtime.service._published_streams import PublishedStreams
from penstock.runtime.service._service import Service
from penstock.session import DialectFactory

if sys.platform != "win32":
    import resource

SPARE_FILES = 256
"""Files that are left to the rest of the process."""

PAUSE = 0.1
"""Seconds to wait when the system is out of something, files mostly."""


def serve(
    service: Service,
    *urls: str,
    limits: Limits | None = None,
    extensions: Sequence[Extension] | None = None,
    registry: Registry | None = None,
    options: TransportOptions | None = None,
    on_violation: Report = log_violation,
) -> AbstractAsyncContextManager["Server"]:
    """Serve `service` at each of `urls` for the length of an ``async with`` block.

    A URL without a ``+`` speaks every protocol there is: what a client says first tells which. ``rsio+tcp://…`` and
    ``reactivesocket+tcp://…`` speak one; a service with ``setup=`` must say which, for RS.io has no introduction to examine.
    Port 0 takes a free one; `Server.addresses` says which.
    Leaving the block stops accepting, says goodbye to every peer, and waits for what runs to end, for at most `Limits.drain` seconds.
    Raises UsageError for a URL that cannot be listened at. Entering and leaving checkpoint.
    """
    if not urls:
        raise UsageError("serve() was given no URL; say where to listen, for example tcp://127.0.0.1:7000")
    if not isinstance(service, Service):
        raise UsageError(f"serve() was given {service!r} to serve; give a penstock.Service first, then the URLs")
    registry = build_registry() if registry is None else registry
    limits = limits or Limits()
    service.check(registry)
    for url in urls:
        check_transport(registry, parse_url(url))
        check_guard(service, url)
    return Server(
        service,
        urls,
        limits=limits,
        extensions=negotiable(registry, extensions, on_violation),
        registry=registry,
        options=(options or TransportOptions()).within(limits),
        on_violation=on_violation,
    )


def check_guard(service: Service, url: str) -> None:
    """Raise UsageError where a service that examines who connects would let in whoever speaks a protocol without introductions."""
    if service.is_guarded and parse_url(url).dialect is None:
        raise UsageError(
            f"{url!r} speaks every protocol, and a client of RS.io says nothing that Service(setup=…) could examine: it would be let in. "
            f"Write 'reactivesocket+{url}', or name another protocol before a '+' where you mean to let in whoever speaks it"
        )


class Server(AbstractAsyncContextManager["Server"]):
    """A service at work."""

    def __init__(
        self,
        service: Service,
        urls: Sequence[str],
        *,
        limits: Limits,
        extensions: NegotiableExtensions,
        registry: Registry,
        options: TransportOptions,
        on_violation: Report,
    ) -> None:
        self._service = service
        self._urls = [_place(url) for url in urls]
        self._limits = limits
        self._extensions = extensions
        self._registry = registry
        self._options = options
        self._on_violation = on_violation
        self._listeners: list[Listener] = []
        self._dialects = [dialects_at(registry, url) for url in self._urls]
        self._per_host: Counter[str] = Counter()
        self._strangers: set[Connection] = set()  # have not said hello
        self._pace = AcceptRate(limits.accept_rate)
        self._connections: set[trio.CancelScope] = set()
        self._accepting = trio.CancelScope()
        self._all_came = trio.Event()
        """No listener can give another connection."""
        self._one_left = trio.lowlevel.ParkingLot()
        self._peers: dict[ConnectionTask, Peer] = {}  # who has said hello
        self._budget = MemoryBudget(limits.memory_budget)
        self._places = max_open_connections(limits)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where it can be reached, as URLs, with the real ports."""
        return tuple(str(address) for listener in self._listeners for address in listener.addresses)

    @property
    def peers(self) -> tuple[Peer, ...]:
        """Who is connected now, and has said hello: subscribe to what they offer."""
        return tuple(peer for conversation, peer in self._peers.items() if conversation.is_open.is_set() and conversation.reason is None)

    async def wait_over(self) -> None:
        """Return when nobody is connected and nobody can come any more. Checkpoints.

        That is so after the one connection of ``pipe:``; where anybody may come at any time, this waits for ever.
        """
        await self._all_came.wait()
        while self._connections:
            await self._one_left.park()

    async def __aenter__(self) -> Self:
        await trio.lowlevel.checkpoint()
        self._nursery_manager = trio.open_nursery(strict_exception_groups=True)
        self._nursery = await self._nursery_manager.__aenter__()
        try:
            for url, dialects in zip(self._urls, self._dialects, strict=True):
                transport, options = self._registry.transport(url.transport), self._options.speaking(protocols_of(dialects))
                self._listeners.append(await transport.listen(url, options=options, nursery=self._nursery))
        except BaseException as error:
            await self._stop(error)
            raise
        self._nursery.start_soon(self._accept_all)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._stop(error)

    async def _stop(self, error: BaseException | None) -> None:
        self._accepting.cancel()
        with trio.move_on_after(self._limits.goodbye_timeout, shield=True):
            for listener in self._listeners:
                try:
                    await listener.aclose()
                except Exception as broken:  # boundary: a listener, perhaps somebody's plugin; the others must be closed all the same
                    tell(self._on_violation, broken)
        for connection in tuple(self._connections):
            connection.cancel()
        self._nursery.cancel_scope.deadline = trio.current_time() + self._limits.drain
        await exit_nursery(self._nursery_manager, error, on_violation=self._on_violation)

    async def _accept_all(self) -> None:
        with self._accepting:
            async with trio.open_nursery() as watching:
                watching.start_soon(self._budget.watch)
                async with trio.open_nursery() as nursery:
                    for listener, dialects in zip(self._listeners, self._dialects, strict=True):
                        nursery.start_soon(self._accept, listener, dialects)
                self._all_came.set()

    async def _accept(self, listener: Listener, dialects: Sequence[DialectFactory]) -> None:
        """Take connections until the listener is closed; a pause where the system has nothing left to give."""
        while True:
            try:
                # In one expression: a name for the connection would hold on to it, long gone, until the next one comes.
                await self._take(await listener.accept(), str(listener.addresses[0]), dialects)
            except (trio.ClosedResourceError, trio.EndOfChannel):
                return
            except Exception as error:  # boundary: the system has nothing left, or a listener is broken; those at the other URLs go on
                tell(self._on_violation, error)
                await trio.sleep(PAUSE)
            else:
                await trio.sleep(self._pace.count(trio.current_time()))

    async def _take(self, connection: Connection, address: str, dialects: Sequence[DialectFactory]) -> None:
        """Begin to serve a connection, or turn it away."""
        if self._has_room(connection):
            self._nursery.start_soon(self._serve_one, connection, self._admit(connection), address, dialects)
        else:
            await connection.abort()

    def _has_room(self, connection: Connection) -> bool:
        limits, host = self._limits, connection.peer.host
        return (
            len(self._connections) < self._places
            and not self._budget.is_full
            and len(self._strangers) < limits.max_pending_handshakes
            and (host is None or self._per_host[host] < limits.max_connections_per_address)
        )

    def _admit(self, connection: Connection) -> trio.CancelScope:
        """Count a connection, before anything else can be accepted; return what ends it."""
        scope = trio.CancelScope()
        self._connections.add(scope)
        self._strangers.add(connection)
        if connection.peer.host is not None:
            self._per_host[connection.peer.host] += 1
        return scope

    def _dismiss(self, connection: Connection, scope: trio.CancelScope, host: str | None) -> None:
        self._connections.discard(scope)
        self._one_left.unpark_all()
        self._strangers.discard(connection)
        if host is not None:
            self._per_host[host] -= 1
            if not self._per_host[host]:
                del self._per_host[host]

    async def _serve_one(self, connection: Connection, scope: trio.CancelScope, address: str, dialects: Sequence[DialectFactory]) -> None:
        host = connection.peer.host  # a handshake may tell more of the peer
        try:
            with scope:
                await self._talk(connection, address, dialects)
        except Exception as error:  # boundary: one connection; the server and the others go on
            tell(self._on_violation, error)
        finally:
            self._dismiss(connection, scope, host)
            with trio.move_on_after(self._limits.goodbye_timeout, shield=True):
                await connection.abort()

    async def _talk(self, connection: Connection, address: str, dialects: Sequence[DialectFactory]) -> None:
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            try:
                with trio.fail_after(self._limits.tls_timeout):
                    await connection.handshake(nursery)
            except (ConnectionLost, trio.TooSlowError):
                return  # a client's fault, and its own affair
            conversation = new_connection(
                connection,
                role=Role.SERVER,
                exports=PublishedStreams(self._service, self._registry, on_violation=self._on_violation),
                watch=ConnectionEvents(self._registry.events, address=address, accepted=True),
                limits=self._limits,
                offers=[(kind, settings_for(kind, connection, self._extensions)) for kind in dialects],
                unserved=unserved_at(self._registry, dialects),
                on_violation=self._on_violation,
                began=began,
            )
            conversation.budget = self._budget
            nursery.start_soon(self._wait_greeted, connection, conversation)
            # At once: what the hello brings along may be served before any other task runs, and its publisher may ask who is there.
            self._peers[conversation] = Peer(conversation, self._registry)
            try:
                await conversation.run()
            finally:
                self._peers.pop(conversation, None)
            nursery.cancel_scope.cancel()

    async def _wait_greeted(self, connection: Connection, conversation: ConnectionTask) -> None:
        await conversation.is_open.wait()
        self._strangers.discard(connection)

    def __repr__(self) -> str:
        return f"<server of {self._service!r} at {', '.join(self.addresses)}: {len(self._connections)} connections>"


def max_open_connections(limits: Limits) -> int:
    """Return how many connections there may be: each takes a file, and the rest of the process needs some as well."""
    if sys.platform == "win32":
        return limits.max_connections
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limits.max_connections if files == resource.RLIM_INFINITY else max(1, min(limits.max_connections, files - SPARE_FILES))


def _place(url: str) -> Url:
    """Return where to listen. A name in the URL would be ignored, and somebody would wonder."""
    parsed = parse_url(url)
    if parsed.publisher is not None:
        raise UsageError(f"{url!r} names a publisher ({parsed.publisher!r}); a server offers all of its service: leave it out")
    return parsed


class AcceptRate:
    """So many a second; as many as a second's may come at once."""

    __slots__ = ("_due", "_step")

    def __init__(self, rate: float) -> None:
        self._step = 1 / rate
        self._due = float("-inf")

    def count(self, now: float) -> float:
        """Count one, and return how long to wait before the next may come."""
        self._due = max(self._due, now - 1) + self._step
        return max(0.0, self._due - now)
