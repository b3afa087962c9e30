"""A query with an older pyspark: `python tests/_older_program.py FOLDER`, with pyspark 4.0 or 4.1
installed. It prints what works, and the error texts for the rest.
"""

import os
import sys
from pathlib import Path
from typing import Any

import pyspark
from _query import SETTINGS
from _receiver import Receiver
from _server import served
from _sink_query import query_into
from pyspark.sql import SparkSession


def told(error: Exception) -> str:
    """Return the line of an error that is ours."""
    return next(
        line for line in str(error).splitlines() if "pyspark" in line and "penstock" in line
    )


def main() -> None:
    """Read and write what is there, and start both kinds of streaming queries."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    folder = Path(sys.argv[1])
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    print("pyspark", pyspark.__version__)
    with served(folder, count=1_000, kind="json", minutes=100) as server:
        reader: Any = spark.read.format("penstock").options(
            stream="orders",
            includeTimestamp="true",
            valueFormat="json",
            schema="id BIGINT, name STRING",
        )
        rows = reader.load(server.uri)
        print("read", rows.count(), rows.selectExpr("max(id)", "max(timestamp)").first())
        try:
            stream = spark.readStream.format("penstock").option("stream", "orders").load(server.uri)
            query = stream.writeStream.format("noop").start()
            query.awaitTermination()
        except Exception as error:  # boundary: Spark, which wraps what the source has raised
            print("readStream", told(error))
        (folder / "received").mkdir()
        with Receiver(folder / "received") as receiver:
            writer = rows.selectExpr("name AS value").write.format("penstock").mode("append")
            writer.option("stream", "orders").option("writeId", "january").save(receiver.url)
            print("write", len(receiver.contents()))
    (folder / "in").mkdir()
    (folder / "in" / "0.txt").write_text("one\ntwo\n")
    with Receiver(folder / "received") as receiver:
        try:
            before = len(receiver.contents())
            query_into(spark, receiver.url, folder).awaitTermination()
            print("writeStream", len(receiver.contents()) - before)
        except Exception as error:  # boundary: as above
            print("writeStream", told(error))
    spark.stop()


if __name__ == "__main__":
    main()
