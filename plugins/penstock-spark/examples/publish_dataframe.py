"""A DataFrame as a publisher: Spark computes as far as the subscriber has asked."""

import os
import sys

import trio
from penstock_spark import session
from penstock_spark.publishing import publish_dataframe

import penstock


async def main(spark: object) -> None:
    """Offer eight partitions, and read the rows of the first."""
    frame = spark.range(0, 80, 1, 8).selectExpr("id", "id * id AS square")  # type: ignore[attr-defined]  # a SparkSession
    service = penstock.Service()
    publish_dataframe(service, "squares", frame, value_format="json")
    async with (
        penstock.serve(service, "memory://here"),
        penstock.connect("memory://here") as peer,
        peer.subscribe("squares", demand=1) as stream,
    ):
        for _ in range(3):
            print((await anext(stream)).decode())
        print("asked for", stream.statistics().requested)


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    running = session("local[2]")
    trio.run(main, running)
    running.stop()
