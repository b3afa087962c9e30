"""Relaxing demand: a source that cannot wait, a slow reader, and three operators
that decide which elements give way.
"""

from collections.abc import AsyncIterator

import trio

import penstock
from penstock import ops


async def temperature() -> AsyncIterator[int]:
    """A reading every 10 ms while there is demand; without demand the next one is late."""
    for number in range(1, 11):
        await trio.sleep(0.01)
        yield number


async def read_slowly(name: str, source: penstock.Source[int]) -> None:
    """Take one element, and request the next one 34 ms later."""
    seen: list[int] = []
    start = trio.current_time()
    async with penstock.subscribe(source, demand=0) as stream:
        stream.request(1)
        async for number in stream:
            seen.append(number)
            await trio.sleep(0.034)
            stream.request(1)
    print(
        f"{name:12} {' '.join(map(str, seen)):22} in {(trio.current_time() - start) * 1000:3.0f} ms"
    )


async def main() -> None:
    """Read with strict demand first, which slows the source down;
    then with each of the three operators.
    """
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
