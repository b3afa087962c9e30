"""The arguments of `connect` are checked at the call."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock import aio
from penstock.api import (
    AuthRefused,
    ConnectionLost,
    Credentials,
    UsageError,
)
from penstock.spi import PeerIdentity
from tests.aio._run import connected, run
from tests.blocking._trio_server import Served, examining_service, raw_server, serving

SERVER_HELLO = bytes.fromhex("020000")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


@pytest.mark.parametrize(
    "call",
    [
        lambda peer: peer.subscribe("numbers", demand=-1),
        lambda peer: peer.subscribe(""),
        lambda peer: peer.subscribe("numbers", window_bytes=0),
        lambda peer: anext(peer.subscribe("numbers")),
        lambda peer: peer.request("echo", object()),
        lambda peer: peer.request("\ud800"),
    ],
)
def test_a_mistake_is_an_error_of_the_call(served: Served, call: Callable[[aio.Peer], Any]) -> None:
    """Nothing was sent: the connection goes on."""

    async def mistake(peer: aio.Peer) -> None:
        with pytest.raises(UsageError):
            await call(peer)
        assert await peer.request("echo") == b"nothing"

    connected(served, mistake)


@pytest.mark.parametrize(
    "url", ["tcp://127.0.0.1", "reactivesocket+tcp://h:1", "memory://x", "tcp://h:1/name"]
)
def test_a_url_that_this_client_cannot_use_is_refused_at_the_call(url: str) -> None:
    """No loop is needed for that."""
    with pytest.raises(UsageError):
        aio.connect(url)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_server_is_examined_before_any_request(is_async: bool) -> None:
    """By a plain function, or by one that waits. A server that it refuses was never asked."""
    verdicts: list[str | None] = [None, "the exchange"]

    async def look_async(scheme: str, data: bytes, _peer: PeerIdentity) -> str | None:
        assert (scheme, data) == ("bearer", b"lighthouse")
        await asyncio.sleep(0)
        return verdicts.pop(0)

    def look(*_arguments: Any) -> str | None:
        return verdicts.pop(0)

    async def main(url: str) -> None:
        examine: Any = look_async if is_async else look
        with pytest.raises(AuthRefused, match="refused the credentials"):
            async with aio.connect(
                url, credentials=Credentials.bearer("swordfish"), authenticate=examine
            ) as peer:
                with pytest.raises(AuthRefused):
                    await peer.request("count")
        async with aio.connect(
            url, credentials=Credentials.bearer("swordfish"), authenticate=examine
        ) as peer:
            assert await peer.request("count", type=str) == "1"
            assert peer.identity.principal == "the exchange"

    with serving(make=examining_service, credentials=Credentials.bearer("lighthouse")) as running:
        run(main(running.url))


@pytest.mark.parametrize("how", ["the program leaves", "the server is lost"])
def test_an_examination_ends_with_its_connection(how: str) -> None:
    """Its task is cancelled: leaving the block does not wait for the function."""
    ended: list[str] = []

    def script(sock: socket.socket) -> None:
        sock.recv(4096)
        sock.sendall(SERVER_HELLO)
        if how == "the program leaves":
            sock.recv(4096)

    async def main(url: str) -> None:
        begun = asyncio.Event()

        async def never(*_arguments: Any) -> None:
            begun.set()
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                ended.append("cancelled")

        async with aio.connect(url, authenticate=never) as peer:
            await begun.wait()
            if how == "the server is lost":
                with pytest.raises(ConnectionLost):
                    await peer.wait_accepted()
            assert not ended or how == "the server is lost"

    with raw_server(script) as url:
        run(main(url))
    assert ended == ["cancelled"]
