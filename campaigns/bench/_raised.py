"""For both processes: limits that allow 100,000 streams, and the memory of the own process."""

import gc
import os
import sys
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from penstock.api import Limits
from penstock.spi import DISABLE, Registry, build_registry

MANY = 1 << 30

BUSY_POLL_SECONDS = 0.0005
"""The `busy_poll` of the contenders that poll.
An answer takes about 0.00005 s, so it arrives while the reader polls.
"""


def raised_limits() -> Limits:
    """Return limits that let one peer open 100,000 streams over 1,000 connections; also raise
    this process's limit on open files.
    """
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


def bare_registry() -> Registry:
    """Return what penstock offers by itself, without the plugins that are installed."""
    return build_registry(environ={DISABLE: "all"})


def allocated_bytes() -> int:
    """Return the bytes that Python code has allocated, or 0 if `tracemalloc` does not run."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def resident_bytes() -> int:
    """Return the resident bytes of this process. Without /proc, return the peak:
    `getrusage` offers no other figure.
    """
    gc.collect()
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts bytes, other systems KiB.
    return peak if sys.platform == "darwin" else peak * 1024
