"""Elements of a type from end to end:
a dataclass is yielded on one side, and arrives as a dataclass on the other.
"""

import dataclasses
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import date
from functools import partial
from typing import Any, Literal

import msgspec
import pydantic
import pytest
import trio.testing

import penstock
from penstock.api import ProtocolError, PublisherFailed, UsageError
from penstock.elements import JsonSerializer
from penstock.runtime import Service, connect, serve
from penstock.spi import PeerIdentity, TypeCodeFailed
from penstock.streams import Source


@dataclasses.dataclass
class Quote:
    symbol: str
    price: float


@dataclasses.dataclass
class Candle:
    low: float


class Quotes:
    """A callable object whose call is an async generator."""

    async def __call__(self, symbol: str) -> AsyncIterator[Quote]:
        yield Quote(symbol, 3.5)


def market() -> Service:
    service = Service()

    @service.publisher("quotes/{symbol}")
    async def quotes(
        symbol: str, on: date | None = None, side: Literal["bid", "ask"] = "bid"
    ) -> AsyncIterator[Quote]:
        yield Quote(symbol, 1.25)
        yield Quote(f"{side} {on}", 1e16)

    @service.publisher("source/{symbol}")
    def of_source(symbol: str) -> Source[Quote]:
        return penstock.single(Quote(symbol, 2.5))

    @service.publisher("names")
    async def names(peer: PeerIdentity) -> AsyncIterator[str]:
        yield "größe"

    @service.publisher("raw")
    async def raw() -> AsyncIterator[bytes]:
        yield b"\xff"

    @service.publisher("bare")
    async def bare():
        yield b"1"

    @service.publisher("named", serializer="text")
    async def named() -> AsyncIterator[Quote]:
        yield "the serializer counts"  # type: ignore[misc]  # what is tried

    @service.publisher("wrong")
    async def wrong() -> AsyncIterator[Quote]:
        yield Candle(1.0)  # type: ignore[misc]  # what is tried

    service.publisher("given", type=list[int])(lambda: [[1], [2, 3]])
    service.publisher("object/{symbol}")(Quotes())
    service.publisher("partial")(partial(quotes, "EURUSD"))
    service.publish("topic", [Quote("a", 1.0)], type=Quote)
    return service


PROTOCOLS = pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])


@PROTOCOLS
async def test_a_dataclass_arrives_as_a_dataclass(protocol: str) -> None:
    """By each call that opens a stream."""
    expected = [Quote("EURUSD", 1.25), Quote("ask 2026-01-31", 1e16)]
    name = "quotes/EURUSD?on=2026-01-31&side=ask"
    async with (
        serve(market(), f"{protocol}+memory://s") as server,
        connect(server.addresses[0]) as peer,
    ):
        url = f"{server.addresses[0]}/{name}"
        async with penstock.subscribe(url, type=Quote) as stream:
            assert [quote async for quote in stream] == expected
        assert await penstock.collect(penstock.remote(url, type=Quote)) == expected
        async with peer.subscribe(name, type=Quote) as stream:
            assert [quote async for quote in stream] == expected
        assert await penstock.collect(peer.source(name, type=Quote)) == expected
        if protocol == "reactivesocket":
            assert await peer.request_response(name, type=Quote) == expected[0]
            async with peer.request_stream(name, type=Quote) as stream:
                assert [quote async for quote in stream] == expected


@PROTOCOLS
@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("source/a", {"type": Quote}, [Quote("a", 2.5)]),
        ("object/a", {"type": Quote}, [Quote("a", 3.5)]),
        ("partial", {"type": Quote}, [Quote("EURUSD", 1.25), Quote("bid None", 1e16)]),
        ("topic", {"type": Quote}, [Quote("a", 1.0)]),
        ("topic", {"type": dict[str, Any]}, [{"symbol": "a", "price": 1.0}]),
        ("topic", {"serializer": "json"}, [{"symbol": "a", "price": 1.0}]),
        ("topic", {"serializer": JsonSerializer(max_depth=1), "type": Quote}, [Quote("a", 1.0)]),
        ("given", {"type": list[int]}, [[1], [2, 3]]),
        ("names", {"type": str}, ["größe"]),
        ("raw", {"type": bytes}, [b"\xff"]),
        ("raw", {}, [b"\xff"]),
        ("bare", {}, [b"1"]),
        ("named", {"type": str}, ["the serializer counts"]),
    ],
)
async def test_the_type_of_the_elements_selects_the_serializer(
    protocol: str, name: str, options: Any, expected: list[Any]
) -> None:
    """On the publisher's side it is the return annotation;
    a serializer that is named counts in its place.
    """
    async with serve(market(), f"{protocol}+memory://s") as server:
        assert (
            await penstock.collect(penstock.remote(f"{server.addresses[0]}/{name}", **options))
            == expected
        )


