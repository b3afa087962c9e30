"""One level of a value as plain values."""

import dataclasses
import enum
from datetime import date

import msgspec
import pydantic
import pytest

from penstock.spi import TypeCodeFailed, to_plain


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    cached: int = dataclasses.field(default=0, init=False)


class Struct(msgspec.Struct):
    x: int


class Model(pydantic.BaseModel):
    x: int = pydantic.Field(alias="X")


class Computed(Point):
    @property
    def x(self) -> int:
        raise KeyError("x")

    @x.setter
    def x(self, value: int) -> None: ...


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Point(1), {"x": 1}),
        (Color.RED, "red"),
        (date(2026, 1, 31), "2026-01-31"),
        ({1}, [1]),
        (frozenset(), []),
        (Struct(1), {"x": 1}),
        (Model(X=1), {"X": 1}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_kind_of_value_becomes_a_plain_one(value: object, plain: object) -> None:
    """Fields that the constructor does not take are left out."""
    assert to_plain(value) == plain


@pytest.mark.parametrize("value", [object(), 1j, range(3), Color])
def test_other_values_have_no_form(value: object) -> None:
    """The JSON encoder expects a TypeError."""
    with pytest.raises(TypeError, match="has no form in JSON"):
        to_plain(value)


def test_code_of_the_class_that_raises_is_named() -> None:
    """The serializer that asked for the fields is not to blame."""
    with pytest.raises(TypeCodeFailed) as failed:
        to_plain(Computed(1))
    assert str(failed.value) == (
        "the code of Computed raised KeyError('x') when its fields were read: a property or "
        "__getattr__, and not the serializer. Correct it there"
    )
    assert isinstance(failed.value.__cause__, KeyError)
