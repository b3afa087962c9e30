"""The figures of memory that the soak judges."""

import mmap
import sys

import pytest

from campaigns.soak import _memory
from campaigns.soak._memory import in_use, most_resident, resident

MIB = 1 << 20


@pytest.mark.skipif(
    not hasattr(_memory.ctypes.CDLL(None), "mallinfo2"),
    reason="the C library does not tell what it has given out",
)
@pytest.mark.parametrize(
    "length", [100, 1 << 12, 1 << 20], ids=["small blocks", "malloc", "mapped"]
)
def test_memory_in_use_is_counted_until_it_is_freed(length: int) -> None:
    """Of small blocks, which Python's allocator gives out, and of larger ones,
    which the C library gives out or maps.
    """
    before = in_use()
    held = [bytes(length) for _ in range(20 * MIB // length)]
    filled = in_use()
    assert 19 * MIB < filled - before < 45 * MIB
    del held
    assert in_use() - before < MIB


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells a process its memory in /proc"
)
def test_the_most_memory_is_kept() -> None:
    """It does not become less when memory is freed."""
    # Mapped here: malloc may take a piece of this size from what earlier tests have freed,
    # and then keeps it again.
    with mmap.mmap(-1, 50 * MIB) as held:
        held.write(b"x" * (50 * MIB))
        filled = resident()
    assert resident() < filled - 40 * MIB
    assert most_resident() > filled - MIB  # the system counts pages in groups
