"""`audit`: judge the record in a folder, and return a report."""

import json
import os
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from penstock.api import UsageError
from penstock.recording import PACKED, SIGNALS, STREAM, SUBSCRIPTIONS, VERSION
from penstock_spark.audit._job import judge, pieces_of
from penstock_spark.audit._report import Index, report_of
from penstock_spark.audit._spark_run import Progress, SparkRun

STALL_SECONDS: Final = 1.0
"""A wait of this length is a stall, unless the caller says another."""


def audit(
    spark: Any, folder: str | os.PathLike[str], *, stall_seconds: float = STALL_SECONDS, progress: Progress = lambda *_: None
) -> dict[str, Any]:
    """Judge the signals that were recorded in `folder`, and return the report as plain values.

    `spark` is a session; its workers must be able to read the folder. Raises UsageError if there is nothing to judge, or the files are of
    another version or no record.
    """
    if stall_seconds <= 0:
        raise UsageError(f"stall_seconds is {stall_seconds!r}; give a positive number of seconds")
    path = Path(folder)
    files = files_of(path)
    processes = [_facts(file) for file in sorted(path.glob("process-*.json"))]
    judged = judge(SparkRun(spark, progress), pieces_of(files), stall_ns=int(stall_seconds * 1e9))
    return report_of(judged, Index(sorted(path.glob(f"{SUBSCRIPTIONS}-*.parquet"))), processes, stall_seconds)


def files_of(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the files of signals in `folder`. Raises UsageError if there are none, or if one is not a record. It needs no session."""
    path = Path(folder)
    files = sorted(path.glob(f"{SIGNALS}-*.parquet"))
    if not files:
        parts = len(list(path.glob("*.part")))
        hint = f" (there are {parts} files of processes that still run or were killed)" if parts else ""
        raise UsageError(f"there are no recorded signals in {path}{hint}; record some with: penstock record {path} -- COMMAND")
    for file in files:
        _check(file)
    return files


def _check(file: Path) -> None:
    """Raise UsageError if `file` does not have the columns of a record."""
    try:
        names = set(pq.read_schema(file).names)
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        raise UsageError(f"{file} cannot be read: {error}. Remove it, or record again") from None
    missing = sorted({*STREAM, *PACKED} - names)
    if missing:
        raise UsageError(f"{file} lacks the columns {', '.join(missing)}, so it is no record of signals")


def _facts(file: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {error}. Remove it, or record again") from None
    if facts.get("version", 0) > VERSION:
        raise UsageError(f"{file} is of version {facts['version']}, and this penstock-spark knows {VERSION}; install a newer one")
    return facts
