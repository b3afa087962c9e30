"""Run a program, and record the signals of all its streams over connections in a folder.

COMMAND is the program and its arguments, behind `--`. It is started in place of this one, so its
status, its output and its signals are its own. Each of its processes that uses penstock writes its
own files; a process that is killed loses the file that it was writing.
"""

import argparse
import os
from pathlib import Path
from typing import NoReturn

from penstock.api import UsageError
from penstock.recording import DETAIL, RECORD, SAMPLE, Recorder


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "folder",
        metavar="DIR",
        type=Path,
        help="where the files go; it is made if it does not exist",
    )
    command.add_argument(
        "--detail",
        choices=("runs", "signals"),
        default="runs",
        help="a row for neighbouring elements, or for each",
    )
    command.add_argument(
        "--sample",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="the share of streams that are recorded (default: 1)",
    )
    command.add_argument(
        "program", metavar="COMMAND", nargs="+", help="the program and its arguments, behind --"
    )


def prepare(options: argparse.Namespace) -> NoReturn:
    """Become the program. Raises UsageError if the folder or the program cannot be used."""
    # Made and closed, so that a mistake is told here, and not in a log line of the program.
    Recorder(options.folder, detail=options.detail, sample=options.sample).close()
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot record in {options.folder}: {error}") from None
    environment = {
        **os.environ,
        RECORD: str(options.folder.resolve()),
        DETAIL: options.detail,
        SAMPLE: str(options.sample),
    }
    try:
        os.execvpe(options.program[0], options.program, environment)  # noqa: S606  # the user's own command, without a shell
    except OSError as error:
        raise UsageError(f"cannot start {options.program[0]!r}: {error.strerror}") from None


async def run(
    _options: argparse.Namespace,
) -> int:  # pragma: no cover  # the process has become another program
    """Do nothing: `prepare` has started the program."""
    return 0
