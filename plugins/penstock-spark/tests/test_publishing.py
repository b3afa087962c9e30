"""DataFrames and streaming queries are published at the pace of their subscribers."""

import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import trio
import trio.testing
from penstock_spark.publishing import _publish_dataframe as module
from penstock_spark.publishing import foreach_batch, publish_dataframe
from penstock_spark.publishing._rows import pack, unpack

import penstock
from penstock.api import PublisherFailed, UsageError

PARTITIONS = 8


@asynccontextmanager
async def serve_and_subscribe(
    service: penstock.Service, *, demand: int = 256
) -> AsyncIterator[Any]:
    """Yield a stream of ``rows``."""
    async with (
        penstock.serve(service, "memory://here"),
        penstock.connect("memory://here") as peer,
        peer.subscribe("rows", demand=demand) as stream,
    ):
        yield stream


def published(spark: Any, folder: Path, rows: int) -> tuple[penstock.Service, Path]:
    """Return a service with a DataFrame of PARTITIONS partitions, each of
    which leaves a file when it is computed.
    """
    seen = folder / "seen"
    seen.mkdir()
    path = str(seen)

    # A function inside of another one is pickled by its value: the workers cannot import the tests.
    def noting(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for value in batch.column(0).to_pylist():
                Path(path, str(int(value) // (rows // PARTITIONS))).touch()
            yield batch

    frame = (
        spark.range(0, rows, 1, PARTITIONS)
        .selectExpr("CAST(id AS STRING) AS value")
        .mapInArrow(noting, "value STRING")
    )
    service = penstock.Service()
    publish_dataframe(service, "rows", frame)
    return service, seen


def test_a_subscriber_gets_the_rows_partition_by_partition(spark: Any, tmp_path: Path) -> None:
    """Nothing is computed before its first request, and a partition is computed
    when the rows before it were requested.
    """
    service, seen = published(spark, tmp_path, 80)

    async def read() -> list[bytes]:
        async with serve_and_subscribe(service, demand=0) as stream:
            await trio.testing.wait_all_tasks_blocked()
            assert list(seen.iterdir()) == []
            stream.request(15)
            first = [await anext(stream) for _ in range(15)]
            assert {path.name for path in seen.iterdir()} == {"0", "1"}
            stream.request(100)
            return [*first, *[element async for element in stream]]

    assert trio.run(read) == [b"%d" % number for number in range(80)]
    assert len(list(seen.iterdir())) == PARTITIONS


def wait_for_jobs(spark: Any, *, active: bool) -> None:
    """Wait until Spark has a job, or until it has no job."""
    for _ in range(2_400):
        if bool(spark.sparkContext.statusTracker().getActiveJobsIds()) == active:
            return
        threading.Event().wait(0.05)
    raise AssertionError(f"no job was to be {'begun' if active else 'left'} within two minutes")


def test_a_subscriber_that_cancels_ends_its_job(spark: Any) -> None:
    """Also while Spark computes the first rows, which would take an hour."""

    def waiting(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            threading.Event().wait(3_600)
            yield batch

    service = penstock.Service()
    publish_dataframe(
        service,
        "rows",
        spark.range(1).selectExpr("'x' AS value").mapInArrow(waiting, "value STRING"),
    )

    async def read() -> None:
        async with serve_and_subscribe(service):
            await trio.to_thread.run_sync(partial(wait_for_jobs, spark, active=True))
        await trio.to_thread.run_sync(partial(wait_for_jobs, spark, active=False))

    trio.run(read)


class SparkContext:
    """As much of Spark as a run calls.
    The job that begins between two cancels is ended by the second one alone.
    """

    def __init__(self, *, last_cancel: int) -> None:
        self.sparkContext = self
        self.cancels = 0
        self.begun = threading.Event()
        self.ended = threading.Event()
        self._last_cancel = last_cancel

    def addJobTag(self, tag: str) -> None:
        """Begin."""

    def removeJobTag(self, tag: str) -> None:
        """End."""

    def cancelJobsWithTag(self, tag: str) -> None:
        self.cancels += 1
        if self.cancels == self._last_cancel:
            self.ended.set()

    def rows(self) -> Iterator[list[bytes]]:
        self.begun.set()
        self.ended.wait(HANGS_AFTER)
        yield [b"late"]


HANGS_AFTER = 60.0


def stopped_run(spark: SparkContext) -> tuple[module.SubscriberJobs, threading.Thread]:
    """Stop a run whose thread waits for rows, and return both."""
    run = module.SubscriberJobs(spark, spark.rows())
    waiting = threading.Thread(target=run.next)
    waiting.start()
    spark.begun.wait()
    run.stop()
    return run, waiting


def test_a_job_that_begins_between_two_cancels_is_ended() -> None:
    """Each partition is a job, and Spark cancels those that run."""
    spark = SparkContext(last_cancel=2)
    run, waiting = stopped_run(spark)
    waiting.join()
    assert spark.cancels >= 2
    assert run.next() is None


def test_a_run_that_was_stopped_begins_no_job() -> None:
    """The thread of a call that was abandoned may begin later than the stop."""
    spark = SparkContext(last_cancel=1)
    run = module.SubscriberJobs(spark, spark.rows())
    run.stop()
    assert run.next() is None
    assert not spark.begun.is_set()


def test_spark_that_ends_no_job_does_not_hold_up_its_subscriber(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The stop gives up at its deadline."""
    monkeypatch.setattr(module, "STOP_SECONDS", 0.0)
    spark = SparkContext(last_cancel=10**9)
    _, waiting = stopped_run(spark)
    assert waiting.is_alive()
    spark.ended.set()
    waiting.join()


def test_foreach_batch_waits_for_the_demand_of_the_subscriber(spark: Any, tmp_path: Path) -> None:
    """With a channel of size 0 the query does not go on while the subscriber does not read."""
    (tmp_path / "in").mkdir()
    for file in range(3):
        (tmp_path / "in" / f"{file}.txt").write_text(
            "".join(f"{file}:{row}\n" for row in range(10))
        )
    rows = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "in"))

    async def read() -> list[bytes]:
        channel, receive = trio.open_memory_channel[list[bytes]](0)
        service = penstock.Service()
        service.publish("rows", penstock.from_batches(receive))
        offered: list[list[bytes]] = []
        second = trio.Event()

        async def send(elements: list[bytes]) -> None:
            offered.append(elements)
            if len(offered) == 2:
                second.set()
            await channel.send(elements)

        writer = rows.writeStream.foreachBatch(foreach_batch(send)).option(
            "checkpointLocation", str(tmp_path / "c")
        )
        query = writer.trigger(availableNow=True).start()
        try:
            async with serve_and_subscribe(service, demand=1) as stream:
                first = await anext(stream)
                # The list of the second batch is not taken before the subscriber has asked for all
                # of the first.
                await second.wait()
                await trio.testing.wait_all_tasks_blocked()
                assert len(offered) == 2
                assert [
                    progress["batchId"]
                    for progress in query.recentProgress
                    if progress["numInputRows"]
                ] in ([], [0])
                rest = [await anext(stream) for _ in range(29)]
                await trio.to_thread.run_sync(query.awaitTermination)
                return [first, *rest]
        finally:
            query.stop()

    elements = trio.run(read)
    assert sorted(elements) == sorted(
        b"%d:%d" % (file, row) for file in range(3) for row in range(10)
    )


def test_elements_survive_packing() -> None:
    """In all formats, with empty batches left out."""
    batches = [
        pa.record_batch([pa.array(["a", ""])], names=["value"]),
        pa.record_batch([pa.array([], pa.string())], names=["value"]),
    ]
    packed = list(pack("raw", batches))
    assert [unpack(row.column(0)[0].as_py()) for row in packed] == [[b"a", b""]]


def test_a_row_that_is_no_element_fails_with_its_reason() -> None:
    """A worker finds the null; its text crosses to the driver by itself,
    and not inside of an error of Java.
    """
    batches = [
        pa.record_batch([pa.array(["a"])], names=["value"]),
        pa.record_batch([pa.array(["b", None])], names=["value"]),
    ]
    first, second = pack("raw", batches)
    assert unpack(first.column(0)[0].as_py()) == [b"a"]
    with pytest.raises(UsageError, match=r"the column value has a null.*leave such rows out"):
        unpack(second.column(0)[0].as_py())


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "the column value has a null, and an element is never null"),
        (
            b"x" * 5_000_000,
            r"element 1 \(from 0\) of the DataFrame 'rows' has 5,000,000 bytes.*octet_length",
        ),
    ],
)
def test_the_program_gets_the_reason_of_a_failure(
    monkeypatch: pytest.MonkeyPatch, value: bytes | None, reason: str
) -> None:
    """By on_violation; a subscriber learns that the publisher failed. Without Spark:
    the workers' part runs here.
    """
    batch = pa.record_batch([pa.array([b"a", value], pa.binary())], names=["value"])
    lists = (unpack(row.column(0)[0].as_py()) for row in pack("raw", [batch]))
    monkeypatch.setattr(module, "lists_of", lambda _frame, _format: lists)
    service, told = penstock.Service(), []
    frame = Frame([("value", "binary")])
    frame.sparkSession = SparkContext(last_cancel=1)
    publish_dataframe(service, "rows", frame)

    async def read() -> None:
        async with (
            penstock.serve(service, "memory://here", on_violation=told.append),
            penstock.connect("memory://here") as peer,
            peer.subscribe("rows") as stream,
        ):
            with pytest.raises(PublisherFailed):
                _ = [element async for element in stream]

    trio.run(read)
    [failure] = told
    assert isinstance(failure, UsageError)
    assert re.match(reason, str(failure))


def test_foreach_batch_needs_a_run_of_trio() -> None:
    """The elements go to its tasks."""
    with pytest.raises(UsageError, match=r"inside of trio\.run"):
        foreach_batch(print)  # type: ignore[arg-type]  # refused before it is used


class Frame:
    """As much of a DataFrame as the checks see."""

    def __init__(self, columns: list[tuple[str, str]], *, streaming: bool = False) -> None:
        self.dtypes = columns
        self.sparkSession: Any = None
        self.isStreaming = streaming


@pytest.mark.parametrize(
    ("frame", "value_format", "text"),
    [
        (Frame([("id", "bigint")]), "raw", "the sink writes one column, value"),
        (Frame([("value", "string")]), "xml", "give raw, json or arrow"),
        (Frame([("value", "string")], streaming=True), "raw", "use foreach_batch"),
    ],
)
def test_a_frame_that_cannot_be_published_is_told(
    frame: Frame, value_format: str, text: str
) -> None:
    """When it is offered, and not to the first subscriber."""
    with pytest.raises(UsageError, match=text):
        publish_dataframe(penstock.Service(), "rows", frame, value_format=value_format)
