"""DataFrames and streaming queries are published at the pace of their subscribers."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import trio
from penstock_spark.publishing import foreach_batch, publish_dataframe
from penstock_spark.publishing._rows import pack, unpack

import penstock
from penstock.api import UsageError

PARTITIONS = 8


def noting(folder: str, batches: Iterator[Any]) -> Iterator[Any]:
    """Write a file for each partition that is computed."""
    from pyspark import TaskContext  # noqa: PLC0415  # in the worker

    context = TaskContext.get()
    assert context is not None
    Path(folder, str(context.partitionId())).touch()
    yield from batches


def published(spark: Any, folder: Path, rows: int) -> tuple[penstock.Service, Path]:
    """Return a service with a DataFrame of PARTITIONS partitions, each of which leaves a file when it is computed."""
    seen = folder / "seen"
    seen.mkdir()
    frame = (
        spark.range(0, rows, 1, PARTITIONS).selectExpr("CAST(id AS STRING) AS value").mapInArrow(partial(noting, str(seen)), "value STRING")
    )
    service = penstock.Service()
    publish_dataframe(service, "rows", frame)
    return service, seen


def test_a_subscriber_gets_the_rows_partition_by_partition(spark: Any, tmp_path: Path) -> None:
    """Nothing is computed before its first request, and a partition is computed when the rows before it were requested."""
    service, seen = published(spark, tmp_path, 80)

    async def read() -> list[bytes]:
        async with penstock.serve(service, "memory://here"), penstock.connect("memory://here") as peer:
            async with peer.subscribe("rows", demand=0) as stream:
                await trio.sleep(0.1)
                assert list(seen.iterdir()) == []
                stream.request(15)
                first = [await anext(stream) for _ in range(15)]
                assert {path.name for path in seen.iterdir()} == {"0", "1"}
                stream.request(100)
                return [*first, *[element async for element in stream]]

    assert trio.run(read) == [b"%d" % number for number in range(80)]
    assert len(list(seen.iterdir())) == PARTITIONS


def test_a_subscriber_that_cancels_ends_its_job(spark: Any, tmp_path: Path) -> None:
    """Also while Spark computes the first rows, which would take an hour."""
    slow = spark.range(1).selectExpr("CAST(java_method('java.lang.Thread', 'sleep', 3600000L) AS STRING) AS value")
    service = penstock.Service()
    publish_dataframe(service, "rows", slow)

    async def read() -> None:
        async with penstock.serve(service, "memory://here"), penstock.connect("memory://here") as peer:
            with trio.move_on_after(2):
                async with peer.subscribe("rows") as stream:
                    await anext(stream)
            with trio.fail_after(60):
                while spark.sparkContext.statusTracker().getActiveJobsIds():
                    await trio.sleep(0.05)

    trio.run(read)


def test_foreach_batch_waits_for_the_demand_of_the_subscriber(spark: Any, tmp_path: Path) -> None:
    """With a channel of size 0 the query does not go on while the subscriber does not read."""
    (tmp_path / "in").mkdir()
    for file in range(3):
        (tmp_path / "in" / f"{file}.txt").write_text("".join(f"{file}:{row}\n" for row in range(10)))
    rows = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "in"))

    async def read() -> tuple[int, list[bytes]]:
        send, receive = trio.open_memory_channel[list[bytes]](0)
        service = penstock.Service()
        service.publish("rows", penstock.from_batches(receive))
        feed = foreach_batch(send.send)
        query = rows.writeStream.foreachBatch(feed).option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        try:
            async with penstock.serve(service, "memory://here"), penstock.connect("memory://here") as peer:
                async with peer.subscribe("rows", demand=1) as stream:
                    first = await anext(stream)
                    await trio.sleep(2)
                    begun = max((progress["batchId"] for progress in query.recentProgress), default=-1) + 1
                    rest = [await anext(stream) for _ in range(29)]
                    await trio.to_thread.run_sync(query.awaitTermination)
                    return begun, [first, *rest]
        finally:
            query.stop()

    begun, elements = trio.run(read)
    assert begun <= 1
    assert sorted(elements) == sorted(b"%d:%d" % (file, row) for file in range(3) for row in range(10))


def test_elements_survive_packing() -> None:
    """In all formats, with empty batches left out."""
    batches = [pa.record_batch([pa.array(["a", ""])], names=["value"]), pa.record_batch([pa.array([], pa.string())], names=["value"])]
    packed = list(pack("raw", batches))
    assert [unpack(row.column(0)[0].as_py()) for row in packed] == [[b"a", b""]]


def test_foreach_batch_needs_a_run_of_trio() -> None:
    """The elements go to its tasks."""
    with pytest.raises(UsageError, match=r"inside of trio\.run"):
        foreach_batch(print)  # type: ignore[arg-type]


class Frame:
    """As much of a DataFrame as the checks see."""

    def __init__(self, columns: list[tuple[str, str]], *, streaming: bool = False) -> None:
        self.dtypes = columns
        self.isStreaming = streaming


@pytest.mark.parametrize(
    ("frame", "value_format", "text"),
    [
        (Frame([("id", "bigint")]), "raw", "the sink writes one column, value"),
        (Frame([("value", "string")]), "xml", "give raw, json or arrow"),
        (Frame([("value", "string")], streaming=True), "raw", "use foreach_batch"),
    ],
)
def test_a_frame_that_cannot_be_published_is_told(frame: Frame, value_format: str, text: str) -> None:
    """When it is offered, and not to the first subscriber."""
    with pytest.raises(UsageError, match=text):
        publish_dataframe(penstock.Service(), "rows", frame, value_format=value_format)
