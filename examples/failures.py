"""Failures: raised from the `async for` that reads; or tried again; or replaced by something else."""

from collections.abc import AsyncIterator

import trio

import penstock
from penstock import ops

attempts = 0


async def feed() -> AsyncIterator[str]:
    """A feed that breaks at its third line, the first two times."""
    global attempts  # noqa: PLW0603 (an unreliable world, counted)
    attempts += 1
    for number in (1, 2, 3, 4):
        if number == 3 and attempts % 3:
            raise ConnectionError(f"the line broke (attempt {attempts})")
        yield f"line {number}"


async def main() -> None:
    """The same feed, three answers."""
    print("-- raised where it is read, after what came before it")
    try:
        async with penstock.subscribe(feed) as stream:
            async for line in stream:
                print(line)
    except ConnectionError as error:
        print("caught:", error)

    print("-- tried again, from the start, after half a second, then one")
    again: penstock.Source[str] = penstock.pipe(feed, ops.retry(3, backoff=0.5, jitter=None, when=ConnectionError))
    start = trio.current_time()
    async with penstock.subscribe(again) as stream:
        async for line in stream:
            print(f"after {trio.current_time() - start:.1f} s: {line}")

    print("-- replaced")
    replaced = penstock.pipe(feed, ops.on_error_resume(lambda error: [f"instead: {error}"]))
    print(await penstock.collect(replaced))


if __name__ == "__main__":
    trio.run(main)
