"""Rows of Spark become elements: bytes, as the receiver gets them."""

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from penstock.api import UsageError
from penstock_spark.sink._settings import ARROW, JSON, RAW

ARROW_BYTES: Final = 1_000_000
"""Bytes of an element with rows as Arrow, about. A connection takes elements of up to 4 MiB."""

Encode = Callable[[pa.RecordBatch], Sequence[bytes]]

_EXPRESSION: Final = 'df.selectExpr("to_json(struct(*)) AS value")'


def check_columns(columns: Sequence[tuple[str, str]], value_format: str) -> None:
    """Raise UsageError for columns that the format cannot write. `columns` has names, and types as Spark's SQL has them."""
    names = [name for name, _ in columns]
    if value_format == RAW and (names != ["value"] or columns[0][1] not in ("binary", "string")):
        found = ", ".join(f"{name} {kind}" for name, kind in columns)
        raise UsageError(
            f"the sink writes one column, value, of type binary or string, and the DataFrame has: {found}. Make that column, as in "
            f'{_EXPRESSION}, or give .option("valueFormat", "json") or "arrow" for all columns'
        )
    if not names or len({name.lower() for name in names}) < len(names):
        raise UsageError(f"the DataFrame has the columns {', '.join(names) or '(none)'}; it needs columns with different names")


def encoder_of(value_format: str) -> Encode:
    """Return what makes the elements of a batch of rows."""
    return {RAW: raw_elements, JSON: json_elements, ARROW: arrow_elements}[value_format]


def raw_elements(batch: pa.RecordBatch) -> list[bytes]:
    """Return the values of the column ``value``. Raises UsageError for a null."""
    column = batch.column(0)
    if column.null_count:
        raise UsageError(
            "the column value has a null, and an element is never null (rule 2.13): leave such rows out, as in "
            'df.where("value IS NOT NULL")'
        )
    found: list[bytes] = column.cast(pa.large_binary()).to_pylist()
    return found


def json_elements(batch: pa.RecordBatch) -> list[bytes]:
    """Return a JSON object for each row."""
    return [json.dumps(row, default=_plain, ensure_ascii=False, separators=(",", ":")).encode() for row in batch.to_pylist()]


def arrow_elements(batch: pa.RecordBatch) -> list[bytes]:
    """Return the rows as Arrow IPC streams of about ARROW_BYTES each."""
    rows = max(1, batch.num_rows * ARROW_BYTES // max(1, batch.nbytes))
    return [_ipc(batch.slice(at, rows)) for at in range(0, batch.num_rows, rows)]


def all_elements(batches: Iterator[pa.RecordBatch], encode: Encode) -> Iterator[Sequence[bytes]]:
    """Yield the elements of each batch, without empty lists."""
    for batch in batches:
        if batch.num_rows:
            yield encode(batch)


def _ipc(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    raise UsageError(f"a value of type {type(value).__name__} has no JSON here: make the text yourself, as in {_EXPRESSION}")
