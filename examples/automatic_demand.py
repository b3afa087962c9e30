"""Automatic demand: the generator runs ahead of its reader by at most `demand` elements."""

from collections.abc import AsyncIterator

import trio

import penstock

made = 0


async def numbers() -> AsyncIterator[int]:
    """Ten numbers without a pause: only demand limits how fast they are made."""
    global made  # noqa: PLW0603 (the example prints it from outside the generator)
    for number in range(10):
        made += 1
        yield number


async def main() -> None:
    """Take an element every tenth of a second, with at most 4 under way or waiting."""
    async with penstock.subscribe(numbers, demand=4) as stream:
        async for number in stream:
            await trio.sleep(0.1)  # a slow reader: the generator has 0.1 s to run ahead
            now = stream.statistics()
            print(
                f"took {number}: {made} made, {now.buffered} waiting, {now.outstanding} asked for"
            )
    print(stream)


if __name__ == "__main__":
    trio.run(main)
