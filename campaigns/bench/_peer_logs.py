"""More server processes of network benchmarks: publishers with a log, and a publisher on
nats-server. See `_peer_process`.
"""

import asyncio
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import trio

AT_ONCE = 4_000
"""Elements of an append while a log is filled."""

BURST = 1_000
"""Elements that the publisher on nats-server publishes before it lets its connection send."""


def ring_log(size: int, count: int) -> None:
    """Serve the elements of a log in memory with penstock."""
    from penstock.logs import Retention, RingLog

    trio.run(_serve_log, RingLog(retention=Retention(max_bytes=2**30)), size, count)


def disk_log(size: int, count: int) -> None:
    """Serve the elements of a log in a file with penstock."""
    from penstock.logs import DiskLog, Retention

    with TemporaryDirectory() as folder:

        async def main() -> None:
            async with DiskLog(
                Path(folder) / "bench.log", retention=Retention(max_bytes=2**30)
            ) as log:
                await _serve_log(log, size, count)

        trio.run(main)


async def _serve_log(log: Any, size: int, count: int) -> None:
    from _peer_process import print_ports

    from penstock.runtime import Service, serve

    for at in range(0, count, AT_ONCE):
        await log.append([bytes(size)] * min(AT_ONCE, count - at))
    service = Service()
    service.publish("elements", log)
    async with serve(service, "tcp://127.0.0.1:0") as server:
        print_ports(server.addresses[0].port)
        await trio.sleep_forever()


def nats(size: int, count: int) -> None:
    """Run nats-server, and a publisher on nats-py
    that publishes the elements for each message on the subject ``start``.
    """
    with ExitStack() as stack:
        port = _free_port()
        program = shutil.which("nats-server") or "nats-server"
        server = stack.enter_context(
            subprocess.Popen(
                [program, "-a", "127.0.0.1", "-p", str(port)], stderr=subprocess.DEVNULL
            )
        )
        stack.callback(server.kill)
        _wait_until_open(port)
        asyncio.run(_publish(port, bytes(size), count))


async def _publish(port: int, element: bytes, count: int) -> None:
    import nats as client
    from _peer_process import print_ports

    connection = await client.connect(f"nats://127.0.0.1:{port}", pending_size=64 << 20)

    async def publish(_: Any) -> None:
        for number in range(count):
            await connection.publish("elements", element)
            if number % BURST == 0:
                await connection.flush()
        await connection.flush()

    await connection.subscribe("start", cb=publish)
    await connection.flush()
    print_ports(port)
    await asyncio.Event().wait()


def _wait_until_open(port: int) -> None:
    while True:
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


KINDS = {each.__name__: each for each in (ring_log, disk_log, nats)}
