"""Find the plugins that are installed, by their entry points, and
which of them the environment disables.

Rules of this file:

* The order is fixed: penstock's own plugins first, the others by name, then by distribution. The
  place of installation has no influence.
* ``PENSTOCK_DISABLE_PLUGINS`` holds names of entry points or of distributions, separated by commas.
  ``all`` (or ``1``) disables every plugin but penstock's own; these are disabled only by the name
  of their entry point: ``transports``. A name that no plugin has is reported, because it is
  probably a typing error.
* No plugin is imported here. Metadata that cannot be read is reported, and does not hide the
  plugins of other distributions.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, EntryPoint, distributions
from typing import Final

import attrs

from penstock.spi._one_line import one_line

GROUP: Final = "penstock"
"""The group of entry points in which plugins are found."""

COMMANDS: Final = "penstock_commands"
"""The group of the entry points that are commands of the command line."""

DISABLE: Final = "PENSTOCK_DISABLE_PLUGINS"
"""The environment variable that disables plugins."""

OWN_DISTRIBUTION: Final = "penstock"
_ALL_OTHERS: Final = frozenset({"all", "1"})


@attrs.frozen(kw_only=True)
class Found:
    """An entry point, and the distribution that declares it."""

    name: str
    distribution: str
    version: str
    point: EntryPoint

    @property
    def is_own(self) -> bool:
        """Whether penstock's own distribution declares it."""
        return self.distribution == OWN_DISTRIBUTION


@attrs.frozen(kw_only=True)
class Finding:
    """The plugins that are installed, their commands, and the distributions whose metadata cannot
    be read, each with the reason.
    """

    plugins: tuple[Found, ...]
    commands: tuple[Found, ...]
    unreadable: tuple[tuple[str, str], ...]


def find_plugins() -> Finding:
    """Find every installed plugin: penstock's own first, then the others by name."""
    found: dict[tuple[str, str, str], Found] = {}
    unreadable = []
    for distribution in distributions():
        try:
            for each in _plugins_of(distribution):
                # The first on the path hides later ones of the same name, as it does for imports.
                found.setdefault((each.point.group, each.distribution, each.name), each)
        # The boundary to metadata of other distributions: it may be damaged in any way, and
        # importlib.metadata has no error for that.
        except Exception as error:
            unreadable.append((_name_or_question_mark(distribution), one_line(error)))
    order = sorted(found.values(), key=lambda each: (not each.is_own, each.name, each.distribution))
    return Finding(
        plugins=tuple(each for each in order if each.point.group == GROUP),
        commands=tuple(each for each in order if each.point.group == COMMANDS),
        unreadable=tuple(sorted(unreadable)),
    )


def _plugins_of(distribution: Distribution) -> Iterator[Found]:
    # A search in the text first: a distribution without plugins is not parsed,
    # so damage in it cannot disturb.
    declared = distribution.read_text("entry_points.txt") or ""
    groups = [group for group in (GROUP, COMMANDS) if f"[{group}]" in declared]
    if not groups:
        return
    name, version = _name_of(distribution), _field(distribution, "Version")
    for point in (each for each in distribution.entry_points if each.group in groups):
        yield Found(name=point.name, distribution=name, version=version, point=point)


def _name_of(distribution: Distribution) -> str:
    return _normalized(_field(distribution, "Name"))


def _field(distribution: Distribution, name: str) -> str:
    return str(distribution.metadata[name]) if name in distribution.metadata else ""


def _name_or_question_mark(distribution: Distribution) -> str:
    try:
        return _name_of(distribution)
    # boundary: the metadata of a distribution.
    # The name itself may be the field that cannot be read.
    except Exception:
        return "?"


@attrs.frozen
class DisabledPlugins:
    """The content of the environment variable ``PENSTOCK_DISABLE_PLUGINS``."""

    names: frozenset[str]

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> "DisabledPlugins":
        return cls(
            frozenset(
                _normalized(name) for name in environ.get(DISABLE, "").split(",") if name.strip()
            )
        )

    def covers(self, found: Found) -> bool:
        if not found.is_own and self.names & _ALL_OTHERS:
            return True
        return _normalized(found.name) in self.names or (
            not found.is_own and found.distribution in self.names
        )

    def unknown(self, found: Iterable[Found]) -> list[str]:
        """Return the names that no plugin has."""
        known = {name for each in found for name in (_normalized(each.name), each.distribution)}
        return sorted(self.names - known - _ALL_OTHERS)


def _normalized(name: str) -> str:
    """Packaging treats names that differ in case, '-', '_' and '.' as equal;
    the environment variable does the same.
    """
    return re.sub(r"[-_.]+", "-", name.strip()).lower()
