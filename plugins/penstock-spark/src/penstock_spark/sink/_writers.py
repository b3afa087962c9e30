"""The writers that Spark calls: `write` on the executors, `commit` and `abort` on the driver.

Rules of this file:

* Spark pickles a writer to each task, and makes a new one to commit or to abort. So nothing but the
  settings and the messages of the tasks survives: they name the query, the batch and the run.
* Each batch is committed, also one without rows: the receiver refuses a batch whose predecessor it
  does not have. Spark runs a task for each batch, also for one without partitions.
* A task that is repeated stages again, under another name.
  The driver commits one attempt of each partition.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from penstock.api import PenstockError, UsageError
from penstock_spark.sink._elements import all_elements
from penstock_spark.sink._records import checked, record_encoder
from penstock_spark.sink._settings import SinkSettings
from penstock_spark.sink._staging import TaskId, abort, commit, stage

# pyspark 4.0 lacks this class: there `PenstockDataSource` refuses the query, and `write` works.
_StreamArrowWriter: Any = getattr(datasource, "DataSourceStreamArrowWriter", object)

BATCH_ID = "streaming.sql.batchId"
QUERY_ID = "sql.streaming.queryId"


@dataclass
class Staged(WriterCommitMessage):  # type: ignore[misc]  # pyspark is not installed for the check
    """What one task has staged."""

    query: str
    batch: int
    run: str
    partition: int
    attempt: str
    elements: int
    is_staged: bool


def stream_writer(
    given: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> "StreamWriter":
    """Return the writer of one batch of a streaming query.
    Raises UsageError for options and columns that do not fit.
    """
    if overwrite:
        raise UsageError(
            'outputMode("complete") replaces what was written, and a log cannot do that: use '
            'outputMode("append"), or foreachBatch, which gets the whole result of each batch'
        )
    return StreamWriter(_settings(given, schema), uuid4().hex)


def batch_writer(given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> "BatchWriter":
    """Return the writer of a DataFrame.
    Raises UsageError for options and columns that do not fit.
    """
    if overwrite:
        raise UsageError(
            'mode("overwrite") replaces what was written, and a log cannot do that: use '
            'mode("append")'
        )
    return BatchWriter(_settings(given, schema), uuid4().hex)


class StreamWriter(_StreamArrowWriter):  # type: ignore[misc]  # pyspark is not installed for the check
    """Writes one batch of a streaming query."""

    def __init__(self, settings: SinkSettings, run: str) -> None:
        self._settings = settings
        self._run = run

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        context = _context()
        query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
        if query is None or batch is None:
            raise UsageError(
                f"Spark gives this task no {QUERY_ID} or no {BATCH_ID}: use another version of "
                "pyspark"
            )
        return _write(self._settings, context, iterator, query, int(batch), self._run)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  # Spark's name
        _commit(self._settings, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  # Spark's name
        _abort(self._settings, messages)


class BatchWriter(DataSourceArrowWriter):  # type: ignore[misc]  # pyspark is not installed for the check
    """Writes a DataFrame, as one batch."""

    def __init__(self, settings: SinkSettings, run: str) -> None:
        self._settings = settings
        self._run = run

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        return _write(
            self._settings, _context(), iterator, self._settings.write_id or self._run, 0, self._run
        )

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _commit(self._settings, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        _abort(self._settings, messages)


def _settings(given: Mapping[str, str], schema: StructType) -> SinkSettings:
    columns = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    return checked(SinkSettings.of(given), columns)


def _context() -> Any:
    context = TaskContext.get()
    if context is None:
        raise UsageError("a writer of the sink runs in a task of Spark only")
    return context


def _write(
    settings: SinkSettings,
    context: Any,
    batches: Iterator[pa.RecordBatch],
    query: str,
    batch: int,
    run: str,
) -> Staged:
    # The number of an attempt begins at 0 again in each driver: the run makes the name unique.
    task = TaskId(query, batch, run, context.partitionId(), f"{run}-{context.taskAttemptId()}")
    answer = stage(settings, task, all_elements(batches, record_encoder(settings)))
    return Staged(query, batch, run, task.partition, task.attempt, *answer)


def _staged(messages: Sequence[WriterCommitMessage | None]) -> list[Staged]:
    return [each for each in messages if isinstance(each, Staged)]


def _commit(settings: SinkSettings, messages: Sequence[WriterCommitMessage | None]) -> None:
    found = _staged(messages)
    # A receiver without transactions has taken what came.
    if found and all(each.is_staged for each in found):
        attempts = [
            (each.partition, each.attempt, each.elements) for each in found if each.elements
        ]
        commit(settings, found[0].query, found[0].batch, attempts)


def _abort(settings: SinkSettings, messages: Sequence[WriterCommitMessage | None]) -> None:
    found = [each for each in _staged(messages) if each.is_staged]
    if found:
        # The failure that Spark reports is that of the batch.
        # The receiver drops what was staged when it needs the room.
        with suppress(PenstockError):
            abort(settings, found[0].query, found[0].batch, found[0].run)
