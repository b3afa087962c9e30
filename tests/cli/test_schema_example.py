"""A JSON Schema as fields and as an example."""

from typing import Any

import pytest

from penstock.cli._schema_example import example_of, fields_of

NODE: dict[str, Any] = {
    "$ref": "#/$defs/Node",
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "next": {"$ref": "#/$defs/Node"},
                "at": {"type": "string", "format": "date-time"},
                "kind": {"enum": ["a", "b"]},
                "size": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
                "parts": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["next", "at", "kind", "parts"],
        }
    },
}


def test_fields_are_those_of_the_record() -> None:
    """Through its reference, with the names of classes."""
    assert list(fields_of(NODE)) == [
        ("next", "Node", True),
        ("at", "string (date-time)", True),
        ("kind", "'a' | 'b'", True),
        ("size", "integer | null", False),
        ("parts", "array of string", True),
    ]
    assert list(fields_of({"type": "array", "items": NODE["$defs"]["Node"]}))[1][0] == "at"


def test_an_example_of_a_class_that_contains_itself_has_an_end() -> None:
    """Fields that need not be given are left out."""
    value, depth = example_of(NODE), 0
    assert value["at"] == "2026-07-01T10:00:00Z"
    assert (value["kind"], value["parts"]) == ("a", ["text"])
    assert "size" not in value
    while value := value.get("next"):
        depth += 1
    assert depth == 5


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "number"}, 1),
        ({"type": "boolean"}, True),
        ({"const": 7}, 7),
        ({"examples": [3]}, 3),
        ({"default": 4, "type": "integer"}, 4),
        ({"type": "null"}, None),
        ({"oneOf": [{"type": "string"}]}, "text"),
        ({"type": "array"}, []),
        ({"type": "string", "format": "duration"}, "PT1S"),
        ({"type": "string", "contentEncoding": "base64"}, "dGV4dA=="),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"const": "a"}]}, [1, "a"]),
        (
            {"type": "array", "prefixItems": [{"type": "integer"}, {"const": "a"}], "minItems": 1},
            [1],
        ),
        (
            {"type": "array", "prefixItems": [{"const": "a"}], "items": False, "minItems": 1},
            ["a"],
        ),
    ],
)
def test_an_example_fits_its_schema(schema: object, expected: object) -> None:
    """Each kind of value."""
    assert example_of(schema) == expected


@pytest.mark.parametrize(
    "schema",
    [
        None,
        1,
        [],
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"$ref": 1},
        {"$ref": "#/$defs/a", "$defs": 7},
        {"type": ["integer"]},
        {"type": []},
        {"anyOf": [1]},
        {"enum": 1},
        {"type": "object", "properties": [1], "required": 2},
        {"properties": {"a": 1}, "required": [1]},
        {"type": "string", "format": {}},
        {"type": "integer", "minimum": "x"},
        {"type": "array", "prefixItems": 1, "items": 2, "minItems": "x"},
        {"type": "array", "prefixItems": [1], "items": False, "minItems": 10**9},
    ],
)
def test_a_schema_that_is_none_raises_nothing(schema: object) -> None:
    """A server may send any JSON."""
    example_of(schema)
    for name, kind, _ in fields_of(schema):
        assert isinstance(name, str)
        assert isinstance(kind, str)
