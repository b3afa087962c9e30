"""Elements that are records become rows with keys and headers. Without Spark."""

import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from penstock_spark.source._decode import decoder_of
from penstock_spark.source._offsets import Range
from penstock_spark.source._range_reader import Batches
from penstock_spark.source._record_rows import HEADER, RecordDecoder
from penstock_spark.source._settings import SourceSettings

from penstock.api import ProtocolError
from penstock.spi import Record

FIELDS = [pa.field("id", pa.int64())]
METADATA = [
    pa.field("stream", pa.string()),
    pa.field("partition", pa.string()),
    pa.field("offset", pa.int64()),
]
RECORD = [pa.field("key", pa.binary()), pa.field("headers", pa.list_(HEADER))]


def arrow(*ids: int) -> bytes:
    """Return rows as an Arrow IPC stream."""
    table, sink = pa.table({"id": ids}, pa.schema(FIELDS)), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def batch_of(elements: list[bytes], fields: list[pa.Field], **options: str) -> list[dict[str, Any]]:
    """Return the rows of one batch of elements from position 100 on."""
    settings = SourceSettings.of(
        {"uri": "tcp://h:1", "stream": "orders", "records": "true"} | options
    )
    schema = pa.schema([*METADATA, *RECORD, *fields])
    part = Range("orders", "0", 100, 100 + len(elements))
    batches = Batches(settings, schema, part)
    batches.add(elements, 0.0)
    batch = batches.take()
    assert batch is not None
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def test_a_row_has_the_key_and_the_headers_of_its_record() -> None:
    """The value is what the format makes of it."""
    headers = (("h", b"1"), ("h", None))
    rows = batch_of(
        [Record(b"x", b"k", headers).pack(), Record(b"").pack()], [pa.field("value", pa.binary())]
    )
    place = {"stream": "orders", "partition": "0"}
    assert rows == [
        place
        | {
            "offset": 100,
            "key": b"k",
            "headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": None}],
            "value": b"x",
        },
        place | {"offset": 101, "key": None, "headers": [], "value": b""},
    ]


@pytest.mark.parametrize("value_format", ["json", "arrow"])
def test_elements_that_are_bad_are_found_at_their_places(value_format: str) -> None:
    """They may be no records, or records of bad values. Others keep their rows, in random orders.
    With the format arrow an element has several rows, or none.
    """
    random = Random(7)
    for _ in range(30):
        kinds = random.choices(
            ["good", "no record", "bad value"], [5, 1, 1], k=random.randrange(40)
        )
        elements, expected, bad = [], [], []
        for place, kind in enumerate(kinds):
            ids = [place] if value_format == "json" else list(range(place, place + place % 3))
            value = json.dumps({"id": place}).encode() if value_format == "json" else arrow(*ids)
            key = b"%d" % place
            elements.append(
                b"\xc1"
                if kind == "no record"
                else Record(b"{" if kind == "bad value" else value, key).pack()
            )
            if kind == "good":
                expected += [(key, each) for each in ids]
            else:
                bad.append(place)
                expected.append((None if kind == "no record" else key, None))
        decoded = RecordDecoder(decoder_of(value_format, FIELDS, None)).decode(elements)
        keys, _, ids = (column.to_pylist() for column in decoded.columns)
        assert [*zip(keys, ids, strict=True)] == expected
        assert [each.place for each in decoded.bad] == bad
        if decoded.rows is not None:
            assert sum(decoded.rows) == len(expected)


def test_an_element_that_is_no_record_ends_the_query_or_goes_to_its_column() -> None:
    """The error names its position."""
    elements = [Record(b"x").pack(), b"plain"]
    fields = [pa.field("value", pa.binary())]
    with pytest.raises(ProtocolError, match=r"at position 101 .* a record is a MessagePack array"):
        batch_of(elements, fields)
    rows = batch_of(elements, [*fields, pa.field("_corrupt", pa.binary())], undecodable="_corrupt")
    assert [(row["value"], row["_corrupt"]) for row in rows] == [(b"x", None), (None, b"plain")]
