"""Failures: raised from the `async for` that reads, or tried again by `retry`,
or replaced by `on_error_resume`.
"""

from collections.abc import AsyncIterator

import trio

import penstock

attempts = 0


async def feed() -> AsyncIterator[str]:
    """A feed that breaks at its third line, except on every third attempt."""
    global attempts  # noqa: PLW0603 (counts the attempts, which share nothing else)
    attempts += 1
    for number in (1, 2, 3, 4):
        if number == 3 and attempts % 3:
            raise ConnectionError(f"the line broke (attempt {attempts})")
        yield f"line {number}"


async def main() -> None:
    """Read the same feed in three ways."""
    print("-- raised by the async for, after the lines before it")
    try:
        async with penstock.subscribe(feed) as stream:
            async for line in stream:
                print(line)
    except ConnectionError as error:
        print("caught:", error)

    print("-- tried again from the start: after 0.5 s, then after 1 s")
    again = penstock.generate(feed).retry(3, backoff=0.5, jitter=None, when=ConnectionError)
    start = trio.current_time()
    async with penstock.subscribe(again) as stream:
        async for line in stream:
            print(f"after {trio.current_time() - start:.1f} s: {line}")

    print("-- replaced")
    replaced = penstock.generate(feed).on_error_resume(lambda error: [f"instead: {error}"])
    print(await penstock.collect(replaced))


if __name__ == "__main__":
    trio.run(main)
