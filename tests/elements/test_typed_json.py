"""The serializer ``json`` for elements of one type, with msgspec and without it."""

import dataclasses
import enum
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    TypedDict,
    TypeVar,
)
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import ProtocolError, UsageError
from penstock.elements import JsonSerializer, _msgspec
from penstock.spi import Serializer

T = TypeVar("T")


class Side(enum.Enum):
    BUY = "buy"
    SELL = "sell"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Quote:
    symbol: str
    price: float
    size: int = 1
    venue: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Trade:
    quote: Quote
    side: Side
    at: datetime
    fee: Decimal
    tags: list[str] = dataclasses.field(default_factory=list)


@attrs.frozen
class Reading:
    sensor: str
    value: float


@attrs.define
class Private:
    _secret: int
    shown: str = attrs.field(default="x", converter=str)


class Place(NamedTuple):
    x: int
    y: float = 0.0


class Row(TypedDict):
    name: str
    count: NotRequired[int]


class Packed(msgspec.Struct):
    symbol: str
    price: float
    venue: str | None = None


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    legs: int


class Model(pydantic.BaseModel):
    name: str
    at: datetime | None = None
    score: float = 0.0


@dataclasses.dataclass
class Opened:
    price: float
    kind: Literal["opened"] = "opened"


@dataclasses.dataclass
class Closed:
    kind: Literal["closed"] = "closed"


@dataclasses.dataclass
class Node:
    name: str
    children: "list[Node]"


@dataclasses.dataclass
class Page(Generic[T]):
    items: list[T]
    total: int


UserId = NewType("UserId", int)
NOON = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
ODD = datetime(2026, 1, 31, 12, 0, 0, 1500, tzinfo=timezone(timedelta(hours=-5, minutes=-30)))
QUOTE = Quote("EURUSD", 1.25)


