"""Measure h2:// beside tcp://, in two processes. Prints a table of ratios.

    python -m campaigns h2_speed

The status is 1 if a ratio misses its bar. pytest does not run this file: it judges time.
"""

import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from statistics import median
from time import perf_counter
from typing import Final

import trio

import penstock

SIZES: Final = {64: 200_000, 4096: 20_000, 65_536: 3_000}
"""Bytes of an element, and how many elements are measured."""

QUESTIONS: Final = 2_000
ROUNDS: Final = 5
BARS: Final = {"64 B": 0.25, "64 KiB": 0.12}
"""The least share of tcp:// for elements of a size."""

service = penstock.Service()


@service.publisher("elements/{size}")
async def elements(size: int) -> AsyncIterator[bytes]:
    element = bytes(size)
    while True:
        yield element


@service.request("echo")
async def echo(payload: bytes) -> bytes:
    return payload


async def serve() -> None:
    """Serve at two addresses, and print them."""
    async with penstock.serve(service, "tcp://127.0.0.1:0", "h2://127.0.0.1:0") as server:
        sys.stdout.write(f"{' '.join(map(str, server.addresses))}\n")
        sys.stdout.flush()
        await trio.sleep_forever()


async def measure_elements(address: str, size: int) -> float:
    """Return elements per second."""
    count = SIZES[size]
    async with (
        penstock.connect(address) as peer,
        peer.subscribe(f"elements/{size}", demand=1024) as stream,
    ):
        await anext(stream)
        began = perf_counter()
        for _ in range(count):
            await anext(stream)
        return count / (perf_counter() - began)


async def measure_questions(address: str) -> float:
    """Return questions per second, one at a time."""
    async with penstock.connect(address) as peer:
        await peer.request("echo", b"?" * 64)
        began = perf_counter()
        for _ in range(QUESTIONS):
            await peer.request("echo", b"?" * 64)
        return QUESTIONS / (perf_counter() - began)


async def rounds(*measures: Callable[[], Awaitable[float]]) -> list[float]:
    """Return the median of each measure;
    they take turns, so that all of them meet the same machine.
    """
    results = [[await measure() for measure in measures] for _ in range(ROUNDS)]
    return [median(column) for column in zip(*results, strict=True)]


async def compare(tcp: str, h2: str) -> bool:
    """Print the table, and return whether all bars are met."""
    met = True
    for size in SIZES:
        title = f"{size} B" if size < 1024 else f"{size >> 10} KiB"
        over_tcp, over_h2 = await rounds(
            lambda size=size: measure_elements(tcp, size),
            lambda size=size: measure_elements(h2, size),
        )
        ratio, bar = over_h2 / over_tcp, BARS.get(title)
        met = met and (bar is None or ratio >= bar)
        sys.stdout.write(
            f"{title:>8}: tcp {over_tcp:>10,.0f}/s   h2 {over_h2:>10,.0f}/s   ratio {ratio:.2f}"
        )
        sys.stdout.write(f" (at least {bar:g})\n" if bar else "\n")
    over_tcp, over_h2 = await rounds(lambda: measure_questions(tcp), lambda: measure_questions(h2))
    sys.stdout.write(
        f"question: tcp {1e6 / over_tcp:.0f} us   h2 {1e6 / over_h2:.0f} us   ratio "
        f"{over_tcp / over_h2:.2f}\n"
    )
    return met


def main() -> int:
    """Start the serving process, measure, and end it."""
    if sys.argv[1:] == ["serve"]:
        trio.run(serve)
        return 0
    with subprocess.Popen(
        [sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            tcp, h2 = server.stdout.readline().split()
            return 0 if trio.run(compare, tcp, h2) else 1
        finally:
            server.kill()


if __name__ == "__main__":
    sys.exit(main())
