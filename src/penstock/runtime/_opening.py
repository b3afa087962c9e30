"""Opening a connection: `connect` is a block with the peer in it, and when the block has been left, nothing behind it runs any more.

Rules of this file:

* The connection's tasks run in the block's own nursery, visibly; leaving the block says goodbye within its deadline and closes.
* An exception from the body leaves the block as it is. A connection that is lost meanwhile is raised where somebody waits for it: from
  the streams, not from the block. Only that the peer has refused the connection is raised from the block as well: nobody may have asked.
"""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final, cast

import trio

from penstock.api import ConnectionLost, Extension, Limits, PenstockError, PluginError, Rejected, Role, UsageError
from penstock.core import Report, log_violation
from penstock.plugins import Connection, Registry, TransportOptions, Url, build_registry, parse_url
from penstock.runtime._conversation import Conversation
from penstock.runtime._exports import Exports
from penstock.runtime._leaving import leave_nursery
from penstock.runtime._offered import Extensions, negotiable
from penstock.runtime._peer import Peer
from penstock.runtime._service import Service
from penstock.runtime._watch import Watch
from penstock.session import DialectKind, DialectSettings, Session, SessionOwner, chooser

DEFAULT_DIALECT: Final = "rsio"
"""What a URL without a '+' means to a client; a server speaks all."""

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
    return Connecting(
        parsed,
        service=service or Service(),
        setup=bytes(setup),
        limits=limits,
        extensions=negotiable(registry, extensions, on_violation),
        registry=registry,
        options=(options or TransportOptions()).within(limits),
        on_violation=on_violation,
    )


def check_transport(registry: Registry, url: Url) -> None:
    """Raise UsageError for a transport that is not there, before anything is opened."""
    try:
        registry.transport(url.transport)
    except UsageError as error:
        if url.host is None and re.match(r"[0-9]+(/|$)", url.path):  # localhost:7000 reads as a scheme and a path
            raise UsageError(f"{str(url)!r} lacks the transport; write for example tcp://{url}") from None
        if url.transport in registry.dialects:
            raise UsageError(f"{str(url)!r} names a protocol and no transport; write for example {url.transport}+tcp://…") from None
        raise UsageError(f"{str(url)!r} cannot be reached: {error} Plugins bring more; `penstock plugins` lists them") from None


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


def dialect_kind(registry: Registry, name: str) -> DialectKind:
    """Return what makes the dialect of that name. Raises UsageError where nobody offers it."""
    return cast("DialectKind", registry.dialect(name).make)


def dialects_at(registry: Registry, url: Url) -> list[DialectKind]:
    """Return what is spoken where a server listens: the dialect that the URL names, or every one. Raises UsageError as above."""
    if url.dialect is not None:
        return [dialect_kind(registry, url.dialect)]
    names = sorted(registry.dialects, key=lambda name: (name != DEFAULT_DIALECT, name))
    return [dialect_kind(registry, name) for name in names or [DEFAULT_DIALECT]]


def protocols_of(kinds: Iterable[DialectKind]) -> Iterator[str]:
    """Yield what stands for each where a transport agrees on what is going to be spoken. One without a name goes without."""
    for kind in kinds:
        if name := getattr(kind, "alpn", ""):  # somebody's plugin may lack it, and this is no reason to serve nobody
            yield name


def settings_for(kind: DialectKind, connection: Connection, extensions: Extensions, setup: bytes = b"") -> DialectSettings:
    """Return what a connection tells its dialect."""
    return DialectSettings(extensions=extensions.of(takes=kind.takes_extensions), setup=setup, framed=connection.framed)


class Connecting(AbstractAsyncContextManager[Peer]):
    """The block around a connection that this side opens."""

    def __init__(
        self,
        url: Url,
        *,
        service: Service,
        setup: bytes = b"",
        limits: Limits,
        extensions: Extensions,
        registry: Registry,
        options: TransportOptions,
        on_violation: Report,
    ) -> None:
        self._url = url
        self._service = service
        self._dialect = dialect_kind(registry, url.dialect or DEFAULT_DIALECT)
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
            await leave_nursery(self._nursery, error, on_violation=self._on_violation)
            if isinstance(error, trio.TooSlowError):
                raise ConnectionLost(f"{self._url} did not answer within {self._limits.handshake_timeout} s") from None
            raise
        self._conversation = converse(
            connection,
            role=Role.CLIENT,
            exports=Exports(self._service, self._registry, on_violation=self._on_violation),
            watch=Watch(self._registry.events, address=str(self._url), accepted=False),
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
        await leave_nursery(self._nursery, error, on_violation=self._on_violation)
        if error is None and isinstance(self._conversation.reason, Rejected):
            raise self._conversation.reason


def converse(
    connection: Connection,
    *,
    role: Role,
    exports: Exports,
    watch: Watch,
    limits: Limits,
    offers: Sequence[tuple[DialectKind, DialectSettings]],
    on_violation: Report,
    began: float | None = None,
) -> Conversation:
    """Return the conversation for a connection, in the one of the dialects in `offers` that the client begins to speak.

    `began` is when the time for its handshake started to run, now if it is not given.
    """
    kind, settings = offers[0]

    def make_session(owner: SessionOwner) -> Session:
        choose = chooser(offers, framed=connection.framed) if role is Role.SERVER else None
        return Session(owner, lambda session: kind(session, settings), role=role, limits=limits, chance=random.random, choose=choose)

    return Conversation(
        connection,
        exports,
        make_session=make_session,
        limits=limits,
        on_violation=on_violation,
        watch=watch,
        began=trio.current_time() if began is None else began,
    )
