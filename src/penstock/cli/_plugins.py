"""List the installed plugins: each with its version and its offers, and the reason
if it was left out. The commands that plugins add are in the list, too.
"""

import argparse
import sys

import attrs
import trio

from penstock.cli._main import COMMANDS
from penstock.spi import build_registry, find_commands


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare no arguments."""


async def run(_options: argparse.Namespace) -> int:
    """Print the list. The exit status is 1 if a plugin has a problem."""
    await trio.lowlevel.checkpoint()
    registry, offered = build_registry(), find_commands(COMMANDS)
    reports = tuple(each.report() for each in offered.by_name.values())
    whole = attrs.evolve(
        registry,
        plugins=(*registry.plugins, *reports),
        problems=(*registry.problems, *offered.problems),
    )
    sys.stdout.write(f"{whole.describe()}\n")
    return 1 if whole.problems or any(report.reason for report in reports) else 0
