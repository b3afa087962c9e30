"""A command that begins with the signals as a terminal gives them.

A program that runs behind `nohup`, or in the background of a script, ignores SIGHUP or SIGINT, and so
do its children: the parent of workers then hands nothing over, as it should. Tests and campaigns
send these signals, so what they start must not have inherited that.
"""

import sys
from collections.abc import Sequence

_RESET = (
    "import os, signal, sys; "
    "[signal.signal(each, signal.SIG_DFL) for each in (signal.SIGHUP, signal.SIGINT)]; "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


def with_signals(command: Sequence[str]) -> list[str]:
    """Return the command that runs `command`, a program by its whole path, with both signals."""
    return [sys.executable, "-c", _RESET, *command]
