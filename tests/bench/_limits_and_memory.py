"""For both processes of a benchmark: limits that are high enough for 100,000 streams, and the memory of the process."""

import gc
import os
import sys
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from penstock.api import Limits

MANY = 1 << 30

BUSY_POLL_SECONDS = 0.0005
"""`busy_poll` of both sides: several times the duration of one round trip."""


def raised_limits() -> Limits:
    """Return limits for 100,000 streams of one peer over 1,000 connections. Raise the number of open files as well."""
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


def allocated_bytes() -> int:
    """Return the traced bytes that Python code has allocated."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def resident_bytes() -> int:
    """Return the resident memory of this process, in bytes."""
    gc.collect()
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # other systems report the maximum only
    return most if sys.platform == "darwin" else most * 1024
