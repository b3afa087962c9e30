"""Classes with named fields as the keys of an object."""

import dataclasses
from typing import Any, Generic, Required, TypedDict, TypeVar

import attrs
import pytest

from penstock.spi._records import Field, record_of

T = TypeVar("T")


@dataclasses.dataclass
class Box(Generic[T]):
    item: T
    items: list[T] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Hand:
    x: int

    def __init__(self, x: int) -> None:
        self.x = x + 1


@dataclasses.dataclass
class Child(Hand):
    pass


@attrs.define
class Secret:
    _x: int
    y: Any = attrs.field(default=1, converter=int)


class Options(TypedDict, total=False):
    a: Required[int]
    b: str


def test_a_generic_class_gets_its_parameters() -> None:
    """Without parameters its fields may be anything."""
    of_int, of_any = record_of(Box[int]), record_of(Box)
    assert of_int is not None
    assert of_any is not None
    assert of_int.fields == (
        Field("item", "item", int, True),
        Field("items", "items", list[int], False),
    )
    assert [each.kind for each in of_any.fields] == [Any, list[Any]]


def test_the_key_of_an_attrs_field_is_its_alias() -> None:
    """A constructor with a converter is not usual."""
    record = record_of(Secret)
    assert record is not None
    assert [(each.key, each.name) for each in record.fields] == [("x", "_x"), ("y", "y")]
    assert not record.is_usual


def test_a_constructor_that_was_written_by_hand_is_not_usual() -> None:
    """Nor is that of a class whose base wrote it: the fields alone do not make such an object."""
    for kind, usual in ((Box, True), (Hand, False), (Child, True)):
        record = record_of(kind)
        assert record is not None
        assert record.is_usual is usual, kind


def test_the_keys_of_a_typed_dict() -> None:
    """The record of a TypedDict tells required keys from others."""
    record = record_of(Options)
    assert record is not None
    assert record.make is dict
    assert record.fields == (Field("a", "a", int, True), Field("b", "b", str, False))


@pytest.mark.parametrize("kind", [int, dict, list[int], "text", 5, None, object])
def test_other_types_are_no_records(kind: Any) -> None:
    """A class without declared fields has no record, and neither has dict."""
    assert record_of(kind) is None
