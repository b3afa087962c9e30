"""Everything that the plugins offer, in one record that never changes.

Rules of this file:

* The process shares no registry. `build_registry` makes one,
  and the program passes it to `connect` and `serve`.
* A broken plugin is left out and reported. Building a registry never raises because of a plugin.
* A name that two plugins claim goes to neither of them, and looking it up raises an error that
  names both. Otherwise the behaviour of an installed package would depend on which other package is
  installed. penstock's own offers are never replaced.
"""

import difflib
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from penstock.api import PluginError, UsageError
from penstock.spi._events import Event, Events
from penstock.spi._examine import Contribution, claims_of, examine
from penstock.spi._factory import Factory
from penstock.spi._finding import (
    DISABLE,
    OWN_DISTRIBUTION,
    DisabledPlugins,
    Finding,
    Found,
    find_plugins,
)
from penstock.spi._name_claims import ClaimKey, NameClaim, quoted, settle
from penstock.spi._plugin_report import PluginReport, PluginStatus, Problem
from penstock.spi._serializer import Serializer
from penstock.spi._statistics import Fact
from penstock.spi._url_source import UrlSource

if TYPE_CHECKING:
    from penstock.spi._transport import Transport

T = TypeVar("T")


@attrs.frozen(kw_only=True, repr=False)
class Registry:
    """The offers of all plugins together. It never changes; `build_registry` makes another one."""

    transports: "Mapping[str, Transport]"
    """By scheme."""

    sources: Mapping[str, UrlSource]
    """By scheme: URLs that are read without a connection."""

    serializers: Mapping[str, Serializer]
    """By name."""

    dialects: Mapping[str, Factory]
    """By name."""

    encodings: Mapping[str, Factory]
    """By name: encodings of RS.io messages."""

    extensions: Mapping[str, Factory]
    """By name."""

    events: Events
    """Reports to the observers among the plugins."""

    reads: frozenset[Fact] = frozenset()
    """The facts that a plugin reads. Other facts are not kept."""

    plugins: tuple[PluginReport, ...]
    """Every plugin that was found, penstock's own first."""

    problems: tuple[Problem, ...]
    """The problems of plugins, in the order in which they were found."""

    contested: Mapping[tuple[str, str | int], tuple[str, ...]] = attrs.field(
        factory=lambda: MappingProxyType({})
    )
    """By kind and name: the plugins that claim the same name or number. None of them gets it."""

    def transport(self, scheme: str) -> "Transport":
        """Return the transport for a scheme. Raises UsageError with the available ones."""
        return self._look_up(self.transports, "transport", scheme)

    def serializer(self, name: str, /) -> Serializer:
        """Return a serializer by its name. Raises UsageError as `transport` does."""
        return self._look_up(self.serializers, "serializer", name)

    def dialect(self, name: str) -> Factory:
        """Return a dialect by its name. Raises UsageError as `transport` does."""
        return self._look_up(self.dialects, "dialect", name)

    def encoding(self, name: str) -> Factory:
        """Return an encoding by its name. Raises UsageError as `transport` does."""
        return self._look_up(self.encodings, "encoding", name)

    def extension(self, name: str) -> Factory:
        """Return an extension by its name. Raises UsageError as `transport` does."""
        return self._look_up(self.extensions, "extension", name)

    def _look_up(self, table: Mapping[str, T], kind: str, name: str) -> T:
        try:
            return table[name]
        except KeyError:
            pass
        rivals = self.contested.get((kind, name))
        if rivals:
            raise UsageError(
                f"the {kind} {name!r} is claimed by {quoted(rivals)}, so no plugin gets it; "
                f"disable all but one of them with {DISABLE}"
            )
        available = ", ".join(sorted(table)) or "none at all"
        left_out = "".join(f"\n  {problem}" for problem in self.problems)
        close = difflib.get_close_matches(name, table, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        # The plugin that was meant may be among those that were left out.
        reasons = f" These plugins have problems:{left_out}" if left_out else ""
        raise UsageError(f"there is no {kind} {name!r}; there is: {available}.{hint}{reasons}")

    def observed_by(self, plugin: object) -> "Registry":
        """Return a registry in which `plugin` observes as well. Raises PluginError if it cannot;
        what else it offers is not used.
        """
        name = getattr(plugin, "__name__", None) or type(plugin).__name__
        observers = examine(name, lambda: plugin, is_own=False).observers
        return attrs.evolve(
            self,
            events=self.events.joined_by((name, hook, function) for hook, function in observers),
        )

    def describe(self) -> str:
        """Return the plugins as lines for people:
        each with its version and offers, then the problems.
        """
        rows = [(report.name, _source(report), _result(report)) for report in self.plugins]
        widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
        lines = [
            f"{name:{widths[0]}}  {source:{widths[1]}}  {result}" for name, source, result in rows
        ]
        # The line of a refused plugin says its reason already.
        refused = {report.name for report in self.plugins if report.status is PluginStatus.REFUSED}
        lines += [f"! {problem}" for problem in self.problems if problem.plugin not in refused]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"<registry of {len(self.plugins)} plugins, {len(self.transports)} transports, "
            f"{len(self.problems)} problems>"
        )


