"""Run scripts like `python script.py`, one after another, each in a fork of this process, and with
trio's autojump clock: sleeps take no time, and a busy machine changes no output.

This is a program. The import of penstock takes longer than a short script, so it is done once. A
line of standard input is an order in JSON; a line of standard output is the status of its script.
"""

import functools
import json
import os
import runpy
import sys
from pathlib import Path

import trio
from trio.testing import MockClock

import penstock.runtime  # most scripts use it
import penstock.streams.ops  # noqa: F401  # as well


def _run(program: Path, output: str, errors: str) -> None:
    os.chdir(program.parent)
    for number, path, mode in (
        (0, os.devnull, os.O_RDONLY),
        (1, output, os.O_WRONLY),
        (2, errors, os.O_WRONLY),
    ):
        file = os.open(path, mode)
        os.dup2(file, number)
        os.close(file)
    trio.run = functools.partial(trio.run, clock=MockClock(autojump_threshold=0))
    sys.argv = [str(program)]
    sys.path[0] = str(program.parent)
    runpy.run_path(str(program), run_name="__main__")


def main() -> None:
    """Run a script for each order. In its fork this returns when the script has ended, so that
    Python ends as it ends after a script.
    """
    for line in sys.stdin:
        order = json.loads(line)
        process = os.fork()
        if process == 0:
            _run(Path(order["program"]), order["output"], order["errors"])
            return
        _, status = os.waitpid(process, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
