"""List the installed plugins: each with its version and its offers, and the reason
if it was left out.
"""

import argparse
import sys

import trio

from penstock.spi import build_registry

HELP = "list plugins, and the reason if one was left out"


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare no arguments."""


async def run(_options: argparse.Namespace) -> int:
    """Print the list. The exit status is 1 if a plugin has a problem."""
    await trio.lowlevel.checkpoint()
    registry = build_registry()
    sys.stdout.write(f"{registry.describe()}\n")
    return 1 if registry.problems else 0