@pytest.fixture(params=["msgspec", "standard library"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param != "msgspec":
        monkeypatch.setattr(_msgspec, "msgspec", None)
    return str(request.param)


def typed(kind: Any, **options: Any) -> Serializer:
    return JsonSerializer(**options).for_type(kind)


ELEMENTS: list[tuple[Any, Any, bytes]] = [
    (Quote, QUOTE, b'{"symbol":"EURUSD","price":1.25,"size":1,"venue":null}'),
    (
        Trade,
        Trade(Quote("E", 1.0, 2), Side.SELL, NOON, Decimal("0.10"), ["a"]),
        b'{"quote":{"symbol":"E","price":1.0,"size":2,"venue":null},"side":"sell","at":"2026-01-31T12:00:00Z","fee":"0.10","tags":["a"]}',
    ),
    (Reading, Reading("a", 1.5), b'{"sensor":"a","value":1.5}'),
    (Private, Private(1, "y"), b'{"secret":1,"shown":"y"}'),
    (Place, Place(1, 2.0), b"[1,2.0]"),
    (Row, {"name": "a"}, b'{"name":"a"}'),
    (Row, {"name": "a", "count": 2}, b'{"name":"a","count":2}'),
    (Packed, Packed("a", 1.5), b'{"symbol":"a","price":1.5,"venue":null}'),
    (Cat | Dog, Dog(4), b'{"type":"Dog","legs":4}'),
    (Model, Model(name="a", at=NOON), b'{"name":"a","at":"2026-01-31T12:00:00Z","score":0.0}'),
    (Opened | Closed, Closed(), b'{"kind":"closed"}'),
    (Opened | Closed, Opened(1.5), b'{"price":1.5,"kind":"opened"}'),
    (Node, Node("a", [Node("b", [])]), b'{"name":"a","children":[{"name":"b","children":[]}]}'),
    (
        Page[Quote],
        Page([QUOTE], 1),
        b'{"items":[{"symbol":"EURUSD","price":1.25,"size":1,"venue":null}],"total":1}',
    ),
    (list[Quote], [QUOTE], b'[{"symbol":"EURUSD","price":1.25,"size":1,"venue":null}]'),
    (dict[str, list[int]], {"a": [1]}, b'{"a":[1]}'),
    (dict[int, str], {-1: "a"}, b'{"-1":"a"}'),
    (dict[Literal["a", "b"], int], {"a": 1}, b'{"a":1}'),
    (Mapping[str, Any], {"a": [None, 1.5]}, b'{"a":[null,1.5]}'),
    (Sequence[int], [1, 2], b"[1,2]"),
    (tuple[int, str], (1, "a"), b'[1,"a"]'),
    (tuple[int, ...], (1, 2), b"[1,2]"),
    (set[int], {1}, b"[1]"),
    (frozenset[str], frozenset("a"), b'["a"]'),
    (int | str, "a", b'"a"'),
    (int | float, 1, b"1"),
    (int | float, 1.0, b"1.0"),
    (Quote | str, QUOTE, b'{"symbol":"EURUSD","price":1.25,"size":1,"venue":null}'),
    (Literal["a", 1], 1, b"1"),
    (Literal["a", "b"] | None, "b", b'"b"'),
    (Side, Side.BUY, b'"buy"'),
    (Level, Level.HIGH, b"2"),
    (UserId, UserId(7), b"7"),
    (Annotated[int, "an id"], 7, b"7"),
    (Annotated[int, msgspec.Meta(ge=1)], 7, b"7"),
    (bool, True, b"true"),
    (float, 1e-5, b"0.00001"),
    (float, -1.5e-5, b"-0.000015"),
    (float, 1e16, b"1e16"),
    (float, -2.5e-300, b"-2.5e-300"),
    (list[Any], [1e16, "1e+16", '"1e-05'], b'[1e16,"1e+16","\\"1e-05"]'),
    (date, date(2026, 1, 31), b'"2026-01-31"'),
    (datetime, ODD, b'"2026-01-31T12:00:00.001500-05:30"'),
    (datetime, NOON.replace(tzinfo=None), b'"2026-01-31T12:00:00"'),
    (time, time(12, 30, 0, 5, UTC), b'"12:30:00.000005Z"'),
    (Decimal, Decimal("1E+2"), b'"1E+2"'),
    (UUID, UUID(int=5), b'"00000000-0000-0000-0000-000000000005"'),
    (bytes, b"\x00\xff", b'"AP8="'),
]


@pytest.mark.parametrize(
    ("kind", "element", "data"), ELEMENTS, ids=[f"{index}" for index, _ in enumerate(ELEMENTS)]
)
@pytest.mark.usefixtures("way")
def test_an_element_arrives_as_an_object_of_its_type(kind: Any, element: Any, data: bytes) -> None:
    """The bytes are the same with and without msgspec."""
    serializer = typed(kind)
    assert serializer.dumps(element) == data
    loaded = serializer.loads(data)
    assert (loaded, type(loaded)) == (element, type(element))


@pytest.mark.parametrize(
    ("kind", "element", "data"), ELEMENTS, ids=[f"{index}" for index, _ in enumerate(ELEMENTS)]
)
@pytest.mark.usefixtures("way")
def test_elements_that_are_loaded_together_are_those_that_are_loaded_alone(
    kind: Any, element: Any, data: bytes
) -> None:
    """Or the list is refused, and each is loaded alone:
    msgspec refuses some that Python's json accepts.
    """
    try:
        assert typed(kind).loads_many([data, data]) == [element, element]
    except Exception as refused:  # whatever msgspec raises
        assert type(refused).__module__ == "msgspec"  # noqa: PT017  # most elements are not refused
    assert typed(kind).loads_many([]) == []


@pytest.mark.usefixtures("way")
def test_an_element_that_is_too_large_is_refused_among_others() -> None:
    """Before the fast decoder sees it."""
    serializer = typed(list[Any])
    deep = b"[" * 200 + b"]" * 200
    with pytest.raises(ProtocolError, match="deep"):
        serializer.loads_many([b"[1]", deep, b"[2]"])


REFUSED: list[tuple[Any, bytes, str]] = [
    (Quote, b"[]", "Quote: expected an object, got a list"),
    (Quote, b'{"symbol":"a"}', "the field 'price' is missing"),
    (Quote, b'{"symbol":"a","price":"secret"}', "price: expected a number, got a text"),
    (Quote, b'{"symbol":"a","price":true}', "price: expected a number, got true or false"),
    (Quote, b'{"symbol":"a","price":1,"size":1.0}', "size: expected an integer, got a number"),
    (
        Quote,
        b'{"symbol":"a","price":1,"venue":1}',
        "venue: expected str or NoneType, got an integer",
    ),
    (
        list[Quote],
        b'[{"symbol":"a","price":1},{"symbol":1}]',
        r"\[1\]\.symbol: expected a text, got an integer",
    ),
    (Trade, b'{"quote":{"symbol":"a"}}', "quote: the field 'price' is missing"),
    (Place, b'["a"]', r"\[0\]: expected an integer, got a text"),
    (Place, b"[1,2,3]", "expected a list of length 1 to 2, got 3"),
    (tuple[int, str], b"[1]", "expected a list of length 2, got 1"),
    (Row, b'{"count":1}', "the field 'name' is missing"),
    (Packed, b'{"symbol":"a","price":"secret"}', "price: the value does not fit Packed"),
    (Model, b'{"name":5}', "the value does not fit Model"),
    (Opened | Closed, b'{"kind":"secret"}', "kind: expected one of 'opened', 'closed'"),
    (dict[str, int], b'{"secret":"a"}', "{}: expected an integer, got a text"),
    (dict[int, int], b'{"secret":1}', "{}: expected an integer as a key"),
    (set[int], b"[1,null]", r"\[1\]: expected an integer, got null"),
    (set[Any], b"[[]]", "a set cannot hold lists and objects"),
    (Side, b'"secret"', "no member of Side has this value"),
    (Side, b"1", "expected a value of Side, got an integer"),
    (Literal["a", 1], b'"secret"', "expected one of 'a', 1"),
    (Literal["a", 1], b"[]", "expected one of 'a', 1"),
    (date, b'"31.1.2026"', "the text is not a date like 2026-01-31"),
    (date, b"1", "expected a date like 2026-01-31, got an integer"),
    (datetime, b'"2026-01-31"', "not a date and time"),
    (datetime, b'"2026-01-31T12:00:00+01:99"', "not a date and time"),
    (datetime, b'"2026-02-31T12:00:00Z"', "not a date and time"),
    (time, b'"25:00:00"', "not a time"),
    (Decimal, b'"secret"', "not a decimal number"),
    (UUID, b'"secret"', "not a UUID"),
    (bytes, b'"?"', "not bytes as base64"),
    (float, b"1" * 400, "the number is too large for a float"),
    (int, b"true", "expected an integer, got true or false"),
]


@pytest.mark.parametrize(
    ("kind", "data", "says"), REFUSED, ids=[f"{index}" for index, _ in enumerate(REFUSED)]
)
@pytest.mark.usefixtures("way")
def test_an_element_of_another_type_is_refused_with_its_place(
    kind: Any, data: bytes, says: str
) -> None:
    """In the same words with and without msgspec, and without the peer's text."""
    with pytest.raises(ProtocolError, match=f"the element is not of type .*{says}") as refused:
        typed(kind).loads(data)
    assert "secret" not in str(refused.value)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "data",
    [
        b"NaN",
        b"[Infinity]",
        b"1e999",
        b"[-1e999]",
        b'"\\ud800"',
        b'"\xed\xa0\x80"',
        b'{"\\uDFFF":1}',
        b"[1",
        b"",
        b"9" * 5000,
    ],
    ids=repr,
)
def test_what_json_cannot_carry_is_refused_when_it_arrives(data: bytes) -> None:
    """Whether the type is known or not."""
    for serializer in (
        typed(Any),
        typed(list[float] | float | str | dict[str, int]),
        JsonSerializer(),
    ):
        with pytest.raises(ProtocolError, match="the element is not JSON"):
            serializer.loads(data)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("kind", "element"),
    [
        (float, float("nan")),
        (list[float], [1.0, float("-inf")]),
        (Quote, Quote("a", float("nan"))),
        (Quote, Quote("null", float("inf"), venue="null")),
        (Packed, Packed("a", float("inf"))),
        (Reading, Reading("a", float("nan"))),
        (Model, Model(name="a", score=float("nan"))),
        (dict[str, Any], {"a": None, "b": float("nan")}),
        (str, "\ud800"),
        (Quote, Quote("\udfff", 1.0)),
        (dict[str, int], {"\ud800": 1}),
    ],
    ids=repr,
)
def test_what_json_cannot_carry_is_refused_when_it_is_sent(kind: Any, element: Any) -> None:
    """Msgspec alone would send null for NaN."""
    with pytest.raises(UsageError, match="does not support this"):
        typed(kind).dumps(element)


