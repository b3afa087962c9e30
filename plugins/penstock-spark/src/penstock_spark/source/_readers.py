"""What Spark calls for a batch query. The reader of a streaming query, which needs a newer pyspark,
is in `_stream_reader.py`.
"""

from collections.abc import Iterator, Sequence
from inspect import signature
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock_spark.source._counted_plan import CountedPlan
from penstock_spark.source._offsets import Range, pack_into_tasks
from penstock_spark.source._plan import Plan
from penstock_spark.source._range_reader import Task
from penstock_spark.source._settings import EARLIEST, SourceSettings

# pyspark 4.2 has this argument. Before, times were in UTC if nothing was said.
IN_UTC: Final[dict[str, Any]] = (
    {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
)


class TaskPartition(InputPartition):  # type: ignore[misc]  # pyspark is not installed for the check
    """The ranges of a task, as Spark sends them to it."""

    def __init__(self, parts: tuple[Range, ...], addresses: tuple[str, ...]) -> None:
        super().__init__(tuple(map(tuple, parts)))
        self.parts = parts
        self.addresses = addresses


class Reading:
    """What both readers have: settings for the executors, and a plan that stays on the driver."""

    def __init__(self, settings: SourceSettings, schema: StructType) -> None:
        self.settings = settings
        self._schema: pa.Schema = to_arrow_schema(schema, **IN_UTC)
        self._planned: Plan | CountedPlan | None = None

    @property
    def plan(self) -> Plan | CountedPlan:
        """The plan, which is made when it is first needed."""
        if self._planned is None:
            self._planned = (
                CountedPlan(self.settings) if self.settings.at_most_once else Plan(self.settings)
            )
        return self._planned

    def __getstate__(self) -> dict[str, Any]:
        # The connection of the driver stays on the driver.
        return self.__dict__ | {"_planned": None}

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the batches of one task. Called on an executor."""
        if isinstance(partition, TaskPartition):  # Spark makes an empty one for a query without any
            yield from Task(
                self.settings, self._schema, partition.parts, partition.addresses
            ).read()

    def tasks(self, ranges: Sequence[tuple[Range, tuple[str, ...]]]) -> list[TaskPartition]:
        """Return the tasks that read these ranges."""
        # A publisher that keeps nothing is waited for, so its task has no other range.
        least = len(ranges) if self.settings.at_most_once else self.settings.min_partitions
        return [TaskPartition(*each) for each in pack_into_tasks(ranges, least)]


class PenstockReader(Reading, DataSourceReader):  # type: ignore[misc]  # as above
    """The reader of a batch query.

    It has no pushFilters. Spark keeps the partitions of the first query on a DataFrame, and uses
    them for the later ones, also for those with other filters: each of them would get the rows that
    an earlier filter had left.
    """

    def partitions(self) -> list[TaskPartition]:
        try:
            return self.tasks(self.plan.whole(EARLIEST))
        finally:
            self.plan.close()
