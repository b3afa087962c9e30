"""The transport and the protocols that a URL names, for clients and for servers, and the settings
that a connection gives its protocol.
"""

import re
from collections.abc import Sequence
from typing import Final, cast

import attrs

from penstock.api import Extension, UsageError
from penstock.client._encodings import in_encoding_of_url, takes_encodings
from penstock.client._extensions_for import NegotiableExtensions
from penstock.session import DialectFactory, DialectSettings
from penstock.spi import Registry, Url

DEFAULT_DIALECT: Final = "rsio"
"""The dialect of a URL without a '+', for a client. A server speaks all dialects at such a URL."""


def check_transport(registry: Registry, url: Url) -> None:
    """Raise UsageError if the transport of `url` is not installed, before anything is opened."""
    try:
        registry.transport(url.transport)
    except UsageError as error:
        # The most common mistake: 'localhost:7000' without a transport.
        # localhost:7000 is parsed as a scheme and a path.
        if url.host is None and re.match(r"[0-9]+(/|$)", url.path):
            raise UsageError(
                f"{str(url)!r} lacks the transport; write for example tcp://{url}"
            ) from None
        if url.transport in registry.dialects:
            raise UsageError(
                f"{str(url)!r} names a protocol and no transport; write for example "
                f"{url.transport}+tcp://…"
            ) from None
        raise UsageError(
            f"{str(url)!r} cannot be reached: {error} Plugins bring more; `penstock plugins` lists "
            "them"
        ) from None


def dialect_factory(registry: Registry, name: str) -> DialectFactory:
    """Return the factory of the dialect `name`. Raises UsageError if no plugin offers it."""
    return cast("DialectFactory", registry.dialect(name).make)


def dialects_at(registry: Registry, url: Url) -> list[DialectFactory]:
    """Return the dialects of a server's URL: the named one, or all; in the encoding that the URL
    names.

    Raises UsageError as `dialect_factory` does.
    """
    if url.dialect is not None:
        return in_encoding_of_url(registry, [dialect_factory(registry, url.dialect)], url)
    # The default first: a client that speaks no known protocol is refused in the manner of the
    # first dialect.
    names = sorted(registry.dialects, key=lambda name: (name != DEFAULT_DIALECT, name))
    return in_encoding_of_url(
        registry, [dialect_factory(registry, name) for name in names or [DEFAULT_DIALECT]], url
    )


def dialect_at(registry: Registry, url: Url) -> DialectFactory:
    """Return the dialect of a client's URL, in the encoding that it names.
    Raises UsageError as `dialect_factory` does.
    """
    return in_encoding_of_url(
        registry, [dialect_factory(registry, url.dialect or DEFAULT_DIALECT)], url
    )[0]


def dialects_agreed(
    protocol: str | None, dialects: Sequence[DialectFactory]
) -> list[DialectFactory]:
    """Return the one of `dialects` that the subprotocol `protocol` names, in a list; an empty
    list if it names none of them.
    """
    # A subprotocol is the name of ALPN, with ".v" for its "/", which a header of HTTP does not
    # allow. "+" and an encoding may follow.
    agreed = (protocol or "").partition("+")[0]
    return [
        kind
        for kind in dialects
        if agreed and getattr(kind, "alpn", "").replace("/", ".v") == agreed
    ]


def unserved_at(registry: Registry, served: Sequence[DialectFactory]) -> list[DialectFactory]:
    """Return the installed dialects that are not `served`, and
    that can refuse a client in its own protocol.
    """
    # Sorted, so that the order of installation does not decide which refusal a client gets.
    known = [dialect_factory(registry, name) for name in sorted(registry.dialects)]
    return [factory for factory in known if factory not in served and hasattr(factory, "refusal")]


def settings_for(
    kind: DialectFactory,
    extensions: NegotiableExtensions,
    setup: bytes = b"",
    *,
    framed: bool,
) -> DialectSettings:
    """Return what a connection tells its dialect. `framed` is whether its transport keeps the
    bounds of messages.
    """
    # Each dialect takes what it needs of this, and ignores the rest. The dialect of a plugin may
    # lack the attributes: then it takes none.
    takes: bool = getattr(kind, "takes_extensions", False)
    least: frozenset[int] = getattr(kind, "default_extensions", frozenset())
    encodings = extensions.encodings if takes_encodings(kind) else ()
    return DialectSettings(
        extensions=extensions.of(takes=takes, least=least),
        setup=setup,
        encodings=encodings,
        framed=framed,
    )


def check_resume(resume: bool, kinds: Sequence[DialectFactory], url: str) -> bool:  # noqa: FBT001  # the value of an option
    """Return `resume`. Raises UsageError if no protocol of `url` can go on with a lost
    connection.
    """
    if resume and not any(getattr(kind, "resumes", False) for kind in kinds):
        names = " and ".join(kind.name for kind in kinds)
        raise UsageError(
            f"resume=True: {url!r} speaks {names}, which cannot go on with a lost connection; "
            "RS.io and RSocket can: give a tcp:// or rsocket+tcp:// URL"
        )
    return resume


def with_extensions(
    kind: DialectFactory, settings: DialectSettings, *extensions: Extension
) -> DialectSettings:
    """Return `settings` with the extensions that resume a connection,
    if the dialect can do that.
    """
    if not getattr(kind, "resumes", False):
        return settings
    return attrs.evolve(settings, extensions=(*settings.extensions, *extensions))
