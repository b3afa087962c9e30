"""Elements of a type from end to end: a dataclass is yielded on one side, and arrives as a dataclass on the other."""

import dataclasses
from collections.abc import AsyncIterator
from datetime import date
from functools import partial
from typing import Any, Literal

import pytest

import penstock
from penstock.api import ProtocolError, PublisherFailed, UsageError
from penstock.builtin import JsonSerializer
from penstock.core import Source
from penstock.plugins import PeerIdentity
from penstock.runtime import Service, connect, serve


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
    async def quotes(symbol: str, on: date | None = None, side: Literal["bid", "ask"] = "bid") -> AsyncIterator[Quote]:
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
    async with serve(market(), f"{protocol}+memory://s") as server, connect(server.addresses[0]) as peer:
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
async def test_the_type_of_the_elements_selects_the_serializer(protocol: str, name: str, options: Any, expected: list[Any]) -> None:
    """On the publisher's side it is the return annotation; a serializer that is named counts in its place."""
    async with serve(market(), f"{protocol}+memory://s") as server:
        assert await penstock.collect(penstock.remote(f"{server.addresses[0]}/{name}", **options)) == expected


@PROTOCOLS
async def test_an_element_of_another_type_ends_the_stream_on_the_side_that_is_wrong(protocol: str) -> None:
    """The publisher that yields another class, or the subscriber that expects another one."""
    reported: list[BaseException] = []
    async with serve(market(), f"{protocol}+memory://s", on_violation=reported.append) as server, connect(server.addresses[0]) as peer:
        async with peer.subscribe("wrong", type=Quote) as stream:
            with pytest.raises(PublisherFailed):
                await anext(stream)
        (error,) = reported
        assert str(error).startswith("the element is of type Candle, and elements of this stream are of type Quote; change the return")
        async with peer.subscribe("topic", type=Candle) as stream:
            with pytest.raises(ProtocolError, match=r"^element 0 \(26 bytes\): the element is not of type Candle: the field 'low' is"):
                await anext(stream)


async def test_a_type_without_a_form_is_refused_before_any_connection() -> None:
    """On both sides, with what to use."""
    service = Service()

    @service.publisher("waves")
    async def waves() -> AsyncIterator[complex]:
        yield 1j

    with pytest.raises(UsageError, match=r"the publisher 'waves' has elements of type <class 'complex'>: .* use a dataclass"):
        async with serve(service, "memory://s"):
            pass
    with pytest.raises(UsageError, match="which JSON has no form for; use a dataclass"):
        penstock.remote("memory://s/waves", type=complex)
    with pytest.raises(UsageError, match="the serializer 'text' is for elements of type str, not"):
        penstock.remote("memory://s/waves", type=complex, serializer="text")
