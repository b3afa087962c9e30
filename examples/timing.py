"""Timing: operators that look at the clock. None of them sends more than was requested."""

from collections.abc import AsyncIterator

import trio

import penstock
from penstock import ops


async def keystrokes() -> AsyncIterator[str]:
    """Six states of a text field, with pauses of 0.1 s to 1.5 s."""
    for pause, text in [
        (0.0, "p"),
        (0.1, "pe"),
        (0.1, "pen"),
        (0.7, "pens"),
        (0.1, "penst"),
        (1.5, "penstock"),
    ]:
        await trio.sleep(pause)
        yield text


async def show(title: str, source: penstock.Source[object]) -> None:
    """Print each element with the time at which it came."""
    start = trio.current_time()
    try:
        async with penstock.subscribe(source) as stream:
            async for element in stream:
                print(f"{title:14} {trio.current_time() - start:5.2f} s  {element!r}")
    except penstock.StreamTimeout as error:
        print(
            f"{title:14} {trio.current_time() - start:5.2f} s  StreamTimeout: "
            f"{error.args[0].split('. ')[0]}"
        )


async def main() -> None:
    """Show the same keystrokes through three operators; then `interval`, which is a source."""
    await show("as it is", penstock.as_source(keystrokes))
    await show("debounce(0.5)", penstock.pipe(keystrokes, ops.debounce(0.5)))
    await show("throttle(0.15)", penstock.pipe(keystrokes, ops.throttle(0.15)))
    await show("timeout(1)", penstock.pipe(keystrokes, ops.timeout(1)))
    await show("interval(0.2)", penstock.pipe(penstock.interval(0.2), ops.take(3)))


if __name__ == "__main__":
    trio.run(main)
