"""The process's limit on open files: how many connections it leaves room for, and how to raise it.

Rules of this file:

* Each connection is an open file. A process without any left can neither accept, nor open its own
  log, nor connect to its database. So a share of the files is kept in reserve, and the files that
  are open already are subtracted.
* Only a program raises the limit of its process, and never `serve`: child processes inherit it.
"""

import logging
import sys
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import resource

RESERVED_SHARE: Final = 8
"""One in this number of files is kept in reserve for the rest of the process."""

MAX_RESERVED: Final = 256
"""No more files than these are kept in reserve."""

LEAST_CONNECTIONS: Final = 8
"""Connections that are accepted at least. With fewer files than these need, accepting fails now
and then, and goes on after a pause.
"""

ASSUMED_OPEN: Final = 32
"""Files that are taken to be open where the system does not list them."""

_MACOS_MOST: Final = 10_240
"""macOS has no hard limit, and refuses a soft limit above this number (OPEN_MAX)."""

_FEW: Final = 512
"""A server that is restricted to fewer connections says so as a warning,
and as an information otherwise.
"""

_log: Final = logging.getLogger("penstock.server")

# Linux has the first of these, macOS and the BSDs the second.
_LISTS: Final = ("/proc/self/fd", "/dev/fd")


def raise_open_files() -> int | None:
    """Raise this process's limit on open files to its hard limit, and return the limit.
    Call it once, before `serve`.

    Each connection is an open file, and most systems allow a process 1,024 files until it asks for
    more. `run` and ``penstock serve`` call this function. A program that uses `serve` calls it
    itself, because child processes inherit the limit: one that uses ``select()`` cannot handle
    files above 1,023. Returns None if the number of files is unlimited, or if the system has no
    such limit (Windows). Never raises.
    """
    if sys.platform == "win32":
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The hard limit first. macOS refuses it, and accepts the second number.
    for wanted in (hard, _MACOS_MOST):
        if soft != resource.RLIM_INFINITY and (wanted == resource.RLIM_INFINITY or wanted > soft):
            try:
                # The hard limit is not changed: a process that lowers it cannot raise it again.
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            except (ValueError, OSError):
                # A sandbox may forbid it, and macOS has a lower bound than it says.
                continue
            break
    return file_limit()


def file_limit() -> int | None:
    """Return the number of files that this process may have open; None without a limit."""
    if sys.platform == "win32":
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def files_allowed() -> str:
    """Return the limit on open files as the beginning of a sentence."""
    files = file_limit()
    return f"this process may have {'any number of' if files is None else f'{files:,}'} files open"


def count_open_files() -> int:
    """Return the number of files that this process has open now."""
    for name in _LISTS:
        try:
            return sum(1 for _ in Path(name).iterdir()) - 1  # the listing is an open file itself
        except OSError:  # not this system, or no file is left
            continue
    return ASSUMED_OPEN


def connections_within(files: int | None, taken: int, wanted: int) -> int:
    """Return how many of the `wanted` connections may be open,
    if `taken` of the process's `files` are open already.
    """
    if files is None:
        return wanted
    room = files - taken - min(MAX_RESERVED, files // RESERVED_SHARE)
    return min(wanted, max(LEAST_CONNECTIONS, room))


def connections_possible(wanted: int) -> int:
    """Return how many of the `wanted` connections may be open, and log what to do
    if these are fewer.
    """
    files = file_limit()
    possible = connections_within(files, count_open_files(), wanted)
    if files is not None and possible < wanted:
        _log.log(
            logging.WARNING if possible < _FEW else logging.INFO,
            "%s",
            advice(files, possible, wanted),
        )
    return possible


def spare_files(files: int | None, wanted: int) -> int:
    """Return how many of the `wanted` files the reserve of a process with `files` can give for a
    short time: a quarter of it at most.
    """
    return wanted if files is None else min(wanted, files // RESERVED_SHARE // 4)


def advice(files: int, connections: int, wanted: int) -> str:
    """Say that fewer connections are possible than wanted, and what to do."""
    hard = files if sys.platform == "win32" else resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    # If both limits are equal, the call cannot raise anything, and the advice leaves it out.
    is_soft = sys.platform != "win32" and hard != files
    call = "call penstock.raise_open_files() before serve(), or raise it" if is_soft else "raise it"
    # More than `wanted`: the reserve and the files that are open already are subtracted from the
    # limit again.
    enough = wanted + MAX_RESERVED + ASSUMED_OPEN
    return (
        f"this process may have {files:,} files open, so at most {connections:,} connections are "
        f"accepted at a time, and not {wanted:,} (Limits.max_connections). If that is too few, "
        f"{call} with `ulimit -n {enough}` in the shell, or with LimitNOFILE={enough} in "
        "the systemd unit"
    )
