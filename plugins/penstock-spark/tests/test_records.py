"""Columns of a DataFrame that say where a row goes become records. Without Spark."""

from typing import Any

import pyarrow as pa
import pytest
from penstock_spark.sink import SinkSettings
from penstock_spark.sink._records import checked, record_encoder

from penstock.api import UsageError
from penstock.spi import Record

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SPARK_HEADERS = "array<struct<key:string,value:binary>>"


def settings(*columns: tuple[str, str], **options: str) -> SinkSettings:
    given = SinkSettings.of({"uri": "tcp://h:1", "stream": "orders"} | options)
    return checked(given, columns)


def records(of: SinkSettings, **columns: Any) -> list[Record]:
    batch = pa.RecordBatch.from_pydict(columns)
    return [Record.unpack(each) for each in record_encoder(of)(batch)]


def test_a_key_beside_the_value() -> None:
    """A row without a key makes a record without one. The order of the columns does not matter."""
    of = settings(("key", "string"), ("value", "binary"))
    assert records(of, key=["a", None, ""], value=[b"1", b"2", b""]) == [
        Record(b"1", b"a"),
        Record(b"2"),
        Record(b"", b""),
    ]


def test_all_columns_of_a_row() -> None:
    """A null says nothing: the row goes where its task goes."""
    of = settings(
        ("name", "string"),
        ("partition", "int"),
        ("headers", SPARK_HEADERS),
        ("value", "string"),
    )
    found = records(
        of,
        name=["eu", None],
        partition=pa.array([3, None], pa.int32()),
        headers=pa.array(
            [[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None], HEADERS
        ),
        value=["x", "y"],
    )
    assert found == [
        Record(b"x", None, (("h", b"1"), ("h", None)), "3", "eu"),
        Record(b"y"),
    ]


def test_a_key_of_json_is_a_column_that_stays_in_the_object() -> None:
    """It is data as well."""
    of = settings(("id", "bigint"), ("key", "string"), valueFormat="json", keyColumn="id")
    assert records(of, id=[7, None], key=["a", "b"]) == [
        Record(b'{"id":7,"key":"a"}', b"7"),
        Record(b'{"id":null,"key":"b"}'),
    ]


def test_json_without_the_option_has_no_records() -> None:
    """A column of the name `key` is data."""
    of = settings(("key", "string"), valueFormat="json")
    assert not of.places
    assert record_encoder(of)(pa.RecordBatch.from_pydict({"key": ["a"]})) == [b'{"key":"a"}']


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        ([("key", "string")], {}, "the sink writes one column, value"),
        ([("value", "string"), ("key", "int")], {}, "the column key is int"),
        ([("value", "string"), ("headers", "map<string,string>")], {}, "the column headers is map"),
        ([("value", "string"), ("topic", "string")], {}, "topic string"),
        ([("value", "string")], {"keyColumn": "value"}, "belongs to valueFormat=json"),
        ([("a", "int")], {"valueFormat": "arrow", "keyColumn": "a"}, "belongs to valueFormat=json"),
        ([("a", "int")], {"valueFormat": "json", "keyColumn": "b"}, "keyColumn=b names no column"),
        (
            [("a", "double")],
            {"valueFormat": "json", "keyColumn": "a"},
            "the DataFrame has: a double",
        ),
    ],
)
def test_columns_that_are_no_places_are_refused(
    columns: list[tuple[str, str]], options: dict[str, str], text: str
) -> None:
    """The error names the column."""
    with pytest.raises(UsageError, match=text):
        settings(*columns, **options)


@pytest.mark.parametrize(
    "headers", [[{"key": "h", "value": b""}] * 65, [{"key": None, "value": b""}]]
)
def test_headers_that_a_receiver_refuses_are_told_here(headers: list[dict[str, Any]]) -> None:
    """Before the rows are sent."""
    of = settings(("value", "string"), ("headers", SPARK_HEADERS))
    with pytest.raises(UsageError, match="at most 64 can be written, each with a key"):
        records(of, value=["x"], headers=pa.array([headers], HEADERS))
