"""Spark's source of penstock beside other sources with the same rows: Kafka's connector, a null
source in Python, Parquet files, JSON files and rate-micro-batch: `python -m campaigns spark_beside`.

Everything runs in this machine's cores: Spark, the server of penstock, and a broker of Kafka, each
with two partitions. The topic and the files are filled with what the source of penstock reads. All
sources of a form take turns, and a ratio is the median of those within a pass. The last column is
the processor time of Spark's own processes for a row, without that of the server or the broker: what
counts where these have cores of their own.

Maven resolves Kafka's connector and broker; without them the rows of Kafka are left out.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import trio
from _query import SETTINGS
from _server import served
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json

import penstock
from campaigns._kafka import LocalKafka, connector_jars
from campaigns._processes import below, processor_seconds_of
from campaigns.spark_bench.__main__ import NullSource, seconds_of

JSON = "id BIGINT, name STRING"
MSGPACK = "id BIGINT, name STRING, amount DOUBLE"
ARROW = "id BIGINT, amount DOUBLE, twice BIGINT, half BIGINT"
AT_ONCE = 20_000
NO_DATA_PROGRESS = "spark.sql.streaming.noDataProgressEventInterval"

HEAD = (
    "| elements | source | rows/s | of the null source | bar | ns of Spark's processes |\n"
    "|---|---|--:|--:|---|--:|"
)

LONGEST = 120.0
"""Seconds after which a source that gives no rows is left."""


class Form(NamedTuple):
    """Elements, and how a query reads them."""

    kind: str
    options: dict[str, str]
    rows: int
    bar: float
    """Of the null source."""
    per_element: int = 1


FORMS = {
    "64 B": Form("64", {}, 2_000_000, 0.55),
    "1 KiB": Form("1024", {}, 400_000, 0.55),
    "mixed, up to 30 B": Form("mixed", {}, 2_000_000, 0.4),
    "json": Form("json", {"valueFormat": "json", "schema": JSON}, 2_000_000, 0.0),
    "msgpack": Form("msgpack", {"valueFormat": "msgpack", "schema": MSGPACK}, 2_000_000, 0.4),
    "arrow": Form("arrow", {"valueFormat": "arrow", "schema": ARROW}, 2_000_000, 0.7, 1_000),
}

Take = Callable[[], float]


def session(jars: Sequence[str]) -> Any:
    """Return a session with the jars of Kafka's connector."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    root, here = str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, here]))
    settings = SETTINGS | {"spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}
    if jars:
        settings |= {
            "spark.jars": ",".join(jars),
            "spark.driver.extraClassPath": os.pathsep.join(jars),
        }
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.dataSource.register(NullSource)
    return found


class Sources:
    """The sources of one form, with the same rows."""

    def __init__(self, spark: Any, form: Form, uri: str, kafka: str, folder: Path) -> None:
        self._spark = spark
        self._form = form
        self._uri = uri
        self._kafka = kafka
        self._folder = folder
        self._topic = f"rows-{form.kind}"

    def fill(self) -> None:
        """Write what the source of penstock reads to the topic and to files."""
        raw = self._spark.read.format("penstock").option("stream", "orders").load(self._uri)
        if self._kafka:
            rows = raw.select("value", raw.partition.cast("int").alias("partition"))
            writer = rows.write.format("kafka").option("kafka.bootstrap.servers", self._kafka)
            writer.option("topic", self._topic).save()
        ours = self.ours().drop("stream", "partition", "offset")
        ours.write.parquet(str(self._folder / "parquet"))
        if self._form.kind == "json":
            ours.write.json(str(self._folder / "json"))

    def ours(self, **options: str) -> Any:
        """Return the rows of penstock."""
        reader = self._spark.read.format("penstock").option("stream", "orders")
        return reader.options(**self._form.options, **options).load(self._uri)

    def takes(self) -> dict[str, Take]:
        """Return what reads all rows from each source."""
        ours = self.ours()
        columns = ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in ours.schema)
        null = self._spark.read.format("null").options(
            columns=columns, rows=self._form.rows, kind=self._form.kind
        )
        parquet = self._spark.read.parquet(str(self._folder / "parquet"))
        found = {"penstock": ours, "null source": null.load(), "Parquet files": parquet}
        if self._kafka:
            topic = self._of_kafka(self._spark.read).load()
            found["Kafka"] = self._decoded(topic)
        if self._form.kind == "json":
            raw = self._spark.read.format("penstock").option("stream", "orders").load(self._uri)
            found["penstock, raw and from_json"] = self._decoded(raw)
            found["JSON files"] = self._spark.read.schema(JSON).json(str(self._folder / "json"))
        return {name: lambda frame=frame: seconds_of(frame) for name, frame in found.items()}

    def _of_kafka(self, reader: Any) -> Any:
        return reader.format("kafka").options(
            **{
                "kafka.bootstrap.servers": self._kafka,
                "subscribe": self._topic,
                "startingOffsets": "earliest",
            }
        )

    def _decoded(self, frame: Any) -> Any:
        """Return the rows with JSON decoded by Spark; other forms have bytes."""
        if self._form.kind != "json":
            return frame
        return frame.select("*", from_json(col("value").cast("string"), JSON).alias("j")).select(
            "partition", "offset", "j.*"
        )

    # --- micro-batches

    def streams(self, *, most: int) -> dict[str, Any]:
        """Return the streaming sources, `most` rows a batch. With 0 they begin at their ends, and
        get no rows.
        """
        start = "earliest" if most else "latest"
        ours = self._spark.readStream.format("penstock").options(
            stream="orders", startingOffsets=start, longPollMs="0"
        )
        null = self._spark.readStream.format("null").options(
            columns="stream STRING, partition STRING, offset BIGINT, value BINARY",
            rows=self._form.rows if most else 0,
            kind=self._form.kind,
        )
        found = {
            "penstock": (ours.option("maxElementsPerTrigger", most) if most else ours).load(
                self._uri
            ),
            "null source": null.load(),
        }
        if most:
            rate = self._spark.readStream.format("rate-micro-batch")
            found["rate-micro-batch"] = rate.options(rowsPerBatch=most, numPartitions=2).load()
        if self._kafka:
            kafka = self._of_kafka(self._spark.readStream).option("startingOffsets", start)
            found["Kafka"] = (kafka.option("maxOffsetsPerTrigger", most) if most else kafka).load()
        return found


