"""Types of elements; `tests/elements/test_typed_json.py` sends and receives elements of each."""

import dataclasses
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType, TypedDict

import msgspec
import pydantic
import pytest

from penstock.api import UsageError
from penstock.spi import bare_type
from penstock.spi._element_type import element_type, is_model


@dataclasses.dataclass
class Quote:
    price: float


@dataclasses.dataclass
class Tree:
    name: str
    parts: "list[Tree]"


@dataclasses.dataclass
class Opened:
    kind: Literal["opened", "reopened"]
    state: Literal["a"]


class Closed(TypedDict):
    kind: Literal["closed"]
    state: Literal["a"]


class Struct(msgspec.Struct):
    x: int


class Model(pydantic.BaseModel):
    x: int


Inner = NewType("Inner", int)
Outer = NewType("Outer", Inner)


@pytest.mark.parametrize(
    ("kind", "classes", "has_floats"),
    [
        (Any, (object,), True),
        (object, (object,), True),
        (float, (float, int), True),
        (Decimal, (Decimal,), False),
        (Quote, (Quote,), True),
        (Tree, (Tree,), False),
        (list[Quote], (list, tuple), True),
        (list[int], (list, tuple), False),
        (tuple[int, str], (tuple,), False),
        (dict[str, tuple[int, float]], (dict,), True),
        (Annotated[int, msgspec.Meta(ge=1, title="a count")], (int,), False),
        (Literal["a", "b"], (str,), False),
        (str | None, (str, type(None)), False),
        (Struct, (Struct,), False),
        (Model, (Model,), True),
        (Outer, (int,), False),
    ],
    ids=str,
)
def test_a_type_names_its_classes_and_knows_if_a_number_may_be_nan(
    kind: Any, classes: tuple[type, ...], has_floats: bool
) -> None:
    """An element is checked by the first, and only elements with floats are examined for NaN."""
    found = element_type(kind)
    assert (set(found.classes), found.has_floats, found.tag) == (set(classes), has_floats, "")


def test_true_is_no_integer() -> None:
    """It is an int for Python."""
    assert [element_type(kind).takes(True) for kind in (int, float, bool, Any, int | bool)] == [
        False,
        False,
        True,
        True,
        True,
    ]


def test_records_are_told_apart_by_the_texts_of_one_field() -> None:
    """It is the first field that each of them has and whose texts differ."""
    found = element_type(Opened | Closed)
    assert found.tag == "kind"
    assert found.members == {"opened": Opened, "reopened": Opened, "closed": Closed}
    assert found.classes == (Opened, dict)


def test_a_class_of_a_function_that_names_itself_is_refused() -> None:
    """Msgspec looks names up in the module."""

    @dataclasses.dataclass
    class Local:
        parts: "list[Local]"

    with pytest.raises(UsageError, match="'Local', which is not known when the program runs"):
        element_type(Local)


def test_the_type_behind_a_name() -> None:
    """A NewType of a NewType; None is a type."""
    assert bare_type(Outer) is int
    assert bare_type(None) is type(None)


def test_models_are_recognised_without_an_import_of_pydantic() -> None:
    """By the attributes of the class."""
    assert is_model(Model)
    assert not is_model(Struct)
    assert not is_model("text")
