"""`share`: one subscription to a source, for several subscribers.
The nursery given to it owns the tasks of the source.
"""

from collections.abc import AsyncIterator

import trio

import penstock
from penstock import SlowPolicy, ops


async def sensor() -> AsyncIterator[int]:
    """A sensor that is switched on for each stream, and off at its end."""
    print("  sensor on")
    try:
        for number in range(1, 9):
            await trio.sleep(0.1)
            yield number
    finally:
        print("  sensor off")


async def read(name: str, source: penstock.Source[int], count: int, pause: float) -> None:
    """Read `count` elements, and sleep after each."""
    seen: list[int] = []
    start = trio.current_time()
    some: penstock.Source[int] = penstock.pipe(source, ops.take(count))
    async with penstock.subscribe(some, demand=1) as stream:
        async for number in stream:
            seen.append(number)
            await trio.sleep(pause)
    print(f"  {name}: {seen} in {trio.current_time() - start:.2f} s")


async def main() -> None:
    """A quick and a slow subscriber read one sensor, under two policies.
    The last one that leaves switches it off.
    """
    for slow, buffer in ((SlowPolicy.WAIT, 1), (SlowPolicy.LATEST, None)):
        print(slow.name)
        async with trio.open_nursery() as owner, trio.open_nursery() as readers:
            shared: penstock.Source[int] = penstock.pipe(
                sensor, ops.share(owner, slow=slow, buffer=buffer)
            )
            readers.start_soon(read, "quick", shared, 6, 0.0)
            readers.start_soon(read, "slow", shared, 3, 0.26)


if __name__ == "__main__":
    trio.run(main)
