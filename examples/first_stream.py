"""A first stream: an async generator function, and a block that reads the numbers it yields."""

from collections.abc import AsyncIterator

import trio

import penstock


async def countdown() -> AsyncIterator[int]:
    """Three numbers, half a second apart."""
    for number in (3, 2, 1):
        await trio.sleep(0.5)
        yield number


async def main() -> None:
    """Read the same function as a stream in three ways, then a range."""
    async with penstock.subscribe(countdown) as stream:
        async for number in stream:
            print(number)
    print("lift-off")

    # Each subscription calls the function anew, so it can be read again.
    print("collected:", await penstock.collect(countdown))
    print("the first:", await penstock.first(countdown))

    # Each iterable is a source.
    print("a range:", await penstock.collect(range(5)))


if __name__ == "__main__":
    trio.run(main)
