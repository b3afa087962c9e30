"""The pages for operators and tools: metrics, and the description of the service."""

import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from _site_in_memory import World, service, world
from penstock_http import _pages
from penstock_http._settings import settings_of
from trio.testing import MockClock

from penstock import Service, UsageError, serve
from penstock.spi import PeerIdentity, TransportOptions


@pytest.fixture(autouse=True)
def _autojump(autojump_clock: MockClock) -> None:
    """Time is virtual."""


async def _get(served: World, nursery: Any, path: str, *headers: str, method: str = "GET") -> Any:
    return await (await served.connect(nursery)).ask(f"{method} {path}", *headers)


def _described(**options: Any) -> Service:
    shop = Service(describe=True, **options)

    @shop.publisher("ticks/{symbol}", serializer="json")
    async def ticks(symbol: str, every: float, limit: int = 10):
        """Each price once it is known."""
        yield {"symbol": symbol}

    @shop.publisher("secret")
    async def secret():
        yield b""

    @shop.request("echo")
    async def echo(payload: bytes) -> bytes:
        return payload

    return shop


async def test_a_service_describes_itself_as_async_api() -> None:
    """Publishers are channels, with their parameters;
    requests by name are not served over HTTP, and not listed.
    """
    async with world(_described()) as (served, nursery):
        answer = await _get(served, nursery, "/asyncapi.json")
    page = json.loads(answer.body)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert page["asyncapi"] == "3.0.0"
    assert page["servers"]["here"] == {"host": "localhost", "pathname": "/", "protocol": "http"}
    assert set(page["channels"]) == {"ticks__symbol_", "secret", "penstock_describe"}
    ticks = page["channels"]["ticks__symbol_"]
    assert ticks["address"] == "p/ticks/{symbol}"
    assert ticks["description"] == "Each price once it is known."
    assert ticks["parameters"] == {"symbol": {"description": "str"}}
    assert ticks["messages"]["element"]["contentType"] == "application/json"
    query = page["operations"]["ticks__symbol_"]["bindings"]["http"]["query"]
    assert query["required"] == ["every"]
    assert query["properties"]["every"] == {"type": "number"}
    assert set(query["properties"]) == {"every", "limit", "request"}


@dataclasses.dataclass
class Leg:
    """A part of a quote."""

    price: float


@dataclasses.dataclass
class Quote:
    """A quote."""

    legs: list[Leg]


class Bid(msgspec.Struct, tag=True):
    """A side."""

    price: int


class Ask(msgspec.Struct, tag=True):
    """The other side."""

    price: int


async def test_the_fields_of_elements_are_in_the_document() -> None:
    """Each channel has its own definitions, below the components."""
    shop = Service(describe=True)

    @shop.publisher("quotes/{symbol}")
    async def quotes(symbol: str) -> AsyncIterator[Quote]:
        yield Quote([])

    @shop.publisher("either")
    async def either() -> AsyncIterator[Bid | Ask]:
        yield Bid(1)

    @shop.publisher("legs")
    async def legs() -> AsyncIterator[list[Leg]]:
        yield []

    async with world(shop) as (served, nursery):
        page = json.loads((await _get(served, nursery, "/asyncapi.json")).body)
    assert page["channels"]["quotes__symbol_"]["messages"]["element"]["payload"] == {
        "$ref": "#/components/schemas/quotes__symbol_.Quote"
    }
    assert page["channels"]["legs"]["messages"]["element"]["payload"] == {
        "type": "array",
        "items": {"$ref": "#/components/schemas/legs.Leg"},
    }
    assert page["channels"]["either"]["messages"]["element"]["payload"] == {
        "anyOf": [{"$ref": f"#/components/schemas/either.{name}"} for name in ("Bid", "Ask")],
        "discriminator": "type",
    }
    schemas = page["components"]["schemas"]
    assert sorted(schemas) == [
        "either.Ask",
        "either.Bid",
        "legs.Leg",
        "quotes__symbol_.Leg",
        "quotes__symbol_.Quote",
    ]
    assert schemas["quotes__symbol_.Quote"]["properties"]["legs"]["items"] == {
        "$ref": "#/components/schemas/quotes__symbol_.Leg"
    }
    assert schemas["legs.Leg"]["properties"] == {"price": {"type": "number"}}


async def test_a_client_sees_what_it_may_open() -> None:
    """With its credentials; without them it gets 401."""

    def authorize(principal: object, name: str) -> bool:
        return name != "secret" or principal == "root"

    shop = _described(
        authenticate=lambda _scheme, token, _peer: token.decode() or None, authorize=authorize
    )
    async with world(shop) as (served, nursery):
        assert (await _get(served, nursery, "/asyncapi.json")).status == 401
        listed = [
            set(
                json.loads(
                    (
                        await _get(
                            served, nursery, "/asyncapi.json", f"Authorization: Bearer {name}"
                        )
                    ).body
                )["channels"]
            )
            for name in ("ann", "root")
        ]
    assert [("secret" in names) for names in listed] == [False, True]


