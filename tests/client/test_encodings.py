"""Which encodings a connection lists, and which one its URL or its transport has chosen. The
encoding is that of a third party.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from penstock.api import Limits, Rejected, UsageError
from penstock.client import protocols_of
from penstock.protocols import rsio
from penstock.runtime import Peer, connect, remote, serve, subscribe
from penstock.spi import Factory, Registry, TransportOptions, build_registry, hookimpl
from tests._certificates import certify
from tests.protocols.rsio._masked_encoding import ID, MaskedEncoding
from tests.runtime._services import numbers_service, raw_connection


class MaskedPlugin:
    """A plugin as another distribution would have it."""

    @hookimpl
    def penstock_encodings(self) -> list[Factory]:
        return [Factory(name="masked", id=ID, make=MaskedEncoding)]


@pytest.fixture
def registry() -> Registry:
    found = build_registry([MaskedPlugin()])
    assert found.problems == ()
    return found


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> TransportOptions:
    return TransportOptions(tls=certify(tmp_path_factory.mktemp("certificates")))


def encoding_of(peer: Peer) -> str:
    dialect: Any = peer._connection.session.channel.dialect
    name: str = dialect._out.name
    return name


@asynccontextmanager
async def served(url: str, registry: Registry, **options: Any) -> AsyncIterator[str]:
    async with serve(numbers_service(), url, registry=registry, **options) as server:
        yield server.addresses[0]


@pytest.mark.parametrize(
    ("of_server", "of_client", "expected"),
    [
        ("memory://n", {"encoding": "masked"}, "masked"),
        ("memory://n", {}, "compact"),
        ("memory://n", {"encoding": "compact"}, "compact"),
        ("memory://n?encoding=masked", {}, "masked"),
        ("memory-framed://n?encoding=masked", {}, "masked"),
    ],
)
async def test_a_client_chooses_the_encoding(
    registry: Registry, of_server: str, of_client: dict[str, Any], expected: str
) -> None:
    """By name, if the server has it too; or by the URL, on both sides."""
    async with (
        served(of_server, registry) as url,
        connect(url, registry=registry, **of_client) as peer,
    ):
        async with peer.subscribe("numbers/3", serializer="json") as stream:
            assert [each async for each in stream] == [0, 1, 2]
        assert encoding_of(peer) == expected


async def test_a_subscription_by_url_chooses_it_as_well(registry: Registry) -> None:
    """`subscribe` and `remote` pass the option on."""
    async with served("memory://n", registry) as url:
        async with subscribe(
            f"{url}/numbers/2", serializer="json", registry=registry, encoding="masked"
        ) as stream:
            assert [each async for each in stream] == [0, 1]
        with pytest.raises(UsageError, match="there is no encoding 'other'"):
            remote(f"{url}/numbers/2", registry=registry, encoding="other")


@pytest.mark.parametrize(
    "of_server", [{"registry": None}, {"extensions": ()}], ids=["lacks it", "strict version 0"]
)
async def test_a_server_without_the_encoding_is_spoken_to_in_the_compact_one(
    registry: Registry, of_server: dict[str, Any]
) -> None:
    """Nothing is refused: an encoding does not concern the program."""
    options = {"registry": registry} | of_server
    async with serve(numbers_service(), "memory://n", **options) as server:
        async with connect(server.addresses[0], registry=registry, encoding="masked") as peer:
            assert await peer.request("numbers/1", serializer="json") == 0
            assert encoding_of(peer) == "compact"


async def test_a_server_lists_every_installed_encoding(registry: Registry) -> None:
    """Beside the extensions, for clients that ask."""
    async with served("memory://n", registry) as url, trio.open_nursery() as nursery:
        raw = await raw_connection(nursery, url)
        await raw.send(rsio.encode(rsio.ClientHello()))
        hello = await raw.receive()
        assert hello is not None
        assert rsio.encode_varint(ID) in bytes(hello)
        await raw.aclose()


@pytest.mark.parametrize(
    ("of_client", "of_server", "expected"),
    [
        (None, None, "masked"),
        (("rsio/0",), None, "masked"),
        (None, ("rsio/0",), "masked"),
        (None, (), "masked"),
    ],
    ids=[
        "by ALPN",
        "the client without the name",
        "the server without the name",
        "the server without ALPN",
    ],
)
async def test_alpn_chooses_the_encoding_before_the_first_byte(
    registry: Registry,
    certified: TransportOptions,
    of_client: tuple[str, ...] | None,
    of_server: tuple[str, ...] | None,
    expected: str,
) -> None:
    """And the hellos choose it if ALPN does not."""
    serving, calling = (
        replace(certified, protocols=of_server),
        replace(certified, protocols=of_client),
    )
    async with served("tls://127.0.0.1:0", registry, options=serving) as url:
        async with connect(url, registry=registry, encoding="masked", options=calling) as peer:
            assert await peer.request("numbers/1", serializer="json") == 0
            assert encoding_of(peer) == expected
            negotiated = peer._connection.session.channel.dialect
            is_outside = of_client is None and of_server is None
            assert (negotiated._switch is None) is is_outside  # type: ignore[attr-defined]  # the dialect of RS.io


async def test_a_client_that_is_refused_is_told_in_its_encoding(registry: Registry) -> None:
    """A server without room answers before any session is made."""
    limits = Limits(max_connections=1)
    async with (
        served("memory://n?encoding=masked", registry, limits=limits) as url,
        connect(url, registry=registry) as first,
    ):
        await first.wait_accepted()
        with pytest.raises((Rejected, ExceptionGroup)):
            async with connect(url, registry=registry) as second:
                await second.wait_accepted()


@pytest.mark.parametrize(
    ("url", "options", "why"),
    [
        ("memory://n?encoding=other", {}, "there is no encoding 'other'"),
        ("reactivesocket+memory://n?encoding=masked", {}, "have only one"),
        ("memory://n", {"encoding": "other"}, "there is no encoding 'other'"),
        ("memory://n", {"encoding": 3}, "give the name of an encoding"),
        ("reactivesocket+memory://n", {"encoding": "masked"}, "whose messages have one encoding"),
        (
            "memory://n?encoding=masked",
            {"encoding": "other"},
            "asks for 'masked'; leave one of them out",
        ),
        (
            "memory://n?encoding=masked",
            {"encoding": "compact"},
            "asks for 'masked'; leave one of them out",
        ),
    ],
)
def test_an_encoding_that_cannot_be_spoken_is_a_usage_error(
    registry: Registry, url: str, options: dict[str, Any], why: str
) -> None:
    """At the call of connect()."""
    with pytest.raises(UsageError, match=why):
        connect(url, registry=registry, **options)


async def test_a_url_and_an_option_may_name_the_same_encoding(registry: Registry) -> None:
    """The URL has chosen it, so none is negotiated."""
    async with (
        served("memory://n?encoding=masked", registry) as url,
        connect(url, registry=registry, encoding="masked") as peer,
    ):
        assert await peer.request("numbers/1", serializer="json") == 0
        assert encoding_of(peer) == "masked"


def test_the_names_for_alpn_have_the_encodings_first() -> None:
    """For dialects that have encodings, and not for others."""
    kinds: Any = [
        SimpleNamespace(alpn="rsio/0", takes_encodings=True),
        SimpleNamespace(alpn="other"),
    ]
    encodings = [Factory(name="masked", id=ID, make=MaskedEncoding)]
    assert list(protocols_of(kinds, encodings)) == ["rsio/0+masked", "rsio/0", "other"]


async def test_requests_with_data_are_sent_in_the_encoding(registry: Registry) -> None:
    """Their messages are those of an extension; long data goes in parts."""
    service = numbers_service()

    @service.request("length")
    async def length(payload: bytes) -> bytes:
        return str(len(payload)).encode()

    async with serve(service, "memory://n", registry=registry) as server:
        async with connect(server.addresses[0], registry=registry, encoding="masked") as peer:
            await peer.wait_accepted()
            assert await peer.request("length", bytes(100_000)) == b"100000"
            assert await peer.request("length", b"abc") == b"3"
