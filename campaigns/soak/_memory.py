"""How much memory this process has, and how much of it is in use.

The system's figure (RSS) also has memory that was freed and is kept for later: the allocators give
it back in large pieces only, so one object in use can hold a piece. A leak shows in the memory in
use.
"""

import ctypes
import gc
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Final

MEMORY: Final = Path("/proc/self/statm")
STATUS: Final = Path("/proc/self/status")


class _Figures(ctypes.Structure):
    """The result of `mallinfo2` of the C library."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


def resident() -> int:
    """Return the bytes of this process that are in memory (RSS); 0 if the system does not tell."""
    return int(MEMORY.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if MEMORY.exists() else 0


def most_resident() -> int:
    """Return the most bytes that this process ever had in memory; 0 if the system does not tell."""
    found = re.search(r"VmHWM:\s+(\d+) kB", STATUS.read_text()) if STATUS.exists() else None
    return int(found[1]) * 1024 if found else 0


def in_use() -> int:
    """Return the bytes that Python's allocator and the C library have given out, after a
    collection; 0 if the C library does not tell.

    The C library also gives back to the system what is free.
    """
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        return 0
    gc.collect()
    library.malloc_trim(0)
    library.mallinfo2.restype = _Figures
    figures = library.mallinfo2()
    return int(figures.uordblks) + int(figures.hblkhd) + _in_small_blocks()


def _in_small_blocks() -> int:
    """Return the bytes of blocks of up to 512 bytes. Python's allocator takes the memory of
    these from the system, not from malloc.
    """
    with tempfile.TemporaryFile("w+b") as file:
        error_output = os.dup(2)
        try:
            os.dup2(file.fileno(), 2)
            sys._debugmallocstats()
        finally:
            os.dup2(error_output, 2)
            os.close(error_output)
        file.seek(0)
        found = re.search(rb"# bytes in allocated blocks\s+=\s+([\d,]+)", file.read())
    return int(found[1].replace(b",", b"")) if found else 0
