"""The server process that is measured: `tracemalloc` counts what it allocates. It prints its port,
and a line for each command.

Its argument is the scheme of the URL at which it listens. Commands come on standard input: `mark` begins a measurement, `read` prints the figures since the
last mark as JSON, `empty` waits until no connection is left.
"""

import gc
import json
import sys
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import trio

from penstock.logs import DiskLog, Retention, RingLog
from penstock.runtime import Server, Service, receive, serve
from penstock.spi import TransportOptions

KIB = 1024
IDLE = 5.0
"""Seconds after which a subscription over HTTP ends without a request."""


def offer(made: Service) -> None:
    """Add publishers and handlers to a service, whose elements have the length, and take the
    time, that a peer asks for.
    """

    @made.publisher("waits")
    async def waits() -> AsyncIterator[bytes]:
        await trio.sleep_forever()
        yield b""

    @made.publisher("text/{text}")
    async def text(text: str) -> AsyncIterator[bytes]:
        yield text.encode()

    @made.publisher("sized/{size}")
    async def sized(size: int) -> AsyncIterator[bytes]:
        while True:
            yield bytes(size)

    @made.publisher("late/{size}/{milliseconds}")
    async def late(size: int, milliseconds: int) -> AsyncIterator[bytes]:
        while True:
            await trio.sleep(milliseconds / 1000)
            yield bytes(size)

    @made.request("answer")
    async def answer(payload: bytes) -> bytes:
        return bytes(int(payload))

    @made.request("keep")
    async def keep(payload: bytes) -> bytes:
        await trio.sleep_forever()
        return payload


def _accounted(server: Server) -> int:
    """Return the bytes that the memory budget of the server counts."""
    budget: Any = server._settings.budget
    return int(budget.held())


async def _obey(server: Server) -> None:
    stdin = trio.wrap_file(sys.stdin)
    before = 0
    while command := (await stdin.readline()).strip():
        if command == "empty":
            await server._admission.wait_empty()
            # Subscriptions over HTTP outlive their connections, until they are idle.
            while server._streams.held():  # noqa: ASYNC110  # it has no event, and no program waits
                await trio.sleep(IDLE / 10)
        gc.collect()
        current, peak = tracemalloc.get_traced_memory()
        if command == "mark":
            before = current
            tracemalloc.reset_peak()
        figures: dict[str, Any] = {
            "held": current - before,
            "peak": peak - before,
            "counted": _accounted(server),
        }
        print(json.dumps(figures | {"connections": len(server._admission.open)}), flush=True)


@asynccontextmanager
async def filled_log(service: Service) -> AsyncIterator[None]:
    """Publish a log on disk that has four groups of 1,000 elements of 1,000 bytes and a named
    reader. It receives batches, as another log in memory does.
    """
    with TemporaryDirectory() as folder:
        log = DiskLog(Path(folder, "a.log"), retention=Retention(max_count=100_000))
        async with log:
            for _ in range(4):
                await log.append([bytes(1_000)] * 1_000)
            await log.add_reader("nightly")
            service.publisher("log", log=log)(lambda: None)
            receive(service, "orders", log)
            receive(service, "kept", RingLog(retention=Retention(max_count=100_000)))
            yield


async def main() -> None:
    """Serve until standard input ends."""
    tracemalloc.start()
    service = Service()
    offer(service)
    scheme = sys.argv[1]
    options = TransportOptions(extra={"http.idle": IDLE} if scheme == "http" else {})
    async with (
        filled_log(service),
        serve(
            service, f"{scheme}://127.0.0.1:0", options=options, on_violation=lambda _: None
        ) as server,
    ):
        print(str(server.addresses[0].port), flush=True)
        await _obey(server)


if __name__ == "__main__":
    trio.run(main)