@PROTOCOLS
async def test_an_element_of_another_type_ends_the_stream_on_the_side_that_is_wrong(
    protocol: str,
) -> None:
    """The publisher that yields another class, or the subscriber that expects another one."""
    reported: list[BaseException] = []
    async with (
        serve(market(), f"{protocol}+memory://s", on_violation=reported.append) as server,
        connect(server.addresses[0]) as peer,
    ):
        async with peer.subscribe("wrong", type=Quote) as stream:
            with pytest.raises(PublisherFailed):
                await anext(stream)
        (error,) = reported
        assert str(error) == (
            "the element is of type Candle, and elements of this stream are of type Quote; "
            "change the return annotation of 'wrong', or give serializer= there"
        )
        async with peer.subscribe("topic", type=Candle) as stream:
            with pytest.raises(
                ProtocolError,
                match=r"^element 0 \(26 bytes\): the element is not of type Candle: object missing",
            ):
                await anext(stream)


RATES = {"EURUSD": 1.25}


@dataclasses.dataclass
class Rated:
    symbol: str

    def __post_init__(self) -> None:
        # A mistake: it raises KeyError for a symbol that is not known.
        self.rate = RATES[self.symbol]


class RatedModel(pydantic.BaseModel):
    symbol: str

    @pydantic.field_validator("symbol")
    @classmethod
    def is_known(cls, symbol: str) -> str:
        RATES[symbol]
        return symbol


class RatedStruct(msgspec.Struct):
    symbol: str

    def __post_init__(self) -> None:
        RATES[self.symbol]


class Computed(pydantic.BaseModel):
    symbol: str

    @pydantic.computed_field  # type: ignore[prop-decorator]  # pydantic's own form
    @property
    def price(self) -> float:
        return RATES[self.symbol]


RATED = pytest.mark.parametrize(
    "kind", [Rated, RatedModel, RatedStruct], ids=lambda kind: kind.__name__
)


@PROTOCOLS
@RATED
async def test_code_of_a_type_that_raises_when_an_element_arrives_is_named(
    protocol: str, kind: Any
) -> None:
    """The subscriber's own class is at fault: neither the peer nor the serializer is blamed."""
    service = Service()
    service.publish("rates", [{"symbol": "EURUSD"}, {"symbol": "NONE"}], serializer="json")
    async with (
        serve(service, f"{protocol}+memory://s") as server,
        connect(server.addresses[0]) as peer,
    ):
        async with peer.subscribe("rates", type=kind) as stream:
            assert (await anext(stream)).symbol == "EURUSD"
            with pytest.raises(UsageError) as caught:
                await anext(stream)
        assert str(caught.value) == (
            f"element 1 (17 bytes): the code of {kind.__name__} raised KeyError when an object of "
            "it, or inside it, was made: its __post_init__ or a validator, and not the serializer. "
            "Correct it there; to refuse a value raise ValueError"
        )
        assert isinstance(caught.value.__cause__, TypeCodeFailed)
        assert repr(caught.value.__cause__.__cause__) == "KeyError('NONE')"


@PROTOCOLS
@RATED
async def test_code_of_a_type_that_raises_when_a_payload_arrives_is_reported_where_it_runs(
    protocol: str, kind: Any
) -> None:
    """On the side of the handler.
    The peer sent a payload that fits, and is told only that the handler failed.
    """
    reported: list[Exception] = []
    service = Service()

    async def rate(payload: Any) -> float:
        return RATES[payload.symbol]

    rate.__annotations__["payload"] = kind
    service.request("rate")(rate)
    async with (
        serve(service, f"{protocol}+memory://s", on_violation=reported.append) as server,
        connect(server.addresses[0]) as peer,
    ):
        assert await peer.request("rate", {"symbol": "EURUSD"}, type=float) == 1.25
        with pytest.raises(PublisherFailed) as caught:
            await peer.request("rate", {"symbol": "NONE"}, type=float)
        assert "KeyError" not in str(caught.value)
        (error,) = reported
        assert isinstance(error, TypeCodeFailed)
        assert str(error).startswith(f"the code of {kind.__name__} raised KeyError")


