"""Several sources in one pipe: `merge` mixes, `zip` pairs, `combine_latest` pairs the newest,
`concat` reads one after the other.
"""

from collections.abc import AsyncIterator

import trio

import penstock
from penstock import ops


async def letters() -> AsyncIterator[str]:
    """Four letters, 0.1 s apart."""
    for letter in "abcd":
        await trio.sleep(0.1)
        yield letter


async def numbers() -> AsyncIterator[int]:
    """Three numbers, 0.25 s apart."""
    for number in range(1, 4):
        await trio.sleep(0.25)
        yield number


async def show(title: str, source: penstock.Source[object]) -> None:
    """Print each element with the time at which it came."""
    start = trio.current_time()
    async with penstock.subscribe(source) as stream:
        print(
            title,
            *[f"{trio.current_time() - start:.2f} s {element}" async for element in stream],
            sep="\n  ",
        )


async def main() -> None:
    """The same two sources, joined in four ways."""
    await show("merge", penstock.pipe(letters, ops.merge(numbers)))
    await show("zip", penstock.pipe(letters, ops.zip(numbers)))
    await show("combine_latest", penstock.pipe(letters, ops.combine_latest(numbers)))
    await show("concat", penstock.pipe(letters, ops.concat(numbers)))


if __name__ == "__main__":
    trio.run(main)