def build_registry(
    plugins: Iterable[object] = (),
    *,
    discover: bool = True,
    environ: Mapping[str, str] | None = None,
) -> Registry:
    """Find every plugin that is installed, examine each, and return their offers together.

    `plugins` are further plugins that the program passes in, as objects;
    the environment does not disable those.
    ``discover=False`` finds no others, not even penstock's own. `environ` replaces ``os.environ``.
    Problems of plugins are in `Registry.problems`; none of them raises. Imports the plugins;
    does not checkpoint.
    """
    builder = _Builder()
    disabled = DisabledPlugins.read(os.environ if environ is None else environ)
    if discover:
        builder.add_installed(find_plugins(), disabled)
    for plugin in plugins:
        builder.add_object(plugin)
    return builder.finish()


class _Builder:
    """Collects reports, problems, claims and observers, plugin by plugin."""

    def __init__(self) -> None:
        self._reports: list[PluginReport] = []
        self._problems: list[Problem] = []
        self._claims: list[NameClaim] = []
        self._reads: set[Fact] = set()
        self._observers: list[tuple[str, str, Callable[[Event], object]]] = []

    def _report_problem(self, plugin: str, message: str) -> None:
        self._problems.append(Problem(plugin=plugin, message=message))

    def add_installed(self, finding: Finding, disabled: DisabledPlugins) -> None:
        for distribution, reason in finding.unreadable:
            self._report_problem(
                distribution, f"has metadata that cannot be read: {reason}. It was left out"
            )
        for each in finding.plugins:
            self._add_found(each, is_disabled=disabled.covers(each))
        self._check_own(finding.plugins)
        for name in disabled.unknown((*finding.plugins, *finding.commands)):
            self._report_problem("", f"{DISABLE} names {name!r}, but no such plugin is installed")

    def _add_found(self, found: Found, *, is_disabled: bool) -> None:
        report = partial(
            PluginReport, name=found.name, distribution=found.distribution, version=found.version
        )
        if is_disabled:
            self._reports.append(
                report(status=PluginStatus.DISABLED, reason=f"switched off by {DISABLE}")
            )
        else:
            self._examine(
                found.name,
                found.point.load,
                report,
                is_own=found.is_own,
                distribution=found.distribution,
            )

    def add_object(self, plugin: object) -> None:
        name = getattr(plugin, "__name__", None) or type(plugin).__name__
        self._examine(
            name,
            lambda: plugin,
            partial(PluginReport, name=name, distribution="", version=""),
            is_own=False,
        )

    def _check_own(self, found: Iterable[Found]) -> None:
        """Report it if penstock's own plugins are missing. Without them every transport is missing,
        and the cause would be hard to guess.
        """
        if not any(each.is_own for each in found):
            self._report_problem(
                "",
                f"the plugins of {OWN_DISTRIBUTION} itself were not found: {OWN_DISTRIBUTION} is "
                "imported from a folder; install it (pip install -e .)",
            )

    def _examine(
        self,
        name: str,
        load: Callable[[], object],
        report: Callable[..., PluginReport],
        *,
        is_own: bool,
        distribution: str = "",
    ) -> None:
        try:
            self._check_name(name)
            contribution = examine(name, load, is_own=is_own, distribution=distribution)
        except PluginError as error:
            self._reports.append(report(status=PluginStatus.REFUSED, reason=str(error)))
            self._report_problem(name, f"{error}. It was left out")
            return
        self._reports.append(report(status=PluginStatus.ACTIVE, offers=_summary(contribution)))
        self._reads.update(contribution.reads)
        self._claims += [
            NameClaim(plugin=name, is_own=is_own, kind=kind, name=claimed, offer=offer)
            for kind, claimed, offer in claims_of(contribution)
        ]
        self._observers += [(name, hook, function) for hook, function in contribution.observers]

    def _check_name(self, name: str) -> None:
        if any(
            report.name == name and report.status is not PluginStatus.DISABLED
            for report in self._reports
        ):
            raise PluginError("has the name of another plugin, which came first")

    def finish(self) -> Registry:
        settlement = settle(self._claims)
        for plugin, message in settlement.problems:
            self._report_problem(plugin, message)
        return Registry(
            transports=_table(settlement.granted, "transport"),
            sources=_table(settlement.granted, "source"),
            serializers=_table(settlement.granted, "serializer"),
            dialects=_table(settlement.granted, "dialect"),
            encodings=_table(settlement.granted, "encoding"),
            extensions=_table(settlement.granted, "extension"),
            reads=frozenset(self._reads),
            events=Events.of(self._observers),
            plugins=tuple(self._reports),
            problems=tuple(self._problems),
            contested=MappingProxyType(settlement.contested),
        )


def _table(granted: Mapping[ClaimKey, object], kind: str) -> Mapping[str, Any]:
    rows = {str(name): offer for (claimed, name), offer in granted.items() if claimed == kind}
    return MappingProxyType(dict(sorted(rows.items())))


def _summary(contribution: Contribution) -> tuple[str, ...]:
    offers = tuple(
        f"{kind} {name}" for kind, name, _ in claims_of(contribution) if kind != "extension id"
    )
    return (
        *offers,
        *(f"reads {fact.value}" for fact in contribution.reads),
        *sorted(
            {f"observes {hook.removeprefix('penstock_')}" for hook, _ in contribution.observers}
        ),
    )


def _source(report: PluginReport) -> str:
    return f"{report.distribution} {report.version}".strip() or "passed in by the program"


def _result(report: PluginReport) -> str:
    return (
        ", ".join(report.offers)
        if report.status is PluginStatus.ACTIVE
        else f"{report.status.value}: {report.reason}"
    )
