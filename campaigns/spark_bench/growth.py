"""How a query grows: `python -m campaigns spark_growth`. 50 million rows of 64 bytes from a `DiskLog`
are read by `read`, and written to a receiver by a streaming query.

The rows are taken in ten parts, one after the other. The table has the rows a second of each part,
and the most memory of the server, of the driver (Python and Java), of the Python workers and of the
receiver while it was taken. It exits with 1 if a part of the second half needs more memory than the
third part: a quarter and 64 MB more. Then smaller logs are read with more partitions, and with more
tasks at once.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio
from _query import SETTINGS
from _server import Served
from pyspark.sql import SparkSession

from campaigns._processes import below, command_of, memory_of
from penstock import DiskLog, Retention, Service, receive, serve

PARTS = 10
PARTITIONS = 4
MB = 1_000_000
SLACK = 64 * MB
"""Bytes that a process may grow by in any case."""

MOST = 1_000_000
"""Rows of a batch: with 48 bytes for each of them, they are within the bound of the receiver."""

MASTERS = ("local[1]", "local[2]", "local[4]", "local-cluster[1,1,1024]", "local-cluster[2,1,1024]")
"""The masters with which partitions are read: threads of one process, and executors of one core."""

ROLES = ("server", "driver", "java", "workers", "receiver")


def pids_of(server: int, receiver: int | None) -> dict[str, list[int]]:
    """Return the processes of each role. This program is the driver's Python."""
    found: dict[str, list[int]] = {role: [] for role in ROLES}
    aside = {server, receiver}
    for pid, parent in below(os.getpid()).items():
        command = command_of(pid)
        if pid == os.getpid():
            found["driver"].append(pid)
        elif pid in aside or parent in aside:
            found["server" if server in (pid, parent) else "receiver"].append(pid)
        elif b"java" in command.partition(b"\0")[0]:
            found["java"].append(pid)
        else:
            found["workers"].append(pid)
    return found


class Watch(threading.Thread):
    """Looks at the memory of each role, and keeps the most of it."""

    def __init__(self, server: int, receiver: int | None) -> None:
        super().__init__(daemon=True)
        self._of = (server, receiver)
        self._most = dict.fromkeys(ROLES, 0)
        self._lock = threading.Lock()

    def run(self) -> None:
        while True:
            now = {role: memory_of(pids) for role, pids in pids_of(*self._of).items()}
            with self._lock:
                self._most = {role: max(most, now[role]) for role, most in self._most.items()}
            time.sleep(0.5)

    def take(self) -> dict[str, int]:
        """Return the most since the last call."""
        with self._lock:
            most, self._most = self._most, dict.fromkeys(ROLES, 0)
        return most


class Part:
    """A tenth of the rows."""

    def __init__(self, rows: int, seconds: float, memory: Mapping[str, int]) -> None:
        self.rows, self.seconds, self.memory = rows, seconds, memory

    def line(self, number: int) -> str:
        """Return its row of the table."""
        cells = " | ".join(f"{self.memory[role] / MB:,.0f}" for role in ROLES)
        return f"| {number} | {self.rows:,} | {self.rows / self.seconds:,.0f} | {cells} |"


