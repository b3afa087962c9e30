"""Spark reads the partitions of two servers, on executors of a cluster; and goes on while one of the
servers is away.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _query import into_parquet
from _server import Served, served


@pytest.fixture
def both(tmp_path: Path) -> Iterator[list[Served]]:
    """Two servers with 1,000 elements in each of their partitions: 0 and 1, 2 and 3."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    one = served(tmp_path / "one", count=1_000)
    other = served(tmp_path / "other", count=1_000, first=2)
    with one as first, other as second:
        yield [first, second]


@pytest.mark.many_kills
def test_executors_read_from_all_servers(both: list[Served]) -> None:
    """On `local-cluster[2,1,1024]`, in another program: a process has one session."""
    program = Path(__file__).with_name("_cluster_program.py")
    done = subprocess.run(
        [sys.executable, program, ",".join(server.uri for server in both)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert not done.returncode, done.stderr[-4_000:]
    found = json.loads(done.stdout.splitlines()[-1])
    rows: Counter[str] = Counter()
    for each in found:
        rows[each["partition"]] += each["rows"]
    assert rows == dict.fromkeys("0123", 1_000)
    assert len({each["executor"] for each in found}) == 2


@pytest.mark.heavy
def test_a_query_goes_on_without_a_server_that_is_away(
    spark: Any, tmp_path: Path, both: list[Served]
) -> None:
    """With failOnDataLoss=false. The rows of the server are read when it is back, each once."""
    uri = ",".join(server.uri for server in both)

    def run(**options: str) -> Counter[str]:
        writer = into_parquet(spark, uri, tmp_path, 10_000, failOnDataLoss="false", **options)
        writer.trigger(availableNow=True).start().awaitTermination()
        rows = spark.read.parquet(str(tmp_path / "out")).groupBy("partition").count().collect()
        return Counter({row["partition"]: row["count"] for row in rows})

    assert run() == dict.fromkeys("0123", 1_000)
    both[0].grow(1_500)
    both[1].grow(1_200)
    both[1].kill()
    assert run() == {"0": 1_500, "1": 1_500, "2": 1_000, "3": 1_000}
    both[1].start()
    assert run() == {"0": 1_500, "1": 1_500, "2": 1_200, "3": 1_200}
