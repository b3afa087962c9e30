"""Elements of JSON become rows. Arrow reads all elements of a list in one piece, and judges each
value, under every schema.

Rules of this file:

* What Arrow cannot read from JSON is read as another type, and converted: dates and bytes as texts,
  maps as lists of their entries.
* Python parses an element only to change its text, or to refuse it. Numbers keep their text, so
  nothing is rounded on the way.
* Values that Arrow lets pass are refused here: bytes that are not UTF-8, NaN and Infinity, numbers
  that a float would hold as Infinity.
"""

import base64
import json
import re
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from penstock.api import ProtocolError, shown
from penstock_spark.source._runs import lines_of


class JsonRows:
    """JSON objects as rows."""

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        self._schema = pa.schema([field.with_nullable(True) for field in fields])  # noqa: FBT003  # pyarrow names it so
        self._kind = pa.struct(list(self._schema))
        self._has_maps = _has(self._kind, pa.types.is_map)
        read = pa.schema([field.with_type(_as_written(field.type)) for field in self._schema])
        self._converted = {
            field.name
            for field in self._schema
            if any(_has(field.type, is_type) for is_type in _CONVERTED)
        }
        self._options = pa.json.ParseOptions(
            explicit_schema=read, newlines_in_values=False, unexpected_field_behavior="ignore"
        )

    def load_all(self, elements: Sequence[bytes]) -> pa.StructArray:
        """Return the rows of these elements. Raises if one of them cannot be decoded."""
        if self._has_maps:
            joined = b"\n".join(
                [_with_entries(_parsed(element), self._kind).encode() for element in elements]
            )
        else:
            joined = _joined(elements)
        reading = pa.json.ReadOptions(use_threads=False, block_size=len(joined) + 1)
        table = (
            pa.json.read_json(pa.BufferReader(joined), reading, self._options)
            .select(self._schema.names)
            .combine_chunks()
        )
        if table.num_rows != len(elements):
            raise ProtocolError("an element has to be one JSON object")
        return pa.StructArray.from_arrays(
            [
                self._column(column, field)
                for column, field in zip(table.columns, self._schema, strict=True)
            ],
            fields=list(self._schema),
        )

    def _column(self, column: pa.ChunkedArray, field: pa.Field) -> pa.Array:
        if not column.num_chunks:
            return pa.nulls(0, field.type)
        return (
            _converted(column.chunk(0), field.type)
            if field.name in self._converted
            else column.chunk(0)
        )


# --- texts


def _joined(elements: Sequence[bytes]) -> bytes:
    """Return the elements as lines."""
    joined, lines = lines_of(elements), None
    if not _are_lines(joined, len(elements)):
        lines = [each if _are_lines(each, 1) else _as_line(each) for each in elements]
        joined = b"\n".join(lines)
    # Arrow puts replacement characters in the place of bytes that are not UTF-8.
    if not joined.isascii():
        joined.decode()
    # It reads NaN, Inf and Infinity as numbers.
    # The words may also stand inside of a text, as in "Info: …": Python tells.
    # A search for one byte takes a tenth of the time.
    if (b"N" in joined and b"NaN" in joined) or (b"I" in joined and b"Inf" in joined):
        for line in elements if lines is None else lines:
            if _NO_NUMBER.search(line) is not None:
                _parsed(line)
    return joined


_NO_NUMBER: Final = re.compile(rb"[:\[,]\s*[-+]?(NaN|Inf)")
"""Where a number stands that JSON does not have. A text may look so as well."""


def _are_lines(joined: bytes, count: int) -> bool:
    """Return whether a text is `count` objects, each a line: the whole text is looked at, because a
    call for each element takes longer than to decode it.
    """
    # A text between braces cannot go on in the next line: a string may not have a raw line break,
    # and `}` is not followed by `{`.
    return (
        joined[:1] == b"{"
        and joined[-1:] == b"}"
        and joined.count(b"\n") == count - 1 == joined.count(b"}\n{")
    )


def _as_line(element: bytes) -> bytes:
    """Return an object without line breaks.
    In JSON they are blanks, and inside of a string they are refused.
    """
    _parsed(element)
    return element.removeprefix(_MARK).replace(b"\n", b" ").replace(b"\r", b" ")


_MARK: Final = "\ufeff".encode()
"""A mark that some writers put before UTF-8."""


class _Object(list[tuple[str, Any]]):
    """A JSON object: its pairs, with those whose key comes twice."""


