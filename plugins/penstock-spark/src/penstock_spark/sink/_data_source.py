"""The half of the data source that writes."""

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from penstock_spark.sink._writers import BatchWriter, StreamWriter, batch_writer, stream_writer


class Writes(DataSource):
    """What ``format("penstock")`` does with ``write`` and ``writeStream``."""

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:  # noqa: FBT001  # as Spark calls it
        return batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: FBT001, N802  # as Spark calls it
        return stream_writer(self.options, schema, overwrite=overwrite)
