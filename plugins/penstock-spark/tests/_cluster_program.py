"""A program on a cluster of two executors: it reads partitions of two servers, with one task for
each, and prints where the tasks ran.
"""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from _query import SETTINGS
from pyspark.sql import SparkSession


def with_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield how many rows each batch has, of which partition, and the executor's process."""
    for batch in batches:
        partition = batch["partition"][0].as_py()
        yield pa.RecordBatch.from_pydict(
            {"partition": [partition], "rows": [batch.num_rows], "executor": [os.getppid()]}
        )


def main() -> None:
    """Read all, once."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    rows = spark.read.format("penstock").options(stream="orders").load(sys.argv[1])
    found: list[Any] = rows.mapInArrow(
        with_worker, "partition STRING, rows BIGINT, executor BIGINT"
    ).collect()
    sys.stdout.write(json.dumps([row.asDict() for row in found]) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
