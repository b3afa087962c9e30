"""Everything that plugins offer, in one record that never changes: built once, and handed to whoever needs it.

Rules of this file:

* There is no registry that the process shares: `build_registry` makes one, and who connects or serves is given it.
* A broken plugin is left out and reported; building a registry never raises because of one.
* What two plugins claim goes to neither of them, and asking for it says who they are: what an installed package does must not depend on
  which other one happens to be installed. What is ours stays ours.
"""

import difflib
import enum
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from penstock.api import PluginError, UsageError
from penstock.plugins._claims import Claim, named, settle
from penstock.plugins._events import Event, Events
from penstock.plugins._examine import Contribution, claims_of, examine
from penstock.plugins._factory import Factory
from penstock.plugins._finding import DISABLE, OURS, Finding, Found, SwitchedOff, find_plugins
from penstock.plugins._serializer import Serializer
from penstock.plugins._transport import Transport

T = TypeVar("T")


class PluginStatus(enum.Enum):
    """What became of a plugin that was found."""

    ACTIVE = "active"
    """What it offers is there."""

    REFUSED = "refused"
    """It is broken, and was left out."""

    DISABLED = "disabled"
    """``PENSTOCK_DISABLE_PLUGINS`` switches it off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginReport:
    """One plugin that was found, and what became of it."""

    name: str
    """The name of its entry point, or of the object that the program handed in."""

    distribution: str
    """What was installed to bring it; empty for an object that the program handed in."""

    version: str
    """The version of that."""

    status: PluginStatus
    """What became of it."""

    offers: tuple[str, ...] = ()
    """What it offers, for people: ``transport tcp``."""

    reason: str = ""
    """Why it is not active."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something about a plugin that somebody should know."""

    plugin: str
    """The name of the plugin."""

    message: str
    """What is wrong, and what became of it."""

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} {self.message}" if self.plugin else self.message


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Registry:
    """What all plugins offer together. It never changes; `build_registry` makes another one."""

    transports: Mapping[str, Transport]
    """By scheme."""

    serializers: Mapping[str, Serializer]
    """By name."""

    dialects: Mapping[str, Factory]
    """By name."""

    encodings: Mapping[str, Factory]
    """By name."""

    extensions: Mapping[str, Factory]
    """By name."""

    events: Events
    """Tells the observers among the plugins."""

    plugins: tuple[PluginReport, ...]
    """Every plugin that was found, ours first."""

    problems: tuple[Problem, ...]
    """What is wrong with plugins, in the order in which it was found."""

    contested: Mapping[tuple[str, str | int], tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """What several plugins claim, by kind and name, and the plugins that do. None of them has got it."""

    def transport(self, scheme: str) -> Transport:
        """Return the transport for a scheme. Raises UsageError that says what there is."""
        return self._look_up(self.transports, "transport", scheme)

    def serializer(self, name: str) -> Serializer:
        """Return a serializer by its name. Raises UsageError as above."""
        return self._look_up(self.serializers, "serializer", name)

    def dialect(self, name: str) -> Factory:
        """Return a dialect by its name. Raises UsageError as above."""
        return self._look_up(self.dialects, "dialect", name)

    def encoding(self, name: str) -> Factory:
        """Return an encoding by its name. Raises UsageError as above."""
        return self._look_up(self.encodings, "encoding", name)

    def extension(self, name: str) -> Factory:
        """Return an extension by its name. Raises UsageError as above."""
        return self._look_up(self.extensions, "extension", name)

    def _look_up(self, table: Mapping[str, T], kind: str, name: str) -> T:
        try:
            return table[name]
        except KeyError:
            pass
        rivals = self.contested.get((kind, name))
        if rivals:
            raise UsageError(f"the {kind} {name!r} is claimed by {named(rivals)}, so nobody has it; switch off all but one with {DISABLE}")
        there = ", ".join(sorted(table)) or "none at all"
        left_out = "".join(f"\n  {problem}" for problem in self.problems)
        close = difflib.get_close_matches(name, table, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise UsageError(f"there is no {kind} {name!r}; there is: {there}.{hint}" + (f" What was left out:{left_out}" if left_out else ""))

    def describe(self) -> str:
        """Return what was found as lines for people: each plugin with its version and offers, then what is wrong."""
        rows = [(report.name, _source(report), _fate(report)) for report in self.plugins]
        widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
        lines = [f"{name:{widths[0]}}  {source:{widths[1]}}  {fate}" for name, source, fate in rows]
        # A refused plugin has had its line already.
        refused = {report.name for report in self.plugins if report.status is PluginStatus.REFUSED}
        lines += [f"! {problem}" for problem in self.problems if problem.plugin not in refused]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<registry of {len(self.plugins)} plugins, {len(self.transports)} transports, {len(self.problems)} problems>"


def build_registry(plugins: Iterable[object] = (), *, discover: bool = True, environ: Mapping[str, str] | None = None) -> Registry:
    """Find every plugin that is installed, examine each, and return what they offer together.

    `plugins` are further ones that the program brings itself, as objects; the environment does not switch those off.
    With ``discover=False`` there are no others, ours included. `environ` stands in for ``os.environ``.
    Whatever is wrong with a plugin is in `Registry.problems`; nothing is raised because of one. Imports code; does not checkpoint.
    """
    building = _Building()
    off = SwitchedOff.read(os.environ if environ is None else environ)
    if discover:
        building.take_installed(find_plugins(), off)
    for plugin in plugins:
        building.take_object(plugin)
    return building.finish()


class _Building:
    """A registry in the making."""

    def __init__(self) -> None:
        self._reports: list[PluginReport] = []
        self._problems: list[Problem] = []
        self._claims: list[Claim] = []
        self._observers: list[tuple[str, str, Callable[[Event], object]]] = []

    def problem(self, plugin: str, message: str) -> None:
        self._problems.append(Problem(plugin=plugin, message=message))

    def take_installed(self, finding: Finding, off: SwitchedOff) -> None:
        """Take in everything that is installed."""
        for distribution, why in finding.unreadable:
            self.problem(distribution, f"has metadata that cannot be read: {why}. It was left out")
        for each in finding.plugins:
            self._take(each, switched_off=off.covers(each))
        self._check_ours(finding.plugins)
        for name in off.unknown(finding.plugins):
            self.problem("", f"{DISABLE} names {name!r}, but no such plugin is installed")

    def _take(self, found: Found, *, switched_off: bool) -> None:
        report = partial(PluginReport, name=found.name, distribution=found.distribution, version=found.version)
        if switched_off:
            self._reports.append(report(status=PluginStatus.DISABLED, reason=f"switched off by {DISABLE}"))
        else:
            self._examine(found.name, found.point.load, report, ours=found.is_ours)

    def take_object(self, plugin: object) -> None:
        """Take in what the program brings itself."""
        name = getattr(plugin, "__name__", None) or type(plugin).__name__
        self._examine(name, lambda: plugin, partial(PluginReport, name=name, distribution="", version=""), ours=False)

    def _check_ours(self, found: Iterable[Found]) -> None:
        """Report it when not even our own plugin is there: then there is no transport at all, and nobody would guess why."""
        if not any(each.is_ours for each in found):
            self.problem("", f"the plugin of {OURS} itself was not found: {OURS} is imported from a folder; install it (pip install -e .)")

    def _examine(self, name: str, load: Callable[[], object], report: Callable[..., PluginReport], *, ours: bool) -> None:
        try:
            self._check_name(name)
            contribution = examine(name, load, ours=ours)
        except PluginError as error:
            self._reports.append(report(status=PluginStatus.REFUSED, reason=str(error)))
            self.problem(name, f"{error}. It was left out")
            return
        self._reports.append(report(status=PluginStatus.ACTIVE, offers=_summary(contribution)))
        self._claims += [Claim(plugin=name, ours=ours, kind=kind, key=key, thing=thing) for kind, key, thing in claims_of(contribution)]
        self._observers += [(name, hook, call) for hook, call in contribution.observers]

    def _check_name(self, name: str) -> None:
        if any(report.name == name and report.status is not PluginStatus.DISABLED for report in self._reports):
            raise PluginError("has the name of another plugin, which came first")

    def finish(self) -> Registry:
        settled = settle(self._claims)
        for plugin, message in settled.problems:
            self.problem(plugin, message)
        return Registry(
            transports=_table(settled.held, "transport"),
            serializers=_table(settled.held, "serializer"),
            dialects=_table(settled.held, "dialect"),
            encodings=_table(settled.held, "encoding"),
            extensions=_table(settled.held, "extension"),
            events=Events.of(self._observers),
            plugins=tuple(self._reports),
            problems=tuple(self._problems),
            contested=MappingProxyType(settled.contested),
        )


def _table(held: Mapping[tuple[str, str | int], object], kind: str) -> Mapping[str, Any]:
    rows = {str(key): thing for (claimed, key), thing in held.items() if claimed == kind}
    return MappingProxyType(dict(sorted(rows.items())))


def _summary(contribution: Contribution) -> tuple[str, ...]:
    offers = tuple(f"{kind} {key}" for kind, key, _ in claims_of(contribution) if kind != "extension id")
    return (*offers, *sorted({f"observes {hook.removeprefix('penstock_')}" for hook, _ in contribution.observers}))


def _source(report: PluginReport) -> str:
    return f"{report.distribution} {report.version}".strip() or "of the program"


def _fate(report: PluginReport) -> str:
    return ", ".join(report.offers) if report.status is PluginStatus.ACTIVE else f"{report.status.value}: {report.reason}"
