"""Chains: a source seen through operators is a source again,
and runs nothing before a subscription.
"""

from collections.abc import AsyncIterator

import trio

import penstock

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
    readings = penstock.generate(log).filter(is_reading).map(degrees)
    print("readings:", await penstock.collect(readings))

    # The result has the same methods as any other source.
    async with penstock.subscribe(readings.batch(2)) as stream:
        async for pair in stream:
            print("pair:", pair)

    highest = readings.scan(max, 0.0).distinct_until_changed()
    print("the record so far:", await penstock.collect(highest))

    # `take(1)` cancels its upstream after one element.
    print("the first above 22:", await penstock.collect(readings.filter(lambda t: t > 22).take(1)))
    print("the blueprint:", readings)


if __name__ == "__main__":
    trio.run(main)
