"""Batches: all elements that are buffered now, as a list. This is the fastest way to read, and
it suits work that is done in bulk.
"""

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
    """Take each batch as soon as it holds an element."""
    async with penstock.subscribe(readings) as stream:
        async for batch in stream.batches():
            print(f"{len(batch)} at once: {batch}")

    print("at demand=4 a batch holds at most 4 elements:")
    async with penstock.subscribe(range(10), demand=4) as stream:
        async for batch in stream.batches():
            print(f"{len(batch)} at once: {batch}")


if __name__ == "__main__":
    trio.run(main)
