"""Random traces, sound and broken ones, written as a recorder writes them."""

import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from penstock_spark.audit._job import Function, Work

ON_SUBSCRIBE, REQUEST, ON_NEXT, CANCEL, ON_COMPLETE, ON_ERROR = range(1, 7)


@attrs.frozen
class Signal:
    """One row, without its place."""

    kind: int
    n: int = 0


@attrs.define
class Trace:
    """The rows of some subscriptions of one process."""

    process: int = 1
    streams: dict[int, list[tuple[int, Signal]]] = attrs.Factory(dict)
    """By subscription: each row with its number."""

    def add(self, signals: Iterable[Signal], *, drop: Iterable[int] = ()) -> int:
        """Add a subscription and return its number; the rows numbered `drop` are missing."""
        number, missing = len(self.streams) + 1, set(drop)
        self.streams[number] = [
            (seq, signal) for seq, signal in enumerate(signals) if seq not in missing
        ]
        return number

    def write(self, folder: Path, random: Random, *, groups: int = 3) -> list[str]:
        """Write the rows as files of a few row groups; those of a subscription stay in order,
        and are cut at random places.
        """
        folder.mkdir(parents=True, exist_ok=True)
        parts: list[list[dict[str, int]]] = [[] for _ in range(groups)]
        for number, rows in self.streams.items():
            cuts = sorted(random.randrange(len(rows) + 1) for _ in range(groups - 1))
            for part, (begin, end) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
                parts[part] += [self._row(number, seq, signal) for seq, signal in rows[begin:end]]
        types = {"kind": pa.int8(), "outbound": pa.bool_()}
        schema = pa.schema(
            [(name, types.get(name, pa.int64())) for name in self._row(0, 0, Signal(1))]
        )
        files = []
        for part, rows_of_part in enumerate(parts):
            if random.random() < 0.3:
                random.shuffle(rows_of_part)  # another writer need not sort
            path = folder / f"signals-{self.process:016x}-{part + 1:06d}.parquet"
            pq.write_table(
                pa.Table.from_pylist(rows_of_part, schema=schema),
                path,
                row_group_size=max(1, len(rows_of_part) // 2),
            )
            files.append(str(path))
        return files

    def _row(self, subscription: int, seq: int, signal: Signal) -> dict[str, int]:
        time = seq * 1_000
        return {
            "process": self.process,
            "subscription": subscription,
            "connection": 1,
            "stream": subscription,
            "outbound": True,
            "seq": seq,
            "kind": signal.kind,
            "n": signal.n,
            "size": 8 * signal.n if signal.kind == ON_NEXT else 0,
            "first": time,
            "last": time,
            "longest": 10,
        }


def tell_process(
    folder: Path, *, process: int = 1, rows: int, dropped: int = 0, ended: int | None = 2
) -> None:
    """Write the file of a process."""
    facts = {
        "version": 1,
        "process": process,
        "pid": 7,
        "host": "here",
        "program": "play.py",
        "python": "3",
        "began": 1,
        "ended": ended,
    }
    path = folder / f"process-{process:016x}.json"
    path.write_text(json.dumps({**facts, "rows": rows, "dropped": dropped, "streams_left_out": 0}))


def tell_subscriptions(folder: Path, trace: Trace, publisher: str = "digits") -> None:
    """Write what the subscriptions of a trace were."""
    rows = [
        {
            "process": trace.process,
            "subscription": number,
            "connection": 1,
            "stream": number,
            "outbound": True,
            "publisher": publisher,
            "pattern": publisher,
            "peer": "::1",
            "began": 1,
        }
        for number in trace.streams
    ]
    pq.write_table(
        pa.Table.from_pylist(rows), folder / f"subscriptions-{trace.process:016x}-{1:012d}.parquet"
    )


def sound(random: Random, length: int) -> list[Signal]:
    """Return the signals of a sound stream."""
    signals, room = [Signal(ON_SUBSCRIBE)], 0
    for _ in range(length):
        if room and random.random() < 0.6:
            n = random.randint(1, room)
            signals.append(Signal(ON_NEXT, n))
            room -= n
        else:
            n = random.choice((1, 2, 8, 100))
            signals.append(Signal(REQUEST, n))
            room += n
    end = random.choice((ON_COMPLETE, ON_ERROR, CANCEL, None))
    return signals if end is None else [*signals, Signal(end)]


def mutated(random: Random, signals: list[Signal]) -> list[Signal]:
    """Return `signals` with one to three faults."""
    signals = list(signals)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(signals) + 1)
        kind = random.choice((ON_SUBSCRIBE, REQUEST, ON_NEXT, CANCEL, ON_COMPLETE, ON_ERROR))
        signals.insert(
            at,
            Signal(
                kind,
                random.choice((0, -1, 1, 50, (1 << 63) - 1))
                if kind == REQUEST
                else random.randint(1, 40),
            ),
        )
        if random.random() < 0.3:
            del signals[random.randrange(len(signals))]
    return signals


def run_here(work: Work, function: Function, types: str, what: str) -> Any:
    """Do the work of Spark's workers in this process."""
    batch = pa.RecordBatch.from_pylist(
        [{"number": number, "item": json.dumps(item)} for number, item in work]
    )
    return pa.Table.from_batches(list(function([batch])))


Line = tuple[int, int, str, int, int]


def judge_plainly(trace: Trace) -> list[Line]:
    """Return the violations of a trace as tuples: process, subscription, rule, first number,
    count. In as few words as possible.
    """
    found: dict[tuple[int, str], list[int]] = {}
    for number, rows in trace.streams.items():
        demand = elements = expected = 0
        begun = cancelled = ended = lost = False
        for at, (seq, signal) in enumerate(rows):
            if seq != expected:
                begun = lost = True
            expected = seq + 1
            answered = any(later.kind == ON_ERROR for _, later in rows[at + 1 :])
            if (signal.kind == ON_SUBSCRIBE) == begun and (begun or signal.kind != ON_SUBSCRIBE):
                found.setdefault((number, "1.9"), []).append(seq)
            if ended and signal.kind in (ON_NEXT, ON_COMPLETE, ON_ERROR):
                found.setdefault((number, "1.7"), []).append(seq)
            if signal.kind == REQUEST and signal.n <= 0 and not (answered or cancelled or ended):
                found.setdefault((number, "3.9"), []).append(seq)
            if signal.kind == REQUEST and signal.n > 0 and not cancelled:
                demand += signal.n
            if signal.kind == ON_NEXT:
                elements += signal.n
                if not lost and elements > demand:
                    found.setdefault((number, "1.8" if cancelled else "1.1"), []).append(seq)
            begun = True
            cancelled |= signal.kind == CANCEL
            ended |= signal.kind in (ON_COMPLETE, ON_ERROR)
    lines = [
        (trace.process, number, rule, seqs[0], len(seqs)) for (number, rule), seqs in found.items()
    ]
    return sorted(lines, key=lambda line: (line[1], line[3], line[2]))
