"""The option `--transports`, the same for every command that opens a connection."""

import argparse
from collections.abc import Collection


def transports_argument(command: argparse.ArgumentParser) -> None:
    """Declare the argument."""
    command.add_argument(
        "--transports",
        metavar="NAMES",
        help="the transports that URL may use: tcp,tls for example (default: any)",
    )


def permitted_transports(options: argparse.Namespace) -> Collection[str] | None:
    """Return the names of the permitted transports, as `penstock.connect` takes them:
    None if all are permitted.
    """
    return None if options.transports is None else options.transports.split(",")
