"""The annotations of a user's function."""

from __future__ import annotations

import collections.abc
import functools
from typing import TYPE_CHECKING, Annotated, Any

import pytest

from penstock.api import UsageError
from penstock.runtime.service._function_annotations import (
    Annotations,
    called_function,
    element_type_of,
)
from penstock.streams import Source, Topic

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
    from fractions import Fraction


class Quote:
    pass


async def generator() -> AsyncGenerator[Quote, None]:
    yield Quote()


async def iterator() -> AsyncIterator[list[Quote]]:
    yield []


def plain() -> Iterator[Quote]:
    yield Quote()


def source() -> Source[Quote]:
    raise AssertionError


def topic() -> Topic[Quote]:
    raise AssertionError


def listed() -> Annotated[list[Quote], "all of them"]:
    return []


def pair() -> tuple[int, str]:
    return 1, "a"


def many() -> tuple[int, ...]:
    return ()


def mapping() -> Mapping[str, int]:
    return {}


def bare() -> Source:  # type: ignore[type-arg]  # what is tried
    raise AssertionError


def without():  # type: ignore[no-untyped-def]  # what is tried
    return []


class Called:
    async def __call__(self) -> AsyncIterator[Quote]:
        yield Quote()


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (generator, Quote),
        (iterator, list[Quote]),
        (plain, Quote),
        (source, Quote),
        (topic, Quote),
        (listed, Quote),
        (functools.partial(listed), Quote),
        (Called(), Quote),
        (many, int),
        (pair, None),
        (mapping, None),
        (bare, None),
        (without, None),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_the_type_of_the_elements_is_read_from_the_return_annotation(
    function: Any, kind: Any
) -> None:
    """The name of the stream may be imported for type checkers only. A mapping does not count as a
    stream of its keys.
    """
    assert element_type_of(function, "x") == kind


def test_a_name_that_is_not_known_at_run_time_is_refused_with_what_to_do() -> None:
    """Only the annotation that is asked for counts."""

    def function(known: int, unknown: Fraction, wrong: int) -> AsyncIterator[Fraction]:
        raise AssertionError

    function.__annotations__["wrong"] = "list["
    annotations = Annotations(function, "'quotes'")
    assert annotations.of("known") is int
    assert annotations.of("absent", str) is str
    with pytest.raises(
        UsageError,
        match=(
            "'quotes': the annotation of the parameter 'unknown' names 'Fraction', which is not "
            "known when"
        ),
    ):
        annotations.of("unknown")
    with pytest.raises(
        UsageError, match=r"the annotation of the parameter 'wrong' is .* which is no type"
    ):
        annotations.of("wrong")
    with pytest.raises(
        UsageError, match=r"x: the return annotation names 'Fraction'.*TYPE_CHECKING"
    ):
        element_type_of(function, "x")


def test_a_class_of_an_enclosing_function_is_found() -> None:
    """If the function uses it: Python knows it then."""

    class Local:
        pass

    async def publisher() -> AsyncIterator[Local]:
        yield Local()

    assert element_type_of(publisher, "x") is Local


def test_what_runs_is_inside_partials_and_objects() -> None:
    """`called_function` returns the function whose annotations count."""
    called = Called()
    assert called_function(functools.partial(functools.partial(pair))) is pair
    assert called_function(called) is Called.__call__
    assert called_function(Quote) is Quote


def test_an_annotation_that_is_no_type_is_refused() -> None:
    """With what it is."""

    def function(first: int, second: int) -> None: ...

    function.__annotations__ |= {"first": "Quote.missing", "second": "Mapping[str, Quote]"}
    annotations = Annotations(function, "x")
    with pytest.raises(UsageError, match=r"is 'Quote\.missing', which is no type"):
        annotations.of("first")
    # The names of streams and of other usual types are known everywhere.
    assert annotations.of("second") == collections.abc.Mapping[str, Quote]
