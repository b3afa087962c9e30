"""Finding plugins: the entry points of everything that is installed, and which of them are switched off.

Rules of this file:

* The order is fixed: our own plugin first, the others by name, then by distribution. What is installed where plays no part.
* ``PENSTOCK_DISABLE_PLUGINS`` holds names, separated by commas (of entry points or of distributions), or ``all`` (or ``1``) for every one
  but ours. Ours goes only when it is named: ``builtin``. A name that nothing has is reported: it is likely misspelt.
* Nothing is imported here.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from penstock.plugins._hookspecs import GROUP

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


def find_plugins() -> list[Found]:
    """Every plugin that is installed, ours first, the others by name."""
    found = [
        Found(
            name=point.name,
            distribution=_normal(point.dist.name) if point.dist else "",
            version=point.dist.version if point.dist else "",
            point=point,
        )
        for point in entry_points(group=GROUP)
    ]
    return sorted(found, key=lambda each: (not each.is_ours, each.name, each.distribution))


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
