"""Rows of Spark become JSON objects.

Rules of this file:

* Maps are objects and bytes are base64, as in Spark's ``to_json``.
  Decimals, dates and times are texts.
* What JSON does not have is refused, and the error names the column. ``to_json`` writes a NaN as
  the text "NaN", which only ``from_json`` takes for a number.
"""

import base64
import json
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any, Final

import pyarrow as pa

from penstock.api import UsageError

EXPRESSION: Final = 'df.selectExpr("to_json(struct(*)) AS value")'
"""What makes a text of each row in Spark."""

_KEYS: Final = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
)
"""Types of the keys of a map that can be written."""


def json_elements(batch: pa.RecordBatch) -> list[bytes]:
    """Return a JSON object for each row.
    Raises UsageError for values that JSON does not have, and names their column.
    """
    with_maps = [field for field in batch.schema if _has_maps(field)]
    rows = batch.to_pylist()
    for field in with_maps:
        for row in rows:
            row[field.name] = _with_objects(row[field.name], field.type, field.name)
    try:
        return [
            json.dumps(
                row, default=_plain, allow_nan=False, ensure_ascii=False, separators=(",", ":")
            ).encode()
            for row in rows
        ]
    except (ValueError, _NoJson) as error:
        # Only now, because a look at each value would cost more than the rest.
        raise _told(rows, batch.schema.names, error) from None


class _NoJson(Exception):
    """A value of a type that has no JSON here.
    It becomes a UsageError with the name of the column.
    """


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        # Not str(): that of a zero with ten places is 0E-10.
        return f"{value:f}"
    raise _NoJson(type(value).__name__)


def _told(rows: Sequence[dict[str, Any]], names: Sequence[str], error: Exception) -> UsageError:
    """Return the error for the first value of `rows` that has no JSON."""
    for name in names:
        for row in rows:
            try:
                json.dumps(row[name], default=_plain, allow_nan=False)
            except ValueError:
                return UsageError(
                    f"the column {name} has a NaN or an Infinity, which JSON does not have: write "
                    "a null or another value, as in "
                    f"CASE WHEN abs({name}) < double('Infinity') THEN {name} END; or make the "
                    f"text yourself, as in {EXPRESSION}, which writes them as texts"
                )
            except _NoJson as kind:
                return UsageError(
                    f"the column {name} has a value of type {kind}, which has no JSON here: make "
                    f"the text yourself, as in {EXPRESSION}"
                )
    return UsageError(f"a row has no JSON: {error}")


def _has_maps(field: pa.Field) -> bool:
    kind = field.type
    return pa.types.is_map(kind) or any(
        _has_maps(kind.field(index)) for index in range(kind.num_fields)
    )


def _with_objects(value: Any, kind: pa.DataType, column: str) -> Any:
    """Return `value` with a dictionary for each map in it,
    which Arrow gives out as a list of pairs.
    """
    if value is None:
        return None
    if pa.types.is_map(kind):
        if not any(is_type(kind.key_type) for is_type in _KEYS):
            raise UsageError(
                f"the column {column} has a map whose keys are of type {kind.key_type}, and keys "
                "of a JSON object are texts: make them STRING or a number"
            )
        return {
            _key(key, column): _with_objects(each, kind.item_type, column) for key, each in value
        }
    if pa.types.is_list(kind):
        return [_with_objects(each, kind.value_type, column) for each in value]
    if pa.types.is_struct(kind):
        return {field.name: _with_objects(value[field.name], field.type, column) for field in kind}
    return value


def _key(key: Any, column: str) -> str:
    # Python would write NaN and Infinity by name.
    if isinstance(key, float) and not isfinite(key):
        raise UsageError(
            f"the column {column} has a map with the key {key}, and a number of JSON is finite: "
            "leave such keys out"
        )
    return f"{key:f}" if isinstance(key, Decimal) else str(key)
