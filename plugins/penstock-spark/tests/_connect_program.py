"""A program with a session of Spark Connect, as a separate process: a process has one kind of
session. It writes, reads, publishes a DataFrame, and judges a record.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import trio
from _query import SETTINGS
from _receiver import Receiver
from penstock_spark.audit import audit
from penstock_spark.publishing import publish_dataframe
from pyspark.sql import SparkSession

import penstock
from penstock import ops


def told(**what: object) -> None:
    """Print what a part has found."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def publish(spark: Any, folder: Path) -> None:
    """A subscriber takes three rows of many, and leaves."""
    service = penstock.Service()
    rows = spark.range(0, 1_000_000, 1, 50).selectExpr("cast(id AS string) AS value")
    publish_dataframe(service, "rows", rows)
    url = f"unix://{folder}/published"
    served = penstock.serve(service, url, record=folder / "record")
    async with served, penstock.connect(url) as peer:
        three = penstock.pipe(peer.source("rows"), ops.take(3))
        told(published=[each.decode() for each in await penstock.collect(three)])


def main() -> None:
    """Do each part in turn."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    folder = Path(sys.argv[1])
    builder = SparkSession.builder.remote("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    told(session=type(spark).__module__)
    with Receiver(folder) as receiver:
        frame = spark.range(30).selectExpr("cast(id AS string) AS value")
        frame.write.format("penstock").mode("append").option("stream", "orders").save(receiver.url)
        told(written=len(receiver.contents()))
        reading = spark.readStream.format("penstock").options(
            stream="orders", startingOffsets="earliest"
        )
        # The server of the test: 2,000 elements in each of two partitions.
        query = (
            reading.load(sys.argv[2])
            .select("value")
            .writeStream.format("penstock")
            .option("stream", "orders")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start(receiver.url)
        )
        query.awaitTermination()
        told(copied=len(receiver.contents()) - 30)
    trio.run(publish, spark, folder)
    shown: list[str] = []
    report = audit(spark, folder / "record", progress=lambda what, *_: shown.append(what))
    is_same = audit(spark, (folder / "record").as_uri()) == report
    told(audited=report["elements"], violations=report["violations"], is_same=is_same)
    spark.stop()


if __name__ == "__main__":
    main()
