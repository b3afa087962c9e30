"""A function of a program on asyncio examines the server in a task."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from penstock import aio
from penstock.api import (
    AuthRefused,
    ConnectionLost,
    Credentials,
)
from penstock.spi import PeerIdentity
from tests.aio._run import run
from tests.contracts._trio_server import (
    SERVER_HELLO,
    Served,
    examining_service,
    raw_server,
    serving,
)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


def test_a_function_that_waits_examines_the_server() -> None:
    """It runs in a task. A server that it refuses was never asked."""
    verdicts: list[str | None] = [None, "the exchange"]

    async def look(scheme: str, data: bytes, _peer: PeerIdentity) -> str | None:
        assert (scheme, data) == ("bearer", b"lighthouse")
        await asyncio.sleep(0)
        return verdicts.pop(0)

    async def main(url: str) -> None:
        options: dict[str, Any] = {
            "credentials": Credentials.bearer("swordfish"),
            "authenticate": look,
        }
        with pytest.raises(AuthRefused, match="refused the credentials"):
            async with aio.connect(url, **options) as peer:
                with pytest.raises(AuthRefused):
                    await peer.request("count")
        async with aio.connect(url, **options) as peer:
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
