"""Faults around a query that runs: the clock of the log jumps, another query reads the same log,
partitions are added, the log is trimmed, and the checkpoint is that of another query. No row comes
twice, and none is lost that the log has.
"""

import time
from pathlib import Path
from typing import Any

import pytest
from _server import Served, served
from pyspark.errors import StreamingQueryException

WAITS = 240.0
"""Seconds that a busy machine may take for some batches."""

PATIENT = {"penstock.client.retries": "50"}
"""For a query whose server is away for some seconds."""


def _started(spark: Any, uri: str, folder: Path, **options: str) -> Any:
    """Start a query that copies places and times to files, until it is stopped."""
    stream = spark.readStream.format("penstock").options(
        stream="orders", startingOffsets="earliest", includeTimestamp="true", longPollMs="100"
    )
    return (
        stream.options(**options)
        .load(uri)
        .select("partition", "offset", "timestamp")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("path", str(folder / "out"))
        .start()
    )


def _wait(query: Any, **latest: int) -> None:
    """Wait until a query has read each partition up to a position."""
    wanted = {name.removeprefix("p"): position for name, position in latest.items()}
    ends = time.monotonic() + WAITS
    while time.monotonic() < ends:
        assert query.isActive, query.exception()
        for each in query.recentProgress:
            if f'"orders": {wanted!r}'.replace("'", '"') in str(each.sources[0].endOffset):
                return
        query.processAllAvailable()
    raise AssertionError(f"the query has not read {wanted}: {query.lastProgress}")


def _rows(spark: Any, folder: Path) -> list[tuple[str, int, Any]]:
    found = spark.read.parquet(str(folder / "out")).collect()
    return sorted((row.partition, row.offset, row.timestamp) for row in found)


@pytest.mark.heavy
def test_two_queries_read_a_log_whose_clock_jumps(spark: Any, tmp_path: Path) -> None:
    """Both get each element once, with the same time; the times of a partition never go back, so
    after a jump ahead they stay at that time.
    """
    with served(tmp_path, count=0, jumps=True) as server:
        queries = [_started(spark, server.uri, tmp_path / name) for name in ("one", "other")]
        try:
            for count in range(200, 1_001, 200):
                server.grow(count)
                for query in queries:
                    _wait(query, p0=count, p1=count)
        finally:
            for query in queries:
                query.stop()
    one, other = (_rows(spark, tmp_path / name) for name in ("one", "other"))
    assert one == other
    assert [row[:2] for row in one] == [
        (str(part), offset) for part in range(2) for offset in range(1_000)
    ]
    for part in ("0", "1"):
        times = [row[2] for row in one if row[0] == part]
        assert times == sorted(times)


def test_partitions_are_added_while_a_query_runs(spark: Any, tmp_path: Path) -> None:
    """The server comes back with a third one: the query reads it from its beginning."""
    folder = tmp_path
    before = Served(folder, count=100)
    before.start()
    query = _started(spark, before.uri, tmp_path / "copy")
    after = Served(folder, count=150, partitions=3)
    after.port = before.port
    try:
        _wait(query, p0=100, p1=100)
        before.kill()
        after.start()
        _wait(query, p0=150, p1=150, p2=150)
    finally:
        before.kill()
        after.kill()
        query.stop()
    assert [row[:2] for row in _rows(spark, tmp_path / "copy")] == [
        (str(part), offset) for part in range(3) for offset in range(150)
    ]


@pytest.mark.parametrize("goes_on", [False, pytest.param(True, marks=pytest.mark.heavy)])
def test_a_log_is_trimmed_below_the_position_of_a_query(
    spark: Any, tmp_path: Path, *, goes_on: bool
) -> None:
    """While it runs, its server comes back with a lower bound: the query ends, with the positions
    and the way on, or goes on with the earliest element. Started again with failOnDataLoss=false it
    does the same.
    """
    options = PATIENT | ({"failOnDataLoss": "false"} if goes_on else {})
    first, grown, trimmed = (
        Served(tmp_path, minutes=100, **each)
        for each in ({"count": 100}, {"count": 500}, {"count": 500, "retains": 100})
    )  # appends of 100 elements: a log drops whole ones
    first.start()
    query = _started(spark, first.uri, tmp_path / "copy", **options)
    try:
        _wait(query, p0=100, p1=100)
        first.kill()
        grown.start()  # at another port, so that the query does not read them
        grown.kill()
        trimmed.port = first.port
        trimmed.start()
        if not goes_on:
            with pytest.raises(StreamingQueryException) as failed:
                query.awaitTermination(int(WAITS))
            assert (
                "the checkpoint has position 100 of partition '0' of 'orders', and the publisher "
                "has 400 up to, and not with, 500: the elements between them were dropped. To go "
                "on without them, with the earliest element that the publisher has, set "
                "failOnDataLoss=false"
            ) in str(failed.value)
            query = _started(spark, first.uri, tmp_path / "copy", failOnDataLoss="false")
        _wait(query, p0=500, p1=500)
    finally:
        for each in (first, grown, trimmed):
            each.kill()
        query.stop()
    assert [row[:2] for row in _rows(spark, tmp_path / "copy")] == [
        (str(part), offset) for part in range(2) for offset in (*range(100), *range(400, 500))
    ]


@pytest.mark.heavy
def test_the_checkpoint_of_another_query_is_refused(spark: Any, tmp_path: Path) -> None:
    """It has read a log of the same name on another server. With its own one each query goes on."""
    folders = [tmp_path / name for name in ("one", "other")]
    for folder, kind in zip(folders, ("fixed", "mixed"), strict=True):
        folder.mkdir()
        with served(folder, count=100, kind=kind) as server:
            query = _started(spark, server.uri, folder)
            _wait(query, p0=100, p1=100)
            query.stop()
    one, other = (folder / "checkpoint" for folder in folders)
    one.rename(tmp_path / "aside")
    other.rename(one)
    with served(folders[0], count=200) as server:
        query = _started(spark, server.uri, folders[0])
        with pytest.raises(StreamingQueryException) as failed:
            query.awaitTermination(int(WAITS))
        assert "is not the one that this query has read" in str(failed.value)
        one.rename(other)
        (tmp_path / "aside").rename(one)
        query = _started(spark, server.uri, folders[0])
        _wait(query, p0=200, p1=200)
        query.stop()
    assert [row[:2] for row in _rows(spark, folders[0])] == [
        (str(part), offset) for part in range(2) for offset in range(200)
    ]
