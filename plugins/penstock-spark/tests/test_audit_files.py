"""A record in a file system that Spark alone reads: the same report, the rows of a table, and a
record that grows. Here with `file:`; campaigns/spark_bench/file_systems.py reads HDFS and S3.
"""

import json
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from _traces import ON_NEXT, ON_SUBSCRIBE, REQUEST, Signal, Trace, tell_process, tell_subscriptions
from penstock_spark.audit import Audit, audit, findings, follow
from penstock_spark.audit._record_files import SparkFiles, is_url
from test_job import broken_trace

from penstock.api import UsageError


@pytest.fixture(scope="module")
def record(tmp_path_factory: Any) -> Path:
    """200 subscriptions, half of them with faults, in several files and row groups; and a copy."""
    folder = tmp_path_factory.mktemp("record")
    random = Random(7)
    trace = broken_trace(random, 200)
    trace.write(folder, random, groups=3)
    tell_subscriptions(folder, trace)
    first = min(folder.glob("signals-*.parquet"))
    first.with_name("signals-0000000000000001-999999.parquet").write_bytes(first.read_bytes())
    return folder


def test_a_url_has_a_scheme() -> None:
    """The drive letter in a path of Windows is not one."""
    for url in ("s3a://bucket/signals", "hdfs://a:9000/x", "file:/data/x", "abfss://c@a.b/x"):
        assert is_url(url), url
    for path in ("signals", "/data/signals", "C:/signals", Path("x")):
        assert not is_url(path), path


@pytest.mark.heavy
def test_spark_reads_a_record_as_this_process_does(spark: Any, record: Path) -> None:
    """The same report, with names, copies and suspects; and the settings of the session stay."""
    before = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    auditing = Audit(spark, record.as_uri())
    report = auditing.update()
    assert report == audit(spark, record)
    assert report["lost"]["rows_twice"] > 0
    assert len(report["violations"]) == 5
    assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == before
    rows = findings(spark, auditing.violations, "a record", datetime.now(UTC)).collect()
    assert len(rows) == sum(each["subscriptions"] for each in report["violations"].values())
    assert {row.rule for row in rows} == set(report["violations"])
    assert all(row.record == "a record" and row.transcript for row in rows)


@pytest.mark.heavy
def test_the_files_of_a_url_are_checked(spark: Any, record: Path, tmp_path: Path) -> None:
    """A damaged file of signals and one of subscriptions are named; so is a folder that is not
    there, one without signals, and a file system that the session does not have.
    """
    missing = (tmp_path / "missing").as_uri()
    for folder, text in (
        (missing, f"Spark cannot read {missing}"),
        ("nosuch://bucket/x", "Spark cannot read nosuch://bucket/x.*No FileSystem for scheme"),
    ):
        with pytest.raises(UsageError, match=text):
            audit(spark, folder)
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "else.txt").write_text("x")
    with pytest.raises(UsageError, match=r"no recorded signals in .*copy its files here"):
        audit(spark, copy.as_uri())
    for name in ("signals", "subscriptions"):
        for file in record.glob("*"):
            (copy / file.name).write_bytes(file.read_bytes())
        broken = min(copy.glob(f"{name}-*.parquet"))
        broken.write_bytes(broken.read_bytes()[:-50])
        with pytest.raises(UsageError, match=f"{broken.name} cannot be read"):
            audit(spark, copy.as_uri())
        pq.write_table(pq.read_table(min(record.glob("signals-*"))).select(["kind"]), broken)
        with pytest.raises(UsageError, match=f"{broken.name} lacks the columns"):
            audit(spark, copy.as_uri())
        broken.write_bytes(min(record.glob(f"{name}-*.parquet")).read_bytes())


@pytest.mark.heavy
def test_a_record_that_grows_is_judged_file_by_file(spark: Any, tmp_path: Path) -> None:
    """The breach of a stream is in the second file, and its demand in the first one: the report of
    the streaming query has it when the second one is there. Nothing is judged twice.
    """
    whole, live = tmp_path / "whole", tmp_path / "live"
    whole.mkdir()
    live.mkdir()
    trace = Trace()
    trace.add([Signal(ON_SUBSCRIBE), Signal(REQUEST, 2), *[Signal(ON_NEXT, 1)] * 60])
    trace.write(whole, Random(3), groups=8)
    tell_subscriptions(whole, trace)
    tell_process(whole, rows=62)
    files = sorted(whole.glob("signals-*.parquet"))
    for file in whole.iterdir():
        if file not in files:
            (live / file.name).write_bytes(file.read_bytes())
    reports: list[dict[str, Any]] = []
    new = threading.Event()

    def show(report: dict[str, Any], auditing: Audit) -> None:
        reports.append(report)
        new.set()

    os.link(files[0], live / files[0].name)
    following = follow(spark, live.as_uri(), show, every=0.1)
    try:
        for file in files[1:]:
            assert new.wait(120)
            new.clear()
            os.link(file, live / file.name)
        while reports[-1]["rows"] < 62:
            assert new.wait(120)
            new.clear()
    finally:
        following.query.stop()
    following.wait()
    assert [each["rows"] for each in reports] == sorted({each["rows"] for each in reports})
    assert reports[-1] == audit(spark, whole)
    assert reports[-1]["violations"]["1.1"]["rows"] == 58


def test_a_mistake_ends_the_query(spark: Any, record: Path, tmp_path: Path) -> None:
    """With the text of the audit, and not that of Spark."""
    broken = tmp_path / min(record.glob("signals-*")).name
    broken.write_bytes(b"no Parquet")
    following = follow(spark, tmp_path.as_uri(), lambda *_: None, every=0.1)
    with pytest.raises(UsageError, match=f"{broken.name} cannot be read"):
        following.wait()
    with pytest.raises(UsageError, match="positive number of seconds"):
        follow(spark, tmp_path, lambda *_: None, every=0)


@pytest.mark.heavy
def test_the_command_writes_rows_of_a_table(record: Path, tmp_path: Path) -> None:
    """--table and --output get a row for each stream and rule; --json - prints the report alone."""
    command = [sys.executable, "-m", "penstock", "audit", record.as_uri(), "--json", "-"]
    command += ["--table", "breaches", "--output", (tmp_path / "rows").as_uri(), "--quiet"]
    command += ["--conf", f"spark.sql.warehouse.dir={tmp_path / 'warehouse'}"]
    command += ["--conf", "spark.sql.catalogImplementation=in-memory", "--master", "local[2]"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    count = sum(each["subscriptions"] for each in report["violations"].values())
    for folder in (tmp_path / "rows", tmp_path / "warehouse/breaches"):
        table = pq.read_table(folder)
        assert table.num_rows == count
        assert set(table["rule"].to_pylist()) == set(report["violations"])
        assert table["record"][0].as_py() == record.as_uri()


def test_files_are_asked_for_some_at_a_time(spark: Any, record: Path, monkeypatch: Any) -> None:
    """The driver does not hold all of them."""
    monkeypatch.setattr("penstock_spark.audit._record_files.AT_ONCE", 2)
    files = SparkFiles(spark, record.as_uri())
    paths = files.paths()
    found = dict(files.read(paths))
    assert len(found) == len(paths) == len([*record.iterdir()])
    for path, content in found.items():
        assert content.to_pybytes() == (record / path.rpartition("/")[2]).read_bytes()
