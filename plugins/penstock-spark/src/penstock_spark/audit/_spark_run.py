"""Runs the work of the audit on Spark, and reports the progress."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pyarrow as pa

from penstock_spark._jobs import parallelism, progress
from penstock_spark.audit._job import Function, Work

PER_CORE: Final = 4
"""Tasks for each core: a slow one does not leave the other cores idle for long,
and the progress moves.
"""

Progress = Callable[[str, int, int], None]
"""Called with the name of the work, the number of its tasks that have ended,
and the number of all its tasks.
"""


class SparkRun:
    """Gives work to the workers of a session."""

    def __init__(self, spark: Any, progress: Progress) -> None:
        self._spark = spark
        self._progress = progress

    def __call__(self, work: Work, function: Function, types: str, what: str) -> pa.Table:
        """Return the rows of all work; `what` is shown with the progress."""
        rows = [(number, json.dumps(item)) for number, item in work]
        parts = max(1, min(len(rows), PER_CORE * parallelism(self._spark)))
        frame = self._spark.createDataFrame(rows, "number bigint, item string").repartition(parts)
        with progress(self._spark, partial(self._progress, what)):
            return frame.mapInArrow(function, types).toArrow()
