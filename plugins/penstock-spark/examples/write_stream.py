"""A streaming query that writes to a Penstock service: each batch is in the log once."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import trio
from penstock_spark import session

import penstock


def start(spark: Any, url: str, folder: Path) -> Any:
    """Start a query that writes the lines of the files, one file a batch."""
    rows = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "in"))
    writer = (
        rows.writeStream.format("penstock")
        .option("stream", "orders")
        .option("checkpointLocation", str(folder / "checkpoint"))
    )
    return writer.trigger(availableNow=True).start(url)


async def main(spark: Any, folder: Path) -> None:
    """Receive into a log, run the query, run it again from its checkpoint, and read the log."""
    (folder / "in").mkdir()
    (folder / "in" / "monday.txt").write_text("2 pumps\n1 valve\n")
    (folder / "in" / "tuesday.txt").write_text("7 pipes\n")
    service = penstock.Service()
    async with penstock.DiskLog(
        folder / "orders.log", retention=penstock.Retention(max_count=1_000)
    ) as log:
        penstock.receive(service, "orders", log)
        async with penstock.serve(service, "tcp://127.0.0.1:0") as server:
            for _ in range(2):
                # Started in this thread: in a thread without an active session Spark finds no
                # source and no sink in Python.
                query = start(spark, str(server.addresses[0]), folder)
                await trio.to_thread.run_sync(query.awaitTermination)
        print(sorted(await penstock.collect(log.source(stop="latest"))))


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    running = session("local[2]")
    with tempfile.TemporaryDirectory() as name:
        trio.run(main, running, Path(name))
    running.stop()
