"""Measure elements per second on this machine, and with --rate latencies.

The service and the subscriber are in one process; with --processes the service is in another one.
--bare sends the same bytes over a TCP socket without a protocol: what the transport alone can do.

With --rate N requests are sent at N a second for --seconds, each at its planned time, whether or
not the one before has been answered. A latency counts from the planned time. So a request that had
to wait because an earlier one took long has that wait in its latency: percentiles of requests that
are sent one after the other leave it out (coordinated omission).

This is a quick measurement. The project's benchmarks compare with other libraries.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from math import ceil, inf
from time import monotonic_ns, perf_counter
from typing import Any, Final

import trio

from penstock.api import Limits, UsageError
from penstock.cli._bench_server import (
    CHUNK,
    ECHO,
    ELEMENTS,
    ORDER,
    STAMP,
    TIMED,
    receive_exactly,
    serve_bench,
)
from penstock.runtime import Peer, connect
from penstock.spi import parse_url

PERCENTILES: Final = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}

MOST_CALLS: Final = 10_000_000
"""Latencies that are measured: each takes 32 bytes until the percentiles are known."""

MOST_UNDER_WAY: Final = 10_000
"""Requests without an answer. A later one waits, and its latency has that wait."""


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "urls",
        metavar="URL",
        nargs="*",
        default=None,
        help="where to serve (default: memory://bench and tcp://127.0.0.1:0)",
    )
    command.add_argument(
        "--size",
        type=int,
        default=64,
        help=f"bytes of an element (default: 64); at least {STAMP.size} where it carries a time",
    )
    command.add_argument(
        "--count", type=int, default=200_000, help="number of elements (default: 200,000)"
    )
    command.add_argument(
        "--demand", type=int, default=1024, help="elements requested ahead (default: 1,024)"
    )
    command.add_argument(
        "--rate", type=float, metavar="N", help="measure latencies at N a second, too"
    )
    command.add_argument(
        "--seconds", type=float, default=5.0, help="how long each, with --rate (default: 5)"
    )
    command.add_argument("--processes", action="store_true", help="serve in a process of its own")
    command.add_argument(
        "--bare", action="store_true", help="measure a TCP socket without a protocol, too"
    )
    command.add_argument("--json", action="store_true", help="print an object of JSON for each URL")


async def run(options: argparse.Namespace) -> int:
    """Measure and print a table."""
    for name in ("size", "count", "demand"):
        if getattr(options, name) < 1:
            raise UsageError(f"--{name} {getattr(options, name)}: give at least 1")
    for name in ("rate", "seconds"):
        value = getattr(options, name)
        if value is not None and not 0 < value < inf:
            raise UsageError(f"--{name} {value:g}: give a number above 0")
    most = Limits().max_element
    if options.size > most:
        raise UsageError(f"--size {options.size}: an element has at most {most:,} bytes")
    if options.rate is not None and options.rate * options.seconds > MOST_CALLS:
        raise UsageError(
            f"--rate {options.rate:g} for {options.seconds:g} s: at most {MOST_CALLS:,} latencies "
            "are measured; give a lower --rate, or fewer --seconds"
        )
    both = ["memory://bench", "tcp://127.0.0.1:0"]
    urls = options.urls or (both[1:] if options.processes else both)
    for url in urls:
        if options.processes and parse_url(url).transport == "memory":
            raise UsageError(f"{url}: memory:// stays in one process; leave it or --processes out")
    if not options.json:
        sys.stdout.write(f"{heading(options)}\n")
    for url in urls:
        opening = _in_a_process if options.processes else serve_bench
        async with opening(url) as (address, port):
            figures = await _measure(address, port, options)
        if options.json:
            sys.stdout.write(f"{json.dumps({'url': address, **figures})}\n")
        else:
            sys.stdout.write(f"{rows(address, figures, options)}\n")
        sys.stdout.flush()
    return 0


async def _measure(address: str, port: int, options: argparse.Namespace) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    async with connect(address) as peer:
        figures["by_element"] = await _elements(peer, options, by_batch=False)
        figures["by_batch"] = await _elements(peer, options, by_batch=True)
        if options.rate is not None:
            payload = bytes(options.size)
            figures["latency"] = await latencies(
                lambda: peer.request("echo", payload), options.rate, options.seconds
            )
            figures["stream_latency"] = await _stream_latency(peer, options)
    if options.bare:
        figures["bare"] = await _bare_elements(port, options)
        if options.rate is not None:
            figures["bare_latency"] = await _bare_latency(port, options)
            figures["bare_stream_latency"] = await _bare_stream_latency(port, options)
    return figures


async def _elements(peer: Peer, options: argparse.Namespace, *, by_batch: bool) -> float:
    began, got = perf_counter(), 0
    name = f"elements/{options.count}/{options.size}"
    async with peer.subscribe(name, demand=options.demand) as stream:
        if by_batch:
            async for batch in stream.batches():
                got += len(batch)
        else:
            async for _ in stream:
                got += 1
    return got / (perf_counter() - began)


async def latencies(
    ask: Callable[[], Awaitable[object]], rate: float, seconds: float
) -> dict[str, float]:
    """Return percentiles of the latencies, in seconds, of calls at planned times."""
    found: list[float] = []
    slots = trio.CapacityLimiter(MOST_UNDER_WAY)
    count = max(1, round(rate * seconds))
    began = trio.current_time()

    async def one(planned: float) -> None:
        async with slots:
            await ask()
        found.append(trio.current_time() - planned)

    async with trio.open_nursery() as nursery:
        for number in range(count):
            planned = began + number / rate
            # Late or not: the call has its planned time.
            await trio.sleep_until(planned)
            nursery.start_soon(one, planned)
    return percentiles(found)


async def _stream_latency(peer: Peer, options: argparse.Namespace) -> dict[str, float]:
    count, size = _timed(options)
    name = f"timed/{count}/{size}/{options.rate}"
    async with peer.subscribe(name, demand=options.demand) as stream:
        return percentiles([_age_of(element) async for element in stream])


def _timed(options: argparse.Namespace) -> tuple[int, int]:
    """Return how many timed elements there are, and their size."""
    return max(1, round(options.rate * options.seconds)), max(STAMP.size, options.size)


def _age_of(element: bytes) -> float:
    planned: int = STAMP.unpack_from(element)[0]
    return (monotonic_ns() - planned) / 1e9


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return the value that each share of the values is not above."""
    ordered = sorted(values)
    return {
        name: ordered[max(0, ceil(share * len(ordered)) - 1)] for name, share in PERCENTILES.items()
    }


