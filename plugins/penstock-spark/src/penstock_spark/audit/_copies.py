"""Rows that came twice: which ones of which row group are left out,
and whether they are copies at all.

Two chunks of a subscription overlap if a file, or a part of it, was copied. The rows of the later
chunk that came before are cut. Workers then compare these rows with the rows that stay: by sums of
hashes, so that no row is moved.
"""

from bisect import bisect_right
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt

from penstock_spark.audit._chunks import READ, Columns, starts_of

Range = tuple[int, int, int, int]
"""Process, subscription, first and last number."""

_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)


@attrs.frozen
class Overlap:
    """Rows that two row groups have."""

    rows: Range
    kept: int
    """The piece whose rows are judged."""
    cut: int
    """The piece whose rows are left out."""


def overlaps_of(table: Columns) -> list[Overlap]:
    """Return the overlaps of the chunks in `table`.
    Each row of a chunk that came before is in one of them.
    """
    # Of two chunks with the same begin the longer one comes first,
    # so the other one is cut as a whole.
    order = np.lexsort(
        (-table["last_seq"], table["first_seq"], table["subscription"], table["process"])
    )
    order = order[_touched(table, order)]
    columns = [
        table[name][order].tolist()
        for name in ("process", "subscription", "first_seq", "last_seq", "piece")
    ]
    found: list[Overlap] = []
    stream: tuple[int, int] | None = None
    # First, last, piece: dense from the first number of each later chunk on.
    kept: list[tuple[int, int, int]] = []
    for process, subscription, first, last, piece in zip(*columns, strict=True):
        if (process, subscription) != stream:
            stream, kept = (process, subscription), []
        reached = kept[-1][1] if kept else -1
        for begin, end, other in reversed(kept):
            if end < first:
                break
            found.append(
                Overlap((process, subscription, max(first, begin), min(last, end)), other, piece)
            )
        if last > reached:
            kept.append((max(first, reached + 1), last, piece))
    return [each for each in found if each.rows[2] <= each.rows[3]]


def _touched(table: Columns, order: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which chunks, in this order, are of a subscription with an overlap:
    usually none is.
    """
    process, subscription, first, last = (
        table[name][order] for name in ("process", "subscription", "first_seq", "last_seq")
    )
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (process[1:] != process[:-1]) | (subscription[1:] != subscription[:-1])
    group = np.cumsum(is_new) - 1
    # Two chunks overlap only if two neighbours in this order do.
    overlaps = np.zeros(len(order), dtype=bool)
    overlaps[1:] = ~is_new[1:] & (first[1:] <= last[:-1])
    has_some = np.zeros(len(order), dtype=bool)
    has_some[group[overlaps]] = True
    return has_some[group] if len(order) else has_some


class Places:
    """Where the rows of a range are, in rows that are in order."""

    def __init__(self, rows: Columns) -> None:
        begins = np.flatnonzero(starts_of(rows))
        columns = (rows[name][begins].tolist() for name in ("process", "subscription", "seq"))
        self._begins = dict(zip(zip(*columns, strict=True), begins.tolist(), strict=True))
        self._keys = sorted(self._begins)

    def of(self, rows: Any) -> slice:
        """Return the place of a range, all rows of which are in one chunk."""
        process, subscription, first, last = rows
        key = self._keys[bisect_right(self._keys, (process, subscription, first)) - 1]
        begin = self._begins[key] + first - key[2]
        return slice(begin, begin + last - first + 1)


def without(rows: Columns, cuts: list[Any]) -> Columns:
    """Return `rows`, which are in order, without the ranges `cuts`."""
    if not cuts:
        return rows
    places, stays = Places(rows), np.ones(len(rows["seq"]), dtype=bool)
    for cut in cuts:
        stays[places.of(cut)] = False
    return {name: column[stays] for name, column in rows.items()}


def digests(rows: Columns, ranges: list[Any]) -> list[int]:
    """Return a number for each of `ranges`:
    the same for the same rows, also if they are cut into pieces elsewhere.
    """
    if not ranges:
        return []  # as of most row groups: the numbers would be made of each row
    mixed = np.zeros(len(rows["seq"]), dtype=np.uint64)
    for name in READ:
        mixed = (mixed ^ rows[name].astype(np.int64).view(np.uint64)) * _MIX
        mixed ^= mixed >> _SHIFT
    upto = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64))).view(
        np.int64
    )
    places = Places(rows)
    found = [places.of(each) for each in ranges]
    sums = upto[[place.stop for place in found]] - upto[[place.start for place in found]]
    return [int(value) for value in sums]
