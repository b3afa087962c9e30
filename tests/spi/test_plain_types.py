"""Types of elements; `tests/elements/test_typed_json.py` sends and receives elements of each."""

import dataclasses
import enum
from decimal import Decimal
from typing import Any, Literal, NewType

import msgspec
import pytest

from penstock.api import UsageError
from penstock.spi import plain_type
from penstock.spi._plain_types import bare_type, is_model, is_struct


@dataclasses.dataclass
class Quote:
    price: float


@dataclasses.dataclass
class WithInitOnly:
    price: float
    scale: dataclasses.InitVar[float]


class Untagged(msgspec.Struct):
    x: int


class Other(msgspec.Struct):
    y: int


class Mixed(enum.Enum):
    A = "a"
    B = 1


class Tuples(enum.Enum):
    A = (1, 2)


Inner = NewType("Inner", int)
Outer = NewType("Outer", Inner)


@pytest.mark.parametrize(
    ("kind", "takes", "classes"),
    [
        (Any, {str, int, float, bool, type(None), list, dict}, None),
        (float, {float, int}, (float, int)),
        (Decimal, {str, int, float}, (Decimal,)),
        (Quote, {dict}, (Quote,)),
        (list[Quote], {list}, (list, tuple)),
        (Quote | None, {dict, type(None)}, (type(None), Quote)),
        (Mixed, {str, int}, (Mixed,)),
    ],
    # Without the sets: the order of classes in them differs from one process to the next, and
    # workers must agree on the names of tests.
    ids=lambda value: "" if isinstance(value, set) else str(value),
)
def test_a_type_names_its_plain_values_and_its_classes(
    kind: Any, takes: set[type], classes: tuple[type, ...] | None
) -> None:
    """A union is read by the first, and an element is checked by the second."""
    built = plain_type(kind)
    assert built.takes == takes
    assert built.classes is None if classes is None else set(built.classes or ()) == set(classes)


@pytest.mark.parametrize(
    ("kind", "usual"), [(Quote, True), (Mixed, False), (Literal["a"], True), (Literal[True], False)]
)
def test_what_msgspec_treats_in_another_way_is_not_usual(kind: Any, usual: bool) -> None:
    """Python's json is used for it."""
    assert plain_type(kind).is_usual is usual


@pytest.mark.parametrize(
    ("kind", "floats"),
    [(Quote, True), (list[int], False), (Any, True), (Untagged, True), (str | None, False)],
)
def test_a_type_knows_if_a_number_may_be_nan(kind: Any, floats: bool) -> None:
    """Only such elements are examined for it."""
    assert plain_type(kind).has_floats is floats


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (WithInitOnly, "the constructor of WithInitOnly takes other parameters than its fields"),
        (Untagged | Other, "msgspec does not support Untagged or Other"),
        (Tuples, "the values of Tuples are of type tuple"),
    ],
)
def test_a_type_that_no_plain_value_can_become_is_refused(kind: Any, says: str) -> None:
    """The type is refused when it is given, before any element is sent."""
    with pytest.raises(UsageError, match=says):
        plain_type(kind)


def test_the_type_behind_a_name() -> None:
    """A NewType of a NewType; None is a type."""
    assert bare_type(Outer) is int
    assert bare_type(None) is type(None)


def test_classes_of_other_libraries() -> None:
    """They are recognised by their attributes."""
    assert is_struct(Untagged)
    assert not is_struct(Quote)
    assert not is_struct("text")
    assert not is_model(Untagged)
