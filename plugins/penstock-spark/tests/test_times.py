"""The times of elements, as a task learns them and as rows have them."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from _server import FIRST_TIME, Served, served
from penstock_spark.source._offsets import Range
from penstock_spark.source._publisher import QueryServer
from penstock_spark.source._range_reader import Task
from penstock_spark.source._settings import SourceSettings
from penstock_spark.source._times import Times

from penstock.api import ProtocolError, UsageError

STAMPED = pa.schema(
    [
        pa.field("stream", pa.string()),
        pa.field("partition", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
        pa.field("value", pa.binary()),
    ]
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: Any) -> Iterator[Served]:
    """20,000 elements in each of two partitions, 7 each minute."""
    folder = tmp_path_factory.mktemp("log")
    with served(folder, in_memory=True, count=20_000, minutes=7) as running:
        yield running


def _answer(*pieces: tuple[int, int, float]) -> bytes:
    return json.dumps(pieces).encode()


def test_the_times_of_elements_are_taken_in_parts() -> None:
    """Whatever the pieces are, and wherever a batch ends; those that were handed over are gone."""
    times = Times(5)
    times.add(_answer((5, 7, 1.5), (7, 8, 2.0)), "x")
    assert times.end == 8
    times.add(_answer((8, 20, 3.0)), "x")
    taken = [times.take(5, 6), times.take(6, 9), times.take(9, 12), times.take(12, 20)]
    assert [each.tolist() for each in taken] == [
        [1_500_000],
        [1_500_000, 2_000_000, 3_000_000],
        [3_000_000] * 3,
        [3_000_000] * 8,
    ]
    assert len(times._stops) == 0


@pytest.mark.parametrize(
    "answer",
    [
        b"no JSON",
        b"[]",
        b"[[1]]",
        b'{"a": 1}',
        b"[[5, 6, null]]",
        _answer((6, 9, 1.0)),
        _answer((5, 7, 1.0), (8, 9, 2.0)),
        _answer((5, 5, 1.0)),
    ],
)
def test_pieces_that_do_not_go_on_are_an_error(answer: bytes) -> None:
    """An answer without any progress would be asked for without end."""
    with pytest.raises(ProtocolError, match="the server sent"):
        Times(5).add(answer, "orders?times")


def test_rows_have_the_time_of_their_element(server: Served) -> None:
    """In each batch of a range that begins and ends within a piece."""
    settings = SourceSettings.of(
        {"uri": server.uri, "stream": "orders", "includeTimestamp": "true"}
    )
    task = Task(settings, STAMPED, (Range("orders", "0", 3, 19_998),), (server.uri,))
    table = pa.Table.from_batches(task.read())
    assert table["offset"].to_pylist() == list(range(3, 19_998))
    microseconds = table["timestamp"].cast(pa.int64()).to_numpy()
    expected = (FIRST_TIME + 60 * (np.arange(3, 19_998) // 7)) * 1_000_000
    assert np.array_equal(microseconds, expected)


def test_the_driver_asks_for_the_position_of_a_time(server: Served) -> None:
    """In all partitions at once. The second one was filled after the first one."""
    settings = SourceSettings.of({"uri": server.uri, "stream": "orders"})
    publisher = QueryServer(server.uri, settings.client)
    try:
        found = publisher.positions_at(["orders"], FIRST_TIME + 61)
        assert found == {("orders", "0"): 14, ("orders", "1"): 0}
        with pytest.raises(UsageError, match="does not give positions of a time"):
            publisher.positions_at(["ticks"], FIRST_TIME)
    finally:
        publisher.close()


def test_a_query_begins_and_ends_at_a_time(spark: Any, server: Served, tmp_path: Path) -> None:
    """A batch query, and a streaming one; the column is a timestamp of Spark."""
    options = {
        "uri": server.uri,
        "assign": '{"orders": ["0"]}',
        "startingTimestamp": "2026-07-01T10:10:00Z",
        "includeTimestamp": "true",
    }
    frame = spark.read.format("penstock").options(**options)
    rows = frame.option("endingTimestamp", "2026-07-01T10:11:30Z").load().collect()
    assert [row.offset for row in rows] == list(range(70, 84))
    times = [row.timestamp.astimezone(UTC) for row in rows]
    assert times == [datetime(2026, 7, 1, 10, 10 + at // 7, tzinfo=UTC) for at in range(14)]
    stream = spark.readStream.format("penstock").options(**options).load()
    query = (
        stream.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .option("path", str(tmp_path / "out"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    written = spark.read.parquet(str(tmp_path / "out"))
    assert written.count() == 20_000 - 70
    assert written.selectExpr("min(offset)").collect()[0][0] == 70
