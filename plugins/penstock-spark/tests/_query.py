"""A streaming query as a separate program, so that a test can kill it: from a Penstock server
into Parquet, exactly once.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.unix.domain.socket.enabled": "true",
    # On a busy machine a new Python process takes long, and Spark then would not find
    # `format("penstock")` in the whole session.
    "spark.python.authenticate.socketTimeout": "300s",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
"""Of each session of these tests: loopback, no user interface, and a quick start."""


def into_parquet(spark, uri: str, folder: Path, most: int, **options: str):  # type: ignore[no-untyped-def]  # pyspark has no types here
    """Return the writer of a query from the stream ``orders`` into ``folder/out``."""
    reading = spark.readStream.format("penstock").options(
        stream="orders", startingOffsets="earliest", maxElementsPerTrigger=most
    )
    rows = reading.options(**options).load(uri)
    return (
        rows.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
    )


def batches_in(folder: Path) -> int:
    """Return how many batches the query has planned."""
    offsets = folder / "checkpoint" / "offsets"
    return sum(path.name.isdigit() for path in offsets.iterdir()) if offsets.exists() else 0


class Driver:
    """The program, in a separate process group."""

    def __init__(self, uri: str, folder: Path, most: int) -> None:
        command = [sys.executable, __file__, uri, str(folder), str(most)]
        self._process = subprocess.Popen(
            command, start_new_session=True, stderr=subprocess.PIPE, text=True
        )

    def kill(self) -> None:
        """Kill the whole group: Java, and the Python processes that it has started."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def failure(self) -> str | None:
        """Return the standard error of a program that has ended by itself."""
        return None if self._process.poll() is None else self._process.communicate()[1]


def main() -> None:
    """Read until the process is killed."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    uri, folder, most = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    into_parquet(builder.getOrCreate(), uri, folder, most).start().awaitTermination()


if __name__ == "__main__":
    main()
