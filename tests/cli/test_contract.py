"""The contract of a service, read from its description."""

from typing import Any

import pytest

from penstock.api import ProtocolError
from penstock.cli._contract import (
    ANY,
    MAX_DEPTH,
    NULL,
    RAW,
    TEXT,
    Choice,
    Contract,
    DictOf,
    ListOf,
    OneOf,
    Record,
    Scalar,
    TupleOf,
    contract_of,
)


def entry(**more: Any) -> dict[str, Any]:
    return {"name": "a", "kind": "publisher", "parameters": [], "summary": "", **more}


def contract(schema: Any) -> Contract:
    return contract_of([entry(serializer="json", elements_schema=schema)])


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (True, ANY),
        ({}, ANY),
        ({"type": "integer", "minimum": 1}, Scalar("int", (("minimum", 1),))),
        ({"type": ["string", "null"]}, OneOf((TEXT, NULL))),
        ({"type": "string", "format": "uuid"}, Scalar("UUID")),
        ({"type": "string", "format": "e-mail"}, TEXT),
        ({"type": "string", "contentEncoding": "base64"}, Scalar("bytes")),
        ({"enum": ["a", 1, None]}, OneOf((Choice(("a", 1)), NULL))),
        ({"enum": [True, 1.5]}, OneOf((Scalar("bool"), Scalar("float")))),
        ({"const": "a"}, Choice(("a",))),
        ({"type": "array"}, ListOf(ANY)),
        ({"type": "array", "prefixItems": [{"type": "null"}]}, TupleOf((NULL,), 0)),
        ({"type": "object"}, DictOf(TEXT, ANY)),
        (
            {"type": "object", "propertyNames": {"format": "int64"}},
            DictOf(Scalar("int"), ANY),
        ),
        ({"anyOf": [{"type": "null"}, {"oneOf": [{"type": "null"}]}]}, NULL),
        ({"anyOf": [{"type": "null"}, {}]}, ANY),
        ({"allOf": [{"type": "null"}]}, NULL),
        ({"$ref": "#/$defs/E", "$defs": {"E": {"title": "E", "enum": ["a"]}}}, Choice(("a",))),
    ],
)
def test_a_schema_becomes_a_type(schema: Any, expected: object) -> None:
    """What msgspec and pydantic write is read in full."""
    found = contract(schema)
    assert (found.offers[0].value, found.notes) == (expected, ())


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"type": "null"}, {"type": "string"}]},
        {"type": "evil"},
        {"enum": [[1]]},
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "array", "items": {"$ref": "#/$defs/A"}}}},
    ],
)
def test_what_is_not_known_becomes_any_value_with_a_note(schema: Any) -> None:
    """A wider type reads what a narrower one would have read."""
    found = contract(schema)
    assert found.notes
    assert found.notes[0].startswith("a: elements")
    kind = found.offers[0].value
    while isinstance(kind, ListOf):
        kind = kind.item
    assert kind == ANY


def test_a_type_without_fields_that_contains_itself_is_named() -> None:
    """Only a record can refer to itself in a generated file."""
    alias = {"type": "array", "items": {"$ref": "#/$defs/A"}}
    [note] = contract({"$ref": "#/$defs/A", "$defs": {"A": alias}}).notes
    assert note == "a: elements may be any value: 'A' contains itself"


def test_a_schema_without_end_is_cut() -> None:
    """The reader goes `MAX_DEPTH` deep, and tells."""
    schema: Any = {}
    for _ in range(MAX_DEPTH + 2):
        schema = {"type": "array", "items": schema}
    assert "more than 64 types deep" in contract(schema).notes[0]


@pytest.mark.parametrize(
    "wrong",
    [
        entry(kind="evil"),
        entry(name=""),
        entry(name=1),
        entry(serializer=1),
        entry(parameters=1),
        entry(parameters=[{"name": 1}]),
        entry(elements_schema=1),
        entry(elements_schema={"$ref": "#/$defs/none"}),
        entry(elements_schema={"$defs": 1}),
        entry(elements_schema={"$defs": {str(each): {} for each in range(1_001)}}),
        entry(elements_schema={"anyOf": 1}),
        entry(elements_schema={"enum": 1}),
        entry(elements_schema={"properties": 1}),
        entry(elements_schema={"properties": {"a": 1}}),
        entry(summary="\ud800"),
    ],
)
def test_a_malformed_description_is_refused(wrong: dict[str, Any]) -> None:
    """Nothing is written of it."""
    with pytest.raises(ProtocolError, match="cannot be read"):
        contract_of([wrong])


def quote(key: str) -> dict[str, Any]:
    return {"type": "object", "title": "Quote", "properties": {key: {"$ref": "#/$defs/Side"}}}


def test_one_class_of_two_entries_is_one_record() -> None:
    """Two classes of one name are two, also if they differ only in what they refer to."""
    sides = {"a": {"enum": ["a"]}, "b": {"enum": ["b"]}}

    def schema(key: str, side: str) -> dict[str, Any]:
        return {"$ref": "#/$defs/Q", "$defs": {"Q": quote(key), "Side": sides[side]}}

    first, again, other_key, other_side = (
        each.value
        for each in contract_of(
            [
                entry(name=str(number), elements_schema=schema(*each))
                for number, each in enumerate([("x", "a"), ("x", "a"), ("y", "a"), ("x", "b")])
            ]
        ).offers
    )
    assert isinstance(first, Record)
    assert first is again
    assert len({first, other_key, other_side}) == 3


def test_a_class_that_contains_itself_is_one_record() -> None:
    """Its field has the very type."""
    tree = {"type": "object", "title": "Tree", "properties": {"kid": {"$ref": "#/$defs/Tree"}}}
    kind = contract({"$ref": "#/$defs/Tree", "$defs": {"Tree": tree}}).offers[0].value
    assert isinstance(kind, Record)
    assert kind.fields[0].type is kind


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"elements": "bytes", "serializer": "bytes"}, RAW),
        ({"elements": "str", "serializer": "text"}, TEXT),
        ({"elements": "", "serializer": "json"}, ANY),
        ({"elements": "Quote", "serializer": "protobuf"}, ANY),
        ({"elements": "bytes", "serializer": "json"}, Scalar("bytes")),
    ],
)
def test_elements_without_a_schema_are_known_by_name(more: dict[str, Any], expected: Any) -> None:
    """Or not at all."""
    assert contract_of([entry(**more)]).offers[0].value == expected


def test_the_offers_of_penstock_itself_are_no_part_of_a_contract() -> None:
    """They come and go with the options of `serve`."""
    assert contract_of([entry(name="penstock/demand")]).offers == ()
