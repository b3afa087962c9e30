"""The Spark job: workers read row groups and send summaries; the driver finds the suspects;
workers look at those row by row.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.api import UsageError
from penstock_spark.audit._carry import Carries, carries_of
from penstock_spark.audit._chunks import (
    BUCKETS,
    COLUMNS,
    LOOKED_AT,
    READ,
    Columns,
    Ints,
    in_order,
    starts_of,
    summaries,
)
from penstock_spark.audit._copies import Overlap, digests, overlaps_of, without
from penstock_spark.audit._folder import TWO_RECORDINGS, WHAT_TO_DO, read_whole, unreadable
from penstock_spark.audit._scan import WindowState, scan

_SUMMARY_TYPE: Final = ", ".join(
    [
        *(f"{name} bigint" for name in COLUMNS),
        "piece bigint",
        "waits array<bigint>",
        "digests array<bigint>",
        "problem string",
    ]
)
_FOUND_TYPE: Final = "process bigint, subscription bigint, found string, problem string"

Work = list[tuple[int, Any]]
"""Numbered pieces of work; each is turned into JSON for the worker."""

Function = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Runs in a worker: takes batches of work, and returns batches of rows."""

Chunk = tuple[int, int, int, int]
"""Process, subscription, first and last number."""

Run = Callable[[Work, Function, str, str], pa.Table]
"""Gives the work to workers, and returns the rows of all:
``run(work, function, types of the rows, a word for the progress)``.
"""


@attrs.frozen
class Judged:
    """The findings of the job."""

    carries: Carries
    publisher_waits: Ints
    subscriber_waits: Ints
    violations: list[dict[str, Any]]
    """Each with process, subscription, rule, seq, count and transcript;
    in the order of subscriptions and numbers.
    """
    copied: int
    """Rows that came again: a file, or a part of it, is in the folder twice."""


@attrs.define
class _Summary:
    """The reports of the workers about the row groups."""

    chunks: Columns
    waits: dict[int, Ints]
    """By piece: the histograms of publishers' and subscribers' waits."""
    digests: dict[int, list[int]]
    """By piece: of the ranges that were asked for."""


def pieces_of(files: Iterable[Path]) -> list[tuple[str, int]]:
    """Return the row groups of the files."""
    return [
        (str(path), group) for path in files for group in range(pq.ParquetFile(path).num_row_groups)
    ]


def judge(run: Run, pieces: list[tuple[str, int]], *, stall_ns: int) -> Judged:
    """Judge the rows of `pieces`, which are row groups.
    `run` is a `SparkRun`, or what a test puts in its place.
    """
    function = _Summarise(stall_ns)
    summary = _summary(
        run,
        [(number, (*piece, [], [])) for number, piece in enumerate(pieces)],
        function,
        "reading",
    )
    copied = int(summary.chunks["copies"].sum())
    _refuse_conflicts(summary.chunks, pieces)
    cuts: dict[int, list[Any]] = {}
    overlaps = overlaps_of(summary.chunks)
    if overlaps:
        for each in overlaps:
            cuts.setdefault(each.cut, []).append(each.rows)
            copied += each.rows[3] - each.rows[2] + 1
        _cut(run, pieces, function, summary, overlaps, cuts)
    waits = (
        np.sum(list(summary.waits.values()), axis=0)
        if summary.waits
        else np.zeros(2 * BUCKETS, dtype=np.int64)
    )
    carries = carries_of(summary.chunks)
    return Judged(
        carries, waits[:BUCKETS], waits[BUCKETS:], _look(run, pieces, carries, cuts), copied
    )


def _summary(run: Run, work: Work, function: Function, what: str) -> _Summary:
    table = run(work, function, _SUMMARY_TYPE, what)
    _refuse_problems(table)
    is_chunk = pc.is_valid(table["process"])
    chunks = table.filter(is_chunk)
    pieces = table.filter(pc.invert(is_chunk)).select(["piece", "waits", "digests"]).to_pylist()
    return _Summary(
        chunks={name: chunks[name].to_numpy() for name in (*COLUMNS, "piece")},
        waits={row["piece"]: np.array(row["waits"], dtype=np.int64) for row in pieces},
        digests={row["piece"]: row["digests"] for row in pieces},
    )


