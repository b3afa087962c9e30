"""The serializer ``json`` for elements of one type."""

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
import pydantic.dataclasses
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import ProtocolError, UsageError
from penstock.elements import JsonSerializer
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


@attrs.define
class Converted:
    x: int = attrs.field(converter=int)


@dataclasses.dataclass
class Constructed:
    x: int

    def __init__(self, x: int) -> None:
        self.x = x + 1


class Computed(Quote):
    @property
    def price(self) -> float:  # type: ignore[override]  # what is tried
        return 1.0


@dataclasses.dataclass
class WithInitOnly:
    price: float
    scale: dataclasses.InitVar[float]


@pydantic.dataclasses.dataclass
class PydanticDataclass:
    x: int


@dataclasses.dataclass
class Unresolved:
    x: "Missing"  # type: ignore[name-defined]  # noqa: F821  # what is tried


class Mixed(enum.Enum):
    A = "a"
    B = 1


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


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    x: int


@dataclasses.dataclass
class Bounded:
    x: int

    def __post_init__(self) -> None:
        raise ValueError(f"secret {self.x} - at `$.secret`")


@attrs.define
class Checked:
    x: int = attrs.field(validator=attrs.validators.gt(3))


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
    (Literal[1, 2], 1, b"1"),
    (dict[date, int], {date(2026, 1, 31): 1}, b'{"2026-01-31":1}'),
    (dict[str, object], {"a": [1, None]}, b'{"a":[1,null]}'),
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
def test_an_element_arrives_as_an_object_of_its_type(kind: Any, element: Any, data: bytes) -> None:
    """With these bytes, which other programs read."""
    serializer = typed(kind)
    assert serializer.dumps(element) == data
    loaded = serializer.loads(data)
    assert (loaded, type(loaded)) == (element, type(element))


@pytest.mark.parametrize(
    ("kind", "element", "data"), ELEMENTS, ids=[f"{index}" for index, _ in enumerate(ELEMENTS)]
)
def test_elements_that_are_loaded_together_are_those_that_are_loaded_alone(
    kind: Any, element: Any, data: bytes
) -> None:
    """A list of them is read in one call."""
    assert typed(kind).loads_many([data, data]) == [element, element]
    assert typed(kind).loads_many([]) == []


def test_an_element_that_is_too_large_is_refused_among_others() -> None:
    """Before the fast decoder sees it."""
    serializer = typed(list[Any])
    deep = b"[" * 200 + b"]" * 200
    with pytest.raises(ProtocolError, match="deep"):
        serializer.loads_many([b"[1]", deep, b"[2]"])