@pytest.mark.usefixtures("way")
def test_null_and_not_a_number_are_told_apart() -> None:
    """A field that is None, a text that holds the word, and both together."""
    for quote in (
        Quote("null", 1.0),
        Quote("a", 1.0, venue="null"),
        Quote("null null", 1.0, venue=None),
    ):
        serializer = typed(Quote)
        assert serializer.loads(serializer.dumps(quote)) == quote


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("element", [Reading("a", 1.0), "a", {"symbol": "a"}, None, True])
def test_an_element_of_another_class_is_not_sent(element: Any) -> None:
    """The message names both types."""
    for kind in (Quote, list[int], int):
        with pytest.raises(
            UsageError, match=r"elements of this stream are of type|None is never an element"
        ):
            typed(kind).dumps(element)


@pytest.mark.usefixtures("way")
def test_null_as_a_whole_element() -> None:
    """It is refused without an element that represents it, as without a type."""
    with pytest.raises(UsageError, match=r"null arrived.*JsonSerializer\(null=…\)"):
        typed(Quote | None).loads(b"null")
    with pytest.raises(ProtocolError, match="expected an object, got null"):
        typed(Quote).loads(b"null")
    nothing = typed(Quote, null="nothing")
    assert (nothing.dumps("nothing"), nothing.loads(b"null")) == (b"null", "nothing")


