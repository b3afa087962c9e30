"""Streams that steer another one: `switch_map` reads the newest stream, `with_latest_from` adds
the newest element, `take_until` ends.
"""

from collections.abc import AsyncIterator

import trio

import penstock
from penstock import ops


async def typed() -> AsyncIterator[str]:
    """The text in a search box, as it is typed."""
    for text, pause in (("t", 0.1), ("tr", 0.5), ("trio", 0.1)):
        yield text
        await trio.sleep(pause)


async def search(text: str) -> list[str]:
    """Find something, which takes 0.3 s."""
    await trio.sleep(0.3)
    return [f"{text!r}: page {number}" for number in (1, 2)]


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
    """The newer text cancels the search for the older one. A price is joined with the newest
    rate. A timer ends a stream.
    """
    await show("switch_map", penstock.pipe(typed, ops.switch_map(search)))
    prices: penstock.Source[int] = penstock.pipe(penstock.interval(0.4), ops.take(3))
    await show(
        "with_latest_from", penstock.pipe(prices, ops.with_latest_from(penstock.interval(0.25)))
    )
    await show(
        "take_until", penstock.pipe(penstock.interval(0.4), ops.take_until(penstock.timer(1)))
    )


if __name__ == "__main__":
    trio.run(main)
