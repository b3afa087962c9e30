"""Summaries of chunks: neighbouring rows of one subscription become one row from
which each rule can be judged.

A chunk is a piece of one subscription in one row group, with dense numbers. Its summary does not
depend on what came before it. The carry, which does, is a few sums over the chunks before it. So a
subscription of any length is judged in pieces, by any number of workers.

Two values depend on whether the stream was cancelled before the chunk:
then none of its requests count.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[Any]]

ON_SUBSCRIBE, REQUEST, ON_NEXT, CANCEL, ON_COMPLETE, ON_ERROR = 1, 2, 3, 4, 5, 6
"""As `penstock.api.SignalKind`, repeated here so that workers need no import of penstock."""

MOST_DEMAND: Final = 1 << 40
"""The most that a request counts. So sums fit into 64 bits; streams of more elements than this are
not judged.
"""

NO_EXCESS: Final = -(1 << 62)
"""The excess of a chunk without elements."""

BUCKETS: Final = 48
"""The buckets of a histogram: bucket i counts waits from 2^i to 2^(i+1) nanoseconds; the last one
begins at 39 hours.
"""

READ: Final = ("process", "subscription", "seq", "kind", "n", "size", "first", "last", "longest")
"""The columns that the audit reads."""

LOOKED_AT: Final = READ[:5]
"""The columns that decide which rule is breached.
The others, of times, take most of the time to read.
"""

COLUMNS: Final = (
    "process",
    "subscription",
    "first_seq",
    "last_seq",
    "first_time",
    "last_time",
    "first_kind",
    "subscribes",
    "terminals",
    "cancels",
    "errors",
    "demand",
    "elements",
    "bytes",
    "excess",
    "after_terminal",
    "ends_and_elements",
    "is_bad_open",
    "copies",
    "conflicts",
    "longest",
    "publisher_wait",
    "subscriber_wait",
    "publisher_stalls",
    "subscriber_stalls",
)
"""The columns of a summary; each a number of 64 bits."""


def summaries(rows: Columns, stall_ns: int) -> tuple[Columns, Ints, Ints]:
    """Return the summaries of the chunks in `rows`, which are `in_order`, and the histograms of
    publishers' and subscribers' waits.

    A wait of at least `stall_ns` is counted as a stall.
    """
    kind, n, seq = rows["kind"], rows["n"], rows["seq"]
    is_start = starts_of(rows)
    starts = np.flatnonzero(is_start)
    if not len(starts):
        empty: Ints = np.zeros(0, dtype=np.int64)
        return dict.fromkeys(COLUMNS, empty), _histogram(empty), _histogram(empty)
    ends = np.append(starts[1:], len(seq)) - 1
    sums = _Sums(starts, is_start)
    upto, total = sums.upto, sums.total
    is_next, is_request, is_cancel, is_error = (
        kind == ON_NEXT,
        kind == REQUEST,
        kind == CANCEL,
        kind == ON_ERROR,
    )
    is_terminal = is_error | (kind == ON_COMPLETE)
    was_cancelled = upto(is_cancel) - is_cancel > 0
    was_terminated = upto(is_terminal) - is_terminal > 0
    is_live = ~was_cancelled & ~was_terminated
    demand = np.where(is_request & (n > 0) & ~was_cancelled, np.minimum(n, MOST_DEMAND), 0)
    elements = np.where(is_next, n, 0)
    excess = np.where(is_next, upto(elements) - upto(demand), NO_EXCESS)
    # A bad request is answered if an error comes after it: the last of both decides.
    position = np.arange(len(seq))
    bad = np.where(is_request & (n <= 0) & is_live, position, -1)
    answer = np.where(is_error, position, -1)
    gap = _gaps(rows, starts)
    inside = ~is_start
    of_publisher, of_subscriber = (
        inside & (is_next | is_terminal),
        inside & (is_request | is_cancel),
    )
    stalled = gap >= stall_ns
    result: Columns = {
        "process": rows["process"][starts],
        "subscription": rows["subscription"][starts],
        "first_seq": seq[starts],
        "last_seq": seq[ends],
        "first_time": rows["first"][starts],
        "last_time": rows["last"][ends],
        "first_kind": kind[starts].astype(np.int64),
        "subscribes": total(kind == ON_SUBSCRIBE),
        "terminals": total(is_terminal),
        "cancels": total(is_cancel),
        "errors": total(is_error),
        "demand": total(demand),
        "elements": total(elements),
        "bytes": total(rows["size"]),
        "excess": np.maximum.reduceat(excess, starts),
        "after_terminal": total((is_next | is_terminal) & was_terminated),
        "ends_and_elements": total(is_next | is_terminal),
        "is_bad_open": (
            np.maximum.reduceat(bad, starts) > np.maximum.reduceat(answer, starts)
        ).astype(np.int64),
        "copies": total(rows["copies"]),
        "conflicts": total(rows["conflicts"]),
        "longest": np.maximum.reduceat(rows["longest"], starts),
        "publisher_wait": total(np.where(of_publisher, gap, 0)),
        "subscriber_wait": total(np.where(of_subscriber, gap, 0)),
        "publisher_stalls": total(of_publisher & stalled),
        "subscriber_stalls": total(of_subscriber & stalled),
    }
    return result, _histogram(gap[of_publisher]), _histogram(gap[of_subscriber])


class _Sums:
    """Sums over chunks."""

    def __init__(self, starts: Ints, is_start: npt.NDArray[np.bool_]) -> None:
        self._starts = starts
        self._chunk = np.cumsum(is_start) - 1

    def upto(self, values: npt.NDArray[Any]) -> Ints:
        """Return for each row the sum of `values` from the start of its chunk."""
        total = np.cumsum(values, dtype=np.int64)
        before = np.where(self._starts > 0, total[self._starts - 1], 0)
        return np.asarray(total - before[self._chunk], dtype=np.int64)

    def total(self, values: npt.NDArray[Any]) -> Ints:
        """Return for each chunk the sum of `values`."""
        return np.asarray(np.add.reduceat(values.astype(np.int64), self._starts), dtype=np.int64)


def _gaps(rows: Columns, starts: Ints) -> Ints:
    """Return the time between each row and the one before it;
    0 at the start of a chunk, and where clocks went back.
    """
    gap = np.zeros(len(rows["seq"]), dtype=np.int64)
    gap[1:] = np.maximum(rows["first"][1:] - rows["last"][:-1], 0)
    gap[starts] = 0
    return gap


def in_order(rows: Columns) -> Columns:
    """Return the rows by process, subscription and number, each of them once.

    The column ``copies`` tells how often a row came again,
    and ``conflicts`` how often another one came with its number.
    """
    process, subscription, seq = rows["process"], rows["subscription"], rows["seq"]
    none: Ints = np.zeros(len(seq), dtype=np.int64)
    if len(seq) < 2:
        return rows | {"copies": none, "conflicts": none}
    later_process = process[1:] > process[:-1]
    same_process = process[1:] == process[:-1]
    later = subscription[1:] > subscription[:-1]
    same = subscription[1:] == subscription[:-1]
    # The usual case: the recorder has written them so.
    # Sorting would cost more than all other steps.
    if np.all(later_process | (same_process & (later | (same & (seq[1:] > seq[:-1]))))):
        return rows | {"copies": none, "conflicts": none}
    order = np.lexsort((seq, subscription, process))
    keys = np.stack([column[order] for column in (process, subscription, seq)])
    first = np.flatnonzero(np.append([True], np.any(keys[:, 1:] != keys[:, :-1], axis=0)))
    copies = np.diff(first, append=len(seq)) - 1
    # A row that came again would look like a second signal:
    # another on_subscribe, or an element after the end.
    once = {name: column[order[first]] for name, column in rows.items()}
    differs = np.zeros(len(seq), dtype=bool)
    if copies.any():
        for name, column in rows.items():
            differs |= column[order] != np.repeat(once[name], copies + 1)
    return once | {"copies": copies, "conflicts": np.add.reduceat(differs.astype(np.int64), first)}


def starts_of(rows: Columns) -> npt.NDArray[np.bool_]:
    """Return for each row whether a chunk begins with it: another subscription, or a number that
    does not follow the one before.
    """
    process, subscription, seq = rows["process"], rows["subscription"], rows["seq"]
    is_start = np.ones(len(seq), dtype=bool)
    if len(seq):
        is_start[1:] = (
            (process[1:] != process[:-1])
            | (subscription[1:] != subscription[:-1])
            | (seq[1:] != seq[:-1] + 1)
        )
    return is_start


def _histogram(waits: Ints) -> Ints:
    if not len(waits):
        return np.zeros(BUCKETS, dtype=np.int64)
    buckets = np.minimum(np.log2(np.maximum(waits, 1)).astype(np.int64), BUCKETS - 1)
    return np.bincount(buckets, minlength=BUCKETS).astype(np.int64)
