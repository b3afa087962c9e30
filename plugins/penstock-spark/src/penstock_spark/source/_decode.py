"""Elements become columns: one decoder for each valueFormat.

Rules of this file:

* The elements of a list are decoded together, in C where the format allows it: a Python object for
  each field costs five times as much.
* If that fails, each half is decoded, and so on, to find those that cannot be decoded. To decode
  them one by one took 16 times as long with one bad element in ten thousand.
* An element that lacks a column that is NOT NULL cannot be decoded: Spark would not look, and read
  what is in the memory there.
* The columns have exactly the types that Spark expects. Spark compares the types of the first batch
  only, and breaks on the others.
"""

import importlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa

from penstock.api import PenstockError, ProtocolError, UsageError
from penstock.spi import build_registry
from penstock_spark.source._convert_value import convert_value
from penstock_spark.source._runs import Runs, bytes_column

MOST_MAPS: Final = 64
"""Elements of MessagePack that are read as maps in one piece,
if objects could not be made of them.
"""

PLAIN_TYPES: Final = (
    (pa.types.is_boolean, bool),
    (pa.types.is_integer, int),
    (pa.types.is_floating, float),
    (pa.types.is_string, str),
    (pa.types.is_binary, bytes),
)
"""Types of columns whose values msgspec reads unchanged, and their types in Python."""


OF_DATA: Final = (
    PenstockError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    pa.ArrowException,
)
"""What serializers, Arrow and the conversions raise for bytes of a peer that do not fit the schema.
Any other exception, such as one of a missing module, is not the fault of an element: it ends the
task.
"""


class Undecodable(NamedTuple):
    """An element that cannot be decoded: its place in the list, and why."""

    place: int
    why: str


class Decoded(NamedTuple):
    """The columns of some elements. `rows` has the number of rows of each element;
    None if each has one.
    """

    columns: Sequence[pa.Array]
    bad: Sequence[Undecodable] = ()
    rows: Sequence[int] | None = None


class ColumnDecoder(Protocol):
    """Makes columns of elements. The row of an element that cannot be decoded has nulls."""

    def decode(self, elements: Sequence[bytes]) -> Decoded:
        """Return the columns."""


class RawDecoder:
    """The column ``value``: the bytes."""

    def decode(self, elements: Sequence[bytes]) -> Decoded:
        return Decoded([bytes_column(elements if isinstance(elements, Runs) else Runs([elements]))])


class RowDecoder:
    """One row an element: `load_all` decodes a list, and raises
    if one of them cannot be decoded.
    """

    def __init__(
        self, fields: Sequence[pa.Field], load_all: Callable[[Sequence[bytes]], pa.StructArray]
    ) -> None:
        self._fields = [field.with_nullable(True) for field in fields]  # noqa: FBT003  # pyarrow names it so
        self._load = load_all
        self._required = [
            (index, field.name) for index, field in enumerate(fields) if not field.nullable
        ]

    def decode(self, elements: Sequence[bytes]) -> Decoded:
        try:
            return Decoded(self._load_all(elements).flatten())
        except OF_DATA:
            rows: list[pa.Array] = []
            bad: list[Undecodable] = []
            self._halve([*elements], 0, rows, bad)
            return Decoded(pa.concat_arrays(rows).flatten(), bad)

    def _load_all(self, elements: Sequence[bytes]) -> pa.StructArray:
        loaded = self._load(elements)
        for index, name in self._required:
            if loaded.field(index).null_count:
                raise _lacks(name)
        return loaded

    def _halve(
        self, elements: list[bytes], first: int, rows: list[pa.Array], bad: list[Undecodable]
    ) -> None:
        """Decode elements of which one at least cannot be decoded,
        the first of them at the place `first`.
        """
        middle = len(elements) // 2
        for part, place in ((elements[:middle], first), (elements[middle:], first + middle)):
            try:
                if part:
                    rows.append(self._load_all(part))
            except OF_DATA as error:
                if len(part) > 1:
                    self._halve(part, place, rows, bad)
                    continue
                rows.append(pa.nulls(1, pa.struct(self._fields)))
                bad.append(Undecodable(place, f"{type(error).__name__}: {error}"))


class ArrowDecoder:
    """Elements are Arrow IPC streams, of any number of rows."""

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        self._schema = pa.schema(fields)

    def decode(self, elements: Sequence[bytes]) -> Decoded:
        tables, bad = [], []
        for index, element in enumerate(elements):
            try:
                tables.append(self._table(element))
            except (pa.ArrowException, PenstockError, OSError) as error:
                tables.append(self._schema.empty_table())
                bad.append(Undecodable(index, f"{type(error).__name__}: {error}"))
        counts = [table.num_rows for table in tables]
        for each in bad:
            # One row of nulls, so that the element can be seen.
            tables[each.place] = pa.Table.from_arrays(
                [pa.nulls(1, field.type) for field in self._schema], schema=_nullable(self._schema)
            )
            counts[each.place] = 1
        whole = pa.concat_tables(
            [table.cast(_nullable(self._schema)) for table in tables] if bad else tables
        ).combine_chunks()
        columns = [
            column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
            for column in whole.columns
        ]
        return Decoded(columns, bad, counts)

    def _table(self, element: bytes) -> pa.Table:
        with pa.ipc.open_stream(element) as reader:
            if reader.schema.names != self._schema.names:
                missing = [name for name in self._schema.names if name not in reader.schema.names]
                if missing:
                    raise UsageError(
                        f"it has the columns {reader.schema.names}, and the schema names {missing} "
                        "as well"
                    )
            table = reader.read_all()
        # Offsets in a buffer of a peer may lead anywhere, and Arrow does not look
        # when it opens a stream.
        table.validate(full=True)
        is_exact = table.schema.equals(self._schema)
        if not is_exact:
            # Nulls are looked for below: a cast of them to NOT NULL does not say what is wrong.
            table = table.select(self._schema.names).cast(_nullable(self._schema))
        for field, column in zip(self._schema, table.columns, strict=True):
            if not field.nullable and column.null_count:
                raise _lacks(field.name)
        return table if is_exact else table.cast(self._schema)


