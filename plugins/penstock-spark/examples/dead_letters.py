"""Elements that cannot be decoded go to a log of their own, with the place that they came from, and
the query goes on with the others.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import trio
from penstock_spark import session

from penstock import Record, Retention, RingLog, Service, collect, receive, serve

ORDERS = [b'{"id": 1}', b"not JSON", b'{"id": 2}', b'{"id": "three"}']


def start(spark: Any, url: str, folder: Path) -> Any:
    """Start one query that writes to two logs: the column `name` says which."""
    reading = spark.readStream.format("penstock").options(
        stream="orders",
        startingOffsets="earliest",
        valueFormat="json",
        schema="id BIGINT",
        undecodable="_corrupt",
    )
    place = "named_struct('key', 'offset', 'value', cast(cast(offset AS STRING) AS BINARY))"
    rows = reading.load(url).selectExpr(
        "coalesce(_corrupt, cast(concat('order ', id) AS BINARY)) AS value",
        "partition AS key",
        f"array({place}) AS headers",
        "if(_corrupt IS NULL, 'good', 'dead') AS name",
    )
    writing = rows.writeStream.format("penstock").option("stream", "sorted")
    checkpoint = writing.option("checkpointLocation", str(folder / "checkpoint"))
    return checkpoint.trigger(availableNow=True).start(url)


async def main(spark: Any, folder: Path) -> None:
    """Serve the orders, receive what the query makes of them, and show both logs."""
    logs = [RingLog(retention=Retention(max_count=1_000)) for _ in range(3)]
    orders, good, dead = logs
    await orders.append(ORDERS)
    service = Service()
    service.publish("orders", orders)
    receive(service, "sorted", {"good": good, "dead": dead}, records=True)
    url = f"unix://{folder}/socket"
    async with serve(service, url):
        query = start(spark, url, folder)
        await trio.to_thread.run_sync(query.awaitTermination)
    for name, log in (("good", good), ("dead", dead)):
        for element in await collect(log.source(stop="latest")):
            record = Record.unpack(element)
            print(name, record.value, "from", dict(record.headers))


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    running = session("local[2]")
    with tempfile.TemporaryDirectory() as name:
        trio.run(main, running, Path(name))
    running.stop()
