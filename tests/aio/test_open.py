"""Opening a connection on asyncio: TCP, TLS and Unix, and how it fails."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from penstock import aio
from penstock.api import (
    ConnectionLost,
)
from penstock.spi import Tls, TransportOptions
from tests._free_port import free_port
from tests.aio._run import connected, run
from tests.blocking._trio_server import Served, serving

SERVER_HELLO = bytes.fromhex("020000")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


def test_a_unix_socket(tmp_path: Path) -> None:
    """The server is known by its process."""

    async def look(peer: aio.Peer) -> None:
        assert await peer.request("echo") == b"nothing"
        credentials = peer.identity.credentials
        assert credentials is not None
        assert credentials.pid == os.getpid()

    with serving(f"unix://{tmp_path}/s") as served:
        connected(served, look)


def test_tls_verifies_the_server(tmp_path: Path) -> None:
    """Elements arrive; a client that trusts another authority is told so, and
    so is one of a server without TLS.
    """
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(
        tmp_path / "server.pem"
    )
    trusting = TransportOptions(tls=Tls(authorities=tmp_path / "ca.pem"))

    async def read(peer: aio.Peer) -> int:
        async with peer.subscribe("numbers?count=3000&size=100") as stream:
            count = len([element async for element in stream])
        assert peer.identity.certificate is not None
        return count

    async def enter(url: str) -> None:
        async with aio.connect(url):
            pass

    with serving(
        "tls://127.0.0.1:0", options=TransportOptions(tls=Tls(certificate=tmp_path / "server.pem"))
    ) as served:
        assert connected(served, read, options=trusting) == 3000
        with pytest.raises(ConnectionLost, match="certificate cannot be verified"):
            run(enter(served.url))
    with serving() as served, pytest.raises(ConnectionLost, match="without TLS"):
        run(enter(served.url.replace("tcp", "tls")))


def test_no_server_is_connection_lost() -> None:
    """For a port without a server, and for a missing socket file."""

    async def enter(url: str) -> None:
        async with aio.connect(url):
            pass

    for url in (f"tcp://127.0.0.1:{free_port()}", "unix:///nowhere/at/all"):
        with pytest.raises(ConnectionLost, match="no server answers"):
            run(enter(url))
