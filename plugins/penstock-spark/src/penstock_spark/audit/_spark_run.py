"""Runs the work of the audit on Spark, and reports the progress."""

import json
from collections.abc import Callable
from threading import Event, Thread
from typing import Any, Final

import pyarrow as pa

from penstock_spark.audit._job import Function, Work

PER_CORE: Final = 4
"""Tasks for each core: a slow one does not leave the other cores idle for long,
and the progress moves.
"""

LOOK: Final = 0.5
"""Seconds between two looks at the progress."""

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
        parts = max(1, min(len(rows), PER_CORE * self._spark.sparkContext.defaultParallelism))
        frame = self._spark.createDataFrame(rows, "number bigint, item string").repartition(parts)
        done = Event()
        watching = Thread(
            target=self._watch, args=(done, what), name="progress of the audit", daemon=True
        )
        watching.start()
        try:
            return frame.mapInArrow(function, types).toArrow()
        finally:
            done.set()
            watching.join()

    def _watch(self, done: Event, what: str) -> None:
        tracker = self._spark.sparkContext.statusTracker()
        while not done.wait(LOOK):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            known = [stage for stage in stages if stage is not None]
            if known:
                self._progress(
                    what,
                    sum(stage.numCompletedTasks for stage in known),
                    sum(stage.numTasks for stage in known),
                )
