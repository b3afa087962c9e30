"""The report of an audit, as plain values: what JSON holds and the page shows."""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.api import UsageError
from penstock_spark.audit._carry import Carries
from penstock_spark.audit._chunks import BUCKETS, Ints
from penstock_spark.audit._folder import (
    SUBSCRIPTION,
    TWO_RECORDINGS,
    check_schema,
    named,
    parquet_of,
    read_whole,
    unreadable,
)
from penstock_spark.audit._job import Judged
from penstock_spark.audit._record_files import Source
from penstock_spark.audit._rules import FINDINGS, RULES

VERSION: Final = 1
"""The version of the report."""

MISSING: Final = (
    "Rows are missing: demand is not judged in a stream behind its gap. If recorders dropped "
    "them, give Recorder(max_rows=…) more room, a faster disk, or a smaller sample; if not, a "
    "file is not in this folder: a process that was killed leaves its last file as .part."
)
NOT_HERE: Final = (
    "Processes wrote rows that are not in this folder: a file of signals was removed, or was not "
    "copied. Put it here, and audit again. The ends of streams may be in it."
)
UNENDED: Final = (
    "Processes did not end their records: they still run, or were killed. Their last rows, of up "
    "to rotate_seconds (60 by default), may be missing, and are not counted."
)
TWICE: Final = (
    "Rows came twice: the same file is in this folder under two names, or copied from a second "
    "one. Remove the copy, and audit again."
)
TOO_MANY: Final = (
    "A process wrote fewer rows than are here with its number: there may be two recordings with "
    "the same process number in this folder. Put each into a folder of its own, and audit one by "
    "one."
)
"""What to do about rows that are missing, that came twice, or that are too many."""

LISTED: Final = 100
"""Violations of a rule, streams without an end and streams with lost rows
that are listed one by one; all are counted.
"""

PUBLISHERS: Final = 50
"""Publishers that are listed, those with the most elements first."""

PERCENT: Final = (50, 90, 99, 100)
"""The percentiles of waits."""

NS: Final = 1_000_000_000


def report_of(
    judged: Judged, index: "Index", processes: list[dict[str, Any]], stall_seconds: float
) -> dict[str, Any]:
    """Return the report."""
    carries = judged.carries
    chunks = carries.chunks
    starts = np.flatnonzero(carries.is_first)
    totals = _by_subscription(carries, starts)
    unterminated = np.flatnonzero((totals["terminals"] == 0) & (totals["cancels"] == 0))
    lifetime = int(np.maximum(totals["last_time"] - totals["first_time"], 0).sum())
    by_rule = {
        rule: [each for each in judged.violations if each["rule"] == rule] for rule in FINDINGS
    }
    return {
        "version": VERSION,
        "rows": int((chunks["last_seq"] - chunks["first_seq"] + 1).sum())
        if len(chunks["last_seq"])
        else 0,
        "chunks": len(chunks["last_seq"]),
        "suspects": len(carries.suspects),
        "subscriptions": len(starts),
        "elements": int(totals["elements"].sum()),
        "bytes": int(totals["bytes"].sum()),
        "violations": {
            rule: {
                "text": FINDINGS[rule],
                "subscriptions": len(found),
                "rows": sum(each["count"] for each in found),
                "first": [index.with_names(each) for each in found[:LISTED]],
            }
            for rule, found in by_rule.items()
            if found
        },
        "lost": _lost(judged, index, processes),
        "unterminated": {
            "subscriptions": len(unterminated),
            "first": [
                index.with_names(_name(chunks, int(starts[at])))
                for at in unterminated[:LISTED].tolist()
            ],
        },
        "waits": {
            "publisher": _waits(judged.publisher_waits),
            "subscriber": _waits(judged.subscriber_waits),
        },
        # The part of their lives in which the streams did not wait for their subscribers.
        "demand_utilisation": round(1 - int(totals["subscriber_wait"].sum()) / lifetime, 4)
        if lifetime
        else None,
        "stalls": {
            "seconds": stall_seconds,
            "of_publishers": int(totals["publisher_stalls"].sum()),
            "of_subscribers": int(totals["subscriber_stalls"].sum()),
        },
        "longest_signal_seconds": int(np.max(totals["longest"])) / NS if len(starts) else 0.0,
        "publishers": _publishers(chunks, starts, totals, index),
        "processes": processes,
        "rules": [
            {"rule": rule.number, "text": rule.text, "shown": rule.is_shown, "how": rule.how}
            for rule in RULES
        ],
    }


