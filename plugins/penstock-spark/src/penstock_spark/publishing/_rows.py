"""The rows of a DataFrame in the driver's process, as lists of elements, computed as far as they are pulled.

`mapInArrow` makes the elements on the workers, and packs those of each batch of rows into one row, because a row of Spark costs Python much
more than an element.
`toLocalIterator` computes one partition at a time, when it is reached.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from penstock.api import UsageError
from penstock_spark.sink import check_columns, encoder_of

PACKED = "packed BINARY"


def check_format(frame: Any, value_format: str) -> None:
    """Raise UsageError for a DataFrame that cannot be written in this format."""
    if value_format not in ("raw", "json", "arrow"):
        raise UsageError(f"value_format={value_format!r}; give raw, json or arrow")
    if frame.isStreaming:
        raise UsageError("this DataFrame is of a streaming query: use foreach_batch, or the sink writeStream.format('penstock')")
    check_columns(frame.dtypes, value_format)


def lists_of(frame: Any, value_format: str) -> Iterator[list[bytes]]:
    """Yield the elements of `frame` in lists. Nothing is computed before the first one is pulled, and then one partition at a time."""
    packed = frame.mapInArrow(partial(pack, value_format), PACKED)
    # No prefetch: a partition is computed when the elements of those before it were pulled.
    for row in packed.toLocalIterator(prefetchPartitions=False):
        yield unpack(row[0])


def pack(value_format: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield a row for each batch, with its elements in it."""
    encode = encoder_of(value_format)
    for batch in batches:
        if batch.num_rows:
            elements = pa.array(encode(batch), pa.large_binary())
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, pa.schema([("elements", pa.large_binary())])) as writer:
                writer.write_batch(pa.record_batch([elements], names=["elements"]))
            yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], names=["packed"])


def unpack(packed: bytes) -> list[bytes]:
    """Return the elements of a row of `pack`."""
    with pa.ipc.open_stream(packed) as reader:
        found: list[bytes] = reader.read_all().column(0).to_pylist()
    return found
