"""`connect`: it checks its arguments, and returns the block in which the program has the peer."""

from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Unpack

import attrs

from penstock.api import Credentials, Extension, Limits, UsageError, shown
from penstock.client import NoOptions, refuse_unknown
from penstock.core import Report, log_violation
from penstock.runtime.client._open_connection import OpenConnection
from penstock.runtime.client._options import ConnectOptions
from penstock.runtime.client._reconnecting import ReconnectingConnection
from penstock.runtime.client._url_sources import check_connectable
from penstock.runtime.connection import (
    DEFAULT_DIALECT,
    Authenticate,
    ConnectionSettings,
    MemoryBudget,
    NegotiableExtensions,
    Peer,
    auth_extension,
    check_credentials,
    check_examines,
    check_resume,
    check_transport,
    check_verdicts,
    dialect_at,
    dialect_factory,
    encoding_asked,
    extensions_for,
)
from penstock.runtime.service import Service
from penstock.spi import (
    Reconnect,
    Registry,
    TransportOptions,
    Url,
    build_registry,
    check_permitted,
    parse_url,
)

# Subtracted from the limit: a client that fills it exactly must not be refused by a server with the
# same limits.
LARGEST_HEADER: Final = 16
"""Bytes before the data of a SETUP frame, at most."""


def connect(  # noqa: PLR0913  # the options of a connection, each with a default
    url: str,
    *,
    service: Service | None = None,
    setup: bytes = b"",
    credentials: Credentials | None = None,
    authenticate: Authenticate | None = None,
    limits: Limits | None = None,
    extensions: Sequence[Extension] | None = None,
    registry: Registry | None = None,
    options: TransportOptions | None = None,
    reconnect: Reconnect | None = None,
    transports: Collection[str] | None = None,
    encoding: str | None = None,
    resume: bool = False,
    on_violation: Report = log_violation,
    **unknown: Unpack[NoOptions],
) -> AbstractAsyncContextManager[Peer]:
    """Connect to a peer for the length of an ``async with`` block.

    `url` says how and where: ``tcp://host:port``, ``tls://…``, ``unix:///path``, ``exec:command``,
    ``pipe:``, ``memory://name``;
    a protocol other than RS.io stands before a ``+``: ``reactivesocket+tcp://…``.
    `setup` is the data that a ReactiveSocket client sends when it connects. If a server refuses it,
    `Rejected` is raised from the requests and at the end of the block. `credentials` go to the
    server before any request; if it refuses them, requests raise `AuthRefused`. `authenticate`
    examines the server in the same way as `Service(authenticate=…)` examines clients, before any
    request is sent. `service` is what the peer may subscribe to; either side publishes.
    `extensions` are negotiated with the peer. By default RS.io has all that plugins offer, and with
    ``()`` none (strict version 0); ReactiveSocket has none.
    `transports` are the names of the transports that `url` may use, ``("tcp", "tls")`` for example;
    any other is refused. Give it for a URL from a configuration: ``exec:`` starts a program.
    `encoding` names an encoding that a plugin brings (``"msgpack"``): the messages of RS.io are in
    it if the server has it. Elements stay. With `reconnect` a lost connection is made again, and
    entering waits for the first one. Streams and requests of a lost connection end with
    ConnectionLost, because the peer may have acted on them. New ones wait.
    With `resume`, if the server has it too, a lost connection goes on with all of its streams:
    nothing is lost, nothing comes twice.
    Raises UsageError for a malformed URL and for an unknown option, ConnectionLost if no server
    answers there, and PluginError if a transport, a dialect or an extension raises. Entering and
    leaving checkpoint.
    """
    refuse_unknown("connect()", unknown, ConnectOptions.__annotations__)
    # All checks are made at the call, and not when the block is entered:
    # the traceback shows the line of the mistake.
    parsed = parse_url(url)
    check_permitted(parsed, transports)
    if parsed.publisher is not None:
        raise UsageError(
            f"{url!r} names a publisher ({parsed.publisher!r}); connect() is for a whole "
            "connection: use subscribe() for one"
        )
    registry = build_registry() if registry is None else registry
    limits = limits or Limits()
    _check_service(service, registry)
    check_connectable(registry, parsed)
    check_transport(registry, parsed)
    check_setup(parsed, setup, limits)
    dialect = dialect_at(registry, parsed)
    negotiable = extensions_for(
        registry,
        extensions,
        on_violation,
        encodings=encoding_asked(registry, encoding, parsed, dialect),
    )
    return (OpenConnection if reconnect is None else ReconnectingConnection)(
        parsed,
        _settings(service, registry, limits, on_violation),
        # A copy: with `reconnect` it is sent again, and the program may change its bytearray
        # meanwhile.
        setup=bytes(setup),
        # Credentials are an extension, so each connection of a block
        # that reconnects shows them again.
        extensions=with_auth(
            negotiable, parsed, credentials, authenticate, registry, limits, setup
        ),
        options=(options or TransportOptions()).within(limits),
        reconnect=reconnect,
        resume=check_resume(resume, [dialect], url),
    )


