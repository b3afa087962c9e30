"""List what is installed: each plugin with its version and what it offers, and why one was left out."""

import argparse
import sys

import trio

from penstock.plugins import build_registry

HELP = "list plugins, and say why one was left out"


def arguments(command: argparse.ArgumentParser) -> None:
    """Say what can be given: nothing."""


async def run(_options: argparse.Namespace) -> int:
    """Print the list; fail where something is wrong with a plugin."""
    await trio.lowlevel.checkpoint()
    registry = build_registry()
    sys.stdout.write(f"{registry.describe()}\n")
    return 1 if registry.problems else 0
