"""A service with every kind of type and name that a typed client has to write."""

import dataclasses
import datetime as dt
import decimal
import enum
import uuid
from collections.abc import AsyncIterator
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar

import msgspec
import pydantic

import penstock
from penstock.spi import PeerIdentity

T = TypeVar("T")


class Side(enum.Enum):
    """An Enum of texts."""

    BUY = "buy"
    SELL = "sell"


@dataclasses.dataclass
class Tree:
    """Each type that JSON carries as something else."""

    value: int
    kids: "list[Tree]" = dataclasses.field(default_factory=list)
    side: Side = Side.BUY
    when: dt.datetime = dt.datetime(2026, 1, 31, 12, 30, tzinfo=dt.UTC)
    day: dt.date = dt.date(2026, 1, 31)
    at: dt.time = dt.time(12, 30)
    took: dt.timedelta = dt.timedelta(seconds=90)
    key: uuid.UUID | None = None
    price: decimal.Decimal = decimal.Decimal("1.50")
    data: bytes = b"\x00\xff"
    by_number: dict[int, float] = dataclasses.field(default_factory=dict)
    by_side: dict[Side, int] = dataclasses.field(default_factory=dict)
    pair: tuple[int, str] = (1, "a")
    kind: Literal["a", 1] | None = "a"
    anything: Any = None


class Page(msgspec.Struct, Generic[T]):
    """A generic class."""

    items: list[T]
    next: str | None = None


class Opened(msgspec.Struct, tag=True):
    """One of two records."""

    number: int


class Closed(msgspec.Struct, tag=True):
    """The other one."""

    why: str = msgspec.field(name="the reason", default="none")


class Place(NamedTuple):
    x: int
    y: int = 0


Odd = TypedDict("Odd", {"class": int, "max-price": float, "self": str, "int": int, "1st": bool})


class Model(pydantic.BaseModel):
    """A model of pydantic."""

    count: int = pydantic.Field(gt=0)
    names: list[str] = []
    inner: "Model | None" = None


def _another_quote() -> Any:
    @dataclasses.dataclass
    class Quote:
        ask: float

    return Quote


@dataclasses.dataclass
class Quote:
    price: Annotated[float, msgspec.Meta(ge=0)]


OtherQuote = _another_quote()


def service(_served: object = None) -> penstock.Service:
    """Return the service."""
    made = penstock.Service(describe=True)
    _add_publishers(made)
    _add_requests(made)
    _add_odd_names(made)
    return made


def _add_publishers(made: penstock.Service) -> None:  # noqa: C901  # a list of publishers
    @made.publisher("trees/{symbol}")
    async def trees(
        symbol: str,
        peer: PeerIdentity,
        side: Side = Side.BUY,
        sizes: list[int] | None = None,
        at: dt.datetime | None = None,
        demand: int = 1,
        fresh: bool = False,
    ) -> AsyncIterator[Tree]:
        r"""Trees of a "symbol"; \ and */ are texts."""
        for size in sizes or [0]:
            yield Tree(
                size,
                [Tree(demand)],
                side,
                anything=[symbol, fresh],
                when=at or dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
                by_number={1: 0.5},
                by_side={Side.SELL: 2},
            )

    @made.publisher("changes")
    async def changes() -> AsyncIterator[Opened | Closed]:
        yield Opened(1)
        yield Closed("over")

    @made.publisher("raw")
    async def raw() -> AsyncIterator[bytes]:
        yield b"\x00raw"

    @made.publisher("texts")
    async def texts() -> AsyncIterator[str]:
        yield "text"

    @made.publisher("anything", serializer="json")
    async def anything():  # type: ignore[no-untyped-def]  # as programs have it
        yield {"a": [1]}

    @made.publisher("places")
    async def places() -> AsyncIterator[Place]:
        yield Place(1, 2)

    @made.publisher("rows")
    async def rows() -> AsyncIterator[list[Odd]]:
        yield [{"class": 1, "max-price": 1.5, "self": "s", "int": 2, "1st": True}]

    @made.publisher("models")
    async def models() -> AsyncIterator[Model]:
        yield Model(count=1, inner=Model(count=2))

    @made.publisher("quotes")
    async def quotes() -> AsyncIterator[Quote]:
        yield Quote(1.0)

    @made.publisher("above")
    async def above(payload: Quote) -> AsyncIterator[float]:
        """Its payload goes with a request for a stream, which RSocket alone has."""
        yield payload.price

    @made.publisher("sums")
    async def sums(elements: penstock.Source[Quote]) -> AsyncIterator[bytes]:
        yield b"a channel"

    made.publish("log", penstock.RingLog(retention=penstock.Retention(max_count=10)))


def _add_requests(made: penstock.Service) -> None:
    @made.request("tree/{number}")
    async def tree(number: int, payload: Tree) -> Page[Tree]:
        """Send a tree back."""
        return Page([payload], str(number))

    @made.request("many")
    async def many(payload: list[Tree], needed: int) -> int:
        return needed + sum(each.value for each in payload)

    @made.request("choose")
    async def choose(payload: Side | None = None) -> Side:
        return payload or Side.SELL

    @made.request("text")
    async def text(payload: str) -> str:
        return payload + payload

    @made.request("bytes")
    async def as_bytes(payload: bytes) -> bytes:
        return payload + payload

    @made.request("change")
    async def change(payload: Opened | Closed) -> str:
        return type(payload).__name__

    @made.request("other-quotes")
    async def other_quotes() -> list[OtherQuote]:  # type: ignore[valid-type]  # a class of a function
        return [OtherQuote(2.0)]

    _add_parameters(made)


def _add_parameters(made: penstock.Service) -> None:
    @made.request("spelled/{text}/{took}/{at}")
    async def spelled(  # one of each type
        text: str,
        took: dt.timedelta,
        at: dt.time,
        number: float,
        price: decimal.Decimal,
        key: uuid.UUID,
        day: dt.date,
        moment: dt.datetime,
        side: Side,
        kind: Literal["a", 1],
        fresh: bool,
        pauses: list[dt.timedelta],
    ) -> list[Any]:
        return [text, took, at, number, price, key, day, moment, side, kind, fresh, pauses]


def _add_odd_names(made: penstock.Service) -> None:
    @made.request("class/{class_}")
    async def words(class_: str, options: int = 1, payload: int = 2) -> list[int]:
        return [int(class_), options, payload]

    @made.request("class")
    async def word() -> int:
        return 7

    @made.request("größe/ÿ")
    async def letters() -> int:
        return 8

    @made.request("1/2")
    async def digits() -> int:
        return 9

    @made.request("then")
    async def then() -> int:
        return 10
