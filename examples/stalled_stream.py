"""A stream that does not move: `statistics()` tells which of the three sides must act."""

from collections.abc import AsyncIterator

import trio

import penstock


async def slow_numbers() -> AsyncIterator[int]:
    """A source that takes an hour for each element."""
    for number in range(3):
        await trio.sleep(3600)
        yield number


def diagnose(stream: penstock.Stream[int]) -> str:
    """Return which side must act for the stream to move on."""
    now = stream.statistics()
    if now.state is not penstock.StreamState.OPEN:
        return f"no side: the stream is {now.state.value}"
    if now.starved:
        return "your program: nothing was requested; call request()"
    if now.buffered:
        return f"the reader: {now.buffered} elements are buffered"
    return f"the source: {now.outstanding} elements were requested and have not come"


async def main() -> None:
    """Diagnose three streams that do not move, and one that has ended."""
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
