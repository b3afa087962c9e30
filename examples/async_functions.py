"""Async functions in operators: an operator that takes a function also takes an `async def`, and
awaits it for one element at a time.
"""

import trio

import penstock
from penstock import ops

NAMES = {1: "Ada", 2: "Grace", 3: "Barbara", 4: "Radia"}


async def look_up(number: int) -> str:
    """Ask a database: it takes a second for number 1,
    and 0.05 s times the number for the others.
    """
    await trio.sleep(1.0 if number == 1 else number / 20)
    return NAMES[number]


async def is_long(name: str) -> bool:
    """Ask another service, which takes 0.1 s; a name of three letters is short."""
    await trio.sleep(0.1)
    return len(name) > 3


async def look_up_all(number: int) -> list[str]:
    """Return a source for one element, as `flat_map` expects it; a list is a source."""
    return [await look_up(number)]


async def main() -> None:
    """One at a time, then three at a time."""
    start = trio.current_time()
    async with penstock.subscribe(
        penstock.pipe(NAMES, ops.map(look_up), ops.filter(is_long))
    ) as stream:
        async for name in stream:
            print(f"after {trio.current_time() - start:.2f} s: {name}")

    print("three at a time, in the order in which they finish:")
    start = trio.current_time()
    async with penstock.subscribe(
        penstock.pipe(NAMES, ops.flat_map(look_up_all, concurrency=3))
    ) as stream:
        async for name in stream:
            print(f"after {trio.current_time() - start:.2f} s: {name}")


if __name__ == "__main__":
    trio.run(main)
