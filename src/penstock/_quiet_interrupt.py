"""Ctrl-C while the command ``penstock`` starts or ends: status 130, and no traceback.

`penstock.cli.main` handles an interrupt itself. It runs only when all modules are imported, which
takes some tenths of a second. If the command was mistyped, a user presses Ctrl-C in that time.
Python imports this package before its `__main__`, so an ``except`` there is too late: only a hook
that is set before the other imports is early enough.

Rules of this file:

* It imports only modules of the standard library that are imported within a few milliseconds: the
  hook must be set before an interrupt.
* It changes nothing in a program that imports penstock as a library.
"""

import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from types import TracebackType
from typing import Final

INTERRUPTED: Final = 130
"""A shell reports this status for a program that SIGINT has ended:
128 and the number of the signal.
"""


def is_command(argv: Sequence[str], original: Sequence[str]) -> bool:
    """Whether `argv` and `original`, as `sys.argv` and `sys.orig_argv` are now,
    are those of the command ``penstock``.
    """
    script = argv[0] if argv else ""
    if script == "-m":  # until Python has found the module, argv does not have its name
        return "-mpenstock" in original or ("-m", "penstock") in pairwise(original)
    name, suffix = os.path.splitext(os.path.basename(script))  # noqa: PTH119, PTH122  # pathlib takes 10 ms to import
    return name == "penstock" and suffix in {"", ".exe"}


def end_quietly(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Write an unhandled exception as Python does.
    For an interrupt write nothing, and set the exit status.
    """
    if issubclass(kind, KeyboardInterrupt):
        raise SystemExit(INTERRUPTED)
    sys.__excepthook__(kind, error, trace)


if is_command(getattr(sys, "argv", ()), getattr(sys, "orig_argv", ())):
    sys.excepthook = end_quietly
