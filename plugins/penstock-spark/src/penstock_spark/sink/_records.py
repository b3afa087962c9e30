"""Columns that say where a row goes: its key, headers, partition and log. Rows with such columns
become records, as `penstock.receive` takes them.

Rules of this file:

* The columns have the names of Kafka's sink; its `topic` is `name` here. They belong to the format
  raw. A row of json has columns of any name, so an option names the one with the key.
* The receiver chooses the partition of a key: this side does not know its partitions.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, Final

import msgspec
import pyarrow as pa

from penstock.api import UsageError
from penstock_spark.sink._elements import check_columns, encoder_of
from penstock_spark.sink._settings import JSON, RAW, SinkSettings

PLACES: Final = {
    "key": ("binary", "string"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "partition": ("string", "int"),
    "name": ("string",),
}
"""The columns beside `value`, and their types."""

KEYS: Final = ("binary", "string", "int", "bigint")
"""The types of a `keyColumn`."""

MOST_HEADERS: Final = 64
"""Headers of a row, as the receiver allows."""

_encode = msgspec.msgpack.Encoder().encode


def checked(settings: SinkSettings, columns: Sequence[tuple[str, str]]) -> SinkSettings:
    """Return the settings for a DataFrame with these columns: names, and types as Spark's SQL has
    them. Raises UsageError for columns that cannot be written.
    """
    places: tuple[str, ...] = ()
    if settings.value_format == RAW:
        places = tuple(name for name, _ in columns if name in PLACES)
        for name, kind in columns:
            if name in PLACES and kind not in PLACES[name]:
                raise UsageError(
                    f"the column {name} is {kind}, and the sink takes {' or '.join(PLACES[name])}: "
                    "cast it, or leave it out"
                )
    check_columns([each for each in columns if each[0] not in places], settings.value_format)
    if settings.key_column:
        _check_key(settings, columns)
        places = (settings.key_column,)
    return settings._replace(places=places)


def record_encoder(settings: SinkSettings) -> Callable[[pa.RecordBatch], Sequence[bytes]]:
    """Return what makes the elements of a batch of rows: values, or records."""
    encode = encoder_of(settings.value_format)
    if not settings.places:
        return encode
    if settings.value_format == JSON:
        return lambda batch: _packed(encode(batch), _bytes(batch, settings.key_column))
    return lambda batch: _raw_records(encode(batch.select(["value"])), batch)


def _raw_records(values: Sequence[bytes], batch: pa.RecordBatch) -> list[bytes]:
    keys = _bytes(batch, "key")
    found = set(batch.schema.names)
    # Most rows have a key only.
    if found <= {"value", "key"}:
        return _packed(values, keys)
    return _packed(values, keys, _headers(batch), _texts(batch, "partition"), _texts(batch, "name"))


def _packed(values: Sequence[bytes], *fields: Iterable[Any]) -> list[bytes]:
    # Without `strict`: a column that is not there is endless.
    return [*map(_encode, zip(values, *fields, strict=False))]


def _bytes(batch: pa.RecordBatch, name: str) -> Iterable[bytes | None]:
    if name not in batch.schema.names:
        return repeat(None)
    column = batch[name]
    if pa.types.is_integer(column.type):
        column = column.cast(pa.string())
    found: list[bytes | None] = column.cast(pa.large_binary()).to_pylist()
    return found


def _texts(batch: pa.RecordBatch, name: str) -> Iterable[str | None]:
    if name not in batch.schema.names:
        return repeat(None)
    found: list[str | None] = batch[name].cast(pa.string()).to_pylist()
    return found


def _headers(batch: pa.RecordBatch) -> Iterable[tuple[tuple[str, bytes | None], ...]]:
    if "headers" not in batch.schema.names:
        return repeat(())
    return [_headers_of(each or ()) for each in batch["headers"].to_pylist()]


def _headers_of(row: Sequence[dict[str, Any]]) -> tuple[tuple[str, bytes | None], ...]:
    headers = tuple((each["key"], each["value"]) for each in row)
    if len(headers) > MOST_HEADERS or any(name is None for name, _ in headers):
        raise UsageError(
            f"a row has {len(headers)} headers, and at most {MOST_HEADERS} can be written, each "
            "with a key: leave some of them out"
        )
    return headers


def _check_key(settings: SinkSettings, columns: Sequence[tuple[str, str]]) -> None:
    name = settings.key_column
    if settings.value_format != JSON:
        raise UsageError(
            "the option keyColumn belongs to valueFormat=json: raw has the key in its column key, "
            "and an element of arrow has many rows"
        )
    if (dict(columns).get(name) or "") not in KEYS:
        found = ", ".join(f"{each} {kind}" for each, kind in columns)
        raise UsageError(
            f"keyColumn={name} names no column of type {', '.join(KEYS)}; the DataFrame has: "
            f"{found}"
        )
