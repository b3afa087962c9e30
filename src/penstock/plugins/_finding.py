"""Finding plugins: the entry points of everything that is installed, and which of them are switched off.

Rules of this file:

* The order is fixed: our own plugin first, the others by name, then by distribution. What is installed where plays no part.
* ``PENSTOCK_DISABLE_PLUGINS`` holds names, separated by commas (of entry points or of distributions), or ``all`` (or ``1``) for every one
  but ours. Ours goes only when it is named: ``builtin``. A name that nothing has is reported: it is likely misspelt.
* Nothing is imported here. Metadata that cannot be read is reported, and hides nobody else's.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, EntryPoint, distributions
from typing import Final

from penstock.plugins._hookspecs import GROUP
from penstock.plugins._one_line import one_line

DISABLE: Final = "PENSTOCK_DISABLE_PLUGINS"
"""The environment variable that switches plugins off."""

OURS: Final = "penstock"
_EVERY_OTHER: Final = frozenset({"all", "1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An entry point, and the distribution that brought it."""

    name: str
    distribution: str
    version: str
    point: EntryPoint

    @property
    def is_ours(self) -> bool:
        """Whether penstock itself brought it."""
        return self.distribution == OURS


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is installed: plugins, and distributions whose metadata cannot be read, each with the reason."""

    plugins: tuple[Found, ...]
    unreadable: tuple[tuple[str, str], ...]


def find_plugins() -> Finding:
    """Find every plugin that is installed, ours first, the others by name."""
    found: dict[tuple[str, str], Found] = {}
    unreadable = []
    for distribution in distributions():
        try:
            for each in _plugins_of(distribution):
                found.setdefault((each.distribution, each.name), each)  # what comes first on the path hides the rest, as for imports
        # The boundary to files of others: nobody promises that they can be parsed, and no error has a name of its own.
        except Exception as error:
            unreadable.append((_name_if_any(distribution), one_line(error)))
    order = sorted(found.values(), key=lambda each: (not each.is_ours, each.name, each.distribution))
    return Finding(plugins=tuple(order), unreadable=tuple(sorted(unreadable)))


def _plugins_of(distribution: Distribution) -> Iterator[Found]:
    if f"[{GROUP}]" not in (distribution.read_text("entry_points.txt") or ""):
        return  # what is none of ours need not be parsed, and may be as broken as it likes
    name, version = _name_of(distribution), _field(distribution, "Version")
    for point in distribution.entry_points.select(group=GROUP):
        yield Found(name=point.name, distribution=name, version=version, point=point)


def _name_of(distribution: Distribution) -> str:
    return _normal(_field(distribution, "Name"))


def _field(distribution: Distribution, name: str) -> str:
    return str(distribution.metadata[name]) if name in distribution.metadata else ""


def _name_if_any(distribution: Distribution) -> str:
    try:
        return _name_of(distribution)
    # The same boundary: it may be the name that cannot be read.
    except Exception:
        return "?"


@dataclass(frozen=True, slots=True)
class SwitchedOff:
    """What the environment variable says."""

    names: frozenset[str]

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> "SwitchedOff":
        """Read the variable from `environ`."""
        return cls(frozenset(_normal(name) for name in environ.get(DISABLE, "").split(",") if name.strip()))

    def covers(self, found: Found) -> bool:
        """Whether this plugin is switched off."""
        if not found.is_ours and self.names & _EVERY_OTHER:
            return True
        return _normal(found.name) in self.names or (not found.is_ours and found.distribution in self.names)

    def unknown(self, found: Iterable[Found]) -> list[str]:
        """The names that no plugin has."""
        known = {name for each in found for name in (_normal(each.name), each.distribution)}
        return sorted(self.names - known - _EVERY_OTHER)


def _normal(name: str) -> str:
    """Names of distributions are equal whatever their case and separators; so are ours, to whoever sets the variable."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()