REFUSED: list[tuple[Any, bytes, str]] = [
    (Quote, b"[]", "Quote: expected `object`, got `array`"),
    (Quote, b'{"symbol":"a"}', "missing required field `price`"),
    (Quote, b'{"symbol":"a","price":"secret"}', "price: expected `float`, got `str`"),
    (Quote, b'{"symbol":"a","price":true}', "price: expected `float`, got `bool`"),
    (Quote, b'{"symbol":"a","price":1,"size":1.0}', "size: expected `int`, got `float`"),
    (Quote, b'{"symbol":"a","price":1,"venue":1}', r"venue: expected `str \| null`, got `int`"),
    (
        list[Quote],
        b'[{"symbol":"a","price":1},{"symbol":1}]',
        r"\[1\]\.symbol: expected `str`, got `int`",
    ),
    (Trade, b'{"quote":{"symbol":"a"}}', "quote: object missing required field `price`"),
    (Place, b'["a"]', r"\[0\]: expected `int`, got `str`"),
    (Place, b"[1,2,3]", "expected `array` of length 1 to 2"),
    (tuple[int, str], b"[1]", "expected `array` of length 2"),
    (Row, b'{"count":1}', "missing required field `name`"),
    (Packed, b'{"symbol":"a","price":"secret"}', "price: expected `float`, got `str`"),
    (Strict, b'{"x":1,"secret":1}', "object contains a field that the class does not have"),
    (Strict, b'{"x":1,"secret - at `$.secret`":1}', "a field that the class does not have"),
    (Model, b'{"name":5,"at":"secret"}', r"Model: the values were refused \(ValidationError\)"),
    (list[Model], b'[{"name":5}]', r"\[0\]: the values were refused \(ValidationError\)"),
    (Bounded, b'{"x":1}', r"Bounded: the values were refused \(ValueError\)"),
    (list[Bounded], b'[{"x":1}]', r"\[0\]: the values were refused \(ValueError\)"),
    (Checked, b'{"x":1}', r"Checked: the values were refused \(ValueError\)"),
    (Opened | Closed, b'{"kind":"secret"}', "kind: invalid enum value"),
    (Opened | Closed, b"{}", "missing required field `kind`"),
    (Opened | Closed, b'{"kind":"opened"}', "missing required field `price`"),
    (Cat | Dog, b'{"type":"secret"}', "type: invalid value"),
    (dict[str, int], b'{"secret":"a"}', r"\[\.\.\.\]: expected `int`, got `str`"),
    (dict[int, int], b'{"secret":1}', "a key in the object: expected `int`, got `str`"),
    (set[int], b"[1,null]", r"\[1\]: expected `int`, got `null`"),
    # The second text is that of msgspec 0.23.
    (set[Any], b"[[]]", r"the values were refused \(TypeError\)|\[0\]: expected a hashable value"),
    (Side, b'"secret"', "invalid enum value"),
    (Side, b'"secret - at `$.secret`\'"', "invalid enum value"),
    (Side, b"1", "expected `str`, got `int`"),
    (Literal["a", "b"], b'"secret"', "invalid enum value"),
    (Literal["a", "b"], b"[]", "expected `str`, got `array`"),
    (date, b'"31.1.2026"', "invalid RFC3339 encoded date"),
    (date, b"1", "expected `date`, got `int`"),
    (datetime, b'"2026-01-31"', "invalid RFC3339 encoded datetime"),
    (datetime, b'"2026-01-31T12:00:00+01:99"', "invalid RFC3339 encoded datetime"),
    (datetime, b'"2026-02-31T12:00:00Z"', "invalid RFC3339 encoded datetime"),
    (time, b'"25:00:00"', "invalid RFC3339 encoded time"),
    (Decimal, b'"secret"', "invalid decimal string"),
    (UUID, b'"secret"', "invalid UUID"),
    (bytes, b'"?"', "invalid base64 encoded string"),
    (float, b"1" * 400, "number out of range"),
    (int, b"true", "expected `int`, got `bool`"),
    (Annotated[int, msgspec.Meta(ge=1)], b"0", "expected `int` >= 1"),
]


@pytest.mark.parametrize(
    ("kind", "data", "says"), REFUSED, ids=[f"{index}" for index, _ in enumerate(REFUSED)]
)
def test_an_element_of_another_type_is_refused_with_its_place(
    kind: Any, data: bytes, says: str
) -> None:
    """The words are those of msgspec, without the peer's text."""
    with pytest.raises(ProtocolError, match=f"the element is not of type .*{says}") as refused:
        typed(kind).loads(data)
    assert "secret" not in str(refused.value)


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
        with pytest.raises(ProtocolError, match=r"^the element is not (JSON|of type)"):
            serializer.loads(data)


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
    """Alone, msgspec would send null for NaN."""
    with pytest.raises(UsageError, match="does not support this"):
        typed(kind).dumps(element)


def test_null_and_not_a_number_are_told_apart() -> None:
    """A field that is None, a text that holds the word, and both together."""
    for quote in (
        Quote("null", 1.0),
        Quote("a", 1.0, venue="null"),
        Quote("null null", 1.0, venue=None),
    ):
        serializer = typed(Quote)
        assert serializer.loads(serializer.dumps(quote)) == quote


