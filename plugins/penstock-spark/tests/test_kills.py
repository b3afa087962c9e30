"""Exactly once: the query, its tasks and the publisher are killed, and each element arrives once,
at its position.

`PENSTOCK_SPARK_KILLS` is the number of kills of each test; `nox -s spark_kills` sets 20.
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from _query import Driver, batches_in, into_parquet
from _server import Served, element_at, served

KILLS = int(os.environ.get("PENSTOCK_SPARK_KILLS", "1"))
ROWS_PER_KILL = 3_000
"""Rows of a partition for each kill, and again for the rest:
the query plans some batches between two kills.
"""


PATIENCE = 480.0
"""Seconds until a test gives up: on a busy machine a session of Spark takes minutes to start."""


PATIENT = {"penstock.client.retries": "50"}
"""Attempts to connect: on a busy machine a server takes long to start again."""


def check_rows(spark: Any, folder: Path, count: int, partitions: int) -> None:
    """Compare the rows in Parquet with the elements: each of them once, at its position."""
    rows = spark.read.parquet(str(folder / "out")).select("partition", "offset", "value").toArrow()
    found: dict[tuple[str, int], bytes] = {}
    repeated = 0
    for partition, offset, value in zip(
        *(column.to_pylist() for column in rows.columns), strict=True
    ):
        repeated += (partition, offset) in found
        found[partition, offset] = value
    expected = {
        (str(index), at): element_at("fixed", index, at)
        for index in range(partitions)
        for at in range(count)
    }
    lost = len(expected.keys() - found.keys())
    wrong = sum(found[key] != value for key, value in expected.items() if key in found)
    print(f"rows {rows.num_rows:,}; lost {lost}, repeated {repeated}, at a wrong position {wrong}")
    assert (rows.num_rows, lost, repeated, wrong) == (count * partitions, 0, 0, 0)


def wait_for_batches(folder: Path, count: int, failure: Callable[[], object]) -> None:
    """Wait until the query has planned `count` batches.
    `failure` returns why the query has ended, if it has.
    """
    deadline = time.monotonic() + PATIENCE
    while batches_in(folder) < count:
        ended = failure()
        assert ended is None, ended
        assert time.monotonic() < deadline, f"{batches_in(folder)} of {count} batches were planned"
        time.sleep(0.01)


@pytest.mark.heavy
def test_a_query_that_is_killed_goes_on_where_it_was(spark: Any, tmp_path: Path) -> None:
    """A kill -9 of the process group of the driver, in the middle of a batch; then the query
    goes on from its checkpoint.
    """
    random, count = Random(15), ROWS_PER_KILL * (KILLS + 1)
    with served(tmp_path, count=count) as server:
        for _ in range(KILLS):
            driver = Driver(server.uri, tmp_path, 2_000)
            try:
                wait_for_batches(
                    tmp_path, batches_in(tmp_path) + random.randrange(1, 4), driver.failure
                )
                time.sleep(random.random() / 5)
            finally:
                driver.kill()
        into_parquet(spark, server.uri, tmp_path, 2_000).trigger(
            availableNow=True
        ).start().awaitTermination()
    check_rows(spark, tmp_path, count, 2)


def workers_of(spark: Any) -> list[int]:
    """Return the Python processes that run tasks of this session, from the table of processes."""
    java = spark.sparkContext._gateway.proc.pid
    parents, tasks = {}, set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
                if (entry / "cmdline").read_bytes().endswith(b"pyspark.daemon\0pyspark.worker\0"):
                    tasks.add(int(entry.name))
            except OSError:
                continue  # the process has ended meanwhile
    # The daemon forks the workers, and is itself a child of Java.
    return [pid for pid in tasks if parents.get(parents[pid]) == java]


def run_and_disturb(spark: Any, server: Served, folder: Path, disturb: Callable[[], None]) -> None:
    """Run the query to its end, and call `disturb` after every few batches."""
    random = Random(16)
    query = (
        into_parquet(spark, server.uri, folder, 2_000, **PATIENT).trigger(availableNow=True).start()
    )

    def failure() -> object:
        return (
            None
            if query.isActive
            else query.exception() or "the query has ended before it was disturbed"
        )

    try:
        for _ in range(KILLS):
            wait_for_batches(folder, batches_in(folder) + random.randrange(1, 4), failure)
            time.sleep(random.random() / 10)
            disturb()
        query.awaitTermination()
    finally:
        query.stop()


@pytest.mark.heavy
def test_tasks_that_are_killed_are_repeated(spark: Any, tmp_path: Path) -> None:
    """A kill -9 of the Python processes of the executor:
    Spark repeats the tasks, and each range is read again.
    """
    count, killed = ROWS_PER_KILL * (KILLS + 1), []

    def kill() -> None:
        for pid in workers_of(spark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    with served(tmp_path, count=count) as server:
        run_and_disturb(spark, server, tmp_path, kill)
    assert len(killed) >= KILLS
    check_rows(spark, tmp_path, count, 2)


def test_a_publisher_that_is_killed_comes_back_with_the_same_elements(
    spark: Any, tmp_path: Path
) -> None:
    """A kill -9 of the server, whose logs are on disk:
    the driver and the tasks connect again, and nothing fails.
    """
    count = ROWS_PER_KILL * (KILLS + 1)
    with served(tmp_path, count=count) as server:

        def restart() -> None:
            server.kill()
            server.start()

        run_and_disturb(spark, server, tmp_path, restart)
    check_rows(spark, tmp_path, count, 2)
