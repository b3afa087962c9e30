"""The commands that plugins add to the command line.

Rules of this file:

* The metadata of a distribution names its commands. A plugin is imported when one of its commands
  runs, so the others, and the help, do not wait for it.
* A name that two plugins claim goes to neither of them, and the names of penstock's own commands go
  to no plugin.
"""

import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import attrs

from penstock.api import PluginError
from penstock.spi._command import Command
from penstock.spi._finding import OWN_DISTRIBUTION, DisabledPlugins, Found, find_plugins
from penstock.spi._name_claims import NAME, NameClaim, settle
from penstock.spi._one_line import one_line
from penstock.spi._plugin_report import PluginReport, PluginStatus, Problem


@attrs.frozen(kw_only=True)
class OfferedCommand:
    """A command by its name, before its plugin is imported."""

    name: str
    """The name of its entry point."""

    distribution: str
    """The distribution that declares it."""

    version: str
    """The version of that distribution."""

    _found: Found

    def load(self) -> Command:
        """Import the command. Raises PluginError."""
        try:
            command = self._found.point.load()
        # The boundary to a plugin's code: an import may raise anything, and a script may try to
        # end the process.
        except (Exception, SystemExit) as error:
            raise PluginError(f"cannot be loaded: {one_line(error)}") from error
        if not isinstance(command, Command):
            raise PluginError(
                f"has {command!r} as the command {self.name!r}; its entry point must name a Command"
            )
        return command

    def report(self) -> PluginReport:
        """Import the command, and return what came of it."""
        report = PluginReport(
            name=self.name,
            distribution=self.distribution,
            version=self.version,
            status=PluginStatus.ACTIVE,
            offers=(f"command {self.name}",),
        )
        try:
            self.load()
        except PluginError as error:
            return attrs.evolve(report, status=PluginStatus.REFUSED, offers=(), reason=str(error))
        return report


@attrs.frozen(kw_only=True)
class OfferedCommands:
    """The commands of all plugins."""

    by_name: Mapping[str, OfferedCommand]
    """By name, in the order of names."""

    contested: Mapping[str, tuple[str, ...]]
    """By name: the distributions that claim the same name. None of them gets it."""

    problems: tuple[Problem, ...]
    """The problems that their metadata shows."""


def find_commands(
    own: Iterable[str] = (), *, environ: Mapping[str, str] | None = None
) -> OfferedCommands:
    """Find the commands of all installed plugins, without an import. `own` are the names that
    no plugin gets. `environ` replaces ``os.environ``.
    """
    disabled = DisabledPlugins.read(os.environ if environ is None else environ)
    claims = [
        NameClaim(plugin=OWN_DISTRIBUTION, is_own=True, kind="command", name=name, offer=None)
        for name in own
    ]
    problems = []
    for each in find_plugins().commands:
        if disabled.covers(each):
            continue
        if not NAME.fullmatch(each.name):
            problems.append((each.distribution, f"has a command {each.name!r}, {_WRONG_NAME}"))
            continue
        offer = OfferedCommand(
            name=each.name, distribution=each.distribution, version=each.version, found=each
        )
        claims.append(
            NameClaim(
                plugin=each.distribution,
                is_own=each.is_own,
                kind="command",
                name=each.name,
                offer=offer,
            )
        )
    settlement = settle(claims)
    granted = [each for each in settlement.granted.values() if isinstance(each, OfferedCommand)]
    by_name = {each.name: each for each in sorted(granted, key=lambda each: each.name)}
    return OfferedCommands(
        by_name=MappingProxyType(by_name),
        contested=MappingProxyType(
            {str(name): plugins for (_, name), plugins in settlement.contested.items()}
        ),
        problems=tuple(
            Problem(plugin=plugin, message=message)
            for plugin, message in [*problems, *settlement.problems]
        ),
    )


_WRONG_NAME = "which is left out; allowed are small letters, digits, '.' and '-', a letter first"
