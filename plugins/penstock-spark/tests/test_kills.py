"""Exactly once: the query, its tasks and the publisher are killed, and each element arrives once, at its position.

`PENSTOCK_SPARK_KILLS` is the number of kills of each test; `nox -s spark_kills` sets 20.
"""

import os
import time
from pathlib import Path
from random import Random
from typing import Any

from _query import Driver, batches_in, into_parquet
from _server import element_at, served

KILLS = int(os.environ.get("PENSTOCK_SPARK_KILLS", "1"))
PATIENCE = 120.0


def check_rows(spark: Any, folder: Path, count: int, partitions: int) -> None:
    """Compare the rows in Parquet with the elements: each of them once, at its position."""
    rows = spark.read.parquet(str(folder / "out")).select("partition", "offset", "value").toArrow()
    found: dict[tuple[str, int], bytes] = {}
    repeated = 0
    for partition, offset, value in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        repeated += (partition, offset) in found
        found[partition, offset] = value
    expected = {(str(index), at): element_at("fixed", index, at) for index in range(partitions) for at in range(count)}
    lost = len(expected.keys() - found.keys())
    wrong = sum(found[key] != value for key, value in expected.items() if key in found)
    print(f"rows {rows.num_rows:,}; lost {lost}, repeated {repeated}, at a wrong position {wrong}")
    assert (rows.num_rows, lost, repeated, wrong) == (count * partitions, 0, 0, 0)


def wait_for_batches(folder: Path, count: int, driver: Driver | None = None) -> None:
    """Wait until the query has planned `count` batches."""
    deadline = time.monotonic() + PATIENCE
    while batches_in(folder) < count:
        failure = None if driver is None else driver.failure()
        assert failure is None, failure
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_query_that_is_killed_goes_on_where_it_was(spark: Any, tmp_path: Path) -> None:
    """A kill -9 of the process group of the driver, in the middle of a batch; then the query goes on from its checkpoint."""
    random, count = Random(15), 6_000 * (KILLS + 1)
    with served(tmp_path, count=count) as server:
        for _ in range(KILLS):
            driver = Driver(server.uri, tmp_path, 1_500)
            try:
                wait_for_batches(tmp_path, batches_in(tmp_path) + random.randrange(2, 5), driver)
                time.sleep(random.random() / 5)
            finally:
                driver.kill()
        into_parquet(spark, server.uri, tmp_path, 1_500).trigger(availableNow=True).start().awaitTermination()
    check_rows(spark, tmp_path, count, 2)
