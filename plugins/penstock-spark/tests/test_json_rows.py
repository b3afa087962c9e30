"""One verdict on an element of JSON, under every schema and in every spelling of the element; and
what its values become.
"""

import base64
import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock_spark.sink._json_elements import json_elements
from penstock_spark.source._json_rows import JsonRows
from penstock_spark.source._runs import Runs

from penstock.api import PenstockError, ShortRun

FIELDS = [
    pa.field("id", pa.int64()),
    pa.field("name", pa.string()),
    pa.field("part", pa.float64()),
    pa.field("price", pa.decimal128(38, 10)),
    pa.field("at", pa.timestamp("us", "UTC")),
    pa.field("day", pa.date32()),
    pa.field("place", pa.struct([pa.field("x", pa.int64()), pa.field("y", pa.float32())])),
    pa.field("bytes", pa.binary()),
]
MORE = pa.field("counts", pa.map_(pa.string(), pa.int64()))
NOTHING = dict.fromkeys(field.name for field in FIELDS)


def row_of(element: bytes, *fields: pa.Field) -> dict[str, Any] | None:
    """Return the row of an element; None if it cannot be decoded."""
    try:
        [row] = JsonRows(fields).load_all([element]).to_pylist()
    except (PenstockError, ValueError, pa.ArrowException):
        return None
    return row


def rows_of(element: bytes) -> list[dict[str, Any] | None]:
    """Return the row in each way in which an element is read:
    as a line, as several lines, and with a column of maps.
    """
    with_maps = row_of(element, *FIELDS, MORE)
    if with_maps is not None:
        del with_maps["counts"]
    return [row_of(element, *FIELDS), row_of(element + b"\r\n", *FIELDS), with_maps]


DECODED: list[tuple[bytes, dict[str, Any]]] = [
    (b"{}", {}),
    (b'{"id":null,"name":"\\u0000x\\n"}', {"name": "\0x\n"}),
    (b'\xef\xbb\xbf{"id":1}', {"id": 1}),
    (b'{"id":-0,"part":5}', {"id": 0, "part": 5.0}),
    (b'{"name":"NaN, Inf and Infinity"}', {"name": "NaN, Inf and Infinity"}),
    (b'{"price":1.10}', {"price": Decimal("1.1000000000")}),
    (b'{"price":"1.10"}', {"price": Decimal("1.1000000000")}),
    (
        b'{"price":12345678901234567890.0123456789}',
        {"price": Decimal("12345678901234567890.0123456789")},
    ),
    (
        b'{"at":"2026-01-02 03:04:05.123456"}',
        {"at": dt.datetime(2026, 1, 2, 3, 4, 5, 123456, dt.UTC)},
    ),
    (
        b'{"at":"2026-01-02T03:04:05+02:00"}',
        {"at": dt.datetime(2026, 1, 2, 1, 4, 5, tzinfo=dt.UTC)},
    ),
    (
        b'{"day":"2026-01-02","place":{"x":1,"z":2}}',
        {"day": dt.date(2026, 1, 2), "place": {"x": 1, "y": None}},
    ),
    (b'{"bytes":"aGVsbG8="}', {"bytes": b"hello"}),
    (b'{"bytes":""}', {"bytes": b""}),
    # Fields that the schema does not name are left out, also if they come twice.
    (b'{"other":{"deep":[[1e5,{"a":true}]]},"id":7}', {"id": 7}),
    (b'{"other":1,"other":2}', {}),
    (b'{"place":{"z":1,"z":2}}', {"place": {"x": None, "y": None}}),
    (b'{"ID":3}', {}),
]


@pytest.mark.parametrize(
    ("element", "values"), DECODED, ids=[str(number) for number in range(len(DECODED))]
)
def test_an_element_is_decoded_alike_whatever_the_schema_is(
    element: bytes, values: dict[str, Any]
) -> None:
    """No value is rounded on the way."""
    assert rows_of(element) == [NOTHING | values] * 3


@pytest.mark.parametrize(
    "element",
    [
        b"",
        b"null",
        b"[1]",
        b'{"id":1}{"id":2}',
        b'{"id":1}\n{"id":2}',
        b'{"id":1,}',
        b"{'id':1}",
        b'{"id":01}',
        # No UTF-8, also in a field that the schema does not name; one half of a surrogate pair; a
        # raw control character; UTF-16.
        b'{"name":"\xff\xfe"}',
        b'{"other":"\xff\xfe"}',
        b'{"other":"\\ud800"}',
        b'{"name":"a\tb"}',
        b'{"name":"a\nb"}',
        '{"id":1}'.encode("utf-16"),
        '{"id":1}'.encode("utf-16-le"),
        # Numbers that JSON or the column does not have.
        b'{"part":NaN}',
        b'{"part":-Infinity}',
        b'{"part":Inf}',
        b'{"other":NaN}',
        b'{"other":[Infinity]}',
        b'{"part":"NaN"}',
        b'{"part":1e400}',
        b'{"other":1e400}',
        b'{"part":' + b"9" * 400 + b"}",
        b'{"place":{"y":1e39}}',
        b'{"id":1.0}',
        b'{"id":"5"}',
        b'{"id":true}',
        b'{"id":9223372036854775808}',
        b'{"price":1.00000000001}',
        # A column that comes twice.
        b'{"id":1,"id":2}',
        b'{"place":{"x":1,"x":2}}',
        # Times with more digits than a column has; others than texts.
        b'{"at":"2026-01-02T03:04:05.123456789"}',
        b'{"at":1700000000}',
        b'{"day":5}',
        b'{"day":"2026-02-30"}',
        b'{"place":[]}',
        b'{"place":{"x":"bad"}}',
        # No base64.
        b'{"bytes":"hello"}',
        b'{"bytes":"aGVsbG8"}',
        b'{"bytes":"aGVs bG8="}',
        b'{"bytes":true}',
    ],
    ids=lambda element: repr(element[:40])[2:-1].replace("\\", "/"),
)
def test_an_element_is_undecodable_whatever_the_schema_is(element: bytes) -> None:
    """And however it is written."""
    assert rows_of(element) == [None] * 3


