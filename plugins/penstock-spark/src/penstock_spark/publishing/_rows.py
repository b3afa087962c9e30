"""The rows of a DataFrame in the driver's process, as lists of elements, computed when they are
pulled.

`mapInArrow` makes the elements on the workers, and packs those of each batch of rows into one row,
because a row of Spark costs Python much more than an element.
If a worker finds a row that cannot be an element, the packed row has the text of the error: Spark
would bury it in a text of Java. `toLocalIterator` computes one partition at a time, when it is
reached.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

import pyarrow as pa

from penstock.api import UsageError
from penstock_spark.sink import check_columns, encoder_of

PACKED = "packed BINARY"

ELEMENTS: Final = "elements"
"""The name of the column if a packed row has elements."""

FAILED: Final = "failed"
"""Its name if the row has the text of an error."""


def check_format(frame: Any, value_format: str) -> None:
    """Raise UsageError for a DataFrame that cannot be written in this format."""
    if value_format not in ("raw", "json", "arrow"):
        raise UsageError(f"value_format={value_format!r}; give raw, json or arrow")
    if frame.isStreaming:
        raise UsageError(
            "this DataFrame is of a streaming query: use foreach_batch, or the sink "
            "writeStream.format('penstock')"
        )
    check_columns(frame.dtypes, value_format)


def lists_of(frame: Any, value_format: str) -> Iterator[list[bytes]]:
    """Yield the elements of `frame` in lists. Nothing is computed before the first one is
    pulled, and then one partition at a time.
    """
    packed = frame.mapInArrow(partial(pack, value_format), PACKED)
    # No prefetch: a partition is computed when the elements of those before it were pulled.
    for row in packed.toLocalIterator(prefetchPartitions=False):
        yield unpack(row[0])


def pack(value_format: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield a row for each batch, with its elements in it."""
    encode = encoder_of(value_format)
    for batch in batches:
        if batch.num_rows:
            try:
                elements = encode(batch)
            except UsageError as error:
                yield _packed(pa.array([str(error)], pa.string()), FAILED)
                return
            yield _packed(pa.array(elements, pa.large_binary()), ELEMENTS)


def unpack(packed: bytes) -> list[bytes]:
    """Return the elements of a row of `pack`. Raises UsageError if a worker could not make them."""
    with pa.ipc.open_stream(packed) as reader:
        table = reader.read_all()
    found: list[Any] = table.column(0).to_pylist()
    if table.schema.names == [FAILED]:
        raise UsageError(found[0])
    return found


def _packed(values: pa.Array, name: str) -> pa.RecordBatch:
    batch, sink = pa.record_batch([values], names=[name]), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.record_batch(
        [pa.array([sink.getvalue().to_pybytes()], pa.binary())], names=["packed"]
    )
