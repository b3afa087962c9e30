"""The JSON Schema of a type, for the description of a service."""

import dataclasses
from typing import Annotated, Any

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
