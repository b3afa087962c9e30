"""The JSON Schema of a type, for the description of a service."""

import dataclasses
import datetime as dt
import enum
import json
import uuid
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest

from penstock.spi import json_schema_of


@dataclasses.dataclass
class Price:
    """What is paid.

    This is for readers of the program.
    """

    amount: float
    currency: str = "EUR"


class Order(pydantic.BaseModel):
    """An order of pydantic."""

    prices: list[int]


class Odd:
    """A class of which nothing is known."""


def test_a_record_has_its_fields() -> None:
    """With the first line of its docstring, and no other."""
    assert json_schema_of(Price) == {
        "$ref": "#/$defs/Price",
        "$defs": {
            "Price": {
                "title": "Price",
                "description": "What is paid.",
                "type": "object",
                "properties": {
                    "amount": {"type": "number"},
                    "currency": {"type": "string", "default": "EUR"},
                },
                "required": ["amount"],
            }
        },
    }


def test_a_model_of_pydantic_describes_itself() -> None:
    """As its own schema says."""
    found = json_schema_of(Order)
    assert found is not None
    assert found["properties"]["prices"]["items"] == {"type": "integer"}
    assert found["description"] == "An order of pydantic."


@pytest.mark.parametrize("kind", [None, object, Any, Odd, list[Odd], complex])
def test_what_has_no_schema_is_left_out(kind: Any) -> None:
    """The name of the type is all that is said then."""
    assert json_schema_of(kind) is None


def test_a_type_that_cannot_be_hashed_is_described_too() -> None:
    """It is not remembered."""
    kind = Annotated[int, msgspec.Meta(ge=0), []]
    with pytest.raises(TypeError):
        hash(kind)
    assert json_schema_of(kind) == {"type": "integer", "minimum": 0}


class Side(enum.Enum):
    """An Enum of texts."""

    BUY = "buy"


class Tagged(msgspec.Struct, tag=True, array_like=True):
    """A record that travels as a list: its tag is the first part."""

    when: dt.datetime
    names: list[str] = []


@dataclasses.dataclass
class Opened:
    kind: Literal["opened"] = "opened"
    at: dt.time | None = None


@dataclasses.dataclass
class Closed:
    kind: Literal["closed"] = "closed"
    parts: dict[int, dt.datetime] = dataclasses.field(default_factory=dict)


TIME = {"type": "string", "format": "date-time"}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (dt.datetime, TIME),
        (dt.time, {"type": "string", "format": "time"}),
        (list[dt.datetime], {"type": "array", "items": TIME}),
        (dt.datetime | int | None, {"anyOf": [{"type": "integer"}, TIME, {"type": "null"}]}),
        (Annotated[dt.datetime, msgspec.Meta(title="T")], {**TIME, "title": "T"}),
        (dict[uuid.UUID, int], {"format": "uuid"}),
        (dict[int, int], {"format": "int64"}),
        (dict[Side, int], {"enum": ["buy"]}),
        (dict[Literal["a"], int], {"enum": ["a"]}),
    ],
)
def test_times_and_keys_are_told(kind: Any, expected: dict[str, Any]) -> None:
    """The schema of msgspec leaves them out."""
    found = json_schema_of(kind)
    assert found is not None
    if found.get("type") == "object":
        assert found["propertyNames"] == expected
    elif "anyOf" in found:
        assert sorted(found["anyOf"], key=str) == sorted(expected["anyOf"], key=str)
    else:
        assert found == expected


def test_the_parts_of_a_record_that_travels_as_a_list_are_told() -> None:
    """Its tag comes before its fields, and a list that may be missing begins empty."""
    found = json_schema_of(Tagged)
    assert found is not None
    _, when, names = found["$defs"]["Tagged"]["prefixItems"]
    assert (when, names["default"]) == (TIME, [])


def test_a_union_of_dataclasses_that_a_text_tells_apart_is_described() -> None:
    """As a whole element it can be sent, so it has a schema with the key that tells them apart."""
    found = json_schema_of(Opened | Closed)
    assert found is not None
    assert found["anyOf"] == [{"$ref": "#/$defs/Opened"}, {"$ref": "#/$defs/Closed"}]
    assert found["discriminator"] == {"propertyName": "kind"}
    parts = found["$defs"]["Closed"]["properties"]["parts"]
    assert parts == {
        "type": "object",
        "additionalProperties": TIME,
        "propertyNames": {"format": "int64"},
        "default": {},
    }
    at = found["$defs"]["Opened"]["properties"]["at"]
    assert at["anyOf"] == [{"type": "string", "format": "time"}, {"type": "null"}]


@dataclasses.dataclass
class Bounds:
    properties: float = float("inf")
    default: tuple[float, ...] = (1.0, float("nan"))
    by_name: dict[str, list[float]] | None = None
    half: str = "\ud800"
    most: float = 5.0


class NestedBounds(msgspec.Struct):
    inner: Bounds = Bounds(by_name={"a": [float("-inf")]})
    most: float = 5.0


class Model(pydantic.BaseModel):
    most: float = float("inf")
    least: float = pydantic.Field(5.0, examples=[float("-inf")])
    words: dict[str, str] = {"description": "one\ntwo"}


def test_a_default_that_json_cannot_carry_is_left_out() -> None:
    """One such value would end the description of the whole service. The field stays, and it may
    be left out as before.
    """
    bounds, nested, model = map(json_schema_of, (Bounds, NestedBounds, Model))
    assert bounds is not None
    assert nested is not None
    assert model is not None
    json.dumps([bounds, nested, model], allow_nan=False, ensure_ascii=False).encode()
    fields = bounds["$defs"]["Bounds"]["properties"]
    assert fields["properties"] == {"type": "number"}
    assert fields["default"] == {"type": "array", "items": {"type": "number"}}
    assert fields["half"] == {"type": "string"}
    assert fields["most"] == {"type": "number", "default": 5.0}
    assert bounds["$defs"]["Bounds"]["required"] == []
    assert nested["$defs"]["NestedBounds"]["properties"]["inner"] == {"$ref": "#/$defs/Bounds"}
    assert model["properties"]["most"] == {"title": "Most", "type": "number"}
    assert model["properties"]["least"] == {"title": "Least", "type": "number", "default": 5.0}
    assert model["properties"]["words"]["default"] == {"description": "one\ntwo"}
