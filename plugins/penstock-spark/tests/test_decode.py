"""Elements become columns, for each valueFormat;
elements that cannot be decoded are found one by one.
"""

import datetime as dt
import json
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from penstock_spark.source import _decode
from penstock_spark.source._decode import decoder_of
from penstock_spark.source._offsets import Range
from penstock_spark.source._range_reader import Batches
from penstock_spark.source._settings import SourceSettings

from penstock.api import ProtocolError, UsageError

FIELDS = [
    pa.field("id", pa.int64()),
    pa.field("name", pa.string()),
    pa.field("at", pa.timestamp("us", tz="UTC")),
    pa.field("tags", pa.list_(pa.string())),
    pa.field("place", pa.struct([pa.field("x", pa.float64())])),
]
ROW = {
    "id": 1,
    "name": "ann",
    "at": "2026-01-02T03:04:05Z",
    "tags": ["a", "b"],
    "place": {"x": 0.5},
}
PLAIN = ROW | {"at": dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)}


def rows_of(
    value_format: str, elements: list[bytes], fields: list[pa.Field] = FIELDS
) -> list[dict[str, Any]]:
    """Return the rows of elements that can all be decoded."""
    decoded = decoder_of(value_format, fields, None).decode(elements)
    assert not decoded.bad
    assert [column.type for column in decoded.columns] == [field.type for field in fields]
    return pa.Table.from_arrays(
        list(decoded.columns), names=[field.name for field in fields]
    ).to_pylist()


def arrow(rows: list[dict[str, Any]], fields: list[pa.Field] = FIELDS) -> bytes:
    """Return rows as an Arrow IPC stream."""
    table, sink = pa.Table.from_pylist(rows, schema=pa.schema(fields)), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def test_json_objects_become_rows() -> None:
    """Fields that the schema does not name are left out, and missing ones are null;
    an element may have several lines.
    """
    elements = [
        json.dumps(ROW | {"more": 5}).encode(),
        b"{}",
        json.dumps(ROW, indent=1).encode(),
        b'  {"id": 7} ',
    ]
    nothing = dict.fromkeys(ROW)
    assert rows_of("json", elements) == [PLAIN, nothing, PLAIN, nothing | {"id": 7}]


DATED = [
    pa.field("day", pa.date32()),
    pa.field("days", pa.list_(pa.date32())),
    pa.field("stay", pa.struct([pa.field("until", pa.date32()), pa.field("nights", pa.int64())])),
]


@pytest.mark.parametrize("value_format", ["json", "msgpack"])
def test_a_date_is_a_text(value_format: str) -> None:
    """Also inside of a list and of an object; one that is missing is null."""
    row = {
        "day": "2026-01-02",
        "days": ["2026-01-03", None],
        "stay": {"until": "2026-01-04", "nights": 2},
    }
    read = {
        "day": dt.date(2026, 1, 2),
        "days": [dt.date(2026, 1, 3), None],
        "stay": {"until": dt.date(2026, 1, 4), "nights": 2},
    }
    dumps = {"json": lambda value: json.dumps(value).encode(), "msgpack": msgspec.msgpack.encode}[
        value_format
    ]
    assert rows_of(value_format, [dumps(row), dumps({})], DATED) == [read, dict.fromkeys(read)]


@pytest.mark.parametrize("value_format", ["json", "msgpack"])
@pytest.mark.parametrize("day", [5, True, "soon", "2026-02-30", {"y": 1}], ids=str)
def test_what_is_no_date_is_found(day: object, value_format: str) -> None:
    """A number is not a date: a column of ids would become days since 1970."""
    dumps = {"json": lambda value: json.dumps(value).encode(), "msgpack": msgspec.msgpack.encode}[
        value_format
    ]
    decoded = decoder_of(value_format, DATED[:1], None).decode(
        [dumps({"day": "2026-01-02"}), dumps({"day": day})]
    )
    assert [each.place for each in decoded.bad] == [1]
    assert decoded.columns[0].to_pylist() == [dt.date(2026, 1, 2), None]


