"""The clients of penstock on asyncio, and without a loop, over RSocket and real sockets."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

import penstock
from penstock import aio, blocking
from penstock.spi import PeerIdentity, build_registry

URL = "rsocket+tcp://127.0.0.1:0"
LARGE = bytes(range(250)) * 400


def service_of(servers: list[Any]) -> penstock.Service:
    service = penstock.Service(
        authenticate=lambda scheme, data, peer: (
            "alice" if (scheme, data) == ("bearer", b"t") else None
        )
    )

    @service.publisher("count/{n}")
    async def count(n: int) -> AsyncIterator[bytes]:
        for number in range(n):
            yield b"%d" % number

    @service.request("echo")
    async def echo(payload: bytes, peer: PeerIdentity) -> bytes:
        assert peer.principal == "alice"
        return payload

    @service.request("fail")
    async def fail() -> bytes:
        raise penstock.PublicError("on purpose")

    @service.request("read")
    async def read() -> bytes:
        (client,) = servers[0].peers
        async with client.subscribe("mine", demand=1) as stream:
            return b",".join([element async for element in stream])

    return service


CREDENTIALS = penstock.Credentials.bearer("t")
DUE = [b"%d" % number for number in range(50)]


def use_blocking(url: str) -> None:
    with blocking.connect(
        url,
        registry=build_registry(),
        credentials=CREDENTIALS,
        publishers={"mine": [b"a", b"b", b"c"]},
    ) as peer:
        with peer.subscribe("count/50", demand=7) as stream:
            assert list(stream) == DUE
        assert [each for batch in peer.batches("count/50") for each in batch] == DUE
        assert peer.request("echo", LARGE) == LARGE
        with pytest.raises(penstock.PublisherFailed, match="on purpose"):
            peer.request("fail")
        with pytest.raises(penstock.Rejected) as refused:
            peer.request("nothing")
        assert not refused.value.processed
        with peer.subscribe("count/1000000", demand=7) as stream:
            assert next(iter(stream)) == b"0"
        assert peer.request("read") == b"a,b,c"


async def use_aio(url: str) -> None:
    async with aio.connect(
        url, credentials=CREDENTIALS, publishers={"mine": lambda: [b"a", b"b", b"c"]}
    ) as peer:
        async with peer.subscribe("count/50", demand=7) as stream:
            assert [element async for element in stream] == DUE
        assert await peer.request("echo", LARGE) == LARGE
        with pytest.raises(penstock.PublisherFailed, match="on purpose"):
            await peer.request("fail")
        async with peer.subscribe("count/1000000", demand=7) as stream:
            assert await anext(stream) == b"0"
        assert await peer.request("read") == b"a,b,c"


async def test_a_client_without_a_loop() -> None:
    """Streams, lists, requests in fragments, errors, a cancel, credentials, and a publisher that the
    server reads by its route.
    """
    servers: list[Any] = []
    async with penstock.serve(service_of(servers), URL) as server:
        servers.append(server)
        await trio.to_thread.run_sync(use_blocking, str(server.addresses[0]))


async def test_a_client_on_asyncio() -> None:
    """The same program."""
    servers: list[Any] = []
    async with penstock.serve(service_of(servers), URL) as server:
        servers.append(server)
        url = str(server.addresses[0])
        await trio.to_thread.run_sync(lambda: asyncio.run(use_aio(url)))


def test_a_client_without_a_loop_says_how_to_find_the_protocol() -> None:
    """It does not look for plugins."""
    with pytest.raises(penstock.UsageError, match=r"registry=penstock\.spi\.build_registry"):
        blocking.connect("rsocket+tcp://127.0.0.1:1")
