"""The JSON Schema of a type of elements, for the description of a service.

msgspec makes it. What msgspec knows of a type and does not tell is added: that a text is a time,
what the keys of an object are, and that a field begins as an empty list.
"""

import json
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import inspect as kinds

from penstock.spi._element_type import is_model, tagged_members

MOST_TYPES: Final = 1_000
"""Types whose schemas are remembered: a description is asked for by peers, and a schema takes some
100 microseconds.
"""


def json_schema_of(kind: Any) -> dict[str, Any] | None:
    """Return the schema of a type; None for one that says nothing, and for one of which none can be
    made. Descriptions in it are the first lines of docstrings. A default that JSON cannot carry,
    infinity for example, is left out.
    """
    if kind is None or kind is object or kind is Any:
        return None
    try:
        return _schema_of(kind)
    except TypeError:  # a type that cannot be hashed, Annotated[int, []] for example
        return _schema_of.__wrapped__(kind)


@lru_cache(MOST_TYPES)
def _schema_of(kind: Any) -> dict[str, Any] | None:
    try:
        schema: dict[str, Any] = (
            kind.model_json_schema() if is_model(kind) else _schema_of_msgspec(kind)
        )
    # boundary: the classes of a program, and libraries that make schemas of them
    except Exception:
        return None
    return dict(_for_peers(schema))


_REFERENCE: Final = "#/$defs/"

_FORMATS: Final[dict[type, str]] = {kinds.DateTimeType: "date-time", kinds.TimeType: "time"}
"""msgspec gives these only to values with a time zone. pydantic gives them to all."""

_KEYS: Final[dict[type, str]] = {
    kinds.IntType: "int64",
    kinds.DateTimeType: "date-time",
    kinds.DateType: "date",
    kinds.TimeType: "time",
    kinds.DecimalType: "decimal",
    kinds.UUIDType: "uuid",
}
"""The formats of keys, which are texts in JSON."""


def _schema_of_msgspec(kind: Any) -> dict[str, Any]:
    tag, members = tagged_members(kind)
    wanted = list(dict.fromkeys(members.values())) or [kind]
    schemas, definitions = msgspec.json.schema_components(
        wanted, ref_template=_REFERENCE + "{name}"
    )
    seen: set[str] = set()
    for each, schema in zip(wanted, schemas, strict=True):
        _tell_more(kinds.type_info(each), schema, definitions, seen)
    whole: dict[str, Any] = (
        {"anyOf": list(schemas), "discriminator": {"propertyName": tag}} if members else schemas[0]
    )
    return {**whole, "$defs": definitions} if definitions else whole


def _tell_more(
    info: Any, schema: dict[str, Any], definitions: dict[str, Any], seen: set[str]
) -> None:
    """Add to a schema what `info` says beside it. `seen` has the definitions that are done."""
    while isinstance(info, kinds.Metadata):
        info = info.type
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_REFERENCE)
        if name in seen:
            return
        seen.add(name)
        schema = definitions[name]
    if type(info) in _FORMATS:
        schema.setdefault("format", _FORMATS[type(info)])
    if isinstance(info, kinds.DictType) and (keys := _keys(info.key_type)):
        schema["propertyNames"] = keys
    for inner, place in _parts_of(info, schema):
        _tell_more(inner, place, definitions, seen)


def _parts_of(info: Any, schema: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the types inside a type, each with its schema."""
    if isinstance(info, kinds.UnionType):
        # In the order of msgspec: records last.
        order = [each for each in info.types if not _is_record(each)]
        order += [each for each in info.types if _is_record(each)]
        order = [each for each in order if not isinstance(each, kinds.NoneType)]
        yield from zip(order, _members_of(schema), strict=False)
    elif isinstance(info, kinds.DictType):
        if "additionalProperties" in schema:
            yield info.value_type, schema["additionalProperties"]
    elif isinstance(info, kinds.TupleType):
        yield from zip(info.item_types, schema.get("prefixItems", ()), strict=False)
    elif hasattr(info, "item_type"):
        if "items" in schema:
            yield info.item_type, schema["items"]
    elif hasattr(info, "fields"):
        # A tag comes before the fields of a record that travels as a list.
        listed = schema.get("prefixItems", ())[-len(info.fields) :]
        for number, field in enumerate(info.fields):
            place = listed[number] if listed else schema["properties"][field.encode_name]
            if field.default_factory in (list, dict, set):
                place.setdefault("default", {} if field.default_factory is dict else [])
            yield field.type, place


def _is_record(info: Any) -> bool:
    while isinstance(info, kinds.Metadata):
        info = info.type
    return isinstance(info, kinds.StructType) and not info.array_like


def _members_of(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for each in schema["anyOf"]:
        if "anyOf" in each:
            yield from each["anyOf"]
        else:
            yield each


def _keys(info: Any) -> dict[str, Any] | None:
    while isinstance(info, kinds.Metadata):
        info = info.type
    if type(info) in _KEYS:
        return {"format": _KEYS[type(info)]}
    values: list[Any] = []
    if isinstance(info, kinds.LiteralType):
        values = list(info.values)
    elif isinstance(info, kinds.EnumType) and issubclass(info.cls, Enum):
        values = [each.value for each in info.cls]
    return {"enum": values} if values and all(isinstance(each, str) for each in values) else None


_PARTS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
"""Keywords of JSON Schema that have a schema under each name."""

_SCHEMAS: Final = frozenset(
    {"items", "prefixItems", "additionalProperties", "propertyNames", "contains", "not"}
    | {"allOf", "anyOf", "oneOf", "if", "then", "else"}
)
"""Keywords that have a schema, or a list of them."""


def _for_peers(schema: Any) -> Any:
    """Return a schema as a description has it: without the texts behind the first line of a
    docstring, which are written for readers of the program, and without values that JSON cannot
    carry: a default of infinity would end the description of the whole service.
    """
    if isinstance(schema, list):
        return [_for_peers(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {}
    for key, value in schema.items():
        if key in _PARTS and isinstance(value, dict):
            found[key] = {name: _for_peers(each) for name, each in value.items()}
        elif key in _SCHEMAS:
            found[key] = _for_peers(value)
        elif _is_json(value):
            is_text = key == "description" and isinstance(value, str)
            found[key] = value.strip().partition("\n")[0] if is_text else value
    return found


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        # Half a surrogate pair, and a number of more than 4,300 digits, are ValueErrors.
        return False
    return True