@PROTOCOLS
async def test_code_of_a_type_that_raises_when_an_element_is_sent_is_named(protocol: str) -> None:
    """In the report of the publisher's side."""
    reported: list[Exception] = []
    service = Service()
    service.publish("quotes", [Computed(symbol="EURUSD"), Computed(symbol="NONE")], type=Computed)
    async with (
        serve(service, f"{protocol}+memory://s", on_violation=reported.append) as server,
        connect(server.addresses[0]) as peer,
    ):
        async with peer.subscribe("quotes", type=Quote) as stream:
            assert await anext(stream) == Quote("EURUSD", 1.25)
            with pytest.raises(PublisherFailed):
                await anext(stream)
        (error,) = reported
        assert str(error) == (
            "the code of Computed raised KeyError('NONE') when its fields were read: a property "
            "or a serializer of pydantic, and not the serializer of the stream. Correct it there"
        )


@PROTOCOLS
@pytest.mark.parametrize(
    ("kind", "serializer", "advice"),
    [
        (
            int,
            None,
            (
                "elements of this stream are of type int; change the type= of 'x', or give "
                "serializer= there"
            ),
        ),
        (
            list[int],
            None,
            (
                "elements of this stream are of type list[int]; change the type= of 'x', or give "
                "serializer= there"
            ),
        ),
        (
            str,
            None,
            (
                "the serializer 'text' takes str, not Quote; change the type= of 'x', or give "
                "serializer= there"
            ),
        ),
        (
            int,
            "json",
            (
                "elements of this stream are of type int; change the type= of 'x', or give "
                "serializer= there"
            ),
        ),
        (
            None,
            "text",
            (
                "the serializer 'text' takes str, not Quote; give serializer='bytes' or 'json' "
                "for others"
            ),
        ),
        (
            None,
            None,
            (
                "an element of type Quote was published, and only bytes can be sent as they are. "
                "Give the publisher the type"
            ),
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [list, iter], ids=["list", "iterator"])
async def test_an_element_of_another_type_names_the_place_where_the_type_was_given(
    protocol: str, make: Callable[[Any], Any], kind: Any, serializer: str | None, advice: str
) -> None:
    """`publish` has no annotation to change."""
    reported: list[BaseException] = []
    service = Service()
    service.publisher("x", type=kind, serializer=serializer)(lambda: make([Quote("a", 1.0)]))
    service.publish("y", [Quote("a", 1.0)], type=kind, serializer=serializer)
    async with (
        serve(service, f"{protocol}+memory://s", on_violation=reported.append) as server,
        connect(server.addresses[0]) as peer,
    ):
        for name in ("x", "y"):
            with pytest.raises(PublisherFailed):
                async with peer.subscribe(name) as stream:
                    await anext(stream)
            error = reported.pop()
            assert advice.replace("'x'", f"'{name}'") in str(error)
            assert "a int" not in str(error)


@PROTOCOLS
async def test_an_answer_of_another_type_names_the_return_annotation(protocol: str) -> None:
    """That of the handler."""
    reported: list[BaseException] = []
    service = Service()

    @service.request("price")
    async def price() -> int:
        return "much"  # type: ignore[return-value]  # what is tried

    async with (
        serve(service, f"{protocol}+memory://s", on_violation=reported.append) as server,
        connect(server.addresses[0]) as peer,
    ):
        with pytest.raises(PublisherFailed):
            await peer.request("price", type=int)
    assert str(reported[0]) == (
        "the element is of type str, and elements of this stream are of type int; "
        "change the return annotation of the request 'price', or give serializer= there"
    )


@PROTOCOLS
@pytest.mark.parametrize("is_awaited", [True, False], ids=["async", "plain"])
async def test_a_publisher_hands_over_lists_and_subscribers_get_elements(
    protocol: str, is_awaited: bool
) -> None:
    """Within the demand of each: a list that is longer waits in part,
    and the next one is not made before.
    """
    made: list[int] = []
    service = Service()

    async def asynchronous(first: int) -> AsyncIterator[list[Quote]]:
        for start in range(first, first + 12, 4):
            made.append(start)
            yield [Quote("a", float(number)) for number in range(start, start + 4)]

    def plain(first: int) -> Iterator[list[Quote]]:
        for start in range(first, first + 12, 4):
            made.append(start)
            yield [Quote("a", float(number)) for number in range(start, start + 4)]

    service.publisher("quotes/{first}", batches=True)(asynchronous if is_awaited else plain)
    async with (
        serve(service, f"{protocol}+memory://s") as server,
        connect(server.addresses[0]) as peer,
    ):
        async with peer.subscribe("quotes/3", type=Quote, demand=1) as stream:
            assert await anext(stream) == Quote("a", 3.0)
            await trio.testing.wait_all_tasks_blocked()
            assert made == [3]
            rest = [quote.price async for quote in stream]
        assert rest == [float(number) for number in range(4, 15)]
        assert made == [3, 7, 11]
        assert [
            quote.price for quote in await penstock.collect(peer.source("quotes/0", type=Quote))
        ] == list(range(12))


@PROTOCOLS
async def test_a_publisher_of_lists_takes_its_type_from_the_annotation_or_from_type(
    protocol: str,
) -> None:
    """Bytes do not change, and neither do the elements of a function that has no parameters."""
    service = Service()

    @service.publisher("bytes", batches=True)
    async def raw() -> AsyncIterator[list[bytes]]:
        yield [b"a", b"b"]

    @service.publisher("bare", batches=True)
    async def bare():
        yield [b"c"], (b"d",)
        yield (b"e",)

    @service.publisher("typed", batches=True, type=int)
    def typed() -> Any:
        return [[1, 2], [3]]

    @service.publisher("words", batches=True)
    async def words() -> AsyncIterator[tuple[str, ...]]:
        yield "a", "b"

    service.publish("source", penstock.from_batches([[b"f"]]))
    reported: list[Exception] = []
    async with (
        serve(service, f"{protocol}+memory://s", on_violation=reported.append) as server,
        connect(server.addresses[0]) as peer,
    ):
        assert await penstock.collect(peer.source("bytes")) == [b"a", b"b"]
        assert await penstock.collect(peer.source("typed", type=int)) == [1, 2, 3]
        assert await penstock.collect(peer.source("words", type=str)) == ["a", "b"]
        assert await penstock.collect(peer.source("source")) == [b"f"]
        with pytest.raises(PublisherFailed):
            await penstock.collect(peer.source("bare"))
        assert str(reported[0]).startswith("an element of type list was published")


@pytest.mark.parametrize(
    "annotation", [AsyncIterator[Quote], AsyncIterator[str], AsyncIterator[bytes]]
)
def test_a_publisher_of_lists_that_is_annotated_to_yield_elements_is_refused(
    annotation: Any,
) -> None:
    """The mistake would show at the first element otherwise."""

    async def quotes() -> Any:
        yield

    quotes.__annotations__["return"] = annotation
    with pytest.raises(
        UsageError,
        match=r"^'x': batches=True, and the return annotation is a stream of .*; write AsyncIterator\[list\[T\]\]",
    ):
        Service().publisher("x", batches=True)(quotes)


def test_lists_and_pieces_of_memory_are_two_ways() -> None:
    """One of them is enough."""
    with pytest.raises(
        UsageError,
        match="batches=True and element_size= are two ways to yield several elements at once",
    ):
        Service().publisher("x", batches=True, element_size=4)


async def test_a_type_without_a_form_is_refused_before_any_connection() -> None:
    """On both sides, with what to use."""
    service = Service()

    @service.publisher("waves")
    async def waves() -> AsyncIterator[complex]:
        yield 1j

    with pytest.raises(
        UsageError,
        match=r"the publisher 'waves' has elements of type <class 'complex'>: .* use a dataclass",
    ):
        async with serve(service, "memory://s"):
            pass
    with pytest.raises(UsageError, match="which cannot be sent; use a dataclass"):
        penstock.remote("memory://s/waves", type=complex)
    with pytest.raises(UsageError, match="the serializer 'text' is for elements of type str, not"):
        penstock.remote("memory://s/waves", type=complex, serializer="text")
