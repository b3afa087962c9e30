"""The audit of a record that grows, as a streaming query of Spark.

Rules of this file:

* The query tells which files are new, with Spark's source of files; `Audit` reads them. The results
  so far are in memory only, so a new start judges the whole record again, and the query has a
  checkpoint that Spark deletes.
* The writer of a record renames a file when it is whole. So a file that the query sees is whole.
"""

import os
from collections.abc import Callable
from typing import Any, Final

from penstock.api import UsageError
from penstock_spark.audit._audit import STALL_SECONDS, Audit
from penstock_spark.audit._record_files import asked
from penstock_spark.audit._spark_run import Progress

COLUMNS: Final = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
"""Those of Spark's source of whole files."""

EVERY: Final = 10.0
"""Seconds between two looks for new files."""


class Following:
    """An audit that goes on. Its streaming query is `query`."""

    def __init__(self, auditing: Audit, show: Callable[[dict[str, Any], Audit], object]) -> None:
        self._auditing = auditing
        self._show = show
        self._error: UsageError | None = None
        self.query: Any = None

    def judge(self, _frame: Any, _number: int) -> None:
        """Judge what is new. Spark calls it with each batch."""
        try:
            self._show(self._auditing.update(), self._auditing)
        except UsageError as error:
            self._error = error
            raise

    def wait(self) -> None:
        """Wait until the query ends. Raises UsageError if it ended because the record cannot be
        judged.
        """
        try:
            self.query.awaitTermination()
        except Exception:  # boundary: Spark wraps what `judge` has raised
            if self._error is None:
                raise
        if self._error is not None:
            raise self._error


def follow(
    spark: Any,
    folder: str | os.PathLike[str],
    show: Callable[[dict[str, Any], Audit], object],
    *,
    every: float = EVERY,
    stall_seconds: float = STALL_SECONDS,
    progress: Progress = lambda *_: None,
) -> Following:
    """Start a streaming query that judges the record in `folder` while it grows. `show` gets each
    new report, and the `Audit` with all violations.

    The arguments are those of `audit`; `every` is how many seconds pass between two looks for new
    files. Raises UsageError for a session of Spark Connect: its server would have to run `show`.
    """
    if not every > 0:
        raise UsageError(f"every is {every!r}; give a positive number of seconds")
    if getattr(spark, "sparkContext", None) is None:
        raise UsageError(
            "a session of Spark Connect runs the functions of a streaming query on its server: "
            "call Audit(spark, folder).update() again and again there"
        )
    following = Following(
        Audit(spark, folder, stall_seconds=stall_seconds, progress=progress), show
    )
    url = os.fspath(folder)
    following.query = asked(
        url,
        lambda: (
            spark.readStream.format("binaryFile")
            .schema(COLUMNS)
            .option("pathGlobFilter", "signals-*.parquet")
            .load(url)
            .select("path")
            .writeStream.foreachBatch(following.judge)
            .queryName(f"penstock audit {url}")
            .trigger(processingTime=f"{round(every * 1000)} milliseconds")
            .start()
        ),
    )
    return following
