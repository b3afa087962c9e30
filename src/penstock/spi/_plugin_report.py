"""What is told of a plugin that was found: what came of examining it, and its problems.

The help of the command line needs these and no registry, whose imports take longer.
"""

import enum

import attrs


class PluginStatus(enum.Enum):
    """The result of examining a plugin."""

    ACTIVE = "active"
    """Its offers are in the registry."""

    REFUSED = "refused"
    """It is broken, and was left out."""

    DISABLED = "disabled"
    """``PENSTOCK_DISABLE_PLUGINS`` disables it."""


@attrs.frozen(kw_only=True)
class PluginReport:
    """One plugin that was found, and the result of examining it."""

    name: str
    """The name of its entry point, or of the object that the program passed in."""

    distribution: str
    """The distribution that declares it; empty for an object that the program passed in."""

    version: str
    """The version of that distribution."""

    status: PluginStatus
    """The result."""

    offers: tuple[str, ...] = ()
    """Its offers, for people: ``transport tcp``."""

    reason: str = ""
    """The reason if it is not active."""


@attrs.frozen(kw_only=True)
class Problem:
    """A problem of a plugin."""

    plugin: str
    """The name of the plugin; empty if the problem concerns no single plugin."""

    message: str
    """The problem and its consequence."""

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} {self.message}" if self.plugin else self.message
