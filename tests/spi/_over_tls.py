"""Certificates, options and connections for the tests of TLS."""

import socket
from pathlib import Path

import pytest
import trio
import trustme

from penstock.api import ConnectionLost
from penstock.spi import Connection, Listener, Tls, TransportOptions
from penstock.transports import TcpTransport, TlsTransport
from tests.transports._helpers import connect, listen, stream_of

TLS = TlsTransport()
TCP = TcpTransport()
CA = trustme.CA()
ANOTHER_CA = trustme.CA()
SOON = 0.15
"""Seconds of real time, for deadlines that a test waits for."""


class Certificates:
    """PEM files: an authority, a server, a client called Alice,
    and a client of an unknown authority.
    """

    def __init__(self, folder: Path) -> None:
        self.ca = folder / "ca.pem"
        CA.cert_pem.write_to_path(self.ca)
        self.server = self._issue(folder / "server.pem", CA, "localhost", "127.0.0.1")
        self.alice = self._issue(folder / "alice.pem", CA, "alice.example", common_name="Alice")
        self.untrusted = self._issue(
            folder / "untrusted.pem", ANOTHER_CA, "alice.example", common_name="Alice"
        )

    def _issue(
        self, path: Path, ca: trustme.CA, *names: str, common_name: str | None = None
    ) -> Path:
        ca.issue_cert(*names, common_name=common_name).private_key_and_cert_chain_pem.write_to_path(
            path
        )
        return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """The certificates, made once for each test module: making keys takes time."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def serving(files: Certificates) -> TransportOptions:
    """The options of a server that requires no client certificate."""
    return TransportOptions(tls=Tls(certificate=files.server), protocols=("rsio/0",))


@pytest.fixture
def calling(files: Certificates) -> TransportOptions:
    """The options of a client that trusts this server."""
    return TransportOptions(tls=Tls(authorities=files.ca), protocols=("rsio/0",))


async def connected(
    nursery: trio.Nursery,
    serving: TransportOptions,
    calling: TransportOptions,
    url: str = "tls://localhost:0",
) -> tuple[Connection, Connection]:
    """A client's and a server's connection, before their handshakes."""
    listener = await listen(TLS, url, nursery, serving)
    client = await connect(TLS, listener.addresses[0], nursery, calling)
    server = await listener.accept()
    await listener.aclose()
    return client, server


async def plain_client(listener: Listener, nursery: trio.Nursery) -> Connection:
    """Connect to a TLS listener with plain TCP."""
    return await connect(TCP, str(listener.addresses[0]).replace("tls", "tcp"), nursery)


async def failed_handshake(connection: Connection) -> str:
    """Run the handshake, which must raise ConnectionLost; return the message."""
    async with trio.open_nursery() as nursery:
        with pytest.raises(ConnectionLost) as caught:
            await connection.handshake(nursery)
    return str(caught.value)


async def failed_handshakes(client: Connection, server: Connection) -> tuple[str, str]:
    """Run both handshakes, which must fail; return both messages."""
    messages: dict[str, str] = {}

    async def fail(name: str, connection: Connection) -> None:
        messages[name] = await failed_handshake(connection)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(fail, "client", client)
        nursery.start_soon(fail, "server", server)
    return messages["client"], messages["server"]


def socket_of(connection: Connection) -> trio.socket.SocketType:
    """The TCP socket below a TLS connection."""
    return stream_of(connection).transport_stream.socket  # type: ignore[attr-defined,no-any-return]  # TLS on TCP


def reset_on_close(connection: Connection) -> None:
    """Make closing a plain TCP connection send a reset."""
    linger = b"\1\0\0\0\0\0\0\0"
    stream_of(connection).socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)  # type: ignore[attr-defined]  # a SocketStream