def growth_of(parts: list[Part]) -> dict[str, int]:
    """Return the bytes by which each role grows too much: from the third part, when all processes
    are there, to the second half.
    """
    third = parts[2].memory
    latest = {role: max(part.memory[role] for part in parts[PARTS // 2 :]) for role in ROLES}
    return {
        role: latest[role] - third[role]
        for role in ROLES
        if latest[role] > third[role] * 5 // 4 + SLACK
    }


def measured(watch: Watch, take: Iterator[int]) -> list[Part]:
    """Return the parts that `take` yields the rows of, when each is done."""
    parts: list[Part] = []
    print(f"| part | rows | rows/s | {' | '.join(f'{role}, MB' for role in ROLES)} |")
    print(f"|--:|--:|--:|{'--:|' * len(ROLES)}", flush=True)
    watch.take()
    began = time.perf_counter()
    for rows in take:
        now = time.perf_counter()
        parts.append(Part(rows, now - began, watch.take()))
        print(parts[-1].line(len(parts)), flush=True)
        began = time.perf_counter()
    return parts


def read_in_parts(spark: Any, uri: str, rows: int) -> Iterator[int]:
    """Read a tenth of each partition after the other with `read`, and yield the numbers of rows."""
    each = rows // PARTITIONS // PARTS
    for part in range(PARTS):
        places = [
            json.dumps({"orders": {str(number): at for number in range(PARTITIONS)}})
            for at in (part * each, (part + 1) * each)
        ]
        options = {"startingOffsets": places[0], "endingOffsets": places[1]}
        found = spark.read.format("penstock").options(stream="orders", **options).load(uri)
        found.write.format("noop").mode("overwrite").save()
        yield each * PARTITIONS


def write_in_parts(spark: Any, uri: str, target: str, folder: str, rows: int) -> Iterator[int]:
    """Write all rows to a receiver with one streaming query, and yield the rows of each tenth."""
    stream = spark.readStream.format("penstock").options(
        stream="orders", startingOffsets="earliest", maxElementsPerTrigger=min(rows // PARTS, MOST)
    )
    writer = stream.load(uri).select("value").writeStream.format("penstock")
    query = (
        writer.option("stream", "copy")
        .option("checkpointLocation", folder)
        .trigger(availableNow=True)
        .start(target)
    )
    done, taken, seen = 0, 0, -1
    while done < rows:
        if not query.isActive and query.exception() is not None:
            raise SystemExit(str(query.exception()))
        for progress in query.recentProgress:
            if progress.batchId > seen:
                seen, done = progress.batchId, done + progress.numInputRows
        if done - taken >= rows // PARTS:
            yield done - taken
            taken = done
        time.sleep(0.05)
    query.stop()


async def _receive(folder: str) -> None:
    service = Service()
    names = [str(number) for number in range(PARTITIONS)]
    retention = Retention(max_count=10**9)
    async with DiskLog(Path(folder) / "copy.log", retention=retention, partitions=names) as log:
        receive(service, "copy", log)
        async with serve(service, "tcp://127.0.0.1:0") as server:
            print(server.addresses[0].port, flush=True)
            await trio.sleep_forever()


@contextmanager
def receiving(folder: str) -> Iterator[tuple[int, str]]:
    """Run a receiver; the block gets its process and where it serves."""
    command = [sys.executable, "-m", "campaigns.spark_bench.growth", "--receive", folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.pid, f"tcp://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def session(master: str) -> Any:
    """Return a session with this master."""
    builder = SparkSession.builder.master(master)
    for name, value in (SETTINGS | {"spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def large(folder: str, rows: int, written: int) -> bool:
    """Read and write many rows, and return whether no process has grown."""
    server = Served(Path(folder), count=rows // PARTITIONS, partitions=PARTITIONS, kind="64")
    began = time.perf_counter()
    server.start()
    print(f"{rows:,} rows were appended in {time.perf_counter() - began:.0f} s")
    spark = session("local[2]")
    found = []
    try:
        print("\n`read`, into nothing:\n")
        watch = Watch(server.pid, None)
        watch.start()
        found.append(("read", measured(watch, read_in_parts(spark, server.uri, rows))))
        if written:
            print("\na streaming query into a receiver:\n")
            with receiving(folder) as (pid, uri):
                watch = Watch(server.pid, pid)
                watch.start()
                parts = write_in_parts(spark, server.uri, uri, f"{folder}/checkpoint", written)
                found.append(("sink", measured(watch, parts)))
    finally:
        spark.stop()
        server.kill()
    is_good = True
    for way, parts in found:
        grown = {role: f"{size / MB:,.0f} MB" for role, size in growth_of(parts).items()}
        rate = sum(part.rows for part in parts) / sum(part.seconds for part in parts)
        print(
            f"\n{way}: {rate:,.0f} rows/s; {f'grown: {grown}' if grown else 'no process has grown'}"
        )
        is_good = is_good and not grown
    return is_good


def small(rows: int) -> None:
    """Read logs with more partitions, and with more tasks at once; and with more executors, each
    of which is a process.
    """
    print(f"\n{rows:,} rows, `read` into nothing, rows/s:\n")
    print(f"| partitions | {' | '.join(MASTERS)} |\n|--:|{'--:|' * len(MASTERS)}")
    table: dict[int, list[float]] = {}
    for master in MASTERS:
        spark = session(master)
        for partitions in (1, 4, 16, 64):
            with tempfile.TemporaryDirectory() as folder:
                server = Served(
                    Path(folder), count=rows // partitions, partitions=partitions, kind="64"
                )
                server.start()
                try:
                    seconds = [_read_all(spark, server.uri) for _ in range(3)]
                finally:
                    server.kill()
            # The first one starts the workers.
            table.setdefault(partitions, []).append(rows / min(seconds[1:]))
        spark.stop()
    for partitions, rates in table.items():
        print(f"| {partitions} | {' | '.join(f'{rate:,.0f}' for rate in rates)} |", flush=True)


def _read_all(spark: Any, uri: str) -> float:
    began = time.perf_counter()
    rows = spark.read.format("penstock").options(stream="orders").load(uri)
    rows.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def main() -> int:
    """Print the tables, and return the exit status."""
    parser = argparse.ArgumentParser(prog="campaigns spark_growth", description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--written", type=int, default=20_000_000, help="0: no streaming query")
    parser.add_argument("--small", type=int, default=2_000_000, help="0: no growth of partitions")
    parser.add_argument("--receive", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.receive:
        trio.run(_receive, options.receive)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with tempfile.TemporaryDirectory() as folder:
        is_good = large(folder, options.rows, min(options.written, options.rows))
    if options.small:
        small(options.small)
    print(
        f"{options.rows:,} rows read, {options.written:,} written: "
        f"{'no process has grown' if is_good else 'memory has grown'}"
    )
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
