"""How long the audit takes, against the window functions of Spark SQL: 20 million rows in three
shapes. `nox -s spark_bench`.

    python -m campaigns.spark_bench.audit --rows 20000000 --repeat 3

The shapes: subscriptions that live throughout, so that each row group has rows of all; short ones,
which are in one row group; and one subscription with 90 % of the rows.
"""

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from penstock_spark import session
from penstock_spark.audit import judge_by_windows
from penstock_spark.audit._job import judge, pieces_of
from penstock_spark.audit._spark_run import SparkRun

from campaigns._processes import below, memory_of

Ints = npt.NDArray[np.int64]

GROUP = 262_144
GROUPS_A_FILE = 4
PLANTED = 40
"""Violations in each shape: elements without demand."""


def blocks(shape: str, rows: int) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield row groups as the recorder writes them: subscription, number and length of the
    subscription, for each row.
    """
    groups = max(1, rows // GROUP)
    if shape == "throughout":
        count = 4_000
        each = GROUP // count
        for group in range(groups):
            subscription = np.repeat(np.arange(1, count + 1), each)
            seq = np.tile(np.arange(each), count) + group * each
            yield subscription, seq, np.full(len(seq), groups * each)
    elif shape == "short":
        length = 1_000
        each = GROUP // length
        for group in range(groups):
            subscription = np.repeat(np.arange(1, each + 1) + group * each, length)
            yield subscription, np.tile(np.arange(length), each), np.full(len(subscription), length)
    else:
        long, length = GROUP * 9 // 10, 1_000
        each = (GROUP - long) // length
        for group in range(groups):
            others = np.repeat(np.arange(2, each + 2) + group * each, length)
            subscription = np.concatenate((np.ones(long, dtype=np.int64), others))
            seq = np.concatenate((np.arange(long) + group * long, np.tile(np.arange(length), each)))
            yield (
                subscription,
                seq,
                np.concatenate((np.full(long, groups * long), np.full(len(others), length))),
            )


def write(folder: Path, shape: str, rows: int) -> tuple[list[str], int]:
    """Write a record of this shape, and return its files and its rows."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(15)
    files: list[str] = []
    writer: Any = None
    written = 0
    groups = max(1, rows // GROUP)
    for number, (subscription, seq, length) in enumerate(blocks(shape, rows)):
        kind = np.where(seq == 0, 1, np.where(seq == length - 1, 5, np.where(seq % 2 == 1, 2, 3)))
        n = np.where((kind == 2) | (kind == 3), 64, 0)
        planted = random.choice(
            np.flatnonzero(kind == 3),
            PLANTED // groups + (number < PLANTED % groups),
            replace=False,
        )
        n[planted] += 7
        first = seq * 50_000 + random.integers(0, 20_000, len(seq))
        table = pa.table(
            {
                "process": np.ones(len(seq), dtype=np.int64),
                "subscription": subscription,
                "connection": np.ones(len(seq), dtype=np.int64),
                "stream": subscription,
                "outbound": np.ones(len(seq), dtype=bool),
                "seq": seq,
                "kind": kind.astype(np.int8),
                "n": n,
                "size": np.where(kind == 3, 8 * n, 0),
                "first": first,
                "last": first + random.integers(0, 5_000, len(seq)),
                "longest": random.integers(100, 3_000, len(seq)),
            }
        )
        if number % GROUPS_A_FILE == 0:
            path = folder / f"signals-{1:016x}-{number // GROUPS_A_FILE + 1:06d}.parquet"
            files.append(str(path))
            if writer is not None:
                writer.close()
            writer = pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table, row_group_size=GROUP)
        written += len(seq)
    writer.close()
    return files, written


class Memory(threading.Thread):
    """Watches the resident memory of this process and of all that it has started."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self._stop_it = threading.Event()

    def run(self) -> None:
        while not self._stop_it.wait(0.2):
            self.most = max(self.most, memory_of(below(os.getpid())))

    def end(self) -> float:
        self._stop_it.set()
        self.join()
        return self.most / 1e9


def timed(run: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return seconds, gigabytes and the result."""
    memory = Memory()
    memory.start()
    began = time.perf_counter()
    result = run()
    return time.perf_counter() - began, memory.end(), result


def main() -> None:
    """Measure, and print a row for each shape and job."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--shapes", default="throughout,short,skewed")
    parser.add_argument("--no-windows", action="store_true")
    given = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = session(given.master)
    sys.stdout.write(
        "| shape | rows | job | seconds | million rows/s | GB |\n|---|--:|---|--:|--:|--:|\n"
    )
    with tempfile.TemporaryDirectory() as name:
        for shape in given.shapes.split(","):
            measure(spark, Path(name) / shape, shape, given)
    spark.stop()


def measure(spark: Any, folder: Path, shape: str, given: argparse.Namespace) -> None:
    """Measure one shape: the best of the repetitions, and the most memory of them."""
    files, rows = write(folder, shape, given.rows)
    pieces = pieces_of(files)
    jobs: dict[str, Callable[[], Any]] = {
        "chunks": lambda: judge(SparkRun(spark, lambda *_: None), pieces, stall_ns=10**9).violations
    }
    if not given.no_windows:
        jobs["windows"] = lambda: judge_by_windows(spark, files)
    best: dict[str, tuple[float, float]] = {}
    found: dict[str, int] = {}
    for _ in range(given.repeat):
        for job, run in jobs.items():
            seconds, memory, result = timed(run)
            found[job] = sum(each["count"] if job == "chunks" else each[4] for each in result)
            before = best.get(job, (seconds, 0.0))
            best[job] = (min(before[0], seconds), max(before[1], memory))
    assert len(set(found.values())) == 1, found
    for job, (seconds, memory) in best.items():
        sys.stdout.write(
            f"| {shape} | {rows:,} | {job} | {seconds:.1f} | {rows / seconds / 1e6:.2f} | "
            f"{memory:.1f} |\n"
        )
    sys.stdout.flush()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
