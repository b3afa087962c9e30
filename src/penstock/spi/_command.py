"""A command of the command line, as a plugin offers it: ``penstock NAME …``."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    # Not at run time: only the command line reads arguments, and each program imports this file.
    import argparse


@attrs.frozen(kw_only=True)
class Command:
    """A command that a plugin adds to the program `penstock`. Its name is that of its entry point
    in the group ``penstock_commands``.
    """

    description: str = ""
    """For ``penstock NAME --help``."""

    arguments: Callable[["argparse.ArgumentParser"], None]
    """Declares the arguments."""

    run: Callable[["argparse.Namespace"], Awaitable[int]]
    """Runs the command on trio, and returns the exit status. SIGINT and SIGTERM cancel it."""