@pytest.mark.usefixtures("way")
def test_further_fields_are_skipped() -> None:
    """A peer may add a field."""
    assert typed(Quote).loads(b'{"symbol":"a","price":1,"new":[1]}') == Quote("a", 1.0)
    assert typed(Row).loads(b'{"name":"a","new":1}') == {"name": "a"}


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (object, None),
        (
            complex,
            (
                "the type of the elements is <class 'complex'>, which JSON has no form for; use a "
                "dataclass"
            ),
        ),
        (list[complex], "a part of the type of the elements is <class 'complex'>"),
        (str | date, "two of these arrive as a text and cannot be told apart"),
        (
            Quote | Reading,
            "nothing in a JSON object tells them apart; give each a field like kind: Literal",
        ),
        (Quote | dict[str, int], "two of these arrive as an object"),
        (dict[date, int], "the keys of JSON objects are texts"),
        (dict[bool, int], "the keys of JSON objects are texts"),
        (Literal[b"a"], "has a value that JSON has no form for"),
        ([], "is not a type"),
        (5, "is 5, which JSON has no form for"),
        (Callable[[], int], "which JSON has no form for"),
    ],
    ids=str,
)
def test_a_type_that_cannot_be_read_is_refused_before_any_element(
    kind: Any, says: str | None
) -> None:
    """The UsageError says what to give instead."""
    if says is None:
        assert typed(kind).loads(b"[1]") == [1]
        return
    with pytest.raises(UsageError, match=says):
        typed(kind)


