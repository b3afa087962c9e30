"""Which extensions a connection negotiates: what plugins offer, made and examined, or what the program gives.

Rules of this file:

* An offer that cannot be made, or is not what was offered, is told and left out: no connection fails because of one.
* Two extensions never share a type code: a message would have two meanings. Of two plugins that claim one, neither has it.
* What the program gives itself is examined in the same way, and refused: there somebody can mend it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.api import Extension, PluginError, UsageError
from penstock.core import Report, tell
from penstock.plugins import Factory, Registry

FIRST_ID: Final = 128
OURS: Final = range(0x40, 0x60)
ANYBODYS: Final = range(0x60, 0x7F)


@dataclass(frozen=True, slots=True)
class NegotiableExtensions:
    """What a connection may negotiate: what the program gave, or else what plugins offer, to a dialect that wants those."""

    given: tuple[Extension, ...] | None
    offered: tuple[Extension, ...]

    def of(self, *, takes: bool) -> tuple[Extension, ...]:
        """Return what a dialect gets; `takes` says whether it has extensions unless they are switched off."""
        if self.given is not None:
            return self.given
        return self.offered if takes else ()


def negotiable(registry: Registry, extensions: Sequence[Extension] | None, on_violation: Report) -> NegotiableExtensions:
    """Return what a connection may negotiate. Raises UsageError for what the program gave and cannot be negotiated."""
    if extensions is None:
        return NegotiableExtensions(None, offered(registry, on_violation))
    return NegotiableExtensions(chosen(extensions), ())


def offered(registry: Registry, on_violation: Report) -> tuple[Extension, ...]:
    """Return every extension that plugins offer and that is sound; tell of each that is not."""
    made: list[Extension] = []
    for offer in registry.extensions.values():
        try:
            made.append(_made(offer))
        except PluginError as error:
            tell(on_violation, error)
    uses = Counter(code for extension in made for code in extension.codes)
    for extension in made:
        if shared := _shared(extension, uses):
            tell(on_violation, PluginError(f"the extension {extension.name!r} has {shared}, like another one: neither was negotiated"))
    return tuple(extension for extension in made if not _shared(extension, uses))


def chosen(extensions: Sequence[Extension]) -> tuple[Extension, ...]:
    """Return what the program gave. Raises UsageError for what cannot be negotiated."""
    for extension in extensions:
        if wrong := _wrong(extension):
            raise UsageError(f"extensions: {wrong}")
    ids = Counter(extension.id for extension in extensions)
    uses = Counter(code for extension in extensions for code in extension.codes)
    for extension in extensions:
        shared = f"id={extension.id}" if ids[extension.id] > 1 else _shared(extension, uses)
        if shared:
            raise UsageError(f"extensions: {extension.name!r} has {shared}, like another one; give each its own")
    return tuple(extensions)


def _made(offer: Factory) -> Extension:
    try:
        extension = offer.make()
    except Exception as error:  # boundary: somebody's plugin
        raise PluginError(f"the extension {offer.name!r} raised when it was made, and was left out: {error!r}") from error
    wrong = _wrong(extension)
    if not wrong and isinstance(extension, Extension) and extension.id != offer.id:
        wrong = f"{offer.name!r} was offered as id={offer.id}, and made with id={extension.id}"
    if wrong or not isinstance(extension, Extension):
        raise PluginError(f"an extension was left out: {wrong}")
    return extension


def _wrong(extension: object) -> str:
    """Say what is wrong with an extension, or nothing."""
    if not isinstance(extension, Extension):
        return f"{extension!r} is no Extension: it needs an id, a name, codes and open()"
    allowed = ANYBODYS if extension.id >= FIRST_ID else range(OURS.start, ANYBODYS.stop)
    if others := [code for code in extension.codes if code not in allowed]:
        return f"{extension.name!r} has {_listed(others)}; codes from {allowed.start:#04x} to {allowed.stop - 1:#04x} are for it"
    return ""


def _shared(extension: Extension, uses: Counter[int]) -> str:
    return _listed(code for code in extension.codes if uses[code] > 1)


def _listed(codes: Iterable[int]) -> str:
    found = sorted(codes)
    return f"the code {', '.join(f'{code:#04x}' for code in found)}" if found else ""
