"""The settings of a client's connection: the arguments of `connect`, checked at the call, so
that a mistake shows its own line.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

import attrs

from penstock.api import Credentials, Extension, Limits, PluginError, UsageError, shown
from penstock.client._outcomes import deferred
from penstock.client._own_registry import own_registry
from penstock.client._published import Published, check_published
from penstock.client._reports import Report, log_failure
from penstock.session import DialectFactory, DialectSettings
from penstock.spi import (
    Factory,
    PeerIdentity,
    Reconnect,
    Registry,
    TransportOptions,
    Url,
    check_one_encoding,
    check_permitted,
    parse_url,
)

T = TypeVar("T")

TRANSPORTS: Final = ("tcp", "tls", "unix")
"""The transports of these clients."""

PROTOCOL: Final = "rsio"
COMPACT: Final = "compact"

LARGEST_HEADER: Final = 16
"""Bytes beside the credentials in their message, at most."""


@attrs.frozen(kw_only=True)
class EndpointSettings:
    """What each connection of one `connect` has in common."""

    url: Url
    limits: Limits
    registry: Registry
    options: TransportOptions
    publishers: Mapping[str, Published]
    extensions: tuple[Extension, ...]
    encodings: tuple[Factory, ...]
    reconnect: Reconnect | None
    on_violation: Report

    @property
    def dialect(self) -> DialectFactory:
        """Makes the protocol of a connection."""
        return cast("DialectFactory", self.registry.dialect(PROTOCOL).make)

    def dialect_settings(self, agreed: str | None) -> DialectSettings:
        """Return the settings of the protocol.
        `agreed` is the name that TLS has negotiated, if it has one.
        """
        # The name that TLS agreed on decides, as in `rsio/0+msgpack`:
        # the server expects that encoding.
        name = (agreed or "").partition("+")[2] or self.url.encoding or COMPACT
        if name != COMPACT:
            return DialectSettings(
                extensions=self.extensions, encoding=self.registry.encoding(name)
            )
        return DialectSettings(extensions=self.extensions, encodings=self.encodings)


def endpoint_settings(  # noqa: PLR0913  # the options of a connection
    url: str,
    *,
    publishers: Mapping[str, Any] | None = None,
    credentials: Credentials | None = None,
    authenticate: Callable[[str, bytes, PeerIdentity], Any] | None = None,
    limits: Limits | None = None,
    extensions: Sequence[Extension] | None = None,
    registry: Registry | None = None,
    options: TransportOptions | None = None,
    transports: Collection[str] | None = None,
    encoding: str | None = None,
    reconnect: Reconnect | None = None,
    on_violation: Report | None = None,
) -> EndpointSettings:
    """Check the arguments of `connect`. Raises UsageError."""
    parsed = parse_url(url)
    check_permitted(parsed, transports)
    _check_url(parsed, url)
    limits = _of_type("limits", limits, Limits) or Limits()
    registry = _of_type("registry", registry, Registry) or own_registry()
    options = (_of_type("options", options, TransportOptions) or TransportOptions()).within(limits)
    check_one_encoding(parsed, encoding)
    encodings = (
        ()
        if encoding is None or encoding == COMPACT or parsed.encoding
        else (registry.encoding(encoding),)
    )
    if parsed.encoding is not None and parsed.encoding != COMPACT:
        # Looked up now, so that an unknown name fails at the call.
        registry.encoding(parsed.encoding)
    alpn = f"{PROTOCOL}/0"
    return EndpointSettings(
        url=parsed,
        limits=limits,
        registry=registry,
        # The last name is for servers that have none of the encodings.
        options=options.speaking([*(f"{alpn}+{each.name}" for each in encodings), alpn]),
        publishers={
            name: check_published(name, each, registry) for name, each in (publishers or {}).items()
        },
        extensions=_extensions(extensions, credentials, authenticate, registry, limits),
        encodings=encodings,
        reconnect=_of_type("reconnect", reconnect, Reconnect),
        on_violation=on_violation or log_failure,
    )


def _check_url(parsed: Url, url: str) -> None:
    if parsed.dialect not in (None, PROTOCOL):
        raise UsageError(
            f"{url!r} asks for the protocol {parsed.dialect!r}, and this client speaks {PROTOCOL}; "
            "use penstock.connect()"
        )
    if parsed.transport not in TRANSPORTS:
        raise UsageError(
            f"{url!r} uses {parsed.transport!r}; this client has {', '.join(TRANSPORTS)}, and "
            "penstock.connect() has the others"
        )
    if parsed.publisher is not None:
        wrong = f"{url!r} names a publisher ({parsed.publisher!r})"
        raise UsageError(
            f"{wrong}; connect() is for the whole connection: give the name to peer.subscribe()"
        )
    if parsed.transport != "unix" and (not parsed.host or not parsed.port):
        raise UsageError(
            f"{parsed.address} lacks the host or the port to connect to; write for example "
            f"{parsed.scheme}://127.0.0.1:7000"
        )


def _extensions(
    given: Sequence[Extension] | None,
    credentials: Credentials | None,
    authenticate: object,
    registry: Registry,
    limits: Limits,
) -> tuple[Extension, ...]:
    """Return the extensions that the hello lists."""
    made = list(_offered(registry) if given is None else _given(given))
    if credentials is not None:
        if not isinstance(credentials, Credentials):
            # By its type only: its text could repeat a secret.
            raise UsageError(
                f"credentials= is a {type(credentials).__name__!r}; give Credentials.bearer(…) or "
                "Credentials.basic(…)"
            )
        size = len(credentials.scheme.encode()) + len(credentials.data)
        if size > limits.preauth_bytes - LARGEST_HEADER:
            raise UsageError(
                f"credentials of {size:,} bytes; a peer with the same limits takes no more than "
                "Limits.preauth_bytes"
            )
    if authenticate is not None and not callable(authenticate):
        raise UsageError(
            f"authenticate={shown(authenticate)}; give a function of a scheme, the credentials, "
            "and the server"
        )
    if credentials is not None or authenticate is not None:
        examine = None if authenticate is None else deferred(authenticate)
        made.append(
            _checked(registry.extension("auth").make(credentials=credentials, authenticate=examine))
        )
    return tuple(made)


def _offered(registry: Registry) -> Iterable[Extension]:
    return [
        _checked(factory.make())
        for factory in registry.extensions.values()
        if not factory.on_demand
    ]


def _given(extensions: Sequence[Extension]) -> Iterable[Extension]:
    if not isinstance(extensions, Iterable):
        raise UsageError(
            f"extensions={shown(extensions)}; give a sequence of extensions, or () for none"
        )
    each: tuple[Any, ...] = tuple(extensions)
    codes = [
        code for extension in each if isinstance(extension, Extension) for code in extension.codes
    ]
    if not all(isinstance(extension, Extension) for extension in each) or len(codes) != len(
        set(codes)
    ):
        raise UsageError(
            f"extensions={shown(each)}; give objects with an id, a name, codes of their own and "
            "open()"
        )
    return each


def _checked(extension: object) -> Extension:
    if not isinstance(extension, Extension):
        raise PluginError(f"an extension was made as {shown(extension)}, which is no Extension")
    return extension


def _of_type(name: str, value: T | None, kind: type[T]) -> T | None:
    if value is not None and not isinstance(value, kind):
        raise UsageError(f"{name}={shown(value)}; give a {kind.__name__}")
    return value