def _refuse_problems(table: pa.Table) -> None:
    problems = sorted(table["problem"].drop_null().to_pylist())
    if problems:
        raise UsageError(problems[0])


def _refuse_conflicts(chunks: Columns, pieces: list[tuple[str, int]]) -> None:
    """Raise UsageError if a row group has different rows with the same number."""
    for at in np.flatnonzero(chunks["conflicts"])[:1].tolist():
        process, subscription = int(chunks["process"][at]), int(chunks["subscription"][at])
        raise UsageError(
            f"{pieces[int(chunks['piece'][at])][0]} has different rows with the same number in "
            f"subscription {subscription} of process {process:016x}: it was made of two "
            f"recordings with the same process number, or was changed. {WHAT_TO_DO}"
        )


def _cut(
    run: Run,
    pieces: list[tuple[str, int]],
    function: Function,
    summary: _Summary,
    overlaps: list[Overlap],
    cuts: dict[int, list[Any]],
) -> None:
    """Summarise the pieces with overlaps again, without the rows that came before. Raise UsageError
    if these rows are not copies.
    """
    asked: dict[int, list[Any]] = {}
    for each in overlaps:
        for piece in (each.kept, each.cut):
            asked.setdefault(piece, []).append(each.rows)
    work = [
        (number, (*pieces[number], cuts.get(number, []), ranges))
        for number, ranges in sorted(asked.items())
    ]
    again = _summary(run, work, function, "comparing copies")
    answers = {number: iter(again.digests[number]) for number in asked}
    for each in overlaps:
        if next(answers[each.kept]) != next(answers[each.cut]):
            process, subscription, first, last = each.rows
            where = " and ".join(sorted({pieces[number][0] for number in (each.kept, each.cut)}))
            raise UsageError(
                f"{where}: the rows {first} to {last} of subscription {subscription} of process "
                f"{process:016x} are there twice, and differ: {TWO_RECORDINGS}"
            )
    stays = ~np.isin(summary.chunks["piece"], list(asked))
    summary.chunks = {
        name: np.concatenate((column[stays], again.chunks[name]))
        for name, column in summary.chunks.items()
    }
    summary.waits |= again.waits


def _look(
    run: Run, pieces: list[tuple[str, int]], carries: Carries, cuts: Mapping[int, list[Any]]
) -> list[dict[str, Any]]:
    suspects = carries.suspects
    chunks = carries.chunks
    # One read of a row group for all of its suspects.
    by_piece: dict[int, list[dict[str, Any]]] = {}
    for at in suspects.tolist():
        by_piece.setdefault(int(chunks["piece"][at]), []).append(
            {
                "process": int(chunks["process"][at]),
                "subscription": int(chunks["subscription"][at]),
                "first_seq": int(chunks["first_seq"][at]),
                "last_seq": int(chunks["last_seq"][at]),
                "is_answered_later": bool(carries.is_answered_later[at]),
                "carry": {
                    "demand": int(carries.demand[at]),
                    "elements": int(carries.elements[at]),
                    "is_begun": bool(carries.is_begun[at]),
                    "is_cancelled": bool(carries.is_cancelled[at]),
                    "is_terminated": bool(carries.is_terminated[at]),
                    "is_lost": bool(carries.is_lost[at]),
                },
            }
        )
    if not by_piece:
        return []
    work = [
        (number, (*pieces[number], cuts.get(number, []), looks))
        for number, looks in by_piece.items()
    ]
    table = run(work, _look_at, _FOUND_TYPE, "looking at suspects")
    _refuse_problems(table)
    found = [json.loads(text) for text in table["found"].to_pylist()]
    # One line for a subscription and a rule:
    # the first breach of a stream causes most of the others.
    merged: dict[tuple[int, int, str], dict[str, Any]] = {}
    for each in sorted(
        found, key=lambda each: (each["process"], each["subscription"], each["seq"])
    ):
        first = merged.setdefault((each["process"], each["subscription"], each["rule"]), each)
        if first is not each:
            first["count"] += each["count"]
    return list(merged.values())


