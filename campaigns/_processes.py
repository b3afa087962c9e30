"""The processes of a run, their memory and their processor time, from /proc."""

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def below(root: int) -> dict[int, int]:
    """Return `root` and all processes that it has started, each with the one that has started it."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            fields = path.read_text().rpartition(")")[2].split()
            parents[int(path.parent.name)] = int(fields[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid: parents.get(pid, 0) for pid in found}


def command_of(pid: int) -> bytes:
    """Return the command line of a process; nothing if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def processor_seconds_of(pids: Iterable[int]) -> float:
    """Return the processor time of these processes, and of those that they have waited for."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


def memory_of(pids: Iterable[int]) -> int:
    """Return the bytes of these processes: shared pages are divided among those that have them."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def stop(pid: int) -> None:
    """Stop a process: its connections stay, and it does nothing when this returns."""
    os.kill(pid, signal.SIGSTOP)
    # A thread on another core may go on for a moment.
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        while stat.read_text().rpartition(")")[2].split()[0] != "T":
            pass
