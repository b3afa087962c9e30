"""Annotations as types, and the types of the fields of a class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Generic, NotRequired, TypedDict, TypeVar

import pytest

from penstock.api import UsageError
from penstock.spi import resolve_annotation
from penstock.spi._annotations import class_hints, type_parameters

T = TypeVar("T")


class Quote:
    price: float
    other: Quote | None
    total: ClassVar[int] = 0


class Page(Generic[T]):
    items: list[T]


class Row(TypedDict):
    count: NotRequired[int]


def test_a_class_may_name_itself() -> None:
    """An annotation that is a text may contain the name of the class that it is in."""
    assert class_hints(Quote, Quote) == {"price": float, "other": Quote | None, "total": int}


def test_a_generic_class_gets_its_parameters() -> None:
    """Required and NotRequired say nothing about the value."""
    assert class_hints(Page[int], Page) == {"items": list[int]}
    assert class_hints(Row, Row) == {"count": int}


def test_names_of_streams_are_known_everywhere() -> None:
    """They are often imported for type checkers only."""
    assert resolve_annotation("Iterator[Quote]", {}, {"Quote": Quote}, "x") == Iterator[Quote]


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (
            "Fraction",
            (
                "x names 'Fraction', which is not known when the program runs; import or define "
                "'Fraction' at the top"
            ),
        ),
        ("list[", r"x is 'list\[', which is no type"),
        ("Quote.missing", "x is 'Quote.missing', which is no type"),
    ],
)
def test_an_annotation_that_is_no_type_is_refused(raw: object, says: str) -> None:
    """With what to do."""
    with pytest.raises(UsageError, match=says):
        resolve_annotation(raw, {}, {"Quote": Quote}, "x")


def test_most_classes_have_no_type_parameters() -> None:
    """Those of ``class Page[T]`` are known inside the class only."""
    assert type_parameters(Page) == {}