class _Number(str):
    """A number of JSON with its digits unchanged."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)  # for messages: a text has quotes


def _refuse(word: str) -> Any:
    raise ProtocolError(f"JSON has no {word}")


_decode: Final = json.JSONDecoder(
    object_pairs_hook=_Object, parse_int=_Number, parse_float=_Number, parse_constant=_refuse
).decode


def _parsed(element: bytes) -> _Object:
    value = _decode(element.decode("utf-8-sig"))
    if type(value) is not _Object:
        raise ProtocolError(f"an element has to be a JSON object, not {shown(value)}")
    return value


def _with_entries(value: Any, kind: pa.DataType | None) -> str:
    """Return the text of `value` for a column of the type `kind`, in
    which each map is the list of its entries.

    Fields that the schema does not name have no type.
    They are kept, because Arrow has to judge them as well.
    """
    if type(value) is _Number:
        return value
    if kind is not None and pa.types.is_map(kind) and value is not None:
        return _entries(value, kind)
    if type(value) is _Object:
        types = (
            {field.name: field.type for field in kind}
            if kind is not None and pa.types.is_struct(kind)
            else {}
        )
        rows = [
            f"{json.dumps(name)}:{_with_entries(each, types.get(name))}" for name, each in value
        ]
        return f"{{{','.join(rows)}}}"
    if type(value) is list:
        inner = kind.value_type if kind is not None and pa.types.is_list(kind) else None
        return f"[{','.join([_with_entries(each, inner) for each in value])}]"
    return json.dumps(value)


def _entries(value: Any, kind: pa.MapType) -> str:
    if type(value) is not _Object:
        raise ProtocolError(f"{shown(value)} is no {kind}")
    if len(dict(value)) < len(value):
        names = [name for name, _ in value]
        raise ProtocolError(
            f"the key {shown(next(name for name in names if names.count(name) > 1))} comes twice "
            "in a map"
        )
    has_bare_keys = any(
        is_type(kind.key_type)
        for is_type in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    )
    parts = []
    for name, each in value:
        key = name if has_bare_keys and _BARE.fullmatch(name) else json.dumps(name)
        parts.append(f'{{"key":{key},"value":{_with_entries(each, kind.item_type)}}}')
    return f"[{','.join(parts)}]"


_BARE: Final = re.compile(r"true|false|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
"""A key of a map that is a number or a truth of JSON in quotes."""


# --- types


def _has(kind: pa.DataType, is_type: Any) -> bool:
    return is_type(kind) or any(
        _has(kind.field(index).type, is_type) for index in range(kind.num_fields)
    )


_CONVERTED: Final = (pa.types.is_date, pa.types.is_binary, pa.types.is_map, pa.types.is_floating)
"""Types of columns that `_converted` has to see."""


def _as_written(kind: pa.DataType) -> pa.DataType:
    """Return the type in which Arrow is to read a column of JSON: a date is a text,
    ``"2026-01-02"``, also inside of other types.

    Arrow itself reads a date from a number of days alone: a text would be refused, and an id would
    become a date in silence. And it reads the text of bytes as the bytes themselves: base64 would
    arrive undecoded.
    """
    if pa.types.is_date(kind) or pa.types.is_binary(kind):
        return pa.string()
    if pa.types.is_map(kind):
        return pa.list_(
            pa.struct(
                [
                    pa.field("key", _as_written(kind.key_type)),
                    pa.field("value", _as_written(kind.item_type)),
                ]
            )
        )
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_as_written(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_as_written(field.type)) for field in kind])
    return kind


def _converted(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return what was read with the type `_as_written(kind)` in the type `kind`."""
    if pa.types.is_floating(kind) and pc.any(pc.is_inf(array)).as_py():
        raise ProtocolError(f"a number is too large for a column of type {kind}")
    if pa.types.is_date(kind):
        return array.cast(kind)
    if pa.types.is_binary(kind):
        return pa.array(
            [None if text is None else _bytes_of(text) for text in array.to_pylist()], kind
        )
    if pa.types.is_struct(kind):
        children = [_converted(array.field(index), field.type) for index, field in enumerate(kind)]
        return pa.Array.from_buffers(kind, len(array), array.buffers()[:1], children=children)
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        # A map is stored as a list of its entries is.
        inner = (
            pa.struct([kind.key_field, kind.item_field])
            if pa.types.is_map(kind)
            else kind.value_type
        )
        return pa.Array.from_buffers(
            kind, len(array), array.buffers()[:2], children=[_converted(array.values, inner)]
        )
    return array


def _bytes_of(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ProtocolError(
            f"{shown(text)} is no base64, which JSON has for bytes: {error}"
        ) from None
