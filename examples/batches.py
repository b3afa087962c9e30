"""Batches: everything that is there now, as a list. The fastest way to read, and the natural one where work is done in bulk."""

from collections.abc import AsyncIterator

import trio

import penstock


async def readings() -> AsyncIterator[int]:
    """Bursts of different sizes, a tenth of a second apart."""
    number = 0
    for size in (3, 1, 5, 2):
        for _ in range(size):
            number += 1
            yield number
        await trio.sleep(0.1)


async def main() -> None:
    """Take what is there, as often as there is something."""
    async with penstock.subscribe(readings) as stream:
        async for batch in stream.batches():
            print(f"{len(batch)} at once: {batch}")

    print("and no more than was asked for, however fast the source:")
    async with penstock.subscribe(range(10), demand=4) as stream:
        async for batch in stream.batches():
            print(f"{len(batch)} at once: {batch}")


if __name__ == "__main__":
    trio.run(main)
