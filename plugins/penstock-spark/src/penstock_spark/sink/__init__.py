"""The sink: ``format("penstock")`` of ``writeStream`` and ``write``. The receiving side is a
service with `penstock.receive`.

Spark's workers import this package.
"""

from penstock_spark.sink._elements import check_columns, check_sizes, encoder_of
from penstock_spark.sink._settings import SINK_OPTIONS, SinkSettings
from penstock_spark.sink._writers import (
    BatchWriter,
    Staged,
    StreamWriter,
    batch_writer,
    stream_writer,
)

__all__ = [
    "SINK_OPTIONS",
    "BatchWriter",
    "SinkSettings",
    "Staged",
    "StreamWriter",
    "batch_writer",
    "check_columns",
    "check_sizes",
    "encoder_of",
    "stream_writer",
]
