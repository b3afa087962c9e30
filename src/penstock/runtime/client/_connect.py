"""Opens a connection: `connect` is a block with the peer in it. When the block has been left, no task of the connection runs.

Rules of this file:

* The tasks of the connection run in a nursery of the block. Leaving the block says goodbye within its deadline, and closes.
* An exception of the body leaves the block as it is. A lost connection is raised from the streams, where a task waits for it, and not
  from the block. A refusal by the peer is raised from the block as well: perhaps nothing was asked for, and no stream would tell.
* A failure while the connection is made is an exception of that `async with` alone: the nursery is left properly first.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final

import trio

from penstock.api import ConnectionLost, Extension, Limits, PenstockError, PluginError, Rejected, Role, UsageError, shown
from penstock.core import Report, check_in_trio, log_violation
from penstock.plugins import Connection, Registry, TransportOptions, Url, build_registry, parse_url
from penstock.runtime.connection import (
    DEFAULT_DIALECT,
    ConnectionEvents,
    ConnectionSettings,
    ConnectionTask,
    NegotiableExtensions,
    Peer,
    check_transport,
    close,
    dialect_factory,
    exit_nursery,
    extensions_for,
    new_connection,
    protocols_of,
    settings_for,
)
from penstock.runtime.service import Service

# Subtracted from the limit: a client that fills it exactly must not be refused by a server with the same limits.
LARGEST_HEADER: Final = 16
"""Bytes before the data of a SETUP frame, at most."""


def connect(
    url: str,
    *,
    service: Service | None = None,
    setup: bytes = b"",
    limits: Limits | None = None,
    extensions: Sequence[Extension] | None = None,
    registry: Registry | None = None,
    options: TransportOptions | None = None,
    on_violation: Report = log_violation,
) -> AbstractAsyncContextManager[Peer]:
    """Connect to a peer for the length of an ``async with`` block.

    `url` says how and where: ``tcp://host:port``, ``tls://…``, ``unix:///path``, ``exec:command``, ``pipe:``, ``memory://name``;
    a protocol other than RS.io stands before a ``+``: ``reactivesocket+tcp://…``.
    `setup` is the data that a ReactiveSocket client sends when it connects. If a server refuses it, `Rejected` is raised from the requests
    and at the end of the block. `service` is what the peer may subscribe to; either side publishes.
    `extensions` are negotiated with the peer. By default RS.io has all that plugins offer, and with ``()`` none (strict version 0);
    ReactiveSocket has none by default.
    Raises UsageError for a malformed URL, ConnectionLost if no server answers there, and PluginError if a transport, a dialect or an
    extension raises. Entering and leaving checkpoint.
    """
    # All of these checks are made at the call, and not when the block is entered: the traceback shows the line of the mistake.
    parsed = parse_url(url)
    # A connection carries many streams, so a name in the URL would be ignored without a word.
    if parsed.publisher is not None:
        raise UsageError(
            f"{url!r} names a publisher ({parsed.publisher!r}); connect() is for the whole connection: use subscribe(), or leave it out"
        )
    if service is not None and not isinstance(service, Service):
        raise UsageError(f"connect() was given service={service!r}; give a penstock.Service: what the peer may subscribe to")
    registry = build_registry() if registry is None else registry
    limits = limits or Limits()
    check_transport(registry, parsed)
    check_setup(parsed, setup, limits)
    if service is not None:
        service.check(registry)
    return OpenConnection(
        parsed,
        ConnectionSettings(service=service or Service(), registry=registry, limits=limits, on_violation=on_violation),
        setup=bytes(setup),
        extensions=extensions_for(registry, extensions, on_violation),
        options=(options or TransportOptions()).within(limits),
    )


def check_setup(url: Url, setup: object, limits: Limits) -> None:
    """Raise UsageError for setup data that could not arrive. The text does not repeat the data: often it is a secret."""
    if not isinstance(setup, bytes | bytearray | memoryview):
        raise UsageError(f"setup is the data that a client sends when it connects, as bytes; this is {type(setup).__name__!r}: encode it")
    if setup and (url.dialect or DEFAULT_DIALECT) == DEFAULT_DIALECT:
        raise UsageError(
            f"setup= was given for {str(url)!r}, and RS.io has no setup data; ReactiveSocket does: reactivesocket+{url.transport}:…"
        )
    most = limits.preauth_bytes - LARGEST_HEADER
    if len(setup) > most:
        raise UsageError(
            f"a setup of {len(setup):,} bytes; {most:,} is the most that a peer with the same limits takes (Limits.preauth_bytes)"
        )


class OpenConnection(AbstractAsyncContextManager[Peer]):
    """The block around a connection that this side opens."""

    def __init__(
        self,
        url: Url,
        settings: ConnectionSettings,
        *,
        setup: bytes = b"",
        extensions: NegotiableExtensions,
        options: TransportOptions,
    ) -> None:
        self._url = url
        self._settings = settings
        self._dialect = dialect_factory(settings.registry, url.dialect or DEFAULT_DIALECT)
        self._setup = setup
        self._extensions = extensions
        self._options = options.speaking(protocols_of([self._dialect]))
        self._connection: ConnectionTask

    async def __aenter__(self) -> Peer:
        check_in_trio("connect()")
        # First, so that entering checkpoints also if everything below is refused at once.
        await trio.lowlevel.checkpoint()
        # Strict groups: `exit_nursery` relies on a group, and takes a single exception out of it again.
        self._nursery = trio.open_nursery(strict_exception_groups=True)
        nursery = await self._nursery.__aenter__()
        self._nursery_scope = nursery.cancel_scope
        timeout = self._settings.limits.handshake_timeout
        try:
            # One deadline for the transport and its handshake. The hello of the protocol has its own, inside the session.
            with trio.fail_after(timeout):
                transport_connection = await self._open_transport(nursery)
            await self._start(transport_connection, nursery)
        except BaseException as error:
            # The nursery must be left here, after every kind of failure: trio ends the whole run if an open nursery is dropped.
            nursery.cancel_scope.cancel()
            await exit_nursery(self._nursery, error, on_violation=self._settings.on_violation)
            if isinstance(error, trio.TooSlowError):
                raise ConnectionLost(f"{self._url} did not answer within {timeout} s") from None
            raise
        return Peer(self._connection, self._settings.registry)

    async def _open_transport(self, nursery: trio.Nursery) -> Connection:
        transport = self._settings.registry.transport(self._url.transport)
        try:
            connection = self._checked(await transport.connect(self._url, options=self._options, nursery=nursery))
            try:
                await connection.handshake(nursery)
            except BaseException:
                await self._abort(connection)
                raise
        # UsageError and ConnectionLost are what a transport may raise; TooSlowError is the deadline around this call.
        except (PenstockError, trio.TooSlowError):
            raise
        except Exception as error:  # boundary: a transport may be a plugin
            raise PluginError(
                f"the transport {self._url.transport!r} raised, where only UsageError and ConnectionLost are due: {error!r}"
            ) from error
        return connection

    def _checked(self, made: object) -> Connection:
        # Checked here: an AttributeError from the depth of the session would not name the transport.
        if isinstance(made, Connection):
            return made
        raise PluginError(
            f"the transport {self._url.transport!r} returned {shown(made)} from connect(), where a penstock.plugins.Connection is due"
        )

    async def _start(self, connection: Connection, nursery: trio.Nursery) -> None:
        """Start the connection task. A dialect or an extension that raises here ends this connection only."""
        try:
            self._connection = new_connection(
                connection,
                self._settings,
                role=Role.CLIENT,
                events=ConnectionEvents(self._settings.registry.events, address=str(self._url), accepted=False),
                offers=[(self._dialect, settings_for(self._dialect, connection, self._extensions, self._setup))],
            )
        except BaseException:
            await self._abort(connection)
            raise
        # Only when everything was made: a task that runs cannot be taken back without a goodbye.
        nursery.start_soon(self._connection.run)

    async def _abort(self, connection: Connection) -> None:
        # An abort that raises is reported: the error that led here must reach the caller.
        await close(
            connection, in_good_order=False, seconds=self._settings.limits.goodbye_timeout, on_violation=self._settings.on_violation
        )

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            # An empty reason: the program is done, and nothing went wrong.
            self._connection.leave("")
        except BaseException as raised:  # a subscriber's on_error, or a plugin's dialect
            # The nursery must be left in any case. An open one would end the whole run: "Nursery stack corrupted".
            self._nursery_scope.cancel()
            await exit_nursery(self._nursery, raised, on_violation=self._settings.on_violation)
            raise
        await exit_nursery(self._nursery, error, on_violation=self._settings.on_violation)
        # An exception of the body goes first: it is nearer to the mistake than the refusal of the connection.
        if error is None and isinstance(self._connection.reason, Rejected):
            raise self._connection.reason
