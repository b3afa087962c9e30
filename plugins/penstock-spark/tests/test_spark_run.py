"""The audit on Spark itself: the same findings as the window job of Spark SQL,
and progress while it runs.
"""

from pathlib import Path
from random import Random
from typing import Any

from _traces import judge_plainly
from penstock_spark import _jobs
from penstock_spark.audit._job import judge, pieces_of
from penstock_spark.audit._spark_run import SparkRun
from penstock_spark.audit._window_job import judge_by_windows
from test_job import broken_trace


def test_both_jobs_find_the_same_in_random_traces(
    spark: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    """400 subscriptions, half of them with faults, some with lost rows."""
    random = Random(5)
    trace = broken_trace(random, 400)
    files = trace.write(tmp_path, random)
    monkeypatch.setattr(_jobs, "LOOK", 0.01)
    shown: list[tuple[str, int, int]] = []
    judged = judge(
        SparkRun(spark, lambda *step: shown.append(step)),
        pieces_of(map(Path, files)),
        stall_ns=1_000_000,
    )
    lines = [
        (each["process"], each["subscription"], each["rule"], each["seq"], each["count"])
        for each in judged.violations
    ]
    found = sorted(lines, key=lambda line: (line[0], line[1], line[3], line[2]))
    assert found == judge_by_windows(spark, files) == judge_plainly(trace)
    assert len(found) > 100
    assert {what for what, _, _ in shown} == {"reading", "looking at suspects"}
