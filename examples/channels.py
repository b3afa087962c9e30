"""Memory channels, in and out: `subscribe` reads a trio channel, `to_channel` writes one."""

import trio

import penstock
from penstock import ops


async def produce(channel: "trio.MemorySendChannel[int]") -> None:
    """Send six numbers, without penstock."""
    async with channel:
        for number in range(6):
            await channel.send(number)


async def consume(channel: "trio.MemoryReceiveChannel[int]") -> None:
    """Print each number, without penstock."""
    async with channel:
        async for number in channel:
            print("received", number)


async def main() -> None:
    """Read one channel through a pipe into another channel."""
    send, receive = trio.open_memory_channel[int](0)
    send_squares, receive_squares = trio.open_memory_channel[int](0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(produce, send)
        nursery.start_soon(consume, receive_squares)
        async with receive:  # penstock reads through a clone, so this end is still ours to close
            squares = penstock.pipe(receive, ops.map(lambda number: number * number))
            count = await penstock.to_channel(squares, send_squares)
    print("passed on:", count)


if __name__ == "__main__":
    trio.run(main)