@pytest.mark.parametrize("element", [Reading("a", 1.0), "a", {"symbol": "a"}, None, True])
def test_an_element_of_another_class_is_not_sent(element: Any) -> None:
    """The message names both types."""
    for kind in (Quote, list[int], int):
        with pytest.raises(
            UsageError, match=r"elements of this stream are of type|None is never an element"
        ):
            typed(kind).dumps(element)


def test_null_as_a_whole_element() -> None:
    """It is refused without an element that represents it, as without a type."""
    with pytest.raises(UsageError, match=r"null arrived.*JsonSerializer\(null=…\)"):
        typed(Quote | None).loads(b"null")
    with pytest.raises(ProtocolError, match="expected `object`, got `null`"):
        typed(Quote).loads(b"null")
    nothing = typed(Quote, null="nothing")
    assert (nothing.dumps("nothing"), nothing.loads(b"null")) == (b"null", "nothing")


def test_further_fields_are_skipped() -> None:
    """A peer may add a field."""
    assert typed(Quote).loads(b'{"symbol":"a","price":1,"new":[1]}') == Quote("a", 1.0)
    assert typed(Row).loads(b'{"name":"a","new":1}') == {"name": "a"}


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (
            complex,
            "the type of the elements is <class 'complex'>, which cannot be sent; use a data",
        ),
        (list[complex], "a part of the type of the elements is <class 'complex'>"),
        (dict[str, complex], "a value in the type of the elements is <class 'complex'>"),
        (str | date, "more than one str-like type"),
        (Quote | Reading, "more than one dataclass .* need msgspec.Struct with tag=True. If the"),
        (list[Opened | Closed], "more than one dataclass"),
        (Quote | dict[str, int], "more than one dict-like type"),
        (Literal[b"a"], "Literal may only contain"),
        (Mixed, "Enums must contain either all str or all int values"),
        ([], "is not a type"),
        (5, "Type '5' is not supported"),
        (Callable[[], int], "which cannot be sent"),
        (Unresolved, "'Missing', which is not known when the program runs; import or define"),
        (
            Private,
            "Private would not arrive whole, as the field _secret would not be sent: its name",
        ),
        (Converted, "as its converters would not run"),
        (Constructed, "as its constructor would not run, and it does more than to set the fields"),
        (Computed, "as the field price would not be sent: it is a property"),
        (PydanticDataclass, "its validators would not run: let it inherit from pydantic.BaseModel"),
        (list[Page[Private]], "Private would not arrive whole"),
        (WithInitOnly, "InitVar"),
    ],
    ids=str,
)
def test_a_type_that_cannot_be_read_is_refused_before_any_element(kind: Any, says: str) -> None:
    """The UsageError says what to give instead."""
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


@given(PLAIN.filter(lambda element: element is not None))
def test_a_plain_value_has_the_same_bytes_with_a_type_and_without(element: object) -> None:
    """And is restored by both."""
    data = typed(Any).dumps(element)
    assert data == JsonSerializer().dumps(element)
    assert typed(Any).loads(data) == JsonSerializer().loads(data) == element


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
def test_a_text_is_an_element_or_a_protocol_error(kind: Any) -> None:
    """And never another exception: the peer may be hostile."""
    serializer = typed(kind)
    for data in SAMPLES.encode().split():
        _try(serializer, data)


@given(
    st.sampled_from(KINDS),
    PLAIN.filter(lambda element: element is not None).map(JsonSerializer().dumps),
)
def test_a_json_text_is_an_element_or_a_protocol_error(kind: Any, data: bytes) -> None:
    """An element that was read can be sent again, and arrives unchanged."""
    serializer = typed(kind)
    element = _try(serializer, data)
    if element is not None:
        assert serializer.loads(serializer.dumps(element)) == element


def _try(serializer: Serializer, data: bytes) -> object:
    try:
        element = serializer.loads(data)
    except ProtocolError:
        return None
    except UsageError as error:
        assert "null arrived" in str(error)  # noqa: PT017  # most texts raise another one
        return None
    assert element is not None
    return element
