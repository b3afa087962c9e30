"""The option -v: the logs of penstock on standard error, the access log included."""

import argparse
import logging
import sys
from typing import Final

FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"

ACCESS: Final = "penstock.access"


def log_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the argument."""
    command.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help=(
            "write the access log to standard error: a line for each connection that ends, and "
            "for each stream that is refused or fails"
        ),
    )


def start_logs(options: argparse.Namespace) -> None:
    """Write the logs to standard error if they are wanted."""
    # Without -v the faults of publishers still go there: Python writes warnings and errors of
    # loggers that have no handler.
    if not options.verbose or sys.stderr is None:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(FORMAT))
    log = logging.getLogger("penstock")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    # Off until its own level is set: the level of its parent does not count.
    logging.getLogger(ACCESS).setLevel(logging.INFO)
