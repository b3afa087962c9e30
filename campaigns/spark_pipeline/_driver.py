"""The Spark program of the pipeline: one query copies the log, another one counts its windows. It
runs until one of them fails, or it is killed.

    python -m campaigns.spark_pipeline._driver SOURCE RECEIVER FOLDER sink|foreach
"""

import os
import sys
from typing import Any

from _query import SETTINGS
from pyspark.sql import SparkSession

from campaigns.spark_pipeline._judge import TIME, WINDOW

MOST = 3_000
"""Elements of a batch."""

HEADERS = f"array(named_struct('key', '{TIME}', 'value', encode(string(unix_micros(timestamp)), 'UTF-8')))"


def by_foreach(columns: Any, uri: str, checkpoint: str, log: str) -> Any:
    """Return the writer of a query that writes each batch with an id, so that it counts once."""

    def write(batch: Any, number: int) -> None:
        writer = batch.write.format("penstock").mode("append").option("stream", log)
        writer.option("writeId", f"{log} {number}").save(uri)

    return columns.writeStream.option("checkpointLocation", checkpoint).foreachBatch(write)


def copied(rows: Any, uri: str, checkpoint: str, way: str) -> Any:
    """Start the query that copies elements with their keys."""
    columns = rows.selectExpr("value", "key", f"{HEADERS} AS headers")
    if way == "foreach":
        return by_foreach(columns, uri, checkpoint, "archive").start()
    writer = columns.writeStream.format("penstock").option("stream", "archive")
    return writer.option("checkpointLocation", checkpoint).start(uri)


def counted(rows: Any, uri: str, checkpoint: str) -> Any:
    """Start the query that counts the elements of each key and window, and writes each new count."""
    rows = rows.selectExpr(f"window(timestamp, '{WINDOW} seconds') AS window", "key")
    groups = rows.groupBy("window", "key").count()
    columns = groups.selectExpr(
        "key", "concat(string(unix_seconds(window.start)), ':', string(count)) AS value"
    )
    # Spark gives no sink in Python the new counts alone, but foreachBatch gets them.
    return by_foreach(columns, uri, checkpoint, "counts").outputMode("update").start()


def main() -> None:
    """Run both queries."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    source, receiver, folder, way = sys.argv[1:]
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    rows = (
        spark.readStream.format("penstock")
        .options(
            stream="orders",
            records="true",
            includeTimestamp="true",
            startingOffsets="earliest",
            maxElementsPerTrigger=MOST,
        )
        .load(source)
    )
    copied(rows, receiver, f"{folder}/copy", way)
    counted(rows, receiver, f"{folder}/windows")
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main()
