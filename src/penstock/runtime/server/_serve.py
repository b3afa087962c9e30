"""Serves: listeners, an accept loop that no client can end, and a shutdown that ends within its deadline.

Rules of this file:

* Each connection is a task with a boundary around it: an exception in it ends neither the server, nor another connection, nor the listener.
* Connections that have not said hello are bounded in number and in time, counted from the accept (`_admission`).
* Leaving the block stops accepting first. Then it says goodbye on every connection, within `Limits.drain`.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final, Self

import trio

from penstock.api import ConnectionLost, Extension, Limits, Role, UsageError
from penstock.core import Report, check_in_trio, log_violation, report
from penstock.plugins import Connection, Listener, Registry, TransportOptions, Url, build_registry, parse_url
from penstock.runtime.connection import (
    ConnectionEvents,
    ConnectionSettings,
    ConnectionTask,
    NegotiableExtensions,
    Peer,
    check_transport,
    dialects_at,
    exit_nursery,
    extensions_for,
    new_connection,
    protocols_of,
    settings_for,
    unserved_at,
)
from penstock.runtime.server._admission import AcceptRate, Admission
from penstock.runtime.server._memory_budget import MemoryBudget
from penstock.runtime.service import Service
from penstock.session import DialectFactory

PAUSE: Final = 0.1
"""Seconds to wait after a failed accept. Mostly the process has no file left, and an accept would fail again at once."""


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

    A URL without a ``+`` speaks every installed protocol: the first bytes of a client show which. ``rsio+tcp://…`` and
    ``reactivesocket+tcp://…`` speak one. A service with ``setup=`` must name one, because RS.io has no setup data to check.
    Port 0 takes a free one; `Server.addresses` tells which.
    Leaving the block stops accepting, says goodbye to every peer, and waits for the rest to end, for at most `Limits.drain` seconds.
    Raises UsageError for a URL that cannot be listened at. Entering and leaving checkpoint.
    """
    if not urls:
        raise UsageError("serve() was given no URL; say where to listen, for example tcp://127.0.0.1:7000")
    if not isinstance(service, Service):
        raise UsageError(f"serve() was given {service!r} to serve; give a penstock.Service first, then the URLs")
    registry = build_registry() if registry is None else registry
    limits = limits or Limits()
    # A publisher without its serializer would otherwise fail at the first subscribe, perhaps days later.
    service.check(registry)
    for url in urls:
        check_transport(registry, parse_url(url))
        check_guard(service, url)
    budget = MemoryBudget(limits.memory_budget)
    return Server(
        urls,
        ConnectionSettings(service=service, registry=registry, limits=limits, on_violation=on_violation, budget=budget),
        admission=Admission(limits, budget),
        budget=budget,
        extensions=extensions_for(registry, extensions, on_violation),
        options=(options or TransportOptions()).within(limits),
    )


def check_guard(service: Service, url: str) -> None:
    """Raise UsageError if clients could get in without the check of the setup function, through a protocol without setup data."""
    if service.is_guarded and parse_url(url).dialect is None:
        raise UsageError(
            f"{url!r} speaks every protocol, and a client of RS.io sends nothing that Service(setup=…) could check: it would be accepted. "
            f"Write 'reactivesocket+{url}', or name another protocol before a '+' if all of its clients may be accepted"
        )


