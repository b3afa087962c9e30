"""Opening a connection: `connect` is a block with the peer in it, and when the block has been left, nothing behind it runs any more.

Rules of this file:

* The connection's tasks run in the block's own nursery, visibly; leaving the block says goodbye within its deadline and closes.
* An exception from the body leaves the block as it is. A connection that is lost meanwhile is raised where somebody waits for it: from
  the streams, not from the block. Only that the peer has refused the connection is raised from the block as well: nobody may have asked.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final

import trio

from penstock.api import ConnectionLost, Extension, Limits, PenstockError, PluginError, Rejected, Role, UsageError
from penstock.core import Report, log_violation
from penstock.plugins import Connection, Registry, TransportOptions, Url, build_registry, parse_url
from penstock.runtime.connection._event_reporting import ConnectionEvents
from penstock.runtime.connection._exit_nursery import exit_nursery
from penstock.runtime.connection._extensions_for import NegotiableExtensions, negotiable
from penstock.runtime.connection._new_connection import (
    DEFAULT_DIALECT,
    check_transport,
    dialect_factory,
    new_connection,
    protocols_of,
    settings_for,
)
from penstock.runtime.connection._peer import Peer
from penstock.runtime.service._published_streams import PublishedStreams
from penstock.runtime.service._service import Service

LARGEST_HEADER: Final = 16
"""What stands before the data of a SETUP."""


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
    `setup` is what a ReactiveSocket client introduces itself with; a server that refuses it is `Rejected`, from what was asked for and
    at the end of the block. `service` is what the peer may subscribe to; either side publishes.
    `extensions` are negotiated with the peer; by default RS.io has all that plugins offer, with ``()`` none: strict version 0;
    ReactiveSocket has none by default.
    Raises UsageError for a URL that makes no sense, and ConnectionLost where nobody is there. Entering and leaving checkpoint.
    """
    parsed = parse_url(url)
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
        service=service or Service(),
        setup=bytes(setup),
        limits=limits,
        extensions=negotiable(registry, extensions, on_violation),
        registry=registry,
        options=(options or TransportOptions()).within(limits),
        on_violation=on_violation,
    )


def check_setup(url: Url, setup: object, limits: Limits) -> None:
    """Raise UsageError for an introduction that could not arrive. It is not repeated: often it is a secret."""
    if not isinstance(setup, bytes | bytearray | memoryview):
        raise UsageError(f"setup is what a client introduces itself with, as bytes; this is {type(setup).__name__!r}: encode it")
    if setup and (url.dialect or DEFAULT_DIALECT) == DEFAULT_DIALECT:
        raise UsageError(
            f"setup= was given for {str(url)!r}, and RS.io has no introductions; ReactiveSocket does: reactivesocket+{url.transport}:…"
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
        *,
        service: Service,
        setup: bytes = b"",
        limits: Limits,
        extensions: NegotiableExtensions,
        registry: Registry,
        options: TransportOptions,
        on_violation: Report,
    ) -> None:
        self._url = url
        self._service = service
        self._dialect = dialect_factory(registry, url.dialect or DEFAULT_DIALECT)
        self._setup = setup
        self._limits = limits
        self._extensions = extensions
        self._registry = registry
        self._options = options.speaking(protocols_of([self._dialect]))
        self._on_violation = on_violation

    async def __aenter__(self) -> Peer:
        await trio.lowlevel.checkpoint()
        self._nursery = trio.open_nursery(strict_exception_groups=True)
        nursery = await self._nursery.__aenter__()
        try:
            with trio.fail_after(self._limits.handshake_timeout):
                connection = await self._reach(nursery)
        except BaseException as error:
            nursery.cancel_scope.cancel()
            await exit_nursery(self._nursery, error, on_violation=self._on_violation)
            if isinstance(error, trio.TooSlowError):
                raise ConnectionLost(f"{self._url} did not answer within {self._limits.handshake_timeout} s") from None
            raise
        self._conversation = new_connection(
            connection,
            role=Role.CLIENT,
            exports=PublishedStreams(self._service, self._registry, on_violation=self._on_violation),
            watch=ConnectionEvents(self._registry.events, address=str(self._url), accepted=False),
            limits=self._limits,
            offers=[(self._dialect, settings_for(self._dialect, connection, self._extensions, self._setup))],
            on_violation=self._on_violation,
        )
        nursery.start_soon(self._conversation.run)
        return Peer(self._conversation, self._registry)

    async def _reach(self, nursery: trio.Nursery) -> Connection:
        transport = self._registry.transport(self._url.transport)
        try:
            connection = await transport.connect(self._url, options=self._options, nursery=nursery)
            try:
                await connection.handshake(nursery)
            except BaseException:
                with trio.move_on_after(self._limits.goodbye_timeout, shield=True):
                    await connection.abort()
                raise
        except (PenstockError, trio.TooSlowError):
            raise
        except Exception as error:  # boundary: a transport, perhaps somebody's plugin
            raise PluginError(
                f"the transport {self._url.transport!r} raised, where only UsageError and ConnectionLost are due: {error!r}"
            ) from error
        return connection

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._conversation.leave("")
        await exit_nursery(self._nursery, error, on_violation=self._on_violation)
        if error is None and isinstance(self._conversation.reason, Rejected):
            raise self._conversation.reason
