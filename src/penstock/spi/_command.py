"""A command of the command line, as a plugin offers it: ``penstock NAME …``."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    # Not at run time: only the command line reads arguments, and each program imports this file.
    import argparse

OWN_COMMANDS: Final = ("serve", "cat", "ls", "pub", "plugins", "log", "record", "bench", "tck")
"""The names of penstock's own commands, which no plugin gets."""


@attrs.frozen(kw_only=True)
class Command:
    """A command that a plugin adds to the program `penstock`."""

    name: str
    """Lower-case letters, digits, '.' and '-'."""

    summary: str
    """One line, for ``penstock --help``."""

    description: str = ""
    """For ``penstock NAME --help``."""

    arguments: Callable[["argparse.ArgumentParser"], None]
    """Declares the arguments. Called only if the user runs this command."""

    run: Callable[["argparse.Namespace"], Awaitable[int]]
    """Runs the command on trio, and returns the exit status. SIGINT and SIGTERM cancel it."""