class Server(AbstractAsyncContextManager["Server"]):
    """A service that is being served."""

    def __init__(
        self,
        urls: Sequence[str],
        settings: ConnectionSettings,
        *,
        admission: Admission,
        budget: MemoryBudget,
        extensions: NegotiableExtensions,
        options: TransportOptions,
    ) -> None:
        self._settings = settings
        self._admission = admission
        self._budget = budget
        self._extensions = extensions
        self._options = options
        self._urls = [_listening_url(url) for url in urls]
        # Here, in the constructor: a dialect that is not installed is an error of the call of serve().
        self._dialects = [dialects_at(settings.registry, url) for url in self._urls]
        self._listeners: list[Listener] = []
        self._rate = AcceptRate(settings.limits.accept_rate)
        self._accepting = trio.CancelScope()
        self._listeners_done = trio.Event()
        """No listener can give another connection."""
        self._peers: dict[ConnectionTask, Peer] = {}  # one for each connection that runs

    @property
    def addresses(self) -> tuple[str, ...]:
        """The URLs at which clients reach it, with the real ports."""
        return tuple(str(address) for listener in self._listeners for address in listener.addresses)

    @property
    def peers(self) -> tuple[Peer, ...]:
        """The peers that are connected and have said hello: subscribe to what they offer."""
        return tuple(peer for connection, peer in self._peers.items() if connection.is_open.is_set() and connection.reason is None)

    async def wait_over(self) -> None:
        """Wait until no client is connected and none can connect any more. Checkpoints.

        That is so after the one connection of ``pipe:``. At an address that clients may use at any time, this does not return.
        """
        await self._listeners_done.wait()
        await self._admission.wait_empty()

    async def __aenter__(self) -> Self:
        check_in_trio("serve()")
        await trio.lowlevel.checkpoint()
        self._nursery_manager = trio.open_nursery(strict_exception_groups=True)
        self._nursery = await self._nursery_manager.__aenter__()
        registry = self._settings.registry
        try:
            for url, dialects in zip(self._urls, self._dialects, strict=True):
                transport, options = registry.transport(url.transport), self._options.speaking(protocols_of(dialects))
                self._listeners.append(await transport.listen(url, options=options, nursery=self._nursery))
        except BaseException as error:
            # The listeners that are open already must be closed; the error leaves the block unwrapped.
            await self._stop(error)
            raise
        self._nursery.start_soon(self._accept_all)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._stop(error)

    async def _stop(self, error: BaseException | None) -> None:
        limits, on_violation = self._settings.limits, self._settings.on_violation
        # First: a connection that is accepted during the shutdown would not be told to leave.
        self._accepting.cancel()
        # Shielded: the listeners must be closed although this task may be cancelled.
        with trio.move_on_after(limits.goodbye_timeout, shield=True):
            for listener in self._listeners:
                try:
                    await listener.aclose()
                except Exception as broken:  # boundary: a listener may be a plugin; the others must be closed too
                    report(on_violation, broken)
        # A copy: a connection that ends removes itself.
        for connection in tuple(self._admission.open):
            connection.cancel()
        # The last resort: each connection has its own deadlines, and they end earlier.
        self._nursery.cancel_scope.deadline = trio.current_time() + limits.drain
        await exit_nursery(self._nursery_manager, error, on_violation=on_violation)

    async def _accept_all(self) -> None:
        with self._accepting:
            async with trio.open_nursery() as watching:
                watching.start_soon(self._budget.watch)
                # An inner nursery: it ends when no listener can give another connection, and the watch goes on.
                async with trio.open_nursery() as nursery:
                    for listener, dialects in zip(self._listeners, self._dialects, strict=True):
                        nursery.start_soon(self._accept, listener, dialects)
                self._listeners_done.set()

    async def _accept(self, listener: Listener, dialects: Sequence[DialectFactory]) -> None:
        """Accept connections until the listener is closed; wait `PAUSE` seconds after a failure."""
        while True:
            try:
                # In one expression: a local name would keep the connection alive until the next one is accepted.
                await self._admit(await listener.accept(), str(listener.addresses[0]), dialects)
            # The listener was closed by `_stop`, or (as with ``pipe:``) can give no other connection.
            except (trio.ClosedResourceError, trio.EndOfChannel):
                return
            except Exception as error:  # boundary: the system has no file left, or a listener is broken; those at the other URLs go on
                report(self._settings.on_violation, error)
                await trio.sleep(PAUSE)
            else:
                await trio.sleep(self._rate.count(trio.current_time()))

    async def _admit(self, connection: Connection, address: str, dialects: Sequence[DialectFactory]) -> None:
        """Start to serve a connection, or close it."""
        if self._admission.has_room(connection):
            self._nursery.start_soon(self._serve_one, connection, self._admission.add(connection), address, dialects)
        else:
            # Without a goodbye: before the hello no protocol is spoken, and a flood must cost little.
            await connection.abort()

    async def _serve_one(self, connection: Connection, scope: trio.CancelScope, address: str, dialects: Sequence[DialectFactory]) -> None:
        host = connection.peer.host  # kept: a handshake may change what is known of the peer
        try:
            with scope:
                await self._run_connection(connection, address, dialects)
        except Exception as error:  # boundary: one connection; the server and the others go on
            report(self._settings.on_violation, error)
        finally:
            # Before the abort, which may take until its deadline: the place is free at once.
            self._admission.remove(connection, scope, host)
            with trio.move_on_after(self._settings.limits.goodbye_timeout, shield=True):
                await connection.abort()

    async def _run_connection(self, connection: Connection, address: str, dialects: Sequence[DialectFactory]) -> None:
        settings, began = self._settings, trio.current_time()
        async with trio.open_nursery() as nursery:
            try:
                # `began` was taken before this: the time of a TLS handshake counts for the hello too.
                with trio.fail_after(settings.limits.tls_timeout):
                    await connection.handshake(nursery)
            except (ConnectionLost, trio.TooSlowError):
                return  # the fault of the client alone: nothing to report
            task = new_connection(
                connection,
                settings,
                role=Role.SERVER,
                events=ConnectionEvents(settings.registry.events, address=address, accepted=True),
                offers=[(kind, settings_for(kind, connection, self._extensions)) for kind in dialects],
                unserved=unserved_at(settings.registry, dialects),
                began=began,
            )
            nursery.start_soon(self._wait_for_hello, connection, task)
            # Before the hello: a request that comes with it is served before any other task runs, and its publisher may look at `peers`.
            self._peers[task] = Peer(task, settings.registry)
            try:
                await task.run()
            finally:
                self._peers.pop(task, None)
            # Tasks of the transport and `_wait_for_hello` may still wait in this nursery.
            nursery.cancel_scope.cancel()

    async def _wait_for_hello(self, connection: Connection, task: ConnectionTask) -> None:
        await task.is_open.wait()
        self._admission.on_hello(connection)

    def __repr__(self) -> str:
        return f"<server of {self._settings.service!r} at {', '.join(self.addresses)}: {len(self._admission.open)} connections>"


def _listening_url(url: str) -> Url:
    """Return where to listen. Raises UsageError for a URL with a publisher's name, which would be ignored."""
    parsed = parse_url(url)
    if parsed.publisher is not None:
        raise UsageError(f"{url!r} names a publisher ({parsed.publisher!r}); a server offers all of its service: leave it out")
    return parsed
