"""The settings of a client's connection: the arguments of `connect`, checked at the call, so that a
mistake shows its own line. All clients check them here.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeVar, Unpack

import attrs

from penstock.api import Credentials, Extension, Limits, UsageError, shown
from penstock.client._dialects import (
    DEFAULT_DIALECT,
    check_resume,
    dialect_at,
    dialect_factory,
    settings_for,
)
from penstock.client._encodings import encoding_asked, in_encoding_agreed, protocols_of
from penstock.client._extensions_for import (
    Authenticate,
    NegotiableExtensions,
    auth_extension,
    check_credentials,
    check_examines,
    check_verdicts,
    extensions_for,
)
from penstock.client._options import ConnectOptions
from penstock.client._outcomes import deferred
from penstock.client._own_registry import own_registry
from penstock.client._published import Published, check_published
from penstock.client._reports import Report, check_hook, log_failure
from penstock.client._unknown_options import refuse_unknown
from penstock.session import DialectFactory, DialectSettings
from penstock.spi import Reconnect, Registry, TransportOptions, Url, check_permitted, parse_url

T = TypeVar("T")

TRANSPORTS: Final = ("tcp", "tls", "unix")
"""The transports of the clients without trio."""

# Subtracted from the limit:
# a client that fills it exactly must not be refused by a server with the same limits.
LARGEST_HEADER: Final = 16
"""Bytes before the data of a SETUP frame, at most."""


@attrs.frozen(kw_only=True)
class ClientSettings:
    """What each connection of one `connect` has in common."""

    url: Url
    registry: Registry
    limits: Limits
    dialect: DialectFactory
    setup: bytes
    extensions: NegotiableExtensions
    options: TransportOptions
    reconnect: Reconnect | None
    resume: bool
    on_violation: Report

    def spoken(
        self, agreed: str | None, *, framed: bool = False
    ) -> tuple[DialectFactory, DialectSettings]:
        """Return the protocol of a connection, and its settings. `agreed` is the name that the
        transport has negotiated, if it has one.
        """
        # The name that was agreed on decides, as in `rsio/0+msgpack`: the server expects it.
        dialect = in_encoding_agreed(self.registry, [self.dialect], agreed)[0]
        return dialect, settings_for(dialect, self.extensions, self.setup, framed=framed)


@attrs.frozen(kw_only=True)
class EndpointSettings(ClientSettings):
    """The settings of a client without trio."""

    publishers: Mapping[str, Published]


def client_settings(  # noqa: PLR0913  # the options of a connection, each with its default
    url: Url,
    *,
    registry: Registry | None = None,
    setup: bytes = b"",
    credentials: Credentials | None = None,
    authenticate: Authenticate | None = None,
    limits: Limits | None = None,
    extensions: Sequence[Extension] | None = None,
    options: TransportOptions | None = None,
    transports: Collection[str] | None = None,
    encoding: str | None = None,
    reconnect: Reconnect | None = None,
    resume: bool = False,
    on_violation: Report = log_failure,
) -> ClientSettings:
    """Check the options of a connection to `url`. Raises UsageError."""
    check_permitted(url, transports)
    registry = registry_of(registry, own_registry)
    limits = check_type("limits", limits, Limits) or Limits()
    check_hook(on_violation)
    transport = check_type("options", options, TransportOptions) or TransportOptions()
    data = check_setup(url, setup, limits)
    dialect = dialect_at(registry, url)
    found = extensions_for(
        registry,
        extensions,
        on_violation,
        encodings=encoding_asked(registry, encoding, url, dialect),
    )
    if credentials is not None or authenticate is not None:
        # Credentials are an extension, so each connection of a client that reconnects shows them.
        check_auth(url, credentials, authenticate, registry, limits, setup)
        auth = auth_extension(registry, credentials=credentials, authenticate=authenticate)
        found = attrs.evolve(found, added=(auth,))
    return ClientSettings(
        url=url,
        registry=registry,
        limits=limits,
        dialect=dialect,
        setup=data,
        extensions=found,
        options=transport.within(limits).speaking(protocols_of([dialect], found.encodings)),
        reconnect=check_type("reconnect", reconnect, Reconnect),
        resume=check_resume(resume, [dialect], str(url)),
        on_violation=on_violation,
    )


def endpoint_settings(
    url: str | Url,
    *,
    publishers: Mapping[str, Any] | None = None,
    **options: Unpack[ConnectOptions],
) -> EndpointSettings:
    """Check the arguments of `connect` of a client without trio. Raises UsageError."""
    refuse_unknown("connect()", options, {"publishers", *ConnectOptions.__annotations__})
    parsed = parse_url(url)
    check_permitted(parsed, options.get("transports"))
    options["registry"] = registry = registry_of(options.get("registry"), own_registry)
    _check_url(parsed, str(url), registry)
    authenticate = options.get("authenticate")
    if callable(authenticate):
        # Code of the program runs when its result is awaited, and never inside of the session.
        options["authenticate"] = deferred(authenticate)
    return with_publishers(client_settings(parsed, **options), publishers)


def with_publishers(
    settings: ClientSettings, publishers: Mapping[str, Any] | None
) -> EndpointSettings:
    """Check what the peer may subscribe to. Raises UsageError."""
    if not isinstance(publishers, Mapping | None):
        raise UsageError(f"publishers={shown(publishers)}; give a mapping of names to publishers")
    checked = {
        name: check_published(name, each, settings.registry)
        for name, each in (publishers or {}).items()
    }
    values = {each.name: getattr(settings, each.name) for each in attrs.fields(ClientSettings)}
    return EndpointSettings(publishers=checked, **values)


def _check_url(parsed: Url, url: str, registry: Registry) -> None:
    if parsed.dialect is not None and parsed.dialect not in registry.dialects:
        raise UsageError(
            f"there is no protocol {parsed.dialect!r} here; this client has "
            f"{', '.join(sorted(registry.dialects))}. For those of plugins give "
            "registry=penstock.spi.build_registry(), or use penstock.connect()"
        )
    if parsed.transport not in TRANSPORTS:
        raise UsageError(
            f"{url!r} uses {parsed.transport!r}; this client has {', '.join(TRANSPORTS)}, and "
            "penstock.connect() has the others"
        )
    check_whole(parsed, url)
    if parsed.transport != "unix" and (not parsed.host or not parsed.port):
        raise UsageError(
            f"{parsed.address} lacks the host or the port to connect to; write for example "
            f"{parsed.scheme}://127.0.0.1:7000"
        )


def check_whole(parsed: Url, url: str) -> None:
    """Raise UsageError for a URL of one publisher, where one of a connection is due."""
    if parsed.publisher is not None:
        raise UsageError(
            f"{url!r} names a publisher ({parsed.publisher!r}); connect() is for a whole "
            "connection: give the name to peer.subscribe()"
        )


def registry_of(given: Registry | None, make: Callable[[], Registry]) -> Registry:
    """Return the registry that was given, or one that `make` returns. Raises UsageError."""
    return check_type("registry", given, Registry) or make()


def check_type(name: str, value: T | None, kind: type[T]) -> T | None:
    """Return the value of an option. Raises UsageError if it is of another type."""
    if value is not None and not isinstance(value, kind):
        raise UsageError(f"{name}={shown(value)}; give a {kind.__name__}")
    return value


def check_setup(url: Url, setup: object, limits: Limits) -> bytes:
    """Return setup data as bytes. Raises UsageError for data that could not arrive. The text does
    not repeat the data: often it is a secret.
    """
    if not isinstance(setup, bytes | bytearray | memoryview):
        raise UsageError(
            "setup is the data that a client sends when it connects, as bytes; this is "
            f"{type(setup).__name__!r}: encode it"
        )
    if setup and (url.dialect or DEFAULT_DIALECT) == DEFAULT_DIALECT:
        raise UsageError(
            f"setup= was given for {str(url)!r}, and RS.io has no setup data; ReactiveSocket and "
            f"RSocket do: reactivesocket+{url.transport}:…, rsocket+{url.transport}:…"
        )
    # Checked with the limits of this side, because those of the server are not known. Too long a
    # SETUP costs the connection there.
    most = limits.preauth_bytes - LARGEST_HEADER
    if len(setup) > most:
        raise UsageError(
            f"a setup of {len(setup):,} bytes; {most:,} is the most that a peer with the same "
            "limits takes (Limits.preauth_bytes)"
        )
    # A copy of a bytearray: with `reconnect` the data is sent again, and the program may change it.
    # Bytes stay what they are: those of a plugin may say more than their data.
    return setup if isinstance(setup, bytes) else bytes(setup)


def check_auth(
    url: Url,
    credentials: Credentials | None,
    authenticate: Authenticate | None,
    registry: Registry,
    limits: Limits,
    setup: bytes,
) -> None:
    """Raise UsageError for credentials that could not arrive, and for an examination that could
    not take place.
    """
    name = url.dialect or DEFAULT_DIALECT
    kind = dialect_factory(registry, name)
    if credentials is not None:
        check_credentials(credentials, limits)
        # RSocket shows them in its metadata.
        if setup and not getattr(kind, "has_credentials_apart", False):
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