class _Summarise:
    """Reads row groups and returns their summaries; runs in a worker."""

    def __init__(self, stall_ns: int) -> None:
        self._stall_ns = stall_ns

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, (path, group, cuts, ranges) in _items(batches):
            try:
                rows = read(path, group)
            except _DAMAGE as error:
                yield _told(_SUMMARY_TYPE, problem=[unreadable(path, error)])
                continue
            ordered = in_order(rows)
            numbers = digests(ordered, ranges)
            table, publisher, subscriber = summaries(without(ordered, cuts), self._stall_ns)
            count = len(table["process"])
            # One row for the piece, and one for each chunk.
            waits = np.concatenate((publisher, subscriber)).tolist()
            yield _told(_SUMMARY_TYPE, piece=[number], waits=[waits], digests=[numbers])
            yield _told(_SUMMARY_TYPE, **table, piece=np.full(count, number))


def _look_at(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _, (path, group, cuts, looks) in _items(batches):
        try:
            rows = without(in_order(read(path, group, LOOKED_AT)), cuts)
        except _DAMAGE as error:
            yield _told(_FOUND_TYPE, problem=[unreadable(path, error)])
            continue
        places = _places(rows)
        found = [line for look in looks for line in _violations(rows, places, look)]
        yield _told(
            _FOUND_TYPE,
            process=[line["process"] for line in found],
            subscription=[line["subscription"] for line in found],
            found=[json.dumps(line) for line in found],
        )


_TYPES: Final = {"bigint": pa.int64(), "string": pa.string(), "array<bigint>": pa.list_(pa.int64())}

_DAMAGE: Final = (OSError, ValueError, pa.ArrowException)
"""What reading a file raises if the file is damaged. Told as a row: as an exception it would be
tried four times, and end as Java's.
"""


def _told(types: str, **columns: Any) -> pa.RecordBatch:
    """Return a batch with these columns, all of one length.
    The other columns of `types` have no values.
    """
    [count] = {len(column) for column in columns.values()}
    named = [each.split() for each in types.split(", ")]
    arrays = [
        pa.array(columns[name], _TYPES[kind]) if name in columns else pa.nulls(count, _TYPES[kind])
        for name, kind in named
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in named])


def _places(rows: Columns) -> dict[Chunk, tuple[int, int]]:
    edges = np.append(np.flatnonzero(starts_of(rows)), len(rows["seq"]))
    begins, ends = edges[:-1], edges[1:]
    columns = (
        rows["process"][begins],
        rows["subscription"][begins],
        rows["seq"][begins],
        rows["seq"][ends - 1],
    )
    keys = zip(*(column.tolist() for column in columns), strict=True)
    return dict(zip(keys, zip(begins.tolist(), ends.tolist(), strict=True), strict=True))


def _violations(
    rows: Columns, places: Mapping[Chunk, tuple[int, int]], look: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    begin, end = places[look["process"], look["subscription"], look["first_seq"], look["last_seq"]]
    own = {name: column[begin:end] for name, column in rows.items()}
    for violation in scan(
        own, WindowState(**look["carry"]), is_answered_later=look["is_answered_later"]
    ):
        yield {
            "process": look["process"],
            "subscription": look["subscription"],
            **attrs.asdict(violation),
        }


def _items(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Any]]:
    for batch in batches:
        for number, item in zip(
            batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True
        ):
            yield number, json.loads(item)


def read(path: str, group: int, names: Sequence[str] = READ) -> Columns:
    """Return some columns of one row group. Raises one of `_DAMAGE`."""
    table = read_whole(pq.ParquetFile(path), names, group)
    return {name: table[name].to_numpy() for name in names}