@pytest.mark.parametrize("value_format", ["json", "msgpack"])
@pytest.mark.parametrize("places", [[0], [4_095], [1_000, 1_001, 3_000], []], ids=str)
def test_one_bad_element_does_not_slow_down_its_neighbours(
    value_format: str, places: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each half is decoded, and so on: some 25 calls for each of them, and not 4,096. Only few
    elements of MessagePack are read as maps.
    """
    dumps = {"json": lambda value: json.dumps(value).encode(), "msgpack": msgspec.msgpack.encode}[
        value_format
    ]
    elements = [b"\xc1" if at in places else dumps({"id": at, "name": "n"}) for at in range(4_096)]
    decoder: Any = decoder_of(value_format, FIELDS[:2], None)
    load_all, sizes = decoder._load_all, []
    monkeypatch.setattr(
        decoder, "_load_all", lambda part: (sizes.append(len(part)), load_all(part))[1]
    )
    maps, mappings = [], _decode._mappings
    monkeypatch.setattr(
        _decode, "_mappings", lambda values: (maps.append(len(values)), mappings(values))[1]
    )
    decoded = decoder.decode(elements)
    assert [each.place for each in decoded.bad] == places
    assert decoded.columns[0].to_pylist() == [None if at in places else at for at in range(4_096)]
    assert len(sizes) <= 1 + 25 * len(places)
    assert sum(sizes) <= 4_096 * (1 + 2 * len(places))
    assert sum(maps) <= 128 * len(places)


NOT_ONE_OBJECT = [
    b"",
    b"{",
    b'{"id":1}{"id":2}',
    b'{"id":"x"}',
    b"[1]",
    b"null",
    b"\xff",
    b'{"id":1}x}',
    b'{"name":"a\n}',
]


@pytest.mark.parametrize("bad", NOT_ONE_OBJECT)
def test_an_element_that_is_no_json_of_the_schema_is_found(bad: bytes) -> None:
    """Its neighbours are decoded, also if it pretends to be two elements, or a part of one."""
    decoded = decoder_of("json", FIELDS, None).decode([b'{"id": 5}', bad, b'{"id": 6}'])
    assert [each.place for each in decoded.bad] == [1]
    assert decoded.columns[0].to_pylist() == [5, None, 6]


def test_halves_of_an_object_and_two_objects_do_not_make_up_for_each_other() -> None:
    """Three elements have three objects in all, and only one of them is one object."""
    decoded = decoder_of("json", FIELDS, None).decode(
        [b'{"place":{}', b'{"id":1}{"id":2}', b'{"id":3}']
    )
    assert [each.place for each in decoded.bad] == [0, 1]


def test_msgpack_maps_become_rows() -> None:
    """An element that is not a map is found."""
    msgpack = pytest.importorskip("penstock_msgpack")
    dumps = msgpack.MsgpackSerializer().dumps
    assert rows_of("msgpack", [dumps(PLAIN), dumps({})]) == [PLAIN, dict.fromkeys(ROW)]
    decoded = decoder_of("msgpack", FIELDS, None).decode([dumps([1]), dumps(PLAIN), b"\xc1"])
    assert [each.place for each in decoded.bad] == [0, 2]


def test_msgpack_maps_of_plain_values_become_rows() -> None:
    """They take a shorter path; what does not fit into it is read as any map: a text for a
    number is refused, and so is nil.
    """
    msgpack = pytest.importorskip("penstock_msgpack")
    dumps = msgpack.MsgpackSerializer().dumps
    fields = [
        pa.field("id", pa.int32()),
        pa.field("a b", pa.string()),
        pa.field("part", pa.float64()),
        pa.field("is", pa.bool_()),
    ]
    row = {"id": 5, "a b": "x", "part": 0.5, "is": True}
    assert rows_of("msgpack", [dumps(row | {"more": [1]}), dumps({}), dumps(row)], fields) == [
        row,
        dict.fromkeys(row),
        row,
    ]
    assert rows_of("msgpack", [dumps(row | {"part": 2, 7: "a key that is no text"})], fields) == [
        row | {"part": 2.0}
    ]
    assert rows_of("msgpack", [], fields) == []
    bad = [
        dumps([1]),
        dumps(row | {"id": "5"}),
        dumps(row | {"id": 2**40}),
        b"",
        dumps(row) + dumps(row),
        b"\xc0",
        dumps(row)[:-1],
    ]
    decoded = decoder_of("msgpack", fields, None).decode([dumps(row), *bad, dumps(row)])
    assert [each.place for each in decoded.bad] == list(range(1, 1 + len(bad)))
    assert decoded.columns[0].to_pylist() == [5, *[None] * len(bad), 5]


def test_a_class_that_cannot_be_imported_is_named() -> None:
    """Executors import it, so the error says how it gets there."""
    pytest.importorskip("penstock_protobuf")
    with pytest.raises(UsageError, match=r"messageType=no\.such\.Class"):
        decoder_of("protobuf", FIELDS, "no.such.Class")


def test_arrow_streams_become_rows() -> None:
    """An element has any number of rows;
    columns in another order, and narrower integers, are converted.
    """
    other = [FIELDS[1], pa.field("id", pa.int32()), *FIELDS[2:]]
    decoded = decoder_of("arrow", FIELDS, None).decode(
        [arrow([PLAIN, PLAIN]), arrow([]), arrow([PLAIN], other)]
    )
    assert decoded.rows == [2, 0, 1]
    assert decoded.columns[0].to_pylist() == [1, 1, 1]
    assert rows_of("arrow", [arrow([PLAIN])]) == [PLAIN]


def test_arrow_that_is_none_is_found() -> None:
    """Other bytes, a missing column, a wrong type, and offsets that lead out of the buffer."""
    names = [pa.field("name", pa.string())]
    sound = arrow([{"name": "ann"}, {"name": "bob"}], names)
    places = pa.array([0, 3, 6], pa.int32()).buffers()[1].to_pybytes()
    assert places in sound
    wild = sound.replace(places, pa.array([0, 3, 600_000], pa.int32()).buffers()[1].to_pybytes())
    elements = [
        b"",
        b"no arrow",
        sound,
        wild,
        sound[:-40],
        arrow([{"id": 5}], [pa.field("id", pa.int64())]),
    ]
    decoded = decoder_of("arrow", names, None).decode(elements)
    assert [each.place for each in decoded.bad] == [0, 1, 3, 4, 5]
    assert decoded.columns[0].to_pylist() == [None, None, "ann", "bob", None, None, None]


def batches(**options: str) -> Batches:
    """Return the batches of a source of JSON with the column id."""
    settings = SourceSettings.of(
        {"uri": "tcp://a:1", "stream": "s", "valueFormat": "json", "schema": "id BIGINT"} | options
    )
    fields = [
        pa.field("stream", pa.string()),
        pa.field("partition", pa.string()),
        pa.field("offset", pa.int64()),
    ]
    corrupt = [pa.field("_corrupt", pa.binary())] if settings.keeps_corrupt else []
    return Batches(
        settings,
        pa.schema([*fields, pa.field("id", pa.int64(), nullable=False), *corrupt]),
        Range("s", "0", 100, 200),
    )


def test_an_undecodable_element_ends_the_query_with_its_position() -> None:
    """The error says what to change."""
    each = batches()
    each.add([b'{"id":1}', b"oops"], 0.0)
    with pytest.raises(
        ProtocolError,
        match=r"position 101 of partition '0' of 's' is no json of the schema.*undecodable=_corrupt",
    ):
        each.take()


def test_an_undecodable_element_arrives_in_a_column_of_its_own() -> None:
    """The other columns of its row are null."""
    settings = SourceSettings.of(
        {
            "uri": "tcp://a:1",
            "stream": "s",
            "valueFormat": "arrow",
            "schema": "id BIGINT",
            "undecodable": "_corrupt",
            "includeMetadata": "false",
        }
    )
    fields = [pa.field("id", pa.int64())]
    each = Batches(
        settings, pa.schema([*fields, pa.field("_corrupt", pa.binary())]), Range("s", "0", 0, 9)
    )
    each.add([arrow([{"id": 5}, {"id": 6}], fields), b"oops"], 0.0)
    batch = each.take()
    assert batch is not None
    assert batch.to_pylist() == [
        {"id": 5, "_corrupt": None},
        {"id": 6, "_corrupt": None},
        {"id": None, "_corrupt": b"oops"},
    ]


def test_a_missing_value_of_a_column_that_must_have_one_is_refused() -> None:
    """Spark would not look, and read what is in the memory there. The error has the position."""
    each = batches()
    each.add([b'{"id":1}', b'{"id":null}'], 0.0)
    with pytest.raises(ProtocolError, match=r"position 101 of .*id is NOT NULL"):
        each.take()


@pytest.mark.parametrize("value_format", ["json", "msgpack", "arrow"])
def test_an_element_without_a_value_that_it_must_have_is_undecodable(value_format: str) -> None:
    """With _corrupt its bytes arrive in that column, and its row has nulls:
    so Spark is not told that the column has no nulls.
    """
    options = {
        "uri": "tcp://a:1",
        "stream": "s",
        "valueFormat": value_format,
        "undecodable": "_corrupt",
        "includeMetadata": "false",
    }
    settings = SourceSettings.of(
        options
        | {"schema": "id BIGINT NOT NULL, `not null` STRING, s STRUCT<x: INT NOT NULL> not  null"}
    )
    assert (
        settings.row_schema
        == "id BIGINT, `not null` STRING, s STRUCT<x: INT NOT NULL>, _corrupt BINARY"
    )
    fields = [
        pa.field("id", pa.int64()),
        pa.field("not null", pa.string()),
        pa.field("s", pa.struct([pa.field("x", pa.int32())])),
    ]
    sound, bad = (
        {"id": 5, "not null": None, "s": {"x": 1}},
        [{"id": None, "not null": "a", "s": {"x": 1}}, {"id": 1, "not null": "a", "s": None}],
    )
    dumps: Any = {
        "json": lambda value: json.dumps(value).encode(),
        "msgpack": msgspec.msgpack.encode,
        "arrow": lambda value: arrow([value], fields),
    }[value_format]
    each = Batches(
        settings, pa.schema([*fields, pa.field("_corrupt", pa.binary())]), Range("s", "0", 0, 9)
    )
    elements = [dumps(value) for value in (sound, *bad, sound)]
    each.add(elements, 0.0)
    batch = each.take()
    assert batch is not None
    nothing = dict.fromkeys(sound)
    assert batch.to_pylist() == [
        sound | {"_corrupt": None},
        nothing | {"_corrupt": elements[1]},
        nothing | {"_corrupt": elements[2]},
        sound | {"_corrupt": None},
    ]


@pytest.mark.parametrize("at", [0, 2])
def test_an_error_that_is_none_of_the_data_ends_the_task(at: int) -> None:
    """A module is missing on the executor, which is not the fault of an element. The task ends even
    if an element that cannot be decoded is found before it.
    """

    def load(elements: Any) -> Any:
        if len(elements) == 4 and at:
            raise ValueError("one of them")
        raise ImportError("no module named shop_pb2")

    decoder = _decode.RowDecoder([pa.field("id", pa.int64())], load)
    with pytest.raises(ImportError, match="shop_pb2"):
        decoder.decode([b"1", b"2", b"3", b"4"])
