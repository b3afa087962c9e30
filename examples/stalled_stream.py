"""A stream that does not move: ask it why. There are three answers, and each names who has to act."""

from collections.abc import AsyncIterator

import trio

import penstock


async def slow_numbers() -> AsyncIterator[int]:
    """A source that takes an hour for each element."""
    for number in range(3):
        await trio.sleep(3600)
        yield number


def diagnose(stream: penstock.Stream[int]) -> str:
    """Say who has to act for the stream to move on."""
    now = stream.statistics()
    if now.state is not penstock.StreamState.OPEN:
        return f"nobody: it is {now.state.value}"
    if now.starved:
        return "you: nothing was asked for; call request()"
    if now.buffered:
        return f"the reader: {now.buffered} elements wait to be taken"
    return f"the source: it owes {now.outstanding} elements"


async def main() -> None:
    """Look at three streams that do not move, and at one that is over."""
    async with penstock.subscribe(range(100), demand=0) as stream:
        await trio.sleep(0.01)
        print(f"{stream}\n  -> {diagnose(stream)}")

    async with penstock.subscribe(range(100), demand=8) as stream:
        await trio.sleep(0.01)
        print(f"{stream}\n  -> {diagnose(stream)}")

    async with penstock.subscribe(slow_numbers, demand=8) as stream:
        await trio.sleep(0.01)
        print(f"{stream}\n  -> {diagnose(stream)}")

    async with penstock.subscribe(range(2)) as stream:
        async for _ in stream:
            pass
        print(f"{stream}\n  -> {diagnose(stream)}")


if __name__ == "__main__":
    trio.run(main)
