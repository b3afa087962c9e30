"""Rows of Spark become elements: bytes, as the receiver gets them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pyarrow as pa

from penstock.api import UsageError
from penstock_spark._client import MOST_ELEMENT_BYTES
from penstock_spark.sink._json_elements import EXPRESSION, json_elements
from penstock_spark.sink._settings import ARROW, JSON, RAW

ARROW_BYTES: Final = 1_000_000
"""Bytes of an element with rows as Arrow, about, if the rows have the mean size. A connection
takes elements of up to 4 MiB.
"""

Encode = Callable[[pa.RecordBatch], Sequence[bytes]]


def check_columns(columns: Sequence[tuple[str, str]], value_format: str) -> None:
    """Raise UsageError for columns that the format cannot write.
    `columns` has names, and types as Spark's SQL has them.
    """
    names = [name for name, _ in columns]
    if value_format == RAW and (names != ["value"] or columns[0][1] not in ("binary", "string")):
        found = ", ".join(f"{name} {kind}" for name, kind in columns)
        raise UsageError(
            "the sink writes one column, value, of type binary or string, and the DataFrame has: "
            f"{found}. Make that column, as in "
            f'{EXPRESSION}, or give .option("valueFormat", "json") or "arrow" for all columns. '
            "A stream may have key, headers, partition and name beside it"
        )
    if not names or len({name.lower() for name in names}) < len(names):
        raise UsageError(
            f"the DataFrame has the columns {', '.join(names) or '(none)'}; it needs columns with "
            "different names"
        )


def encoder_of(value_format: str) -> Encode:
    """Return what makes the elements of a batch of rows."""
    return {RAW: raw_elements, JSON: json_elements, ARROW: arrow_elements}[value_format]


def raw_elements(batch: pa.RecordBatch) -> list[bytes]:
    """Return the values of the column ``value``. Raises UsageError for a null."""
    column = batch.column(0)
    if column.null_count:
        raise UsageError(
            "the column value has a null, and an element is never null (rule 2.13): leave such "
            "rows out, as in "
            'df.where("value IS NOT NULL")'
        )
    found: list[bytes] = column.cast(pa.large_binary()).to_pylist()
    return found


def arrow_elements(batch: pa.RecordBatch) -> list[bytes]:
    """Return the rows as Arrow IPC streams of about ARROW_BYTES each."""
    rows = max(1, batch.num_rows * ARROW_BYTES // max(1, batch.nbytes))
    return [
        element
        for at in range(0, batch.num_rows, rows)
        for element in _streams(batch.slice(at, rows))
    ]


def all_elements(batches: Iterator[pa.RecordBatch], encode: Encode) -> Iterator[Sequence[bytes]]:
    """Yield the elements of each batch, without empty lists."""
    for batch in batches:
        if batch.num_rows:
            yield encode(batch)


def check_sizes(elements: Sequence[bytes], first: int, where: str) -> None:
    """Raise UsageError for an element that no peer takes.
    `first` is the place of the first one in `where`.

    The connection refuses it as well, but only the other side
    and the log of this process learn why.
    """
    if max(map(len, elements), default=0) <= MOST_ELEMENT_BYTES:
        return
    place, size = next(
        (place, len(each))
        for place, each in enumerate(elements, first)
        if len(each) > MOST_ELEMENT_BYTES
    )
    raise UsageError(
        f"element {place:,} (from 0) of {where} has {size:,} bytes, and a peer takes at most "
        f"{MOST_ELEMENT_BYTES:,} (Limits.max_element): divide its row among several rows, or "
        "leave such rows out, as in "
        f'df.where("octet_length(value) <= {MOST_ELEMENT_BYTES}")'
    )


def _streams(batch: pa.RecordBatch) -> list[bytes]:
    """Return the rows as one stream, or as several
    if one would be larger than a connection takes.
    """
    element = _ipc(batch)
    # Rows may be much larger than the mean.
    if len(element) <= MOST_ELEMENT_BYTES or batch.num_rows == 1:
        return [element]
    half = batch.num_rows // 2
    return _streams(batch.slice(0, half)) + _streams(batch.slice(half))


def _ipc(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found
