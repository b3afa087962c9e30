"""Faults around a query that runs: the clock of the log jumps, another query reads the same log, and
partitions are added. No row is lost, and none comes twice.
"""

import time
from pathlib import Path
from typing import Any

from _server import Served, served

WAITS = 240.0
"""Seconds that a busy machine may take for some batches."""


def _started(spark: Any, uri: str, folder: Path) -> Any:
    """Start a query that copies places and times to files, until it is stopped."""
    stream = spark.readStream.format("penstock").options(
        stream="orders", startingOffsets="earliest", includeTimestamp="true", longPollMs="100"
    )
    return (
        stream.load(uri)
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
