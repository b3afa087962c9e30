"""Spark Connect: the source, the sink, a published DataFrame and the audit work without a
SparkContext.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from _server import served

pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")


@pytest.mark.heavy
def test_each_part_works_over_spark_connect(tmp_path: Path) -> None:
    """The test runs another program, because a process has one kind of session."""
    (tmp_path / "log").mkdir()
    program = Path(__file__).with_name("_connect_program.py")
    with served(tmp_path / "log", count=2_000) as server:
        done = subprocess.run(
            [sys.executable, program, tmp_path, server.uri],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert not done.returncode, done.stderr[-4_000:]
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    session, *parts = found
    assert session == {"session": "pyspark.sql.connect.session"}
    audited = parts.pop()
    assert parts == [{"written": 30}, {"copied": 4_000}, {"published": ["0", "1", "2"]}]
    assert audited["violations"] == {}
    assert audited["is_same"]  # as a URL, which Spark reads
    assert audited["audited"] >= 3
