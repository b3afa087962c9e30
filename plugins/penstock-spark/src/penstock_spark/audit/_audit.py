"""`audit`: judge the record in a folder, and return a report. `Audit` does it again and again, for
a record that grows.
"""

import os
from typing import Any, Final

from penstock.api import UsageError
from penstock_spark.audit._folder import folder_of
from penstock_spark.audit._job import Judging, pieces_of, whole_files
from penstock_spark.audit._record_files import SparkFiles, record_files
from penstock_spark.audit._report import Index, report_of
from penstock_spark.audit._spark_run import Progress, SparkFilesRun, SparkRun

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

    `spark` is a session. `folder` is a path that its workers can read, or a URL that Spark can
    read, such as ``s3a://bucket/signals``, ``hdfs://…`` or ``file:/…``. Raises UsageError if there
    is nothing to judge, and names the file if one cannot be read, is of a newer version or no part
    of a record, or contradicts another one.
    """
    return Audit(spark, folder, stall_seconds=stall_seconds, progress=progress).update()


class Audit:
    """Judges a record that may grow: each `update` reads the files that are new.

    The arguments are those of `audit`. It keeps some 200 bytes for each subscription of a file.
    """

    def __init__(
        self,
        spark: Any,
        folder: str | os.PathLike[str],
        *,
        stall_seconds: float = STALL_SECONDS,
        progress: Progress = lambda *_: None,
    ) -> None:
        if stall_seconds <= 0:
            raise UsageError(
                f"stall_seconds is {stall_seconds!r}; give a positive number of seconds"
            )
        self._files = record_files(spark, folder)
        run = (
            SparkFilesRun(spark, self._files, progress)
            if isinstance(self._files, SparkFiles)
            else SparkRun(spark, progress)
        )
        self._stall_seconds = stall_seconds
        self._index = Index()
        self._judging = Judging(run, stall_ns=int(stall_seconds * 1e9))
        self._known: set[str] = set()
        self._violations: list[dict[str, Any]] = []

    def update(self) -> dict[str, Any]:
        """Read what is new, and return the report of all so far. Raises UsageError as `audit`
        does.
        """
        found = folder_of(self._files)
        signals, subscriptions = (
            [path for path in paths if path not in self._known]
            for paths in (found.signals, found.subscriptions)
        )
        self._index.add(self._files.read(subscriptions))
        self._judging.add(pieces_of(signals) if self._files.is_local else whole_files(signals))
        self._known |= {*signals, *subscriptions}
        judged = self._judging.judged()
        self._violations = [self._index.with_names(each) for each in judged.violations]
        return report_of(judged, self._index, found.processes, self._stall_seconds)

    @property
    def violations(self) -> list[dict[str, Any]]:
        """All violations of the last report: one for each stream and rule. A report lists 100 of
        each rule.
        """
        return self._violations
