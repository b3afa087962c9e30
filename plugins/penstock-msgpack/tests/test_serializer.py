"""The serializer ``msgpack``."""

import contextlib
import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock_msgpack import MsgpackSerializer

from penstock.api import ProtocolError, UsageError

SERIALIZER = MsgpackSerializer()
UTC = dt.UTC


class Quote(msgspec.Struct):
    symbol: str
    price: float
    at: dt.datetime | None = None


@dataclass
class Point:
    x: int
    y: int


class Odd(str):
    __slots__ = ()


leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
)
leaves |= st.datetimes(timezones=st.just(UTC))
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(0, 2**63), inner),
    max_leaves=20,
)


@given(element=values.filter(lambda value: value is not None))
def test_an_element_is_restored(element: object) -> None:
    """Every accepted value, timestamps included, arrives as an equal value."""
    restored = SERIALIZER.loads(SERIALIZER.dumps(element))
    assert (restored, type(restored)) == (element, type(element))


def test_a_timestamp_is_the_extension_type_of_messagepack() -> None:
    """Timestamp 32 is ``d6 ff`` and the seconds. Another time zone is the same instant."""
    assert (
        SERIALIZER.dumps(dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)).hex(" ")
        == "d6 ff 00 00 00 01"
    )
    summer = dt.datetime(2026, 7, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    assert SERIALIZER.loads(SERIALIZER.dumps(summer)) == summer


@pytest.mark.parametrize(
    ("element", "why"),
    [
        (None, "rule 2.13"),
        ((1, 2), "with a tuple"),
        ([{"a": (1,)}], "with a tuple"),
        (Decimal(1), "with a Decimal"),
        ({1, 2}, "with a set"),
        (Quote("a", 1.0), "with a Quote"),
        ([Point(1, 2)], "with a Point"),
        (Odd("a"), "with a Odd"),
        (dt.datetime(2026, 1, 1), "without a time zone"),  # noqa: DTZ001  # that it has none is the point
        (2**64, "an integer of 65 bits"),
        ([-(2**63) - 1], "an integer of 64 bits"),
        ({1.5: 2}, "a key of type float"),
        ({b"a": 2}, "a key of type bytes"),
    ],
)
def test_an_element_that_would_arrive_as_another_one_is_refused(element: object, why: str) -> None:
    """The message names the type."""
    with pytest.raises(UsageError, match=why):
        SERIALIZER.dumps(element)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def test_an_element_that_is_nested_too_deeply_is_refused() -> None:
    """10,000 lists inside each other, in both directions."""
    with pytest.raises(UsageError, match="cannot write"):
        SERIALIZER.dumps(nested(10_000))
    with pytest.raises(ProtocolError, match="not MessagePack"):
        SERIALIZER.loads(b"\x91" * 10_000 + b"\x01")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "c1",
        "01 02",  # a byte behind the element
        "dd ff ff ff ff",
        "df ff ff ff ff",
        "c6 ff ff ff ff",
        "a1",
        "a2 ff fe",  # no UTF-8
        "c7 01 05 00",  # an unknown extension type
        "91 d4 01 00",  # the same inside
        "81 90 01 c0",
        "81 81 01 02 03",  # a dict as a key
        "d7 ff ff ff ff ff ff ff ff ff",  # nanoseconds above 999,999,999
        "c7 0c ff 00 00 00 00 7f ff ff ff ff ff ff ff",  # a timestamp of no year
        "c0",
    ],
)
def test_bytes_that_are_no_element_are_a_protocol_error(text: str) -> None:
    """The peer must act, and the bytes have no other effect."""
    for serializer in (SERIALIZER, SERIALIZER.for_type(Quote), SERIALIZER.for_type(list[Any])):
        with pytest.raises(ProtocolError):
            serializer.loads(bytes.fromhex(text))


@given(junk=st.binary(max_size=100))
def test_random_bytes_are_an_element_or_a_protocol_error(junk: bytes) -> None:
    """Never another exception, and never None."""
    for serializer in (SERIALIZER, SERIALIZER.for_type(Quote)):
        with contextlib.suppress(ProtocolError):
            assert serializer.loads(junk) is not None


@pytest.mark.parametrize(
    ("kind", "element"),
    [
        (Quote, Quote("EURUSD", 1.1, dt.datetime(2026, 1, 1, tzinfo=UTC))),
        (Point, Point(1, 2)),
        (list[Point], [Point(1, 2), Point(3, 4)]),
        (dict[str, Quote], {"a": Quote("a", 0.5)}),
        (Quote | Any, {"a": 1}),
        (tuple[int, str], (1, "a")),
        (Decimal, Decimal("1.50")),
        (int | str, 7),
    ],
    ids=str,
)
def test_an_element_of_a_type_is_restored(kind: Any, element: object) -> None:
    """As msgspec reads it: the class decides."""
    typed = SERIALIZER.for_type(kind)
    assert typed.loads(typed.dumps(element)) == element


def test_the_type_of_an_element_is_checked() -> None:
    """When it is sent, and when it is received."""
    typed = SERIALIZER.for_type(Quote)
    with pytest.raises(
        UsageError, match="of type Point, and elements of this stream are of type Quote"
    ):
        typed.dumps(Point(1, 2))
    with pytest.raises(UsageError, match=r"rule 2\.13"):
        typed.dumps(None)
    with pytest.raises(ProtocolError, match="not of type Quote"):
        typed.loads(SERIALIZER.dumps({"symbol": 1, "price": 1.0}))


def test_a_type_is_built_once_and_an_unknown_one_is_refused() -> None:
    """A stream costs no new decoder."""
    assert SERIALIZER.for_type(Quote) is SERIALIZER.for_type(Quote)
    for kind in (type(lambda: 0), [int]):
        with pytest.raises(UsageError):
            SERIALIZER.for_type(kind)
    with pytest.raises(UsageError, match="already"):
        SERIALIZER.for_type(Quote).for_type(Point)