def decoder_of(
    value_format: str, fields: Sequence[pa.Field], message_type: str | None
) -> ColumnDecoder:
    """Return the decoder of a format.
    Raises UsageError if the format needs a plugin, or a class, that is missing.
    """
    kind = pa.struct([field.with_nullable(True) for field in fields])  # noqa: FBT003  # pyarrow names it so
    if value_format == "raw":
        return RawDecoder()
    if value_format == "arrow":
        return ArrowDecoder(fields)
    if value_format == "json":
        # Here, and not above: a worker that reads another format is there 40 ms earlier.
        from penstock_spark.source._json_rows import JsonRows

        return RowDecoder(fields, JsonRows(fields).load_all)
    if value_format == "msgpack":
        return RowDecoder(fields, _MsgpackRows(fields, kind).load_all)
    loads = build_registry().serializer("protobuf").for_type(_class_of(message_type or "")).loads
    return RowDecoder(
        fields,
        lambda elements: pa.array([_message(loads(element), kind) for element in elements], kind),
    )


class _MsgpackRows:
    """Maps of MessagePack. If each column is a number, a text, bytes or a truth, they are read into
    objects with these attributes.

    That takes half the time of maps and of `pyarrow.array` over them. If it fails, the elements are
    read as maps, and the user sees the error of that. Many elements are not read as maps in one
    piece: one bad element would slow down all of its neighbours.
    """

    def __init__(self, fields: Sequence[pa.Field], kind: pa.StructType) -> None:
        self._kind = kind
        self._loads = build_registry().serializer("msgpack").loads
        self._getters = [attrgetter(f"f{index}") for index in range(len(fields))]
        types = [
            next((plain for is_type, plain in PLAIN_TYPES if is_type(field.type)), None)
            for field in fields
        ]
        self._decode = None if None in types else _row_decoder(fields, types)

    def load_all(self, elements: Sequence[bytes]) -> pa.StructArray:
        if self._decode is not None:
            # The errors of msgspec and of Arrow are among these.
            with suppress(ValueError, TypeError, OverflowError, RecursionError, pa.ArrowException):
                rows = list(map(self._decode, elements))
                columns = [
                    pa.array(list(map(get, rows)), field.type)
                    for get, field in zip(self._getters, self._kind, strict=True)
                ]
                return pa.StructArray.from_arrays(columns, fields=list(self._kind))
            if len(elements) > MOST_MAPS:
                # The decoder then gives each half.
                raise ProtocolError("one of these elements is no map of plain values")
        rows = _mappings([self._loads(element) for element in elements])
        return pa.array([convert_value(row, self._kind) for row in rows], self._kind)


def _row_decoder(fields: Sequence[pa.Field], types: Sequence[Any]) -> Callable[[bytes], Any]:
    import msgspec  # the plugin penstock-msgpack, which has brought the serializer, needs it

    attributes = [(f"f{index}", kind | None, None) for index, kind in enumerate(types)]
    # Names of columns need not be names in Python.
    row = msgspec.defstruct(
        "Row",
        attributes,
        rename={f"f{index}": field.name for index, field in enumerate(fields)},
        gc=False,
    )
    return msgspec.msgpack.Decoder(row).decode


def _mappings(values: list[Any]) -> list[Any]:
    # The types in one piece: a call for each value takes a tenth of the whole time.
    if set(map(type, values)) - {dict}:
        raise ProtocolError("an element has to be a map with the names of the columns")
    return values


def _message(message: Any, kind: pa.StructType) -> dict[str, Any]:
    """Return the fields of a message that the schema names."""
    return {field.name: _field(message, field) for field in kind}


def _field(message: Any, field: pa.Field) -> Any:
    value = getattr(message, field.name)
    if pa.types.is_struct(field.type):
        return _message(value, field.type) if message.HasField(field.name) else None
    if pa.types.is_list(field.type):
        is_nested = pa.types.is_struct(field.type.value_type)
        return (
            [_message(each, field.type.value_type) for each in value] if is_nested else list(value)
        )
    if pa.types.is_timestamp(field.type):
        return value.ToDatetime() if message.HasField(field.name) else None
    return value


def _class_of(name: str) -> type:
    module, _, kind = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), kind)  # type: ignore[no-any-return]  # the serializer checks it
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(
            f"option messageType={name}: {error}. Give package.module.Class, in a module that each "
            "executor can import (--py-files)"
        ) from error


def _lacks(name: str) -> ProtocolError:
    return ProtocolError(f"the column {name} is NOT NULL in the schema, and it has no value there")


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])  # noqa: FBT003  # pyarrow names it so
