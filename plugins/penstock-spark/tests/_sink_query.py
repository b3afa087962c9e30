"""A streaming query from text files into a Penstock receiver;
also as a separate program, so that a test can kill it.
"""

import os
import sys
from pathlib import Path
from typing import Any

from _query import SETTINGS


def query_into(spark: Any, uri: str, folder: Path, **options: str) -> Any:
    """Start the query: one file a batch, and two tasks in each."""
    rows = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "in")).repartition(2)
    writer = (
        rows.writeStream.format("penstock")
        .option("stream", "orders")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .options(**options)
    )
    return writer.trigger(availableNow=True).start(uri)


def main() -> None:
    """Write until all files are written, or the process is killed."""
    # As a module of the tests, this file is imported without it.
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    query_into(builder.getOrCreate(), sys.argv[1], Path(sys.argv[2])).awaitTermination()


if __name__ == "__main__":
    main()