def batch_ms(stream: Any, folder: str, *, is_idle: bool, count: int) -> float:
    """Return the median time of `count` micro-batches, or of triggers without new rows."""
    query = (
        stream.writeStream.format("noop")
        .option("checkpointLocation", folder)
        .trigger(processingTime="0 seconds")
        .start()
    )
    try:
        seen: dict[object, float] = {}
        ends = time.monotonic() + LONGEST
        while len(seen) < count and time.monotonic() < ends and query.isActive:
            time.sleep(0.01)
            for each in query.recentProgress:
                if bool(each.numInputRows) != is_idle:
                    seen[each.timestamp] = each.durationMs["triggerExecution"]
        return median([*seen.values()][min(5, len(seen) - 1) :])
    finally:
        query.stop()


@contextmanager
def latency_server() -> Iterator[tuple[str, Callable[[], None]]]:
    """Serve a log in this process, in a thread, and yield its URL, and what appends the time of now
    to it.
    """
    ready = threading.Event()
    token: list[Any] = []
    url: list[str] = []
    log = penstock.RingLog(retention=penstock.Retention(max_count=100_000))
    scope = trio.CancelScope()

    async def main() -> None:
        service = penstock.Service()
        service.publish("times", log)
        with scope:
            async with penstock.serve(service, "tcp://127.0.0.1:0") as server:
                url.append(str(server.addresses[0]))
                token.append(trio.lowlevel.current_trio_token())
                ready.set()
                await trio.sleep_forever()

    thread = threading.Thread(target=trio.run, args=(main,))
    thread.start()
    ready.wait()

    def publish() -> None:
        trio.from_thread.run(log.append, [b"%d" % time.time_ns()], trio_token=token[0])

    try:
        yield url[0], publish
    finally:
        token[0].run_sync_soon(scope.cancel)
        thread.join()


def latencies(stream: Any, publish: Callable[[], None], folder: str, count: int) -> list[float]:
    """Return the milliseconds from `publish` to the function of `foreachBatch`, sorted."""
    found: list[float] = []

    def take(frame: Any, number: int) -> None:
        values = [int(bytes(row.value)) for row in frame.select("value").collect()]
        found.extend((time.time_ns() - value) / 1e6 for value in values)

    query = (
        stream.writeStream.foreachBatch(take)
        .option("checkpointLocation", folder)
        .trigger(processingTime="0 seconds")
        .start()
    )
    try:
        ends = time.monotonic() + LONGEST
        while not found and time.monotonic() < ends:
            publish()  # until the query has begun: it reads what comes after that
            time.sleep(1)
        time.sleep(2)
        found.clear()
        while len(found) < count and time.monotonic() < ends:
            known = len(found)
            publish()
            while len(found) == known and time.monotonic() < ends:
                time.sleep(0.005)
            time.sleep(0.05)
    finally:
        query.stop()
    return sorted(found)


def kafka_publisher(spark: Any, address: str, topic: str) -> Callable[[], None]:
    """Return what sends the time of now to a topic, with the producer of Kafka."""
    java = spark._jvm
    settings = java.java.util.Properties()
    settings.put("bootstrap.servers", address)
    for side in ("key", "value"):
        settings.put(f"{side}.serializer", "org.apache.kafka.common.serialization.StringSerializer")
    producer = java.org.apache.kafka.clients.producer.KafkaProducer(settings)
    record = java.org.apache.kafka.clients.producer.ProducerRecord

    def publish() -> None:
        producer.send(record(topic, str(time.time_ns()))).get()

    return publish


