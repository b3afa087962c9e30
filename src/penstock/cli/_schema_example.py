"""A JSON Schema as a list of fields and as an example, for a person.

Rules of this file:

* A schema is a text of the server: it may be anything that JSON can be. What is not understood is
  left out, and depth and number are bounded.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

DEEPEST: Final = 6
"""Levels of an example: a class may contain itself."""

MOST_FIELDS: Final = 200

_TEXTS: Final = {
    "date": "2026-07-01",
    "date-time": "2026-07-01T10:00:00Z",
    "time": "10:00:00",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "decimal": "1.0",
    "duration": "PT1S",
}
BASE64: Final = "dGV4dA=="
"""An example of bytes, which JSON carries in base64."""
_PLAIN: Final[Mapping[str, Any]] = {
    "string": "text",
    "boolean": True,
    "null": None,
    "array": [],
    "object": {},
}


def fields_of(schema: object) -> Iterator[tuple[str, str, bool]]:
    """Yield name, type and whether it must be given, of each field of a record; of the records in
    a list, too. Nothing for another type.
    """
    whole = _mapping(schema)
    record = _resolved(whole, whole)
    if record.get("type") == "array":
        record = _resolved(_mapping(record.get("items")), whole)
    required = record.get("required")
    needed = required if isinstance(required, list) else []
    for name, field in list(_mapping(record.get("properties")).items())[:MOST_FIELDS]:
        yield name, _type_of(_mapping(field), whole, DEEPEST), name in needed


def example_of(schema: object) -> Any:
    """Return a value that fits a schema, as far as this file understands it."""
    whole = _mapping(schema)
    return _example(whole, whole, DEEPEST)


def _type_of(schema: Mapping[str, Any], whole: Mapping[str, Any], left: int) -> str:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return reference.rpartition("/")[2]
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " | ".join(map(repr, values[:10])) if isinstance(values, list) else "any"
    if left and (choices := _choices(schema)):
        return " | ".join(_type_of(each, whole, left - 1) for each in choices[:10])
    kind = schema.get("type")
    if kind == "array" and left and "items" in schema:
        return f"array of {_type_of(_mapping(schema['items']), whole, left - 1)}"
    form = schema.get("format")
    text = kind if isinstance(kind, str) else "any"
    return f"{text} ({form})" if isinstance(form, str) else text


def _example(schema: Mapping[str, Any], whole: Mapping[str, Any], left: int) -> Any:
    schema = _resolved(schema, whole)
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    for key in ("examples", "enum"):
        if isinstance(values := schema.get(key), list) and values:
            return values[0]
    if left and (choices := _choices(schema)):
        return _example(choices[0], whole, left - 1)
    kind = schema.get("type")
    if left and kind in ("object", "array"):
        return _container(schema, whole, left)
    return _scalar(kind, schema) if isinstance(kind, str) else None


def _container(schema: Mapping[str, Any], whole: Mapping[str, Any], left: int) -> Any:
    if schema["type"] == "array":
        return _array(schema, whole, left)
    required = schema.get("required")
    properties = _mapping(schema.get("properties"))
    return {
        name: _example(_mapping(field), whole, left - 1)
        for name, field in list(properties.items())[:MOST_FIELDS]
        if not isinstance(required, list) or name in required
    }


def _array(schema: Mapping[str, Any], whole: Mapping[str, Any], left: int) -> list[Any]:
    """Return a list with as many parts as must be given: those of a tuple each have a schema, and
    may be followed by others.
    """
    parts, items, least = (schema.get(key) for key in ("prefixItems", "items", "minItems"))
    parts = parts if isinstance(parts, list) else []
    wanted = least if isinstance(least, int) and least >= 0 else len(parts)
    if not parts and isinstance(items, dict):
        wanted = max(1, wanted)  # one shows what is in the list
    wanted = min(wanted, MOST_FIELDS)
    schemas = [*parts[:wanted], *[items] * (wanted - len(parts))]
    return [_example(_mapping(each), whole, left - 1) for each in schemas]


def _scalar(kind: str, schema: Mapping[str, Any]) -> Any:
    if kind in ("integer", "number"):
        least = schema.get("minimum", 1)
        return least if isinstance(least, int | float) else 1
    if kind == "string" and schema.get("contentEncoding") == "base64":
        return BASE64
    if kind == "string" and isinstance(form := schema.get("format"), str):
        return _TEXTS.get(form, "text")
    return _PLAIN.get(kind)


def _choices(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    for key in ("anyOf", "oneOf"):
        if isinstance(found := schema.get(key), list) and found:
            return [_mapping(each) for each in found]
    return []


def _resolved(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the definition that a schema refers to, or the schema itself."""
    for _ in range(DEEPEST):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        schema = _mapping(_mapping(whole.get("$defs")).get(reference.removeprefix("#/$defs/")))
    return schema


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
