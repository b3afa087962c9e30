"""Async functions in operators: where a function is taken, an `async def` one is, too. It is awaited in order, one at a time."""

import trio

import penstock
from penstock import ops

NAMES = {1: "Ada", 2: "Grace", 3: "Barbara", 4: "Radia"}


async def look_up(number: int) -> str:
    """Ask a database that needs a moment, and a whole second for number 1."""
    await trio.sleep(1.0 if number == 1 else number / 20)
    return NAMES[number]


async def is_long(name: str) -> bool:
    """Ask somebody else; names of three letters are short."""
    await trio.sleep(0.1)
    return len(name) > 3


async def look_up_all(number: int) -> list[str]:
    """What `flat_map` wants: a stream for each element. A list will do."""
    return [await look_up(number)]


async def main() -> None:
    """One at a time, then three at a time."""
    start = trio.current_time()
    async with penstock.subscribe(penstock.pipe(NAMES, ops.map(look_up), ops.filter(is_long))) as stream:
        async for name in stream:
            print(f"after {trio.current_time() - start:.2f} s: {name}")

    print("at most three at a time, whoever is first:")
    start = trio.current_time()
    async with penstock.subscribe(penstock.pipe(NAMES, ops.flat_map(look_up_all, concurrency=3))) as stream:
        async for name in stream:
            print(f"after {trio.current_time() - start:.2f} s: {name}")


if __name__ == "__main__":
    trio.run(main)
