"""Elements as they have arrived, and the column of bytes that is made of them.

Rules of this file:

* Elements of one length stay in the memory in which they arrived. To cut each out as an object, and
  to make a column of the objects, takes 170 ns an element of 32 bytes; to copy all of them into the
  column without their headers takes 10.
* The column has no validity bitmap: each element has a value.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.api import EqualRun, ShortRun, UsageError

NEW_LINE: Final = 10

MOST_BYTES: Final = 2**31 - 1
"""Bytes of a column of bytes, because its offsets are 32-bit numbers."""


class Runs(Sequence[bytes]):
    """Elements that have arrived in several runs."""

    __slots__ = ("_count", "runs", "size")

    def __init__(self, runs: Sequence[Sequence[bytes]] = ()) -> None:
        self.runs: list[Sequence[bytes]] = []
        """None of them is empty."""
        self.size: int = 0
        """Bytes of the elements."""
        self._count = 0
        for run in runs:
            self.add(run)

    def add(self, run: Sequence[bytes]) -> None:
        """Add elements behind the others."""
        if run:
            self.runs.append(run)
            self.size += size_of(run)
            self._count += len(run)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(self.runs)

    def __getitem__(self, index: Any) -> Any:
        if index == -1:
            return self.runs[-1][-1]
        return [*self][index]


def size_of(run: Sequence[bytes]) -> int:
    """Return the bytes of the elements."""
    return run.size if isinstance(run, EqualRun | ShortRun) else sum(map(len, run))


def lines_of(elements: Sequence[bytes]) -> bytes:
    """Return the elements as lines, without an object for each of them if they are runs."""
    if not isinstance(elements, Runs):
        return b"\n".join(elements)
    lines = np.empty(elements.size + len(elements), np.uint8)
    at = 0
    for run in elements.runs:
        end = at + size_of(run) + len(run)
        _write_lines(run, lines[at:end])
        at = end
    # Each line begins with its line break.
    return lines[1:].tobytes()


def _write_lines(run: Sequence[bytes], lines: Any) -> None:
    """Write the elements of a run, each after a line break."""
    if isinstance(run, EqualRun):
        rows = lines.reshape(len(run), -1)
        rows[:, 0] = NEW_LINE
        rows[:, 1:] = np.frombuffer(run.data, np.uint8).reshape(-1, run.stride)[:, run.head :]
    elif isinstance(run, ShortRun):
        # Before each element stands its length, in one byte.
        lengths = np.frombuffer(run.lengths, np.uint8)
        lines[:] = np.frombuffer(run.data, np.uint8)
        lines[np.cumsum(lengths, dtype=np.int64) - lengths] = NEW_LINE
    else:
        lines[:] = np.frombuffer(b"\n" + b"\n".join(run), np.uint8)


def bytes_column(elements: Runs) -> pa.Array:
    """Return the elements as a column. Raises UsageError if they are too many bytes for one."""
    if elements.size > MOST_BYTES:
        raise UsageError(
            f"elements of {elements.size:,} bytes in one batch, and a column holds {MOST_BYTES:,}: "
            "set a smaller demandWindow"
        )
    values, ends = np.empty(elements.size, np.uint8), np.zeros(len(elements) + 1, np.int32)
    at, row = 0, 1
    for run in elements.runs:
        lengths, data = _taken_apart(run)
        ends[row : row + len(run)] = lengths
        values[at : at + data.size].reshape(data.shape)[:] = data
        at, row = at + data.size, row + len(run)
    np.cumsum(ends, out=ends)
    return pa.Array.from_buffers(
        pa.binary(), len(elements), [None, pa.py_buffer(ends), pa.py_buffer(values)]
    )


def _taken_apart(run: Sequence[bytes]) -> tuple[Any, Any]:
    """Return the lengths of the elements, or one for all, and their bytes."""
    if isinstance(run, EqualRun):
        return run.stride - run.head, np.frombuffer(run.data, np.uint8).reshape(-1, run.stride)[
            :, run.head :
        ]
    if isinstance(run, ShortRun):
        lengths = np.frombuffer(run.lengths, np.uint8)
        is_element = np.ones(len(run.data), np.bool_)
        is_element[np.cumsum(lengths, dtype=np.int64) - lengths] = False
        return lengths - 1, np.frombuffer(run.data, np.uint8)[is_element]
    return np.fromiter(map(len, run), np.int32, len(run)), np.frombuffer(b"".join(run), np.uint8)