async def test_a_service_that_does_not_describe_itself_has_no_such_page() -> None:
    """404, as for every other path."""
    async with world() as (served, nursery):
        assert (await _get(served, nursery, "/asyncapi.json")).status == 404
        assert (await _get(served, nursery, "/asyncapi.json", method="PUT")).status == 405


async def test_the_public_url_is_the_one_of_the_description() -> None:
    """With the prefix that a proxy takes off."""
    async with world(_described(), public="https://streams.example/live") as (served, nursery):
        page = json.loads((await _get(served, nursery, "/asyncapi.json")).body)
    assert page["servers"]["here"] == {
        "host": "streams.example",
        "pathname": "/live",
        "protocol": "https",
    }


class _Collected:
    """What `penstock_metrics.collect` returns."""

    def __init__(self, made: list[Any]) -> None:
        self._made = made

    def __enter__(self) -> None:
        self._made.append("begun")

    def __exit__(self, *_: object) -> None:
        self._made.append("ended")


class _Modules:
    """penstock_metrics and prometheus_client."""

    CONTENT_TYPE_LATEST = "text/plain; version=1.0.0"

    def __init__(self) -> None:
        self.made: list[Any] = []

    def collect(self, host: Any) -> _Collected:
        self.made.append(host.statistics().connections)
        return _Collected(self.made)

    def generate_latest(self) -> bytes:
        return b"penstock_connections 1\n"


async def test_metrics_are_for_the_networks_of_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is collected once, until it stops.
    A client of another address finds no such page.
    """
    modules = _Modules()
    monkeypatch.setattr(_pages, "_module", lambda _name: modules)
    async with world(metrics="10.0.0.1", trusted="127.0.0.0/8") as (served, nursery):
        monkeypatch.setattr(
            type(served.site.settings.proxies),
            "client_of",
            lambda _self, request, _peer: PeerIdentity(address="", host=request.header("x-test")),
        )
        pages = [await _get(served, nursery, "/metrics", "X-Test: 10.0.0.1") for _ in range(2)]
        other = await _get(served, nursery, "/metrics", "X-Test: 10.0.0.2")
        assert [(page.status, page.body) for page in pages] == [
            (200, b"penstock_connections 1\n")
        ] * 2
        assert pages[0].headers["content-type"] == "text/plain; version=1.0.0"
        assert other.status == 404
    assert modules.made[1:] == ["begun", "ended"]


async def test_metrics_without_their_plugin_are_a_usage_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before the server listens."""

    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(_pages, "_module", missing)
    with pytest.raises(UsageError, match="penstock-metrics"):
        async with serve(
            service(),
            "http://127.0.0.1:0",
            options=TransportOptions(extra={"http.metrics": "127.0.0.1"}),
        ):
            pass


FILES = {
    "/": ("text/html; charset=utf-8", b"<!doctype html>"),
    "/page.js": ("text/javascript; charset=utf-8", b"export {};"),
}


async def test_files_are_served_beside_the_streams_and_allow_no_code_within_a_page() -> None:
    """To GET and HEAD alone, at a known host and for pages of a known origin alone."""
    async with world(files=FILES) as (served, nursery):
        page = await _get(served, nursery, "/")
        script = await _get(served, nursery, "/page.js")
        written = await _get(served, nursery, "/", method="POST")
        foreign = await _get(served, nursery, "/", "Origin: https://evil.example")
        client = await served.connect(nursery)
        await client.send(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        rebound = await client.answer()
        missing = await _get(served, nursery, "/other.js")
    assert (page.status, page.body) == (200, b"<!doctype html>")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= set(policy)
    assert "unsafe" not in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert (script.status, script.body) == (200, b"export {};")
    assert [each.status for each in (written, foreign, rebound, missing)] == [405, 403, 421, 404]


@pytest.mark.parametrize(
    "files",
    [
        "page.html",
        {"/": b"no type"},
        {"/p/numbers": ("text/html", b"the place of a stream")},
        {"/": ("text/html\r\nX: y", b"a second header")},
        {"page": ("text/html", b"no path")},
    ],
)
def test_files_that_cannot_be_served_are_a_usage_error(files: object) -> None:
    """The text shows how they are given."""
    with pytest.raises(UsageError, match=r"http\.files is not as it must be; give a dict"):
        settings_of(TransportOptions(extra={"http.files": files}))
