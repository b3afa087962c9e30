"""What both processes need to measure very many streams: limits that are high enough, and a look at their own memory."""

import gc
import os
import sys
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from penstock.api import Limits

MANY = 1 << 30

BUSY = 0.0005
"""Seconds to stay awake for after each read, where both sides do: several times what an answer takes."""


def raised() -> Limits:
    """Limits under which one peer may open a hundred thousand streams at once, over a thousand connections; and files for those."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return replace(
        Limits(),
        max_subscriptions=MANY,
        max_connections=MANY,
        max_connections_per_address=MANY,
        accept_rate=1e9,
        churn_burst=MANY,
        control_burst=MANY,
        glitch_burst=MANY,
    )


def allocated() -> int:
    """Bytes that Python code has allocated, where that is traced."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def resident() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # no way to ask for less than the most it ever was
    return most if sys.platform == "darwin" else most * 1024
