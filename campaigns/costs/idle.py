"""What a connection that does nothing costs a server, over each transport:
`python -m campaigns.costs.idle` prints a table, in an environment with the plugins for WebSocket
and HTTP.

Each row is a process of its own. The figure is the memory of the process (RSS) that the last
connections added, for each of them, because TLS allocates outside of Python. The buffers of the
system for a socket are not in it.
"""

import argparse
import gc
import os
import resource
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import trio
import trustme

from penstock.api import Limits
from penstock.runtime import Service, connect, serve
from penstock.spi import Tls, TransportOptions

ROWS: Final = {
    "TCP": ("tcp://localhost:0", ""),
    "TCP, ReactiveSocket": ("tcp://localhost:0", "reactivesocket+"),
    "TLS": ("tls://localhost:0", ""),
    "WebSocket": ("ws://localhost:0", ""),
    "WebSocket on TLS": ("wss://localhost:0", ""),
    "HTTP": ("http://localhost:0", ""),
}
HEAD: Final = "| connection | KiB |\n|---|--:|"

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


async def hold_open(url: str, count: int, folder: Path) -> None:
    """Open `count` connections, print a line, and keep them."""
    if url.startswith("http"):
        host, port = url.removeprefix("http://").rstrip("/").rsplit(":", 1)
        opened = [socket.create_connection((host, int(port))) for _ in range(count)]
        for each in opened:
            each.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            each.recv(65_536)
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
    limits = Limits(max_connections=4 * count, max_connections_per_address=4 * count)
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
                [*command, "--count", str(some), "--open", url], stdout=subprocess.PIPE
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
                [*command, "--serve", row], check=True, stdout=subprocess.PIPE, text=True
            )
            lines.append(f"| {row} | {float(done.stdout):.0f} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table, or be one of its processes."""
    parser = argparse.ArgumentParser(prog="campaigns.costs.idle", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="the number of connections")
    parser.add_argument("--serve", choices=ROWS, help=argparse.SUPPRESS)
    parser.add_argument("--open", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if given.serve:
        trio.run(measure, given.serve, given.count, given.folder)
    elif given.open:
        trio.run(hold_open, given.open, given.count, given.folder)
    else:
        print(table(given.count))


if __name__ == "__main__":
    main()
