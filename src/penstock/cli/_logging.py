"""The options -v and --log-format: the logs of penstock on standard error."""

import argparse

from penstock.workers import write_logs


def log_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help=(
            "write the access log to standard error: a line for each connection that ends, and "
            "for each stream that is refused or fails"
        ),
    )
    command.add_argument(
        "--log-format",
        choices=("json", "text"),
        default="text",
        help="how to write logs: json is an object on each line (default: text)",
    )


def start_logs(options: argparse.Namespace) -> None:
    """Write the logs to standard error, as the options say."""
    write_logs(options.log_format, access=options.verbose)
