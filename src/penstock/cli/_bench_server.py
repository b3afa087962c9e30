"""The server of `penstock bench`: in this process, or as another program
(``python -m penstock.cli._bench_server URL``), which writes its addresses to standard output.

Beside the service there is a bare one: the same bytes over a TCP socket of trio, without a
protocol.
"""

import struct
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic_ns
from typing import Final

import trio

from penstock.runtime import Service, serve

ELEMENTS: Final = b"E"
ECHO: Final = b"Q"

TIMED: Final = b"T"

ORDER: Final = struct.Struct("!cQId")
"""What a bare client asks for: elements, echo or timed elements, how many, their size, and how many
a second.
"""

STAMP: Final = struct.Struct("!q")
"""The planned time of a timed element, at its beginning: nanoseconds of `time.monotonic_ns`, which
is one clock for all processes of a machine.
"""

CHUNK: Final = 64 << 10

bench_service: Final = Service()


@bench_service.publisher("elements/{count}/{size}")
async def elements(count: int, size: int) -> AsyncIterator[bytes]:
    """Elements of one size, as fast as they are requested."""
    element = bytes(size)
    for _ in range(count):
        yield element


@bench_service.publisher("timed/{count}/{size}/{rate}")
async def timed(count: int, size: int, rate: float) -> AsyncIterator[bytes]:
    """Elements at planned times, `rate` a second. An element that is late keeps its planned time:
    what it waited for the ones before is in its latency.
    """
    began = monotonic_ns()
    for number in range(count):
        planned = began + round(number * 1e9 / rate)
        await trio.sleep(max(0.0, (planned - monotonic_ns()) / 1e9))
        yield STAMP.pack(planned).ljust(size, b"\0")


@bench_service.request("echo")
async def echo(payload: bytes) -> bytes:
    """Return the payload."""
    return payload


@asynccontextmanager
async def serve_bench(url: str) -> AsyncIterator[tuple[str, int]]:
    """Serve at `url` for the length of a block; yield the address and the port of the bare
    server.
    """
    async with serve(bench_service, url) as server, trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, _serve_bare, [listener])
        yield str(server.addresses[0]), listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()


async def _serve_bare(stream: trio.SocketStream) -> None:
    try:
        kind, count, size, rate = ORDER.unpack(await receive_exactly(stream, ORDER.size))
        if kind == ELEMENTS:
            left, chunk = count * size, bytes(CHUNK)
            while left > 0:
                await stream.send_all(chunk[:left])
                left -= len(chunk)
            return
        if kind == TIMED:
            async for element in timed(count, size, rate):
                await stream.send_all(element)
            return
        for _ in range(count):
            await stream.send_all(await receive_exactly(stream, size))
    except (trio.BrokenResourceError, EOFError):
        return  # the client has enough


async def receive_exactly(stream: trio.SocketStream, size: int) -> bytes:
    """Return the next `size` bytes. Raises EOFError if the stream ends before them."""
    data = b""
    while len(data) < size:
        more = await stream.receive_some(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


async def _main() -> None:
    async with serve_bench(sys.argv[1]) as (address, port):
        sys.stdout.write(f"{address} {port}\n")
        sys.stdout.flush()
        # Until the command closes its end of the pipe, however it ends.
        await trio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)


if __name__ == "__main__":
    trio.run(_main)