def _check_service(service: object, registry: Registry) -> None:
    if service is None:
        return
    if not isinstance(service, Service):
        raise UsageError(
            f"connect() was given service={service!r}; give a penstock.Service: what the peer may "
            "subscribe to"
        )
    # If not, a publisher without its serializer would fail at the first subscribe of the peer.
    service.check(registry)


def with_auth(  # what must be known to refuse a mistake at the call
    extensions: NegotiableExtensions,
    url: Url,
    credentials: Credentials | None,
    authenticate: Authenticate | None,
    registry: Registry,
    limits: Limits,
    setup: bytes,
) -> NegotiableExtensions:
    """Add the extension that shows `credentials`, and examines the server.
    Raises UsageError for what could not arrive.
    """
    if credentials is None and authenticate is None:
        return extensions
    name = url.dialect or DEFAULT_DIALECT
    kind = dialect_factory(registry, name)
    if credentials is not None:
        check_credentials(credentials, limits)
        if setup:
            raise UsageError(
                "setup= and credentials= were both given, and there is one place for them: the "
                "SETUP of ReactiveSocket"
            )
        check_examines(kind, name)
    if authenticate is not None:
        if not callable(authenticate):
            raise UsageError(
                f"authenticate={shown(authenticate)}; give a function of a scheme, the "
                "credentials, and the server"
            )
        check_verdicts(kind, name)
    return attrs.evolve(
        extensions,
        added=(auth_extension(registry, credentials=credentials, authenticate=authenticate),),
    )


def _settings(
    service: Service | None, registry: Registry, limits: Limits, on_violation: Report
) -> ConnectionSettings:
    return ConnectionSettings(
        # An empty service, and not None: the peer's subscribe gets the answer to a name
        # that does not exist.
        service=service or Service(),
        registry=registry,
        limits=limits,
        on_violation=on_violation,
        # A budget for this connection alone: only the connections of a server share one.
        budget=MemoryBudget(limits.memory_budget),
    )


def check_setup(url: Url, setup: object, limits: Limits) -> None:
    """Raise UsageError for setup data that could not arrive. The text does not repeat the data:
    often it is a secret.
    """
    if not isinstance(setup, bytes | bytearray | memoryview):
        raise UsageError(
            "setup is the data that a client sends when it connects, as bytes; this is "
            f"{type(setup).__name__!r}: encode it"
        )
    if setup and (url.dialect or DEFAULT_DIALECT) == DEFAULT_DIALECT:
        raise UsageError(
            f"setup= was given for {str(url)!r}, and RS.io has no setup data; ReactiveSocket does: "
            f"reactivesocket+{url.transport}:…"
        )
    # Checked with the limits of this side, because those of the server are not known. Too long a
    # SETUP costs the connection there.
    most = limits.preauth_bytes - LARGEST_HEADER
    if len(setup) > most:
        raise UsageError(
            f"a setup of {len(setup):,} bytes; {most:,} is the most that a peer with the same "
            "limits takes (Limits.preauth_bytes)"
        )