def test_a_field_of_an_unsupported_type_is_named() -> None:
    """The UsageError names the class and the field."""

    @dataclasses.dataclass
    class Signal:
        wave: complex

    with pytest.raises(UsageError, match=r"the field Signal\.wave is <class 'complex'>"):
        typed(Signal)


def test_a_typed_serializer_cannot_be_typed_again() -> None:
    """Its name stays json: peers see it."""
    assert typed(Quote).name == "json"
    with pytest.raises(UsageError, match="for elements of type Quote already"):
        typed(Quote).for_type(Reading)


def test_a_type_is_built_once() -> None:
    """Each stream asks for its serializer."""
    serializer = JsonSerializer()
    assert serializer.for_type(list[Quote]) is serializer.for_type(list[Quote])


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), below, max_size=3)
    ),
    max_leaves=8,
)


def both(kind: Any, act: Callable[[Serializer], Any]) -> tuple[Any, Any]:
    """Return what `act` does with msgspec and without: a result, or the text of an error."""
    results = []
    for module in (msgspec, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_msgspec, "msgspec", module)
            try:
                results.append(act(typed(kind)))
            except (UsageError, ProtocolError) as error:
                results.append(f"{type(error).__name__}: {error}")
    return results[0], results[1]


@given(PLAIN.filter(lambda element: element is not None))
def test_every_plain_value_is_the_same_bytes_in_both_ways(element: object) -> None:
    """And is restored by both."""
    fast, standard = both(Any, lambda serializer: serializer.dumps(element))
    assert fast == standard
    assert both(Any, lambda serializer: serializer.loads(fast)) == (element, element)


KINDS: list[Any] = [
    bytes,
    bool,
    int,
    str,
    Quote,
    Trade,
    Reading,
    Place,
    Row,
    Node,
    list[float],
    dict[int, str],
    int | float,
    Side,
    datetime,
    time,
    date,
    Decimal,
    UUID,
]
SAMPLES = r"""
{"symbol":"a","price":1} ["a",1] [1,2] "buy" "2026-01-31T12:00:00.123456789Z" "2026-01-31t12:00:00+0100" "12:00:00.9999999" "2026-01-31"
"1.50" 1.5 -0 -0.0 1E5 1e-7 {"1":"a"} {"01":"a"} {"-0":"a"} "00000000000000000000000000000005" "00000000-0000-0000-0000-000000000005"
"2026-01-31\u002012:00:00" "23:59:59-23:59" {"name":"a","count":1,"count":2} {"sensor":"a","value":1e999} [1.0] [1 "YWI" "YWI=" true null
{"name":"a","children":[{"name":1}]} "0001-01-01T00:00:00+12:00" "9999-12-31T23:59:59.9999999Z" "12:00:00.0000005" "12:00"
"1_0" "23:59:59.9999999" "NaN"
"""


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_text_is_read_alike_in_both_ways(kind: Any) -> None:
    """The same value, or the same error."""
    for data in SAMPLES.encode().split():
        fast, standard = both(kind, lambda serializer, data=data: serializer.loads(data))  # type: ignore[misc]  # the default binds the text
        # A Decimal keeps how its number was written.
        assert repr(fast) == repr(standard) or (kind is Decimal and fast == standard), data


@given(
    st.sampled_from(KINDS),
    PLAIN.filter(lambda element: element is not None).map(JsonSerializer().dumps),
)
def test_every_json_text_is_read_alike_in_both_ways(kind: Any, data: bytes) -> None:
    """Most of these are refused, with the same place and reason."""
    fast, standard = both(kind, lambda serializer: serializer.loads(data))
    assert repr(fast) == repr(standard)