class Index:
    """What each subscription was."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, int], dict[str, Any]] = {}

    def add(self, files: Iterable[tuple[str, Source]]) -> None:
        """Add the rows of files. Raises UsageError that names the file if one cannot be read, or
        if two contradict each other.
        """
        for path, source in files:
            for row in _rows_of(path, source):
                key = row["process"], row["subscription"]
                if self._rows.setdefault(key, row) != row:
                    raise UsageError(
                        f"{path} and another file tell of process {key[0]:016x}, subscription "
                        f"{key[1]}, in two ways: {TWO_RECORDINGS}"
                    )

    def with_names(self, line: dict[str, Any]) -> dict[str, Any]:
        """Return `line` with the names of its subscription."""
        row = self._rows.get((line["process"], line["subscription"]), {})
        names = {
            name: row.get(name)
            for name in ("publisher", "pattern", "peer", "connection", "stream", "outbound")
        }
        return {**line, **names}

    def name(self, process: int, subscription: int) -> str:
        """Return the name under which the publisher is offered, or that was asked for."""
        row = self._rows.get((process, subscription))
        return "unknown" if row is None else str(row["pattern"] or row["publisher"])


def _rows_of(path: str, source: Source) -> list[dict[str, Any]]:
    try:
        file = parquet_of(source)
        check_schema(path, file.schema_arrow, SUBSCRIPTION)
        return [
            row
            for group in range(file.num_row_groups)
            for row in read_whole(file, SUBSCRIPTION, group).to_pylist()
        ]
    except (OSError, ValueError, pa.ArrowException) as error:
        raise UsageError(unreadable(path, error)) from None


def _lost(judged: Judged, index: Index, processes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return which rows are missing, and which came twice."""
    chunks, lost = judged.carries.chunks, judged.carries.lost
    first = [
        {**_name(chunks, at), "before_seq": int(chunks["first_seq"][at]), "rows": int(lost[at])}
        for at in np.flatnonzero(lost != 0)[:LISTED].tolist()
    ]
    gaps, here = (
        _by_process(chunks, lost),
        _by_process(chunks, chunks["last_seq"] - chunks["first_seq"] + 1),
    )
    not_here = {
        facts["process"]: facts["rows"] - here.get(facts["process"], 0) for facts in processes
    }
    dropped = {facts["process"]: facts["dropped"] for facts in processes}
    unended = [facts for facts in processes if facts["ended"] is None]
    # A process that has not ended has written its own count after its last file,
    # or was killed before it could.
    too_many = sum(
        1 for facts in processes if facts["ended"] is not None and not_here[facts["process"]] < 0
    )
    rows = sum(gaps.values())
    absent = sum(max(0, count) for count in not_here.values())
    # A gap is of rows that were dropped, or of rows that are not here. Both are counted by the
    # process, and a gap only if it shows.
    total = sum(
        max(gaps.get(process, 0), max(0, not_here.get(process, 0)) + dropped.get(process, 0))
        for process in gaps.keys() | not_here.keys()
    )
    advice = (
        (rows, MISSING),
        (absent, NOT_HERE),
        (len(unended), UNENDED),
        (judged.copied, TWICE),
        (too_many, TOO_MANY),
    )
    return {
        "total": total,
        "rows": rows,
        "rows_not_here": absent,
        "rows_twice": judged.copied,
        "advice": [text for number, text in advice if number],
        "first": [index.with_names(each) for each in first],
        "dropped_by_recorders": sum(dropped.values()),
        "streams_left_out": sum(facts["streams_left_out"] for facts in processes),
        "processes": [
            {"process": named(facts), "rows_not_here": not_here[facts["process"]]}
            for facts in processes
            if not_here[facts["process"]] > 0
        ][:LISTED],
        "unended": {
            "processes": len(unended),
            "first": [named(facts) for facts in unended[:LISTED]],
        },
    }


