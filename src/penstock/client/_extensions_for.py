"""Chooses the extensions that a connection negotiates:
those that plugins offer, or those that the program gives.

Rules of this file:

* An offer that cannot be made, or is not what was offered, is reported and left out:
  no connection fails because of one.
* Two extensions never share a type code: a message would have two meanings. If two plugins claim
  one code, both are left out.
* Extensions that the program gives are checked in the same way, and refused with UsageError:
  the program can be corrected.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, TypeAlias

import attrs

from penstock.api import Credentials, Extension, Limits, PluginError, UsageError, shown
from penstock.client._reports import Report, report
from penstock.spi import Factory, PeerIdentity, Registry

IDS: Final = range(1 << 32)
"""The ids that fit into a hello, of any dialect."""

FIRST_FREE_ID: Final = 128
"""Ids from here on are for extensions of plugins; those below are assigned by the project."""

POSITION: Final = 4
"""The id of the extension that says where streams start and begin."""

OUR_CODES: Final = range(0x40, 0x60)
FREE_CODES: Final = range(0x60, 0x7F)
"""Type codes for extensions of plugins."""


@attrs.frozen
class NegotiableExtensions:
    """The extensions that a connection may negotiate."""

    given: tuple[Extension, ...] | None
    """The extensions that the program gave;
    None if it gave no sequence, and () if it wants none.
    """
    offered: tuple[Extension, ...]
    """The extensions that plugins offer, for dialects
    that take extensions unless they are switched off.
    """
    encodings: tuple[Factory, ...] = ()
    """The encodings that the hello lists, best first, for dialects
    that negotiate them as they do extensions.
    """

    added: tuple[Extension, ...] = ()
    """The extensions that other options of the program need, for every dialect."""

    def of(self, *, takes: bool, least: frozenset[int] = frozenset()) -> tuple[Extension, ...]:
        """Return the extensions for a dialect, by its `DialectFactory.takes_extensions` and its
        `DialectFactory.default_extensions`.
        """
        if self.given is not None:
            # The extensions of the program replace the offers, and not those
            # that its other options need.
            return self.given + self.added
        return (
            tuple(extension for extension in self.offered if takes or extension.id in least)
            + self.added
        )


Authenticate: TypeAlias = Callable[[str, bytes, PeerIdentity], Any]
"""Examines a peer by the scheme, the credentials and the peer. Returns the principal, or None or
False to refuse; sync or async.
"""

LARGEST_HEADER: Final = 16
"""Bytes beside the credentials in their message, at most."""


def check_credentials(credentials: object, limits: Limits) -> None:
    """Raise UsageError for credentials that could not arrive. No text repeats them."""
    if not isinstance(credentials, Credentials):
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


def auth_extension(registry: Registry, **options: object) -> Extension:
    """Return the extension that shows or examines credentials.
    Raises UsageError if it is not installed.
    """
    extension = registry.extension("auth").make(**options)
    if not isinstance(extension, Extension):
        raise PluginError(f"the extension 'auth' was made as {extension!r}, which is no Extension")
    return extension


def check_verdicts(kind: object, name: str) -> None:
    """Raise UsageError for a dialect in which a server has no place for credentials: it has no
    verdict that they could follow.
    """
    if not getattr(kind, "has_verdicts", False):
        raise UsageError(
            f"a server shows no credentials over the protocol {name!r}; use RS.io, or the "
            "certificate of the server (tls://)"
        )


def check_examines(kind: object, name: str) -> None:
    """Raise UsageError for a dialect that calls no extension before it answers a peer:
    credentials would have no effect there.
    """
    if not getattr(kind, "examines_peers", False):
        raise UsageError(
            f"the protocol {name!r} does not examine credentials; name another one before a '+' in "
            "the URL"
        )


def extensions_for(
    registry: Registry,
    extensions: Sequence[Extension] | None,
    on_violation: Report,
    *,
    encodings: Sequence[Factory] | None = None,
) -> NegotiableExtensions:
    """Return what a connection may negotiate.
    Raises UsageError if what the program gave cannot be negotiated.

    Without `encodings` these are all that are installed, or none
    if the program has given the extensions.
    """
    # A program that names its extensions has decided: installed encodings are not added to them.
    if extensions is None:
        every = tuple(registry.encodings.values()) if encodings is None else tuple(encodings)
        return NegotiableExtensions(None, offered(registry, on_violation), every)
    return NegotiableExtensions(check_given(extensions), (), tuple(encodings or ()))


def if_used(extensions: NegotiableExtensions, *, has_logs: bool) -> NegotiableExtensions:
    """Leave the extension *position* out of those that plugins offer, for a server without a
    log: then no stream pays for it.
    """
    if has_logs:
        return extensions
    return attrs.evolve(
        extensions, offered=tuple(each for each in extensions.offered if each.id != POSITION)
    )


def offered(registry: Registry, on_violation: Report) -> tuple[Extension, ...]:
    """Return every sound extension that plugins offer; report the others."""
    made: list[Extension] = []
    for offer in registry.extensions.values():
        # Made for the options that need it, such as `credentials`.
        if offer.on_demand:
            continue
        try:
            made.append(_made(offer))
        except PluginError as error:
            report(on_violation, error)
    # Counted over all of them, so that the result does not depend on the order in
    # which plugins are found.
    uses = Counter(code for extension in made for code in extension.codes)
    for extension in made:
        if shared := _shared(extension, uses):
            report(
                on_violation,
                PluginError(
                    f"the extension {extension.name!r} has {shared}, like another one: neither was "
                    "negotiated"
                ),
            )
    return tuple(extension for extension in made if not _shared(extension, uses))


def check_given(extensions: Sequence[Extension]) -> tuple[Extension, ...]:
    """Return what the program gave. Raises UsageError if it cannot be negotiated."""
    # Without this, `tuple` below would raise a TypeError that does not name the option.
    if not isinstance(extensions, Iterable):
        raise UsageError(
            f"extensions={shown(extensions)}; give a sequence of extensions, or () for none"
        )
    extensions = tuple(extensions)
    for extension in extensions:
        if wrong := _wrong(extension):
            raise UsageError(f"extensions: {wrong}")
    # Ids of plugins are unique in the registry;
    # those that the program gives are not checked before.
    ids = Counter(extension.id for extension in extensions)
    uses = Counter(code for extension in extensions for code in extension.codes)
    for extension in extensions:
        shared = f"id={extension.id}" if ids[extension.id] > 1 else _shared(extension, uses)
        if shared:
            raise UsageError(
                f"extensions: {extension.name!r} has {shared}, like another one; give each its own"
            )
    return extensions


def _made(offer: Factory) -> Extension:
    try:
        extension = offer.make()
    except Exception as error:  # boundary: a plugin
        raise PluginError(
            f"the extension {offer.name!r} raised when it was made, and was left out: {error!r}"
        ) from error
    wrong = _wrong(extension)
    # The registry has compared the offered ids with each other.
    # Another id than the offered one would pass that check by.
    if not wrong and isinstance(extension, Extension) and extension.id != offer.id:
        wrong = f"{offer.name!r} was offered as id={offer.id}, and made with id={extension.id}"
    if wrong or not isinstance(extension, Extension):
        raise PluginError(f"an extension was left out: {wrong}")
    return extension


def _wrong(extension: object) -> str:
    """Return what is wrong with an extension, or ''."""
    # A runtime protocol check: it sees attributes and methods, and no types.
    # So the id is checked by hand.
    if not isinstance(extension, Extension):
        return f"{extension!r} is no Extension: it needs an id, a name, codes and open()"
    # `type`, and not isinstance: True is an int for Python, and would be the id 1.
    if type(extension.id) is not int or extension.id not in IDS:
        return (
            f"{extension.name!r} has id={extension.id!r}; give an int from 0 to {IDS.stop - 1}, "
            f"and {FIRST_FREE_ID} or more for your own"
        )
    codes: object = extension.codes
    if not isinstance(codes, Collection) or not all(type(code) is int for code in codes):
        return f"{extension.name!r} has codes={shown(codes)}; give a collection of ints"
    # The project's own extensions may use both ranges: they are kept apart by hand.
    allowed = (
        FREE_CODES if extension.id >= FIRST_FREE_ID else range(OUR_CODES.start, FREE_CODES.stop)
    )
    if others := [code for code in extension.codes if code not in allowed]:
        return (
            f"{extension.name!r} has {_listed(others)}; codes from {allowed.start:#04x} to "
            f"{allowed.stop - 1:#04x} are for it"
        )
    return ""


def _shared(extension: Extension, uses: Counter[int]) -> str:
    return _listed(code for code in extension.codes if uses[code] > 1)


def _listed(codes: Iterable[int]) -> str:
    found = sorted(codes)
    return f"the code {', '.join(f'{code:#04x}' for code in found)}" if found else ""
