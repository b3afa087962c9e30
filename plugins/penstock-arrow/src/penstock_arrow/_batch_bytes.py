"""A record batch as bytes: one stream of Arrow's IPC format.

Rules of this file:

* Each element has its schema: it can be read by itself, and a publisher may change the schema.
* The bytes come from a peer, and pyarrow trusts them: it follows offsets that lead out of a buffer,
  and inflates what is compressed. So compressed buffers are refused before the batch is read, and
  the batch is validated in full.
* A batch refers to the received bytes. They also bound its rows: a column of nulls would have 2^63
  rows and no bytes.
"""

from typing import Any, Final

import pyarrow as pa

from penstock.api import ProtocolError, UsageError
from penstock.spi import WrongElementType
from penstock_arrow._messages import is_compressed

ROWS_PER_BYTE: Final = 8
"""A column of bools has a bit for each row. No column with values has less, but for one whose
values are run-end encoded.
"""

BROKEN: Final = (
    pa.ArrowException,
    OSError,
    ValueError,
    TypeError,
    LookupError,
    MemoryError,
    OverflowError,
)
"""Raised by pyarrow for bytes that it cannot read."""

_WRITING: Final = pa.ipc.IpcWriteOptions(compression=None)
_READING: Final = pa.ipc.IpcReadOptions(use_threads=False)


def written(batch: object) -> bytes:
    """Return the bytes of a record batch. Raises WrongElementType and UsageError."""
    if not isinstance(batch, pa.RecordBatch):
        raise WrongElementType(
            f"the serializer 'arrow' was given a {type(batch).__name__}",
            "give a pyarrow.RecordBatch; those of a Table are table.to_batches()",
        )
    sink = pa.BufferOutputStream()
    try:
        with pa.ipc.new_stream(sink, batch.schema, options=_WRITING) as writer:
            writer.write_batch(batch)
    except BROKEN as error:
        raise UsageError(
            f"the serializer 'arrow' cannot write the record batch: {error}"
        ) from error
    data: bytes = sink.getvalue().to_pybytes()
    if batch.num_rows > len(data) * ROWS_PER_BYTE:
        raise UsageError(
            f"a record batch of {batch.num_rows:,} rows in {len(data):,} bytes would be "
            "refused; send fewer rows in each"
        )
    return data


def read(data: bytes) -> object:
    """Return the record batch in `data`. Raises ProtocolError."""
    try:
        batch = _read(pa.py_buffer(data))
        # This check comes before the validation, which looks at each row.
        if batch.num_rows > len(data) * ROWS_PER_BYTE:
            raise ValueError(f"it claims {batch.num_rows:,} rows in {len(data):,} bytes")
        # Without this a hostile offset is followed when a value is looked at.
        batch.validate(full=True)
        _check_fields(batch.schema)
    except BROKEN as error:
        raise ProtocolError(f"the element is no record batch: {error}") from None
    return batch


def _check_fields(schema: Any) -> None:
    """Raise ValueError if the name of a column, or of a field in one, is not UTF-8, or if pyarrow
    has no class for its values, as for intervals of months. Either would be raised where the
    program looks at the column.
    """
    left = [*schema]
    while left:
        field = left.pop()
        field.name  # noqa: B018  # decodes it
        kind = field.type
        for each in (kind, kind.value_type) if isinstance(kind, pa.DictionaryType) else (kind,):
            try:
                pa.nulls(0, each)
            except LookupError:
                raise ValueError(f"pyarrow has no values of the type {each}") from None
        left += (kind.field(index) for index in range(kind.num_fields))


def _read(buffer: Any) -> Any:
    """Return the only batch in `buffer`. Raises what pyarrow raises, and ValueError."""
    batches = 0
    for message in pa.ipc.MessageReader.open_stream(pa.BufferReader(buffer)):
        if is_compressed(memoryview(message.metadata)):
            raise ValueError("it is compressed, or may be (custom metadata before version 5)")
        batches += message.type == "record batch"
        if batches > 1:
            raise ValueError("it has more than one batch")
    if not batches:
        raise ValueError("it has no batch")
    source = pa.BufferReader(buffer)
    reader = pa.ipc.open_stream(source, options=_READING)
    batch = reader.read_next_batch()
    # The stream is read to its end: bytes after it are found by the place that is reached.
    for _ in reader:
        raise ValueError("it has more than one batch")
    if source.tell() != buffer.size:
        raise ValueError(f"{buffer.size - source.tell():,} bytes are behind the batch")
    return batch
