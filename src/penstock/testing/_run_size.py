"""Whether a decoder tells the bytes of a run: the session counts with them what a reader holds."""

from collections.abc import Sequence
from typing import Final

MOST_HEADER_BYTES: Final = 4
"""Bytes of a header that a decoder may count with each element."""


def check_run_size(elements: Sequence[bytes], size: int) -> None:
    """Raise AssertionError if a decoder passed a wrong `size` with `elements` to `receive_run`."""
    exact = sum(map(len, elements))
    if size >= 0 and not exact <= size <= exact + MOST_HEADER_BYTES * len(elements):
        raise AssertionError(
            f"receive_run(elements, {size}) with {len(elements)} elements of {exact} bytes in all; pass their bytes, and at most "
            f"{MOST_HEADER_BYTES} of a header with each, or leave the size out"
        )
