"""What a connection that does nothing costs a server, over each transport, and one that stops in
the middle of its handshake: `python -m campaigns.costs.idle` prints a table, in an environment with
the plugins for WebSocket and HTTP.

Each row is a process of its own. The figure is the memory of the process (RSS) that the last
connections added, for each of them, because TLS allocates outside of Python. The buffers of the
system for a socket are not in it.
"""

import argparse
import contextlib
import gc
import os
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import trio
import trustme

from penstock.api import Limits
from penstock.protocols import rsio
from penstock.runtime import Service, connect, serve
from penstock.spi import Tls, TransportOptions

ROWS: Final = {
    "TCP": ("tcp://localhost:0", ""),
    "TCP, ReactiveSocket": ("tcp://localhost:0", "reactivesocket+"),
    "TLS": ("tls://localhost:0", ""),
    "WebSocket": ("ws://localhost:0", ""),
    "WebSocket on TLS": ("wss://localhost:0", ""),
    "HTTP": ("http://localhost:0", ""),
    "TCP, half of a hello": ("tcp://localhost:0", ""),
    "TLS, its first message": ("tls://localhost:0", ""),
    "WebSocket, half of a head": ("ws://localhost:0", ""),
    "WebSocket on TLS, the first message of TLS": ("wss://localhost:0", ""),
    "HTTP, half of a head": ("http://localhost:0", ""),
    "HTTP/2, the first message": ("h2://localhost:0", ""),
}
HEAD: Final = "| connection | KiB |\n|---|--:|"

HALF_OF_A_HEAD: Final = b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"a" * 1_000


def first_message_of_tls() -> bytes:
    """Return what a client of TLS sends first. The server answers with its certificate, and waits."""
    sent = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(
        ssl.MemoryBIO(), sent, server_hostname="localhost"
    )
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


BEGINNINGS: Final[dict[str, Callable[[], bytes]]] = {
    "HTTP": lambda: b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TCP, half of a hello": lambda: rsio.encode(rsio.ClientHello(version=0, extensions=(1,)))[:-1],
    "TLS, its first message": first_message_of_tls,
    "WebSocket, half of a head": lambda: HALF_OF_A_HEAD,
    "WebSocket on TLS, the first message of TLS": first_message_of_tls,
    "HTTP, half of a head": lambda: HALF_OF_A_HEAD,
    "HTTP/2, the first message": lambda: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}
"""What the clients of these rows send. Those of the other rows are clients of penstock."""

FIRST: Final = 50
"""Connections before the first look at the memory, so that what all share is not counted."""

AUTHORITY: Final = "authority.pem"
CERTIFICATE: Final = "certificate.pem"


def options(folder: Path, *, listens: bool) -> TransportOptions:
    """Return the certificates of one side."""
    shown = folder / CERTIFICATE
    return TransportOptions(
        tls=Tls(certificate=shown) if listens else Tls(authorities=folder / AUTHORITY)
    )


async def hold_open(row: str, url: str, count: int, folder: Path) -> None:
    """Open `count` connections, print a line, and keep them."""
    if row in BEGINNINGS:
        host, port = url.partition("://")[2].rsplit(":", 1)
        beginning, opened = BEGINNINGS[row](), []
        for _ in range(count):
            opened.append(socket.create_connection((host, int(port))))
            opened[-1].sendall(beginning)
        if row == "HTTP":
            for each in opened:
                each.recv(65_536)
        else:
            await trio.sleep(1)  # most of these get no answer
        print("open", flush=True)
        await trio.sleep_forever()
    async with trio.open_nursery() as nursery:

        async def hold(task_status: trio.TaskStatus[None]) -> None:
            async with connect(url, options=options(folder, listens=False)):
                task_status.started()
                await trio.sleep_forever()

        for _ in range(count):
            await nursery.start(hold)
        print("open", flush=True)


def resident() -> int:
    """Return the bytes of memory that this process has."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def measure(row: str, count: int, folder: Path) -> None:
    """Serve, and print what each of `count` connections adds."""
    address, protocol = ROWS[row]
    # One client opens all of them, and no bound may be in the way.
    limits = Limits(
        max_connections=4 * count,
        max_connections_per_address=4 * count,
        max_pending_handshakes=4 * count,
        handshake_timeout=300,
    )
    serves_tls = address.startswith(("tls", "wss"))
    async with serve(
        Service(),
        address,
        limits=limits,
        options=options(folder, listens=True) if serves_tls else None,
    ) as server:
        url = protocol + str(server.addresses[0]).rstrip("/")
        clients, before = [], 0
        for some in (FIRST, count):
            before = resident()
            command = [sys.executable, "-m", __spec__.name, "--folder", str(folder)]
            client = await trio.lowlevel.open_process(
                [*command, "--count", str(some), "--row", row, "--open", url],
                stdout=subprocess.PIPE,
            )
            assert client.stdout is not None
            clients.append(client)
            if not await client.stdout.receive_some():
                raise SystemExit(f"the clients of {url} could not connect")
        print((resident() - before) / count / 1024, flush=True)
        for client in clients:
            client.kill()
            await client.wait()


def table(count: int, rows: Iterable[str] = ROWS) -> str:
    """Return the table."""
    lines = [HEAD]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(folder / AUTHORITY)
        shown = authority.issue_cert("localhost", "127.0.0.1", "::1").private_key_and_cert_chain_pem
        shown.write_to_path(folder / CERTIFICATE)
        for row in rows:
            command = [sys.executable, "-m", __spec__.name, "--folder", name, "--count", str(count)]
            done = subprocess.run(
                [*command, "--row", row], check=True, stdout=subprocess.PIPE, text=True
            )
            lines.append(f"| {row} | {float(done.stdout):.0f} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table, or be one of its processes."""
    parser = argparse.ArgumentParser(prog="campaigns.costs.idle", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="the number of connections")
    parser.add_argument("--row", choices=ROWS, help=argparse.SUPPRESS)
    parser.add_argument("--open", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if given.open:
        trio.run(hold_open, given.row, given.open, given.count, given.folder)
    elif given.row:
        trio.run(measure, given.row, given.count, given.folder)
    else:
        print(table(given.count))


if __name__ == "__main__":
    main()
