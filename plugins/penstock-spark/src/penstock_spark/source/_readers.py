"""What Spark calls: the reader of a streaming query, and that of a batch query."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from penstock_spark.source._counted_plan import CountedPlan
from penstock_spark.source._offsets import Offset, Range, pack_into_tasks
from penstock_spark.source._plan import Plan
from penstock_spark.source._range_reader import Task
from penstock_spark.source._settings import EARLIEST, LATEST, SourceSettings


class TaskPartition(InputPartition):  # type: ignore[misc]  # pyspark is not installed for the check
    """The ranges of a task, as Spark sends them to it."""

    def __init__(self, parts: tuple[Range, ...], addresses: tuple[str, ...]) -> None:
        super().__init__(tuple(map(tuple, parts)))
        self.parts = parts
        self.addresses = addresses


class _Reading:
    """What both readers have: settings for the executors, and a plan that stays on the driver."""

    def __init__(self, settings: SourceSettings, schema: StructType) -> None:
        self._settings = settings
        self._schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self._planned: Plan | CountedPlan | None = None

    @property
    def _plan(self) -> Plan | CountedPlan:
        if self._planned is None:
            self._planned = (
                CountedPlan(self._settings) if self._settings.at_most_once else Plan(self._settings)
            )
        return self._planned

    def __getstate__(self) -> dict[str, Any]:
        # The connection of the driver stays on the driver.
        return self.__dict__ | {"_planned": None}

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the batches of one task. Called on an executor."""
        if isinstance(partition, TaskPartition):  # Spark makes an empty one for a query without any
            yield from Task(
                self._settings, self._schema, partition.parts, partition.addresses
            ).read()

    def _tasks(self, ranges: Sequence[tuple[Range, tuple[str, ...]]]) -> list[TaskPartition]:
        # A publisher that keeps nothing is waited for, so its task has no other range.
        least = len(ranges) if self._settings.at_most_once else self._settings.min_partitions
        return [TaskPartition(*each) for each in pack_into_tasks(ranges, least)]


class PenstockStreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]  # as above
    """The reader of a streaming query."""

    def initialOffset(self) -> dict[str, Any]:
        return self._plan.initial(LATEST).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._settings.max_elements is not None:
            return ReadMaxRows(self._settings.max_elements)
        if self._settings.max_bytes is not None:
            return ReadMaxBytes(self._settings.max_bytes)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        # Trigger.Once asks for everything in one batch, and then no limit of the options holds.
        takes_all = isinstance(limit, ReadAllAvailable) and not isinstance(
            self.getDefaultReadLimit(), ReadAllAvailable
        )
        before = Offset.from_json(start)
        after = self._plan.latest(before, is_limited=not takes_all)
        return start if after is before else after.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        newest = self._plan.newest()
        return None if newest is None else newest.to_json()

    def prepareForTriggerAvailableNow(self) -> None:
        self._plan.fix_target()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[TaskPartition]:
        return self._tasks(self._plan.ranges(Offset.from_json(start), Offset.from_json(end)))

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: the log keeps what its retention says."""

    def stop(self) -> None:
        self._plan.close()


class PenstockReader(_Reading, DataSourceReader):  # type: ignore[misc]  # as above
    """The reader of a batch query.

    It has no pushFilters. Spark keeps the partitions of the first query on a DataFrame, and uses
    them for the later ones, also for those with other filters: each of them would get the rows that
    an earlier filter had left.
    """

    def partitions(self) -> list[TaskPartition]:
        try:
            return self._tasks(self._plan.whole(EARLIEST))
        finally:
            self._plan.close()
