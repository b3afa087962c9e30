"""The option -v: the logs of penstock on standard error, the access log included."""

import argparse
import sys

from penstock.workers import write_logs


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
    write_logs()
