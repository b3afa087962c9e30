"""The serializer ``arrow``: batches of every kind of type, and wrong bytes."""

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from penstock_arrow import ArrowSerializer

from penstock.api import ProtocolError, UsageError
from penstock.spi import WrongElementType

ARROW = ArrowSerializer()
ROWS = 20
COLUMNS: dict[str, pa.Array] = {
    "int": pa.array([*range(ROWS - 1), None], pa.int64()),
    "bool": pa.array([n % 3 == 0 for n in range(ROWS)]),
    "text": pa.array([None, *("é" * n for n in range(ROWS - 1))]),
    "large": pa.array([b"x" * n for n in range(ROWS)], pa.large_binary()),
    "view": pa.array(["a long text in a view " * n for n in range(ROWS)], pa.string_view()),
    "time": pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC)] * ROWS, pa.timestamp("us", tz="UTC")),
    "decimal": pa.array([Decimal("1.50")] * ROWS),
    "list": pa.array([[n] * (n % 4) for n in range(ROWS)]),
    "struct": pa.array([{"a": n, "b": str(n)} for n in range(ROWS)]),
    "map": pa.array([[("k", n)] for n in range(ROWS)], pa.map_(pa.string(), pa.int32())),
    "words": pa.array(["red", "green"] * (ROWS // 2)).dictionary_encode(),
    "nulls": pa.nulls(ROWS),
}


def batch_of(*names: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: COLUMNS[name] for name in names})


