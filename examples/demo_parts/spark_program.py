"""A program for the scene of Spark: ``spark_program.py URL FOLDER``. It prints what it is doing, one
line each. Java writes to its standard error, which belongs to no panel.

It reads the log ``orders``, adds up windows and writes them to the log ``windows``, twice: the
second time there is nothing new. Then it waits for a line, and judges the signals in FOLDER. The
last line it prints is its result, as JSON.
"""

import json
import sys
from pathlib import Path
from typing import Any

import penstock_spark
from penstock_spark.audit import audit

WINDOW = 300  # seconds
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    # Java starts faster, and is slower after a minute.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}


def start(spark: Any, url: str, folder: Path) -> Any:
    """Start the query, with its checkpoint in the folder."""
    reading = spark.readStream.format("penstock").options(
        stream="orders",
        startingOffsets="earliest",
        valueFormat="json",
        schema="customer STRING, amount DOUBLE, at TIMESTAMP",
    )
    orders = reading.load(url).withWatermark("at", "10 minutes")
    windows = orders.selectExpr(f"window(at, '{WINDOW} seconds') AS window", "*").groupBy(
        "window", "customer"
    )
    sums = windows.agg({"amount": "sum", "at": "count"}).selectExpr(
        "to_json(struct(unix_seconds(window.start) AS start, customer, `count(at)` AS orders, "
        "`sum(amount)` AS amount)) AS value"
    )
    writing = sums.writeStream.format("penstock").option("stream", "windows")
    writing = writing.option("checkpointLocation", str(folder / "checkpoint"))
    return writing.trigger(availableNow=True).start(url)


def main(url: str, folder: Path) -> None:
    """Run the query twice, and the audit."""
    print("Java starts", flush=True)
    spark = penstock_spark.session("local[2]", name="demo", settings=SETTINGS)
    rows = []
    for doing in ("the query runs", "it runs again, from its checkpoint"):
        print(doing, flush=True)
        query = start(spark, url, folder)
        query.awaitTermination()
        rows.append(sum(each.numInputRows for each in query.recentProgress))
    print("done", flush=True)
    sys.stdin.readline()
    print("Spark judges the record", flush=True)
    report = audit(spark, folder / "signals")
    spark.stop()
    found = {"breached": len(report["violations"]), "lost": report["lost"]["rows"]}
    print(json.dumps({"rows": rows, "signals": report["rows"], **found}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
