"""Rows become JSON objects that any reader of JSON takes,
and what JSON does not have is refused by the name of its column.
"""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from penstock_spark.sink._json_elements import json_elements

from penstock.api import UsageError

COUNTS = pa.map_(pa.string(), pa.int64())


def written(value: Any, kind: pa.DataType) -> list[bytes]:
    """Return the element of a row with one column."""
    return json_elements(
        pa.record_batch([pa.array([0]), pa.array([value], kind)], names=["id", "c"])
    )


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ([("k", 1), ("é", None)], COUNTS, '{"k":1,"é":null}'),
        (None, COUNTS, "null"),
        ([(5, "x")], pa.map_(pa.int32(), pa.string()), '{"5":"x"}'),
        ([(Decimal("1.10"), b"hi")], pa.map_(pa.decimal128(4, 2), pa.binary()), '{"1.10":"aGk="}'),
        ([[("k", 1)], None], pa.list_(COUNTS), '[{"k":1},null]'),
        (
            {"of": [("k", 1)], "x": 2},
            pa.struct([("of", COUNTS), ("x", pa.int64())]),
            '{"of":{"k":1},"x":2}',
        ),
        ([("k", [("l", 1)])], pa.map_(pa.string(), COUNTS), '{"k":{"l":1}}'),
        (b"hello", pa.binary(), '"aGVsbG8="'),
        (Decimal("0E-10"), pa.decimal128(20, 10), '"0.0000000000"'),
        (
            dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
            pa.timestamp("us", "UTC"),
            '"2026-01-02T03:04:05.000006+00:00"',
        ),
        (dt.date(2026, 1, 2), pa.date32(), '"2026-01-02"'),
    ],
    ids=str,
)
def test_values_are_written_as_readers_of_json_expect_them(
    value: Any, kind: pa.DataType, text: str
) -> None:
    """A map is an object, also inside of other values; bytes are base64."""
    assert written(value, kind) == [f'{{"id":0,"c":{text}}}'.encode()]


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (
            float("nan"),
            pa.float64(),
            r"the column c has a NaN or an Infinity.*CASE WHEN abs\(c\).*to_json",
        ),
        ([1.0, float("-inf")], pa.list_(pa.float32()), "the column c has a NaN or an Infinity"),
        (
            [("k", float("inf"))],
            pa.map_(pa.string(), pa.float64()),
            "the column c has a NaN or an Infinity",
        ),
        (
            [(float("nan"), 1)],
            pa.map_(pa.float64(), pa.int64()),
            "the column c has a map with the key nan",
        ),
        (
            [(True, 1)],
            pa.map_(pa.bool_(), pa.int64()),
            "the column c has a map whose keys are of type bool.*make them STRING",
        ),
        (
            [(dt.date(2026, 1, 2), 1)],
            pa.map_(pa.date32(), pa.int64()),
            "the column c has a map whose keys are of type date32",
        ),
        (dt.timedelta(1), pa.duration("us"), "the column c has a value of type timedelta.*to_json"),
    ],
    ids=str,
)
def test_what_json_does_not_have_is_refused(value: Any, kind: pa.DataType, text: str) -> None:
    """With the column, and what to write in its place."""
    with pytest.raises(UsageError, match=text):
        written(value, kind)
