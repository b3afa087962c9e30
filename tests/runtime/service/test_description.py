"""A service that describes itself, to those who may see it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

import penstock
from penstock.api import NotAvailable, PublisherFailed, Rejected, Request, UsageError
from penstock.logs import Retention, RingLog
from penstock.runtime import DESCRIPTION
from penstock.runtime.service._description import entry_of, summary_of
from penstock.spi import PeerIdentity


@dataclass
class Quote:
    price: int


QUOTE = {
    "title": "Quote",
    "type": "object",
    "properties": {"price": {"type": "integer"}},
    "required": ["price"],
}


def service_with(**options: Any) -> penstock.Service:
    service = penstock.Service(**{"describe": True, **options})

    @service.publisher("ticks/{symbol}")
    async def ticks(
        symbol: str, peer: PeerIdentity, most: int = 3, kinds: list[str] | None = None
    ) -> AsyncIterator[list[Quote]]:
        """Prices of a symbol.

        The rest is for readers of the code.
        """
        yield [Quote(1)]

    @service.publisher("raw")
    async def raw() -> AsyncIterator[bytes]:
        yield b""

    @service.publisher("odd", serializer="json")
    async def odd():  # type: ignore[no-untyped-def]  # as programs have it
        yield 1

    @service.request("order/{symbol}")
    async def order(symbol: str, payload: Quote, peer: PeerIdentity) -> Quote:
        """Place an order."""
        return payload

    return service


async def described(service: penstock.Service, protocol: str = "") -> list[dict[str, Any]]:
    async with (
        penstock.serve(service, "memory://a"),
        penstock.subscribe(f"{protocol}memory://a#{DESCRIPTION}", serializer="json") as stream,
    ):
        return [entry async for entry in stream]


def test_the_payload_of_a_publisher_is_described() -> None:
    """Arguments that the server gives are not listed: the request, the elements of a channel."""
    service = penstock.Service()

    @service.publisher("above")
    async def above(request: Request, payload: Quote, most: int = 3) -> AsyncIterator[bytes]:
        yield b""

    @service.publisher("sums")
    async def sums(elements: penstock.Source[Quote]) -> AsyncIterator[bytes]:
        yield b""

    found = [entry_of(service, route) for route in service.router.routes()]
    assert [each["parameters"] for each in found] == [
        [{"name": "most", "type": "int", "in": "query", "required": False}],
        [],
    ]
    assert (found[0]["payload"], found[0]["needs_payload"]) == ("Quote", True)
    assert "payload" not in found[1]
    assert (found[1]["channel"], found[1]["channel_schema"]["$defs"]) == ("Quote", {"Quote": QUOTE})


@pytest.mark.parametrize("protocol", ["", "reactivesocket+"])
async def test_each_publisher_and_request_has_an_entry(protocol: str) -> None:
    """An entry has parameters, types and the first line of the docstring. An argument that penstock
    gives to a function is not a parameter of a peer.
    """
    entries = {entry["name"]: entry for entry in await described(service_with(), protocol)}
    assert sorted(entries) == ["odd", "order/{symbol}", DESCRIPTION, "raw", "ticks/{symbol}"]
    symbol = {"name": "symbol", "type": "str", "in": "name", "required": True}
    assert entries["ticks/{symbol}"] == {
        "name": "ticks/{symbol}",
        "kind": "publisher",
        "parameters": [
            symbol,
            {"name": "most", "type": "int", "in": "query", "required": False},
            {
                "name": "kinds",
                "type": "list[str] | None",
                "in": "query",
                "required": False,
                "schema": {
                    "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]
                },
            },
        ],
        "serializer": "json",
        "elements": "list[Quote]",
        "elements_schema": {
            "type": "array",
            "items": {"$ref": "#/$defs/Quote"},
            "$defs": {"Quote": QUOTE},
        },
        "summary": "Prices of a symbol.",
    }
    assert entries["order/{symbol}"] == {
        "name": "order/{symbol}",
        "kind": "request",
        "parameters": [symbol],
        "payload": "Quote",
        "needs_payload": True,
        "payload_schema": {"$ref": "#/$defs/Quote", "$defs": {"Quote": QUOTE}},
        "answer": "Quote",
        "answer_schema": {"$ref": "#/$defs/Quote", "$defs": {"Quote": QUOTE}},
        "summary": "Place an order.",
    }
    assert (
        entries["raw"]["elements"],
        entries["raw"]["serializer"],
        entries["raw"]["summary"],
    ) == ("bytes", "bytes", "")
    assert (entries["odd"]["elements"], entries["odd"]["serializer"]) == ("", "json")


async def test_a_published_log_says_that_its_elements_have_positions() -> None:
    """Its elements are bytes. An entry without `positions` is that of a publisher
    that keeps none.
    """
    service = penstock.Service(describe=True)
    service.publish("orders", RingLog(retention=Retention(max_count=10)))
    [entry] = [each for each in await described(service) if each["name"] == "orders"]
    assert (entry["serializer"], entry["elements"], entry["positions"]) == ("bytes", "bytes", True)
    assert all("positions" not in entry for entry in await described(service_with()))


async def test_a_service_does_not_describe_itself_unless_its_program_says_so() -> None:
    """The name does not exist."""
    with pytest.raises((Rejected, PublisherFailed), match="no such publisher"):
        await described(service_with(describe=False))


async def authorize_later(principal: Any, name: str) -> bool:
    return name in ("raw", DESCRIPTION)


def deny_the_rest(principal: Any, name: str) -> bool:
    if name not in ("raw", DESCRIPTION):
        raise NotAvailable(name)
    return True


@pytest.mark.parametrize(
    "options",
    [
        {"authorize": lambda _, name: name in ("raw", DESCRIPTION)},
        {"authorize": authorize_later},
        {"authorize": deny_the_rest},
        {"authorize": lambda _, name: name in ("raw", DESCRIPTION) or "no"},
        {"may_open": lambda name, _: name in ("raw", DESCRIPTION)},
    ],
    ids=["sync", "async", "raises", "not True", "may_open"],
)
async def test_a_peer_sees_what_it_may_open(options: Any) -> None:
    """By the functions of the service, which get the pattern."""
    assert [entry["name"] for entry in await described(service_with(**options))] == [
        DESCRIPTION,
        "raw",
    ]


async def test_a_peer_that_may_not_see_the_description_gets_the_answer_to_an_unknown_name() -> None:
    """Every other name gets the same answer."""
    with pytest.raises((Rejected, PublisherFailed), match="no such publisher"):
        await described(service_with(authorize=lambda _, name: name != DESCRIPTION))


async def test_a_function_that_fails_ends_the_description() -> None:
    """The peer is told no more than that, and the program gets the exception."""

    def broken(_: Any, name: str) -> bool:
        if name == "raw":
            raise ValueError("a secret")
        return True

    told: list[Exception] = []
    async with penstock.serve(
        service_with(authorize=broken), "memory://a", on_violation=told.append
    ):
        with pytest.raises(PublisherFailed) as failed:
            async with penstock.subscribe(f"memory://a#{DESCRIPTION}") as stream:
                async for _ in stream:
                    pass
    assert "secret" not in str(failed.value)
    assert [str(error) for error in told] == ["a secret"]


def test_the_name_of_the_description_cannot_be_taken() -> None:
    """Two publishers have no name in common."""
    with pytest.raises(UsageError, match="matches the same names"):
        penstock.Service(describe=True).publish(DESCRIPTION, [b""])


def test_what_is_not_a_function_has_a_summary_too() -> None:
    """A partial has that of its function, an object that of its call, and a topic none."""

    async def answer(payload: bytes, greeting: str) -> bytes:
        """Answer."""
        return payload

    service = penstock.Service()
    service.request("answer")(partial(answer, greeting="hello"))
    topic: penstock.Topic[bytes] = penstock.Topic()
    service.publish("topic", topic, type=Quote)
    entries = {route.pattern.text: entry_of(service, route) for route in service.router.routes()}
    assert (entries["answer"]["summary"], entries["answer"]["parameters"]) == ("Answer.", [])
    assert (entries["topic"]["summary"], entries["topic"]["elements"]) == ("", "Quote")
    assert summary_of(lambda: None) == ""
