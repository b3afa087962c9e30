"""Relaxing demand: a source that cannot wait, a reader that is slow, and three named ways to live with both."""

from collections.abc import AsyncIterator

import trio

import penstock
from penstock import ops


async def temperature() -> AsyncIterator[int]:
    """One every 10 ms, if it is asked for; a pause in asking makes it late."""
    for number in range(1, 11):
        await trio.sleep(0.01)
        yield number


async def read_slowly(name: str, source: penstock.Source[int]) -> None:
    """Take one, ask for the next 34 ms later."""
    seen: list[int] = []
    start = trio.current_time()
    async with penstock.subscribe(source, demand=0) as stream:
        stream.request(1)
        async for number in stream:
            seen.append(number)
            await trio.sleep(0.034)
            stream.request(1)
    print(f"{name:12} {' '.join(map(str, seen)):22} in {(trio.current_time() - start) * 1000:3.0f} ms")


async def main() -> None:
    """Strict first: the source is slowed down. Then each way to let it run."""
    await read_slowly("as it is", penstock.as_source(temperature))
    await read_slowly("buffer(4)", penstock.pipe(temperature, ops.buffer(4)))

    dropped: list[int] = []
    await read_slowly("drop()", penstock.pipe(temperature, ops.drop(on_drop=dropped.append)))
    print("  left out:", *dropped)

    dropped.clear()
    await read_slowly("latest()", penstock.pipe(temperature, ops.latest(on_drop=dropped.append)))
    print("  left out:", *dropped)


if __name__ == "__main__":
    trio.run(main)
