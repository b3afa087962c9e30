"""Type-checked, never run: `type=` gives a remote stream the type of its elements."""

import dataclasses
from collections.abc import AsyncIterator
from typing import Any, NamedTuple, TypedDict, assert_type, reveal_type

import msgspec

import penstock
from penstock import Peer, Service, Source, ops
from penstock.elements import JsonSerializer
from penstock.runtime import RemoteStream


@dataclasses.dataclass
class Quote:
    """A dataclass."""

    symbol: str
    price: float


class Place(NamedTuple):
    """A named tuple."""

    x: int


class Row(TypedDict):
    """A typed dict."""

    name: str


class Packed(msgspec.Struct):
    """A struct."""

    x: int


async def subscribing(url: str) -> None:
    """A class, a generic form of one, and a serializer beside it."""
    async with penstock.subscribe(url, type=Quote) as quotes:
        reveal_type(quotes)
        assert_type(quotes, RemoteStream[Quote])
        as_stream: penstock.Stream[Quote] = quotes
        async for quote in as_stream:
            assert_type(quote.price, float)
        async for batch in quotes.batches():
            assert_type(batch, list[Quote])
    async with (
        penstock.subscribe(url, type=Place) as places,
        penstock.subscribe(url, type=Row, demand=0) as rows,
        penstock.subscribe(url, type=Packed, serializer="json") as packed,
        penstock.subscribe(
            url, type=list[Quote], serializer=JsonSerializer(null="nothing")
        ) as pages,
        penstock.subscribe(url, type=str) as texts,
        penstock.subscribe(url, type=bytes) as raw,
    ):
        assert_type(places, RemoteStream[Place])
        assert_type(rows, RemoteStream[Row])
        assert_type(packed, RemoteStream[Packed])
        assert_type(pages, RemoteStream[list[Quote]])
        assert_type(texts, RemoteStream[str])
        assert_type(raw, RemoteStream[bytes])


async def without_a_type(url: str) -> None:
    """Without a type, and with a union, which a type checker does not take for a class,
    the elements are Any.
    """
    async with (
        penstock.subscribe(url) as unknown,
        penstock.subscribe(url, serializer="json", publisher="quotes") as named,
        penstock.subscribe(url, type=Quote | Place) as union,
    ):
        assert_type(unknown, RemoteStream[Any])
        assert_type(named, RemoteStream[Any])
        assert_type(union, RemoteStream[Any])


async def piping(url: str) -> None:
    """A remote source of a type goes through pipes and sinks like any other."""
    source = penstock.remote(url, type=Quote)
    assert_type(source, Source[Quote])
    assert_type(penstock.pipe(source, ops.map(str)), Source[str])
    assert_type(await penstock.first(source), Quote)
    assert_type(penstock.remote(url), Source[Any])


async def asking(peer: Peer) -> None:
    """Each call of a connected peer."""
    assert_type(peer.source("quotes", type=Quote), Source[Quote])
    assert_type(await peer.request_response("quotes", type=Quote), Quote)
    assert_type(await peer.request_response(b"data"), Any)
    async with (
        peer.subscribe("quotes", type=Quote) as subscribed,
        peer.request_stream("quotes", type=Quote) as requested,
        peer.request_subscription("quotes", type=Quote) as endless,
        peer.subscribe("quotes", serializer="json") as unknown,
    ):
        reveal_type(subscribed)
        assert_type(subscribed, RemoteStream[Quote])
        assert_type(requested, RemoteStream[Quote])
        assert_type(endless, RemoteStream[Quote])
        assert_type(unknown, RemoteStream[Any])


def publishing(service: Service) -> None:
    """The decorator keeps the type of the function."""

    @service.publisher("quotes/{symbol}")
    async def quotes(symbol: str) -> AsyncIterator[Quote]:
        yield Quote(symbol, 1.0)

    assert_type(quotes("EURUSD"), AsyncIterator[Quote])
    service.publish("topic", penstock.Topic[Quote](), type=Quote)
    service.publish("other", penstock.Topic[Quote](), serializer=JsonSerializer())


async def mistaken(url: str) -> None:
    """A name is needed for a serializer, or an object;
    and a stream of this process has no type to give.
    """
    penstock.subscribe(url, serializer=5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]  # expected error: no serializer
    penstock.subscribe([1], type=int)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]  # expected error: not a URL