def show_rows(name: str, form: Form, takes: dict[str, Take], passes: int, aside: set[int]) -> None:
    """Print the speed of each source of a form. The processes `aside` are none of Spark's."""
    # The first pass starts the workers.
    for take in takes.values():
        take()
    taken, used = [], dict.fromkeys(takes, 0.0)
    for _ in range(passes):
        seconds = {}
        for each, take in takes.items():
            before = processor_seconds_of(below(os.getpid()).keys() - aside)
            seconds[each] = take()
            used[each] += processor_seconds_of(below(os.getpid()).keys() - aside) - before
        taken.append(seconds)
    for each in takes:
        rate = form.rows / median(one[each] for one in taken)
        of_null = median(one["null source"] / one[each] for one in taken)
        bar = ""
        if each == "penstock" and form.kind == "json":
            for other, least in (("penstock, raw and from_json", 1.5), ("JSON files", 0.8)):
                ratio = median(one[other] / one[each] for one in taken)
                bar += f"{ratio:.2f} × {other} (≥ {least}) "
        elif each == "penstock":
            bar = f"≥ {form.bar} of the null source"
        own = used[each] / passes / form.rows * 1e9
        print(
            f"| {name} | {each} | {rate:,.0f} | {of_null:.2f} | {bar.strip()} | {own:,.0f} |",
            flush=True,
        )


def main() -> None:
    """Print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("forms", nargs="*", help="the forms to read (default: all)")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--divide", type=int, default=1, help="read this part of the rows")
    parser.add_argument("--without-kafka", action="store_true")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        jars: list[str] = []
        kafka = ""
        if not options.without_kafka:
            try:
                jars = connector_jars()
                server = LocalKafka(
                    is_measured=True,
                    auto_create_topics_enable="true",
                    num_partitions="2",
                    message_max_bytes="8388608",
                )
                kafka = stack.enter_context(server).address
            except (OSError, RuntimeError) as error:
                print(f"without Kafka: {error}", file=sys.stderr)
        aside = set(below(os.getpid())) - {os.getpid()}  # the broker of Kafka
        spark = session(jars)
        stack.callback(spark.stop)
        print(HEAD)
        for name in options.forms or FORMS:
            form = FORMS[name]
            form = form._replace(rows=form.rows // options.divide)
            place = folder / form.kind
            place.mkdir()
            count = form.rows // 2 // form.per_element
            with served(place, count=count, kind=form.kind, in_memory=True) as server:
                sources = Sources(spark, form, server.uri, kafka, place)
                sources.fill()
                show_rows(name, form, sources.takes(), options.passes, {*aside, *below(server.pid)})
                if form.kind == "64":
                    tables = show_batches(spark, sources, place, form.rows, options.passes)
        if "64 B" in (options.forms or FORMS):
            print(*tables, sep="\n")
        show_latencies(spark, kafka, folder)


def show_batches(spark: Any, sources: Sources, place: Path, rows: int, passes: int) -> list[str]:
    """Return the lines of a table: micro-batches of 20,000 rows, and of none."""
    spark.conf.set(NO_DATA_PROGRESS, "0")
    names = [*sources.streams(most=AT_ONCE)]
    lines = ["", "| micro-batch | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    times: dict[tuple[int, str], list[float]] = {}
    for turn in range(passes):
        for most in (AT_ONCE, 0):
            for name, stream in sources.streams(most=most).items():
                at = f"{place}/{most}-{name}-{turn}"
                count = min(30, rows // most) if most else 30
                found = batch_ms(stream, at, is_idle=not most, count=count)
                times.setdefault((most, name), []).append(found)
    for title, most in (("20,000 rows", AT_ONCE), ("no rows", 0)):
        cells = [
            f"{median(times[most, name]):.0f} ms" if (most, name) in times else "" for name in names
        ]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    above = median(times[0, "penstock"]) - median(times[0, "null source"])
    spark.conf.unset(NO_DATA_PROGRESS)
    return [*lines, f"\nno rows: {above:.0f} ms above the null source (≤ 30 ms)"]


def show_latencies(spark: Any, kafka: str, folder: Path) -> None:
    """Print the latency from publish to foreachBatch, in milliseconds."""
    print("\n| from publish to foreachBatch | least | median | 90 % |\n|---|--:|--:|--:|")
    found: dict[str, list[float]] = {}
    with latency_server() as (uri, publish):
        stream = spark.readStream.format("penstock").option("stream", "times").load(uri)
        found["penstock"] = latencies(stream, publish, f"{folder}/latency", 50)
    if kafka:
        publish_to = kafka_publisher(spark, kafka, "times")
        publish_to()
        stream = spark.readStream.format("kafka").options(
            **{"kafka.bootstrap.servers": kafka, "subscribe": "times"}
        )
        found["Kafka"] = latencies(stream.load(), publish_to, f"{folder}/latency-kafka", 50)
    for name, times in found.items():
        least, middle, late = times[0], times[len(times) // 2], times[len(times) * 9 // 10]
        print(f"| {name} | {least:.0f} ms | {middle:.0f} ms | {late:.0f} ms |", flush=True)


if __name__ == "__main__":
    main()
