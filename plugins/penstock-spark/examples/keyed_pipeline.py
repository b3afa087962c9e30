"""A small demo: Spark copies a log of keyed orders, its receiver is restarted, and an audit judges
the signals that the server has recorded.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import trio
from penstock_spark import session
from penstock_spark.audit import audit

from penstock import DiskLog, Record, Retention, RingLog, Service, collect, receive, serve

CUSTOMERS = [b"ann", b"ben", b"eve"]
PLENTY = Retention(max_count=1_000)


async def order(log: RingLog, numbers: range) -> None:
    """Append orders of all customers. Those of one customer are in one partition."""
    for number in numbers:
        customer = CUSTOMERS[number % 3]
        await log.append([Record(b"%d" % number, customer).pack()], key=customer)


def start(spark: Any, url: str, target: str, folder: Path) -> Any:
    """Start a query that copies what is new, with its keys."""
    reading = spark.readStream.format("penstock").options(
        stream="orders", records="true", startingOffsets="earliest", maxElementsPerTrigger=40
    )
    writing = reading.load(url).select("value", "key").writeStream.format("penstock")
    checkpoint = writing.option("checkpointLocation", str(folder / "checkpoint"))
    return checkpoint.option("stream", "archive").trigger(availableNow=True).start(target)


async def main(spark: Any, folder: Path) -> None:
    """Copy twice, with a new receiver for the second time, and show each customer's orders."""
    (folder / "signals").mkdir()
    orders, shop = RingLog(retention=PLENTY, partitions=["a", "b", "c"]), Service()
    shop.publish("orders", orders)
    found: dict[bytes | None, list[int]] = {}
    async with serve(shop, f"unix://{folder}/shop", record=folder / "signals"):
        for day in range(2):
            await order(orders, range(day * 60, (day + 1) * 60))
            archive = Service()
            async with DiskLog(folder / "archive.log", retention=PLENTY) as log:
                receive(archive, "archive", log, records=True)
                target = f"unix://{folder}/archive{day}"
                async with serve(archive, target):
                    query = start(spark, f"unix://{folder}/shop", target, folder)
                    await trio.to_thread.run_sync(query.awaitTermination)
                elements = await collect(log.source(stop="latest"))
    for record in map(Record.unpack, elements):
        found.setdefault(record.key, []).append(int(record.value))
    for number, customer in enumerate(CUSTOMERS):
        is_right = found[customer] == [*range(number, 120, 3)]
        print(
            f"{customer.decode()}: {len(found[customer])} orders, each once, in order: {is_right}"
        )
    report = await trio.to_thread.run_sync(audit, spark, folder / "signals")
    print(
        f"audit: rows lost: {report['lost']['rows']}, rules breached: {len(report['violations'])}"
    )


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    running = session("local[2]")
    with tempfile.TemporaryDirectory() as name:
        trio.run(main, running, Path(name))
    running.stop()
