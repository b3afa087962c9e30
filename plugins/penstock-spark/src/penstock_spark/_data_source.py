"""`format("penstock")`: what Spark makes for each `read`, `readStream`, `write` and `writeStream`."""

import sys

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from penstock_spark.source._readers import FilteringReader, PenstockReader, PenstockStreamReader
from penstock_spark.source._settings import SourceSettings


class PenstockDataSource(DataSource):  # type: ignore[misc]  # pyspark is not installed for the check
    """Reads logs of a Penstock server, with demand."""

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> str:
        return SourceSettings.of(self.options).row_schema

    def reader(self, schema: StructType) -> PenstockReader:
        # Spark pushes filters down in a process of this module, and only if its option is on.
        kind = FilteringReader if "pyspark.sql.worker.data_source_pushdown_filters" in sys.modules else PenstockReader
        return kind(SourceSettings.of(self.options), schema)

    def streamReader(self, schema: StructType) -> PenstockStreamReader:
        return PenstockStreamReader(SourceSettings.of(self.options), schema)