def test_maps_are_objects() -> None:
    """In columns, in lists, in objects and in maps; keys that are numbers are read from texts."""
    counts = pa.map_(pa.string(), pa.int64())
    fields = [
        pa.field("a", counts),
        pa.field("b", pa.list_(counts)),
        pa.field("c", pa.struct([pa.field("of", counts)])),
        pa.field("d", pa.map_(pa.string(), counts)),
        pa.field("e", pa.map_(pa.int32(), pa.date32())),
        pa.field("f", pa.map_(pa.string(), pa.list_(pa.binary()))),
    ]
    element = b"""{"a": {"k": 1, "l": null}, "b": [{"k": 2}, null, {}], "c": {"of": {"k": 3}, "x": 1}, "d": {"k": {"l": 4}},
        "e": {"5": "2026-01-02", "-6": null}, "f": {"k": ["aGVsbG8=", null]}, "g": {"k": 1, "k": 2}}"""
    rows = JsonRows(fields).load_all([element, b"{}", b'{"a":{},"c":null}'])
    assert rows.type == pa.struct(fields)
    rows.validate(full=True)
    nothing = dict.fromkeys("abcdef")
    assert rows.to_pylist() == [
        {
            "a": [("k", 1), ("l", None)],
            "b": [[("k", 2)], None, []],
            "c": {"of": [("k", 3)]},
            "d": [("k", [("l", 4)])],
            "e": [(5, dt.date(2026, 1, 2)), (-6, None)],
            "f": [("k", [b"hello", None])],
        },
        nothing,
        nothing | {"a": []},
    ]


@pytest.mark.parametrize(
    "text",
    [
        '[["k",1]]',
        '[{"key":"k","value":1}]',
        "5",
        '"k"',
        '{"k":1,"k":2}',
        '{"k":1.5}',
        '{"k":"1"}',
        '{"k":{}}',
    ],
)
def test_what_is_no_map_is_undecodable(text: str) -> None:
    """A list of pairs is not a map; a key comes once."""
    assert row_of(f'{{"counts":{text}}}'.encode(), MORE) is None


@pytest.mark.parametrize("key", ["x", "1.5", "01", "", "null", '\\"5'])
def test_a_key_that_is_no_number_is_undecodable_for_one(key: str) -> None:
    """A text of JSON is not cut out of its quotes."""
    assert (
        row_of(
            f'{{"counts":{{"{key}":1}}}}'.encode(),
            pa.field("counts", pa.map_(pa.int64(), pa.int64())),
        )
        is None
    )


def test_what_the_sink_writes_is_read_as_it_was() -> None:
    """Each type that both sides have."""
    fields = [
        *FIELDS,
        MORE,
        pa.field("names", pa.map_(pa.int32(), pa.string())),
        pa.field("prices", pa.map_(pa.decimal128(4, 2), pa.list_(pa.binary()))),
        pa.field("is", pa.bool_()),
    ]
    full: dict[str, Any] = {
        "id": -(2**63),
        "name": 'é"\\\n\u2028😀',
        "part": 0.1,
        "price": Decimal("-0.0000000001"),
        "at": dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC),
        "day": dt.date(2026, 1, 2),
        "place": {"x": 2, "y": 0.5},
        "bytes": bytes(range(256)),
        "counts": [("k", 1), ("", None)],
        "names": [(-5, "x")],
        "prices": [(Decimal("1.10"), [b"a", None, b""])],
        "is": True,
    }
    rows = [full, dict.fromkeys(full)]
    elements = json_elements(pa.RecordBatch.from_pylist(rows, schema=pa.schema(fields)))
    assert base64.b64encode(full["bytes"]) in elements[0]
    assert JsonRows(fields).load_all(elements).to_pylist() == rows


@given(
    st.lists(
        st.sampled_from(
            [b'{"id":"1"}', b'{"id":\n"2"}', b" {}", b"{}{}", b"", b"[]", b'{"id":"N"}']
        )
    )
)
def test_runs_are_read_as_lists_are(elements: list[bytes]) -> None:
    """The rows are the same, and so are the refusals: line breaks inside of an element, blanks
    around it, several objects in one, and none.
    """
    rows = JsonRows([pa.field("id", pa.string())])
    run = ShortRun(
        b"".join(bytes([len(each)]) + each for each in elements),
        bytes(len(each) + 1 for each in elements),
    )
    found: list[Any] = []
    for form in (elements, Runs([run])):
        try:
            found.append(rows.load_all(form).to_pylist())
        except (ValueError, pa.ArrowException, PenstockError) as error:
            found.append(type(error))
    assert found[0] == found[1]
    if b"{}{}" not in elements and b"" not in elements and b"[]" not in elements:
        assert not elements or len(found[0]) == len(elements)
