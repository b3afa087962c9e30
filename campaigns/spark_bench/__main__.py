"""The bars of the source: `python -m campaigns spark_bench`.
Each form is read through Spark into nothing, beside a null source.

The null source is a Python source, too, and yields ready-made batches with the same columns: the
difference is what the server, the connection and the decoding cost. Server, driver and tasks share
the cores of this machine.

The two take turns. A ratio is the median of those within a pass: the speed of a machine may change
by half from one pass to the next, and the best passes of the two are then of different times.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
from _query import SETTINGS
from _server import element_at, served
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadMaxRows

ROWS = int(os.environ.get("ROWS", "2000000"))
PASSES = int(os.environ.get("PASSES", "3"))
IN_BATCH = 8_192
FORMS = {
    # name: (kind of the server, options, rows of an element, the bar)
    "Arrow elements of 1,000 rows": (
        "arrow",
        {"valueFormat": "arrow", "schema": "id BIGINT, amount DOUBLE, twice BIGINT, half BIGINT"},
        1_000,
        0.6,
    ),
    "elements of one length, 32 bytes": ("fixed", {}, 1, 0.45),
    "elements of mixed lengths": ("mixed", {}, 1, 0.3),
    "msgpack": (
        "msgpack",
        {"valueFormat": "msgpack", "schema": "id BIGINT, name STRING, amount DOUBLE"},
        1,
        0.3,
    ),
}


class _Null:
    """Yields one ready-made batch again and again."""

    def __init__(self, schema: Any, options: Mapping[str, str]) -> None:
        self._schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self._rows = int(options["rows"])
        self._kind = options.get("kind", "fixed")

    def _batch(self) -> pa.RecordBatch:
        columns = []
        for field in self._schema:
            if pa.types.is_string(field.type):
                columns.append(pa.array(["name 5"] * IN_BATCH))
            elif pa.types.is_binary(field.type):
                columns.append(
                    pa.array(
                        [element_at(self._kind, 0, number) for number in range(IN_BATCH)],
                        pa.binary(),
                    )
                )
            else:
                columns.append(pa.array(range(IN_BATCH), field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batch, left = self._batch(), partition.value
        while left > 0:
            yield batch.slice(0, left)
            left -= IN_BATCH


class NullReader(_Null, DataSourceReader):
    """The reader of a batch query."""

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(self._rows // 2)] * 2


class NullStreamReader(_Null, DataSourceStreamReader):
    """The reader of a streaming query."""

    def initialOffset(self) -> dict[str, int]:
        return {"at": 0}

    def getDefaultReadLimit(self) -> Any:
        return ReadMaxRows(20_000)

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        return {"at": min(self._rows, start["at"] + 20_000)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        rows = end["at"] - start["at"]
        return [InputPartition(rows // 2)] * 2 if rows else []


class NullSource(DataSource):
    """`format("null")`."""

    @classmethod
    def name(cls) -> str:
        return "null"

    def schema(self) -> str:
        return str(self.options["columns"])

    def reader(self, schema: Any) -> NullReader:
        return NullReader(schema, self.options)

    def streamReader(self, schema: Any) -> NullStreamReader:
        return NullStreamReader(schema, self.options)


def seconds_of(rows: Any) -> float:
    began = time.perf_counter()
    rows.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def batch_seconds(stream: Any, folder: str) -> float:
    """Return the median time of a batch of a streaming query."""
    writing = (
        stream.writeStream.format("noop")
        .option("checkpointLocation", folder)
        .trigger(processingTime="0 seconds")
    )
    query = writing.start()
    while sum(each.numInputRows for each in query.recentProgress) < 25 * 20_000 and query.isActive:
        time.sleep(0.05)
    times = sorted(
        each.durationMs["triggerExecution"]
        for each in query.recentProgress[5:]
        if each.numInputRows
    )
    query.stop()
    return times[len(times) // 2] / 1000


def main() -> None:
    """Print a table."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Spark's processes import the null source.
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")])
    )
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in (SETTINGS | {"spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.dataSource.register(NullSource)
    print("| form | rows/s | null source, rows/s | ratio (bar) |\n|---|---|---|---|")
    for name in sys.argv[1:] or FORMS:
        kind, options, per_element, bar = FORMS[name]
        with (
            tempfile.TemporaryDirectory() as folder,
            served(
                Path(folder), count=ROWS // 2 // per_element, kind=kind, in_memory=True
            ) as server,
        ):
            own = spark.read.format("penstock").options(stream="orders", **options).load(server.uri)
            columns = ", ".join(
                f"{each.name} {each.dataType.simpleString()}" for each in own.schema
            )
            null = spark.read.format("null").options(columns=columns, rows=ROWS, kind=kind).load()
            # The first pass starts the workers.
            taken = [(seconds_of(own), seconds_of(null)) for _ in range(PASSES + 1)][1:]
            own_rate, null_rate = (ROWS / median(seconds) for seconds in zip(*taken, strict=True))
            ratio = median(null / own for own, null in taken)
            print(
                f"| {name} | {own_rate:,.0f} | {null_rate:,.0f} | {ratio:.2f} (≥ {bar}) |",
                flush=True,
            )
            if kind == "fixed":
                stream = spark.readStream.format("penstock").options(
                    stream="orders", startingOffsets="earliest", maxElementsPerTrigger="20000"
                )
                empty = spark.readStream.format("null").options(columns=columns, rows=ROWS).load()
                times = [
                    (
                        batch_seconds(stream.load(server.uri), f"{folder}/ours{turn}"),
                        batch_seconds(empty, f"{folder}/null{turn}"),
                    )
                    for turn in range(PASSES)
                ]
                ours, others = (median(each) * 1000 for each in zip(*times, strict=True))
                ratio = median(own / null for own, null in times)
                print(
                    (
                        f"| batches of 20,000 | {ours:.0f} ms | {others:.0f} ms | {ratio:.2f} (≤ "
                        "1.3) |"
                    ),
                    flush=True,
                )
    spark.stop()


if __name__ == "__main__":
    main()
