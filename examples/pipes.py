"""Pipes: a source seen through operators is a source again, and runs nothing before a subscription."""

from collections.abc import AsyncIterator

import trio

import penstock
from penstock import ops

LINES = ["21.5 C", "garbage", "19.0 C", "23.5 C", "", "24.0 C", "18.5 C", "22.0 C"]


async def log() -> AsyncIterator[str]:
    """Lines, 0.1 s apart."""
    for line in LINES:
        await trio.sleep(0.1)
        yield line


def is_reading(line: str) -> bool:
    """Return True for a reading."""
    return line.endswith(" C")


def degrees(line: str) -> float:
    """Return the number in a reading."""
    return float(line.removesuffix(" C"))


async def main() -> None:
    """Build sources out of one, and read each."""
    readings = penstock.pipe(log, ops.filter(is_reading), ops.map(degrees))
    print("readings:", await penstock.collect(readings))

    # A pipe is piped further like any other source.
    pairs: penstock.Source[list[float]] = penstock.pipe(readings, ops.batch(2))
    async with penstock.subscribe(pairs) as stream:
        async for pair in stream:
            print("pair:", pair)

    highest = penstock.pipe(readings, ops.scan(max, 0.0), ops.distinct_until_changed())
    print("the record so far:", await penstock.collect(highest))

    # `take(1)` cancels its upstream after one element.
    print("the first above 22:", await penstock.collect(penstock.pipe(readings, ops.filter(lambda t: t > 22), ops.take(1))))
    print("the blueprint:", readings)


if __name__ == "__main__":
    trio.run(main)