def written(schema: pa.Schema, *batches: pa.RecordBatch, codec: str | None = None) -> bytes:
    """Return a stream of Arrow's IPC format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink, schema, options=pa.ipc.IpcWriteOptions(compression=codec)
    ) as writer:
        for batch in batches:
            writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_each_kind_arrives_as_it_was(name: str) -> None:
    """The nulls arrive as well, and so does a slice of a batch."""
    batch = batch_of(name)
    for element in (batch, batch.slice(3, 5), batch.slice(0, 0)):
        assert ARROW.loads(ARROW.dumps(element)) == element


def test_all_columns_together_keep_their_metadata() -> None:
    """That of the schema."""
    batch = batch_of(*COLUMNS).replace_schema_metadata({"source": "a test"})
    found: Any = ARROW.loads(ARROW.dumps(batch))
    assert found.equals(batch, check_metadata=True)


def test_a_batch_that_has_arrived_is_a_view_of_its_bytes() -> None:
    """Reading a batch allocates no memory for its columns."""
    data = ARROW.dumps(pa.RecordBatch.from_pydict({"n": range(10_000)}))
    before = pa.total_allocated_bytes()
    batch = ARROW.loads(data)
    assert pa.total_allocated_bytes() - before < 10_000
    del batch


@pytest.mark.parametrize("wrong", [b"bytes", {"a": 1}, pa.table({"a": [1]}), pa.array([1])])
def test_an_element_that_is_no_batch_is_refused(wrong: object) -> None:
    """The error names the type, and what to give."""
    with pytest.raises(WrongElementType, match="to_batches"):
        ARROW.dumps(wrong)


def test_it_can_be_bound_to_the_type_of_its_elements_and_to_no_other() -> None:
    """A class of rows would need another serializer."""
    assert ARROW.for_type(pa.RecordBatch) is ARROW
    with pytest.raises(UsageError, match="cannot be bound"):
        ARROW.for_type(dict)


def test_wrong_bytes_are_refused() -> None:
    """Empty, cut, with bytes behind the end, a schema alone, two batches, and JSON."""
    batch = batch_of("int", "words")
    data = ARROW.dumps(batch)
    alone, twice = written(batch.schema), written(batch.schema, batch, batch)
    for wrong in (
        b"",
        b"{}",
        data + b"\0",
        data[:-16],
        data[:100],
        alone,
        twice,
        b"\xff" * 4 + b"\x7f" * 4,
        b"\xff" * 8,
    ):
        with pytest.raises(ProtocolError):
            ARROW.loads(wrong)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
@pytest.mark.parametrize("name", ["int", "words"])
def test_compressed_buffers_are_refused_before_they_are_inflated(codec: str, name: str) -> None:
    """8 MB of zeros are 2 kB on the wire. Dictionaries have a batch of their own."""
    column = pa.array([0] * 1_000_000) if name == "int" else COLUMNS["words"]
    batch = pa.RecordBatch.from_pydict({name: column})
    data = written(batch.schema, batch, codec=codec)
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(ProtocolError, match="compressed"):
        ARROW.loads(data)
    assert pa.default_memory_pool().max_memory() == before


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_compression_in_the_way_of_old_versions_is_refused(codec: str) -> None:
    """A key of the custom metadata says it there, and pyarrow obeys it: 2 kB became 64 MiB."""
    inflated = 64 << 20
    data = inflated.to_bytes(8, "little") + pa.Codec(codec).compress(bytes(inflated), asbytes=True)
    batch = pa.RecordBatch.from_arrays([pa.array(data, type=pa.uint8())], ["n"])

    def sent(version: Any, metadata: dict[str, str]) -> bytes:
        sink, options = pa.BufferOutputStream(), pa.ipc.IpcWriteOptions(metadata_version=version)
        with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
            writer.write_batch(batch, custom_metadata=metadata or None)
        return bytes(sink.getvalue().to_pybytes())

    hostile = {"ARROW:experimental_compression": codec.upper()}
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(ProtocolError, match="compressed"):
        ARROW.loads(sent(pa.ipc.MetadataVersion.V4, hostile))
    # A batch of an old version without the key is read, and one of today's version ignores the key.
    assert ARROW.loads(sent(pa.ipc.MetadataVersion.V4, {})) == batch
    assert ARROW.loads(sent(pa.ipc.MetadataVersion.V5, hostile)) == batch
    assert pa.default_memory_pool().max_memory() == before


def test_rows_without_bytes_are_bounded() -> None:
    """In both directions: a column of nulls has no buffer,
    and may be billions of objects in a list.
    """
    many = pa.RecordBatch.from_arrays([pa.nulls(1 << 24)], ["n"])
    with pytest.raises(UsageError, match="fewer rows"):
        ARROW.dumps(many)
    with pytest.raises(ProtocolError, match="claims"):
        ARROW.loads(written(many.schema, many))


def test_offsets_that_lead_out_of_a_buffer_are_refused() -> None:
    """By itself pyarrow would read the memory after it."""
    data = bytearray(ARROW.dumps(pa.RecordBatch.from_pydict({"t": ["aaaa", "bbbb"]})))
    at = data.index((4).to_bytes(4, "little") + (8).to_bytes(4, "little"))
    data[at : at + 4] = (1 << 30).to_bytes(4, "little")
    with pytest.raises(ProtocolError):
        ARROW.loads(bytes(data))


def test_changed_bytes_are_refused_or_are_a_sound_batch() -> None:
    """One or more bytes are changed, 2,000 times, always the same ones. A batch that is read is
    validated in full.
    """
    chance = random.Random(1)
    data = ARROW.dumps(batch_of("int", "text", "list", "struct", "words"))
    refused = 0
    for _ in range(2_000):
        changed = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        try:
            batch: Any = ARROW.loads(bytes(changed))
        except ProtocolError:
            refused += 1
        else:
            assert len(batch.to_pylist()) == batch.num_rows
    assert 200 < refused < 2_000


@pytest.mark.parametrize("place", ["a column", "a list", "a dictionary"])
def test_a_type_without_a_class_is_refused(place: str) -> None:
    """Pyarrow reads intervals of months, and raises KeyError where the program looks at the column.
    It cannot write them: the byte that is another unit of intervals is replaced.
    """
    kind = pa.month_day_nano_interval()
    column = pa.array([None], pa.list_(kind) if place == "a list" else kind)
    if place == "a dictionary":
        column = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), column)
    data = ARROW.dumps(pa.RecordBatch.from_pydict({"a": column}))
    found = []
    for at in (number for number, byte in enumerate(data) if byte == 2):
        changed = data[:at] + b"\0" + data[at + 1 :]
        try:
            schema = pa.ipc.open_stream(changed).schema
        except (pa.ArrowException, OSError):
            continue
        if "month_interval" in str(schema):
            found.append(changed)
    (months,) = found
    with pytest.raises(ProtocolError, match="pyarrow has no values of the type month_interval"):
        ARROW.loads(months)