def _by_process(chunks: dict[str, Any], values: Ints) -> dict[int, int]:
    """Return the sum of `values` for each process."""
    processes, places = np.unique(chunks["process"], return_inverse=True)
    sums = np.zeros(len(processes), dtype=np.int64)
    np.add.at(sums, places, values)
    return dict(zip(processes.tolist(), sums.tolist(), strict=True))


def _name(chunks: dict[str, Any], at: int) -> dict[str, Any]:
    return {"process": int(chunks["process"][at]), "subscription": int(chunks["subscription"][at])}


def _by_subscription(carries: Carries, starts: Ints) -> dict[str, Ints]:
    chunks = carries.chunks
    sums = (
        "terminals",
        "cancels",
        "elements",
        "bytes",
        "publisher_wait",
        "subscriber_wait",
        "publisher_stalls",
        "subscriber_stalls",
    )
    if not len(starts):
        return {
            name: np.zeros(0, dtype=np.int64)
            for name in (*sums, "longest", "first_time", "last_time")
        }
    totals = {name: np.add.reduceat(chunks[name], starts) for name in sums}
    return {
        **totals,
        "longest": np.maximum.reduceat(chunks["longest"], starts),
        "first_time": np.minimum.reduceat(chunks["first_time"], starts),
        "last_time": np.maximum.reduceat(chunks["last_time"], starts),
    }


def _waits(histogram: Ints) -> dict[str, Any]:
    """Return how many waits there were, and the upper ends of the buckets with the percentiles,
    in seconds.
    """
    count = int(histogram.sum())
    upto = np.cumsum(histogram)
    percentiles = {
        str(percent): float(2 ** (int(np.searchsorted(upto, max(1, count * percent / 100))) + 1))
        / NS
        for percent in PERCENT
        if count
    }
    return {
        "count": count,
        "seconds_at_percent": percentiles,
        "buckets_of_powers_of_2_ns": histogram.tolist()[:BUCKETS],
    }


def _publishers(
    chunks: dict[str, Any], starts: Ints, totals: dict[str, Ints], index: Index
) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for number, at in enumerate(starts.tolist()):
        name = index.name(int(chunks["process"][at]), int(chunks["subscription"][at]))
        row = found.setdefault(
            name,
            {
                "publisher": name,
                "subscriptions": 0,
                "elements": 0,
                "bytes": 0,
                "publisher_wait": 0,
                "subscriber_wait": 0,
                "publisher_stalls": 0,
                "subscriber_stalls": 0,
                "longest": 0,
            },
        )
        row["subscriptions"] += 1
        for column in (
            "elements",
            "bytes",
            "publisher_wait",
            "subscriber_wait",
            "publisher_stalls",
            "subscriber_stalls",
        ):
            row[column] += int(totals[column][number])
        row["longest"] = max(row["longest"], int(totals["longest"][number]))
    rows = sorted(found.values(), key=lambda row: -row["elements"])[:PUBLISHERS]
    for row in rows:
        # The larger wait tells who waits for whom.
        row["waits_for"] = (
            "subscriber" if row["subscriber_wait"] > row["publisher_wait"] else "publisher"
        )
        for column in ("publisher_wait", "subscriber_wait", "longest"):
            row[f"{column}_seconds"] = round(row.pop(column) / NS, 6)
    return rows
