"""`audit`: judge the record in a folder, and return a report."""

import os
from typing import Any, Final

from penstock.api import UsageError
from penstock_spark.audit._folder import folder_of
from penstock_spark.audit._job import judge, pieces_of
from penstock_spark.audit._report import Index, report_of
from penstock_spark.audit._spark_run import Progress, SparkRun

STALL_SECONDS: Final = 1.0
"""A wait of this length is a stall, unless the caller says another."""


def audit(
    spark: Any,
    folder: str | os.PathLike[str],
    *,
    stall_seconds: float = STALL_SECONDS,
    progress: Progress = lambda *_: None,
) -> dict[str, Any]:
    """Judge the signals that were recorded in `folder`, and return the report as plain values.

    `spark` is a session; its workers must be able to read the folder. Raises UsageError if there is
    nothing to judge, and names the file if one cannot be read, is of a newer version or no part of
    a record, or contradicts another one.
    """
    if stall_seconds <= 0:
        raise UsageError(f"stall_seconds is {stall_seconds!r}; give a positive number of seconds")
    found = folder_of(folder)
    index = Index(found.subscriptions)
    judged = judge(
        SparkRun(spark, progress), pieces_of(found.signals), stall_ns=int(stall_seconds * 1e9)
    )
    return report_of(judged, index, found.processes, stall_seconds)
