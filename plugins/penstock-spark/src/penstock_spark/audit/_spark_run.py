"""Runs the work of the audit on Spark, and reports the progress."""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

import pyarrow as pa

from penstock_spark._jobs import parallelism, progress, settings
from penstock_spark.audit._job import Function, Work
from penstock_spark.audit._record_files import WHOLE_FILES, SparkFiles

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


class SparkFilesRun:
    """Gives work to the workers of a session, with the content of the files, which Spark reads."""

    def __init__(self, spark: Any, files: SparkFiles, progress: Progress) -> None:
        self._spark = spark
        self._files = files
        self._progress = progress

    def __call__(self, work: Work, function: Function, types: str, what: str) -> pa.Table:
        """Return the rows of all work; `what` is shown with the progress."""
        items: dict[str, list[tuple[int, str]]] = {}
        for number, item in work:
            items.setdefault(item[0], []).append((number, json.dumps(item)))
        frame = self._files.frame(items).select("path", "content")
        with (
            settings(self._spark, WHOLE_FILES),
            progress(self._spark, partial(self._progress, what)),
        ):
            return frame.mapInArrow(_WithContent(items, function), types).toArrow()


class _WithContent:
    """Gives a worker its work when a file has come; runs in the worker."""

    def __init__(self, items: dict[str, list[tuple[int, str]]], function: Function) -> None:
        self._items = items
        self._function = function

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self._function(self._work(batches))

    def _work(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for at, path in enumerate(batch.column(0).to_pylist()):
                # One piece at a time: their content is the same memory.
                for number, item in self._items[path]:
                    yield pa.RecordBatch.from_arrays(
                        [pa.array([number]), pa.array([item]), batch.column(1).slice(at, 1)],
                        names=["number", "item", "content"],
                    )
