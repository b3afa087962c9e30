"""A value fits its column, or is refused: nothing is cut, and no number becomes a date."""

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from penstock_spark.source._convert_value import convert_value
from penstock_spark.source._decode import decoder_of

from penstock.api import ProtocolError

UTC_TIME = pa.timestamp("us", tz="UTC")
MAP = pa.map_(pa.string(), pa.int64())
NOON = dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)
FITTING = [
    (5, pa.int64(), 5),
    (5, pa.float64(), 5.0),
    (1.1, pa.decimal128(10, 2), Decimal("1.10")),
    ("1.10", pa.decimal128(10, 2), Decimal("1.10")),
    ("2026-01-02", pa.date32(), dt.date(2026, 1, 2)),
    ("2026-01-02T13:00:00+01:00", UTC_TIME, NOON),
    ("2026-01-02 12:00:00", UTC_TIME, NOON),
    ("2026-01-02T12:00:00Z", pa.timestamp("us"), NOON.replace(tzinfo=None)),
    ({"a": 1}, MAP, [("a", 1)]),
    (
        [{"b": "2026-01-02"}],
        pa.list_(pa.struct([pa.field("b", pa.date32())])),
        [{"b": dt.date(2026, 1, 2)}],
    ),
]
UNFIT = [
    (1.5, pa.int64()),
    (True, pa.int64()),
    (True, pa.float64()),
    (True, pa.decimal128(10, 2)),
    ("no", pa.decimal128(10, 2)),
    (5, pa.date32()),
    ("2026-02-30", pa.date32()),
    (5, UTC_TIME),
    ("soon", UTC_TIME),
    ("2026-01-02T12:00:00.1234567", UTC_TIME),
    ([1], MAP),
    ({"a": 1.5}, MAP),
    ({"a": 1}, pa.list_(pa.int64())),
    ([1], pa.struct([pa.field("a", pa.int64())])),
]
DUMPS = {"json": lambda value: json.dumps(value).encode(), "msgpack": msgspec.msgpack.encode}


@pytest.mark.parametrize("value_format", DUMPS)
@pytest.mark.parametrize(("value", "kind", "read"), FITTING, ids=str)
def test_a_value_that_fits_is_read(
    value: Any, kind: pa.DataType, read: Any, value_format: str
) -> None:
    """The same from JSON, which Arrow reads for most columns, and from MessagePack.
    None is null.
    """
    dumps = DUMPS[value_format]
    decoded = decoder_of(value_format, [pa.field("a", kind)], None).decode(
        [dumps({"a": value}), dumps({"a": None}), dumps({})]
    )
    assert not decoded.bad
    assert decoded.columns[0].type == kind
    assert decoded.columns[0].to_pylist() == [read, None, None]


@pytest.mark.parametrize("value_format", DUMPS)
@pytest.mark.parametrize(("value", "kind"), UNFIT, ids=str)
def test_a_value_that_does_not_fit_is_found(
    value: Any, kind: pa.DataType, value_format: str
) -> None:
    """The others are read."""
    dumps = DUMPS[value_format]
    decoded = decoder_of(value_format, [pa.field("a", kind)], None).decode(
        [dumps({}), dumps({"a": value})]
    )
    assert [each.place for each in decoded.bad] == [1]
    with pytest.raises(ProtocolError):
        convert_value(value, kind)
