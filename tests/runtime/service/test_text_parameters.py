"""Texts become the values of parameters."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NewType
from uuid import UUID

import pytest

from penstock.api import UsageError
from penstock.runtime.service._text_parameters import (
    is_list,
    text_type,
    texts_reader,
    why_never_from_text,
    without_none,
)


class Side(Enum):
    BUY = "buy"


class Level(Enum):
    LOW = 1


class Celsius:
    def __init__(self, text: str) -> None:
        self.degrees = float(text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Celsius) and other.degrees == self.degrees

    __hash__ = None  # type: ignore[assignment]  # no test needs it


UserId = NewType("UserId", int)
GOOD: list[tuple[Any, list[str], Any]] = [
    (str, ["a b"], "a b"),
    (int, ["-12"], -12),
    (float, ["1"], 1.0),
    (float, ["-.5e-3"], -0.0005),
    (float, ["1."], 1.0),
    (bool, ["ON"], True),
    (date, ["2026-01-31"], date(2026, 1, 31)),
    (datetime, ["2026-01-31T12:00:00Z"], datetime(2026, 1, 31, 12, tzinfo=UTC)),
    (datetime, ["2026-01-31T12:00:00 00:00"], datetime(2026, 1, 31, 12, tzinfo=UTC)),
    (time, ["12:30:00"], time(12, 30)),
    (timedelta, ["P1DT3S"], timedelta(days=1, seconds=3)),
    (timedelta, ["-PT0.5S"], timedelta(seconds=-0.5)),
    (Decimal, ["1.50"], Decimal("1.50")),
    (Decimal, ["-1e-3"], Decimal("-0.001")),
    (UUID, ["12345678-1234-5678-1234-567812345678"], UUID("12345678123456781234567812345678")),
    (Literal["1m", 5, True], ["1m"], "1m"),
    (Literal["1m", 5, True], ["5"], 5),
    (Literal["1m", 5, True], ["yes"], True),
    (Literal["a"] | None, ["a"], "a"),
    (Side, ["buy"], Side.BUY),
    (Level, ["1"], Level.LOW),
    (UserId, ["7"], 7),
    (Annotated[int, "an id"], ["7"], 7),
    (Annotated[UserId | None, "an id"], ["7"], 7),
    (Celsius, ["21.5"], Celsius("21.5")),
    (list[int], ["1", "2"], [1, 2]),
    (list, ["a", "b"], ["a", "b"]),
    (tuple[date, ...], ["2026-01-31"], (date(2026, 1, 31),)),
    (set[Side] | None, ["buy", "buy"], {Side.BUY}),
    (Any, ["a"], "a"),
]


@pytest.mark.parametrize(
    ("kind", "texts", "value"), GOOD, ids=[f"{case[0]}-{case[1]}" for case in GOOD]
)
def test_texts_become_a_value_of_the_annotated_type(
    kind: Any, texts: list[str], value: object
) -> None:
    """And no advice is needed."""
    assert why_never_from_text(kind) == ""
    read = texts_reader(kind, "x")(texts)
    assert (read, type(read)) == (value, type(value))


BAD: list[tuple[Any, list[str]]] = [
    *((int, [text]) for text in ("", "1_0", "+1", " 1", "1.0", "٣", "1" * 41)),
    *(
        (float, [text])
        for text in ("", "1_0", "+1", "nan", "inf", "1e999", "٣", " 1", ".", "1e1000")
    ),
    *(
        (Decimal, [text])
        for text in ("", "1_0", "NaN", "sNaN", "Infinity", "1e1000", "٣", "1" * 41)
    ),
    *((date, [text]) for text in ("2026-1-31", "20260131", "2026-02-30", "2026-W05-6")),
    *((timedelta, [text]) for text in ("", "3", "1 day, 0:00:03", "P1Y", "P9999999999D")),
    *((datetime, [text]) for text in ("2026-01-31", "2026-01-31T12", "0")),
    *(
        (UUID, [text])
        for text in (
            "x",
            "{12345678123456781234567812345678}",
            "urn:uuid:12345678123456781234567812345678",
        )
    ),
    *((Literal["1m", 5, True], [text]) for text in ("", "2m", "05", "no")),
    *((Side, [text]) for text in ("BUY", "")),
    *((Level, [text]) for text in ("2", "LOW", "1_0")),
    *((bool, [text]) for text in ("", "2")),
    (int, ["1", "2"]),
    (list[int], ["1", "x"]),
]


@pytest.mark.parametrize(("kind", "texts"), BAD, ids=[f"{case[0]}-{case[1]}" for case in BAD])
def test_a_text_that_is_no_usual_spelling_is_refused(kind: Any, texts: list[str]) -> None:
    """Python's own classes take some of them."""
    with pytest.raises((ValueError, KeyError)):
        texts_reader(kind, "x")(texts)


@pytest.mark.parametrize(
    "kind",
    [int | str, list[int | str], dict[str, int], tuple[int, str], list[list[int]], 5, "int"],
    ids=str,
)
def test_an_annotation_that_no_text_fits_is_refused(kind: Any) -> None:
    """With the types that do."""
    with pytest.raises(
        UsageError,
        match=r"x is annotated with .*; annotate it with a type that takes a text: str, int",
    ):
        texts_reader(kind, "x")


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        (bytes, "encode it"),
        (list[bytes], "encode it"),
        (dict, "apart"),
        (ValueError, "apart"),
        (object, "str"),
    ],
)
def test_a_type_that_a_text_fits_by_accident_has_advice(kind: Any, advice: str) -> None:
    """dict("") is an empty dict."""
    assert advice in why_never_from_text(kind)


def test_a_type_without_its_names() -> None:
    """`| None` says that the parameter has a default, and not what it is."""
    assert text_type(Annotated[UserId | None, "an id"]) is int
    assert without_none(int | None) is int
    assert without_none(int | str | None) == int | str | None
    assert [
        is_list(kind)
        for kind in (list, list[int] | None, tuple[int, ...], tuple[int, str], str, dict)
    ] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]