# --- the bare transport


async def _bare_elements(port: int, options: argparse.Namespace) -> float:
    began, left = perf_counter(), options.count * options.size
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(ORDER.pack(ELEMENTS, options.count, options.size, 0))
        while left > 0:
            left -= len(await stream.receive_some(CHUNK))
    return float(options.count / (perf_counter() - began))


async def _bare_latency(port: int, options: argparse.Namespace) -> dict[str, float]:
    count, payload = max(1, round(options.rate * options.seconds)), bytes(options.size)
    found: list[float] = []
    async with (
        await trio.open_tcp_stream("127.0.0.1", port) as stream,
        trio.open_nursery() as nursery,
    ):
        await stream.send_all(ORDER.pack(ECHO, count, options.size, 0))
        began = trio.current_time()

        async def read() -> None:
            # Answers come in the order of the requests.
            for number in range(count):
                await receive_exactly(stream, options.size)
                found.append(trio.current_time() - began - number / options.rate)

        nursery.start_soon(read)
        for number in range(count):
            await trio.sleep_until(began + number / options.rate)
            await stream.send_all(payload)
    return percentiles(found)


async def _bare_stream_latency(port: int, options: argparse.Namespace) -> dict[str, float]:
    count, size = _timed(options)
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(ORDER.pack(TIMED, count, size, options.rate))
        return percentiles([_age_of(await receive_exactly(stream, size)) for _ in range(count)])


# --- a server of its own


@asynccontextmanager
async def _in_a_process(url: str) -> AsyncIterator[tuple[str, int]]:
    command = [sys.executable, "-m", "penstock.cli._bench_server", url]
    process: Any = await trio.lowlevel.open_process(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        line = b""
        while not line.endswith(b"\n"):
            more = await process.stdout.receive_some()
            if not more:
                raise UsageError(f"the server at {url} has ended before it listened; see above")
            line += more
        address, port = line.decode().split()
        yield address, int(port)
    finally:
        with trio.CancelScope(shield=True):
            await process.stdin.aclose()
            await process.stdout.aclose()
            process.terminate()
            await process.wait()


# --- the table

LATENCIES: Final = {
    "latency": "requests",
    "stream_latency": "stream elements",
    "bare_latency": "bare echoes",
    "bare_stream_latency": "bare elements",
}
"""What a person calls each of the measured latencies."""


def heading(options: argparse.Namespace) -> str:
    """Return the heading of the table."""
    words = f"{'transport':<28} {'by element':>14} {'by batch':>14}"
    return f"{words} {'bare':>14}" if options.bare else words


def rows(address: str, figures: dict[str, Any], options: argparse.Namespace) -> str:
    """Return the row of a URL, and below it one for each kind of latency."""
    rates = [
        figures["by_element"],
        figures["by_batch"],
        *([figures["bare"]] if options.bare else []),
    ]
    lines = [f"{address:<28}" + "".join(f" {rate:>12,.0f}/s" for rate in rates)]
    for which, what in LATENCIES.items():
        if which in figures:
            shares = figures[which].items()
            values = "".join(f"  {name} {value * 1e3:>6.2f} ms" for name, value in shares)
            lines.append(f"  {what:<15}{values}")
    return "\n".join(lines)
