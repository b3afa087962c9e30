"""A stream: an endless sensor, two operators, and a reader that stops at 24 °C."""

from collections.abc import AsyncIterator

import trio

import penstock
from penstock import ops


async def sensor() -> AsyncIterator[int]:
    """Degrees, without end: any async generator is a publisher."""
    readings = 0
    try:
        while True:
            readings += 1
            yield 15 + readings
    finally:
        print(f"sensor closed after {readings} readings")


async def main() -> None:
    warm = penstock.pipe(sensor, ops.filter(lambda degrees: degrees > 20), ops.map("{} °C".format))

    async with penstock.subscribe(warm, demand=1) as stream:  # one at a time; the default is 256
        async for reading in stream:
            print(reading)
            if reading == "24 °C":
                break

    print("the block has been left: nothing runs any more")


if __name__ == "__main__":
    trio.run(main)
