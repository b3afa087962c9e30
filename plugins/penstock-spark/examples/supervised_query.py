"""A query that is started again when it fails, sends an alert, and reports how far it is behind.
Here its server comes up late.
"""

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio
from penstock_spark import session
from penstock_spark.progress import Lag, LagListener

from penstock import Retention, RingLog, Service, serve

ATTEMPTS = 6


def supervise(start: Callable[[], Any], alert: Callable[[str], None], pause: float = 1.0) -> None:
    """Run a query until it ends well. After `ATTEMPTS` failures in a row raise the last one."""
    failures = 0
    while True:
        query = start()
        try:
            query.awaitTermination()
            return
        except Exception as error:  # of Spark, of Java, and of the source
            # A batch that was committed is progress: only failures in a row end the loop.
            failures = 1 if query.recentProgress else failures + 1
            alert(f"failure {failures}: {type(error).__name__}")
            if failures == ATTEMPTS:
                raise
            time.sleep(min(60.0, pause * 2**failures))


def start(spark: Any, url: str, folder: Path) -> Any:
    """Start the query, from its checkpoint if there is one."""
    reading = spark.readStream.format("penstock").options(
        stream="orders", startingOffsets="earliest"
    )
    # So that this example fails soon. The default is 8 attempts to connect, in about a minute.
    rows = reading.option("penstock.client.retries", 1).load(url)
    writing = rows.writeStream.queryName("orders").format("parquet")
    files = writing.option("path", str(folder / "rows"))
    checkpoint = files.option("checkpointLocation", str(folder / "checkpoint"))
    return checkpoint.trigger(availableNow=True).start()


async def run_server(url: str, is_over: threading.Event) -> None:
    """Serve a log of 1,000 orders until the program is over."""
    log = RingLog(retention=Retention(max_count=10_000))
    await log.append([b"%d" % number for number in range(1_000)])
    service = Service()
    service.publish("orders", log)
    async with serve(service, url):
        await trio.to_thread.run_sync(is_over.wait)


def main(spark: Any, folder: Path) -> None:
    """Fail once, because the server is not up; then read all."""
    url, is_over, lags = f"unix://{folder}/socket", threading.Event(), list[Lag]()
    server = threading.Thread(target=trio.run, args=(run_server, url, is_over))

    def alert(text: str) -> None:
        print("alert:", text)  # or send it to the person on call
        if not server.ident:
            server.start()

    listener = LagListener(lambda name, source, lag: lags.append(lag))
    spark.streams.addListener(listener)
    try:
        supervise(lambda: start(spark, url, folder), alert, pause=0.5)
    finally:
        spark.streams.removeListener(listener)
        is_over.set()
        server.join()
    print(f"{spark.read.parquet(str(folder / 'rows')).count():,} orders")
    while not lags:  # Spark tells its listeners in another thread
        time.sleep(0.1)
    print("behind:", lags[-1].maxOffsetsBehindLatest)


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    running = session("local[2]", name="orders")
    with tempfile.TemporaryDirectory() as name:
        main(running, Path(name))
    running.stop()
