"""What Spark calls for a streaming query, from pyspark 4.2 on: before that no source in Python can
bound a batch.
"""

from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from penstock_spark.source._offsets import Offset
from penstock_spark.source._readers import Reading, TaskPartition
from penstock_spark.source._settings import LATEST


class PenstockStreamReader(Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]  # as above
    """The reader of a streaming query."""

    def initialOffset(self) -> dict[str, Any]:
        return self.plan.initial(LATEST).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        if self.settings.max_elements is not None:
            return ReadMaxRows(self.settings.max_elements)
        if self.settings.max_bytes is not None:
            return ReadMaxBytes(self.settings.max_bytes)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        # Trigger.Once asks for everything in one batch, and then no limit of the options holds.
        takes_all = isinstance(limit, ReadAllAvailable) and not isinstance(
            self.getDefaultReadLimit(), ReadAllAvailable
        )
        before = Offset.from_json(start)
        after = self.plan.latest(before, is_limited=not takes_all)
        return start if after is before else after.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        newest = self.plan.newest()
        return None if newest is None else newest.to_json()

    def prepareForTriggerAvailableNow(self) -> None:
        self.plan.fix_target()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[TaskPartition]:
        return self.tasks(self.plan.ranges(Offset.from_json(start), Offset.from_json(end)))

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: the log keeps what its retention says."""

    def stop(self) -> None:
        self.plan.close()
