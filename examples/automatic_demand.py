"""Automatic demand: the generator runs ahead of its reader by as much as was asked for, and never by more."""

from collections.abc import AsyncIterator

import trio

import penstock

made = 0


async def numbers() -> AsyncIterator[int]:
    """As fast as the demand allows: there is no pause in here."""
    global made  # noqa: PLW0603 (the whole point is to look at it from outside)
    for number in range(10):
        made += 1
        yield number


async def main() -> None:
    """Take an element every tenth of a second, with at most 4 under way or waiting."""
    async with penstock.subscribe(numbers, demand=4) as stream:
        async for number in stream:
            await trio.sleep(0.1)  # a slow reader: the generator has all the time it wants to run ahead
            now = stream.statistics()
            print(f"took {number}: {made} made, {now.buffered} waiting, {now.outstanding} asked for")
    print(stream)


if __name__ == "__main__":
    trio.run(main)
