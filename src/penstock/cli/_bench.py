"""Measure elements per second on this machine, from a service to a subscriber in the same process.

This is a quick measurement over each given transport. The project's benchmarks use two processes,
and compare with other libraries.
"""

import argparse
import sys
from collections.abc import AsyncIterator
from time import perf_counter

from penstock.api import UsageError
from penstock.runtime import Service, connect, serve


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "urls",
        metavar="URL",
        nargs="*",
        default=["memory://bench", "tcp://127.0.0.1:0"],
        help="where to serve",
    )
    command.add_argument("--size", type=int, default=64, help="bytes of an element (default: 64)")
    command.add_argument(
        "--count", type=int, default=200_000, help="number of elements (default: 200,000)"
    )
    command.add_argument(
        "--demand", type=int, default=1024, help="elements requested ahead (default: 1,024)"
    )


async def run(options: argparse.Namespace) -> int:
    """Measure and print a table."""
    for name in ("size", "count", "demand"):
        if getattr(options, name) < 1:
            raise UsageError(f"--{name} {getattr(options, name)}: give at least 1")
    service = Service()

    @service.publisher("elements")
    async def elements() -> AsyncIterator[bytes]:
        element = bytes(options.size)
        for _ in range(options.count):
            yield element

    sys.stdout.write(f"{'transport':<28} {'by element':>14} {'by batch':>14}\n")
    async with serve(service, *options.urls) as server:
        for address in server.addresses:
            async with connect(address) as peer:
                rates = []
                for by_batch in (False, True):
                    began, got = perf_counter(), 0
                    async with peer.subscribe("elements", demand=options.demand) as stream:
                        if by_batch:
                            async for batch in stream.batches():
                                got += len(batch)
                        else:
                            async for _ in stream:
                                got += 1
                    rates.append(got / (perf_counter() - began))
            sys.stdout.write(f"{address:<28} {rates[0]:>12,.0f}/s {rates[1]:>12,.0f}/s\n")
    return 0
