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
from penstock_spark.audit._folder import (
    SIGNAL,
    TWO_RECORDINGS,
    WHAT_TO_DO,
    check_schema,
    parquet_of,
    read_whole,
    unreadable,
)
from penstock_spark.audit._record_files import Source
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

Piece = tuple[str, int | None]
"""A file and one of its row groups; None for all of them."""

GROUPS: Final = 1 << 20
"""Row groups of a file. The number of a piece is that of its file times this, plus its group."""

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


def pieces_of(files: Iterable[str | Path]) -> list[Piece]:
    """Return the row groups of files that this process can read."""
    return [
        (str(path), group) for path in files for group in range(pq.ParquetFile(path).num_row_groups)
    ]


def whole_files(files: Iterable[str]) -> list[Piece]:
    """Return files whose row groups only the workers know."""
    return [(path, None) for path in files]


def judge(run: Run, pieces: Iterable[Piece], *, stall_ns: int) -> Judged:
    """Judge the rows of `pieces`. `run` is a `SparkRun`, or what a test puts in its place."""
    judging = Judging(run, stall_ns=stall_ns)
    judging.add(pieces)
    return judging.judged()


class Judging:
    """Judges a record whose files come one after the other. It keeps the summaries of chunks: some
    200 bytes for each subscription of a row group.
    """

    def __init__(self, run: Run, *, stall_ns: int) -> None:
        self._run = run
        self._function = _Summarise(stall_ns)
        empty: Ints = np.zeros(0, dtype=np.int64)
        self._summary = _Summary(dict.fromkeys((*COLUMNS, "piece"), empty), {}, {})
        self._copied = 0
        # By piece: the rows that came before, and are left out.
        self._cuts: dict[int, list[Any]] = {}
        self._paths: list[str] = []
        self._numbers: dict[str, int] = {}
        # The findings of a look at a suspect, by the text of the question.
        self._looks: dict[str, list[dict[str, Any]]] = {}

    def add(self, pieces: Iterable[Piece]) -> None:
        """Read more of the record. Raises UsageError for a piece that cannot be judged."""
        work: Work = []
        for path, group in pieces:
            if path not in self._numbers:
                self._numbers[path] = len(self._paths)
                self._paths.append(path)
            number = self._numbers[path] * GROUPS + (group or 0)
            work.append((number, (path, group, [], [])))
        found = _summary(self._run, work, self._function, "reading")
        self._copied += int(found.chunks["copies"].sum())
        self._refuse_conflicts(found.chunks)
        self._take(found, stays=slice(None))
        overlaps = overlaps_of(self._summary.chunks)
        if overlaps:
            for each in overlaps:
                self._cuts.setdefault(each.cut, []).append(each.rows)
                self._copied += each.rows[3] - each.rows[2] + 1
            self._cut(overlaps)

    def judged(self) -> Judged:
        """Return the findings so far."""
        waits = (
            np.sum(list(self._summary.waits.values()), axis=0)
            if self._summary.waits
            else np.zeros(2 * BUCKETS, dtype=np.int64)
        )
        carries = carries_of(self._summary.chunks)
        violations = self._look(carries)
        return Judged(carries, waits[:BUCKETS], waits[BUCKETS:], violations, self._copied)

    # --- inside

    def _place(self, number: int) -> tuple[str, int]:
        """Return the file and the row group of a piece."""
        return self._paths[number // GROUPS], number % GROUPS

    def _take(self, found: "_Summary", stays: Any) -> None:
        kept = self._summary
        kept.chunks = {
            name: np.concatenate((column[stays], found.chunks[name]))
            for name, column in kept.chunks.items()
        }
        kept.waits |= found.waits

    def _refuse_conflicts(self, chunks: Columns) -> None:
        """Raise UsageError if a row group has different rows with the same number."""
        for at in np.flatnonzero(chunks["conflicts"])[:1].tolist():
            process, subscription = int(chunks["process"][at]), int(chunks["subscription"][at])
            raise UsageError(
                f"{self._place(int(chunks['piece'][at]))[0]} has different rows with the same "
                f"number in subscription {subscription} of process {process:016x}: it was made of "
                f"two recordings with the same process number, or was changed. {WHAT_TO_DO}"
            )

    def _cut(self, overlaps: list[Overlap]) -> None:
        """Summarise the pieces with overlaps again, without the rows that came before. Raise
        UsageError if these rows are not copies.
        """
        asked: dict[int, list[Any]] = {}
        for each in overlaps:
            for piece in (each.kept, each.cut):
                asked.setdefault(piece, []).append(each.rows)
        work = [
            (number, (*self._place(number), self._cuts.get(number, []), ranges))
            for number, ranges in sorted(asked.items())
        ]
        again = _summary(self._run, work, self._function, "comparing copies")
        answers = {number: iter(again.digests[number]) for number in asked}
        for each in overlaps:
            if next(answers[each.kept]) != next(answers[each.cut]):
                process, subscription, first, last = each.rows
                places = {self._place(number)[0] for number in (each.kept, each.cut)}
                raise UsageError(
                    f"{' and '.join(sorted(places))}: the rows {first} to {last} of subscription "
                    f"{subscription} of process {process:016x} are there twice, and differ: "
                    f"{TWO_RECORDINGS}"
                )
        self._take(again, stays=~np.isin(self._summary.chunks["piece"], list(asked)))

    def _look(self, carries: Carries) -> list[dict[str, Any]]:
        chunks = carries.chunks
        # One read of a row group for all of its suspects.
        by_piece: dict[int, list[dict[str, Any]]] = {}
        texts: dict[str, None] = {}
        for at in carries.suspects.tolist():
            piece = int(chunks["piece"][at])
            look = {
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
            text = json.dumps([piece, look])
            texts[text] = None
            if text not in self._looks:
                by_piece.setdefault(piece, []).append({**look, "text": text})
        work = [
            (number, (*self._place(number), self._cuts.get(number, []), looks))
            for number, looks in by_piece.items()
        ]
        # A question that is not asked any more is forgotten: a later file has changed the carry.
        self._looks = {text: self._looks.get(text, []) for text in texts}
        if work:
            table = self._run(work, _look_at, _FOUND_TYPE, "looking at suspects")
            _refuse_problems(table)
            for each in map(json.loads, table["found"].to_pylist()):
                self._looks[each.pop("text")].append(each)
        return _merged(each for found in self._looks.values() for each in found)


def _merged(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one line for a subscription and a rule: the first breach of a stream causes most of
    the others.
    """
    merged: dict[tuple[int, int, str], dict[str, Any]] = {}
    for each in sorted(
        found, key=lambda each: (each["process"], each["subscription"], each["seq"])
    ):
        key = each["process"], each["subscription"], each["rule"]
        if key in merged:
            merged[key]["count"] += each["count"]
        else:
            merged[key] = dict(each)  # the line itself is kept for the next report
    return list(merged.values())


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


class _Summarise:
    """Reads row groups and returns their summaries; runs in a worker."""

    def __init__(self, stall_ns: int) -> None:
        self._stall_ns = stall_ns

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, (path, group, cuts, ranges), source in _items(batches):
            try:
                file = parquet_of(source)
                if group is None:
                    # Nobody has looked at this file before.
                    check_schema(path, file.schema_arrow, SIGNAL)
                groups = [group] if group is not None else range(file.num_row_groups)
                for each in groups:
                    piece = number + (each if group is None else 0)
                    yield from self._of_rows(piece, rows_of(file, each), cuts, ranges)
            except UsageError as error:
                yield _told(_SUMMARY_TYPE, problem=[str(error)])
            except _DAMAGE as error:
                yield _told(_SUMMARY_TYPE, problem=[unreadable(path, error)])

    def _of_rows(
        self, piece: int, rows: Columns, cuts: Any, ranges: Any
    ) -> Iterator[pa.RecordBatch]:
        ordered = in_order(rows)
        numbers = digests(ordered, ranges)
        table, publisher, subscriber = summaries(without(ordered, cuts), self._stall_ns)
        count = len(table["process"])
        # One row for the piece, and one for each chunk.
        waits = np.concatenate((publisher, subscriber)).tolist()
        yield _told(_SUMMARY_TYPE, piece=[piece], waits=[waits], digests=[numbers])
        yield _told(_SUMMARY_TYPE, **table, piece=np.full(count, piece))


def _look_at(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _, (path, group, cuts, looks), source in _items(batches):
        try:
            rows = without(in_order(rows_of(parquet_of(source), group, LOOKED_AT)), cuts)
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
            "text": look["text"],
            **attrs.asdict(violation),
        }


def _items(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Any, Source]]:
    """Yield the pieces of work, each with its file: its content stands in a third column, or the
    worker can read its path.
    """
    for batch in batches:
        contents = batch.column(2) if batch.num_columns > 2 else None
        numbers, items = batch.column(0).to_pylist(), batch.column(1).to_pylist()
        for at, (number, text) in enumerate(zip(numbers, items, strict=True)):
            item = json.loads(text)
            yield number, item, Path(item[0]) if contents is None else contents[at].as_buffer()


def rows_of(file: pq.ParquetFile, group: int, names: Sequence[str] = READ) -> Columns:
    """Return some columns of one row group. Raises one of `_DAMAGE`."""
    table = read_whole(file, names, group)
    return {name: table[name].to_numpy() for name in names}
