"""A program of asyncio with penstock beside it:
trio runs as a guest of asyncio's loop, in the same thread.
"""

import asyncio
from collections.abc import AsyncIterator

import trio

import penstock


async def words() -> AsyncIterator[str]:
    """A generator that waits in trio."""
    for word in ("demand", "crosses", "loops"):
        await trio.sleep(0.01)
        yield word


async def publish(
    asks: "trio.MemoryReceiveChannel[int]", answers: "asyncio.Queue[str | None]"
) -> None:
    """In trio: request an element for each that asyncio asks for, and answer None at the end."""
    async with penstock.subscribe(words, demand=0) as stream:
        async for count in asks:
            stream.request(count)
            # plain calls may cross: both loops are in one thread.
            answers.put_nowait(await anext(stream, None))


async def read(asks: "trio.MemorySendChannel[int]", answers: "asyncio.Queue[str | None]") -> None:
    """In asyncio: ask for one element at a time."""
    asks.send_nowait(1)
    while (word := await answers.get()) is not None:
        print("asyncio has", word)
        asks.send_nowait(1)
    asks.close()


async def main() -> None:
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    send, receive = trio.open_memory_channel[int](1)
    answers: asyncio.Queue[str | None] = asyncio.Queue(1)
    trio.lowlevel.start_guest_run(
        publish,
        receive,
        answers,
        run_sync_soon_threadsafe=loop.call_soon_threadsafe,
        done_callback=ended.set_result,
    )
    try:
        async with penstock.subscribe(words):  # this task belongs to asyncio
            pass
    except penstock.UsageError as error:
        print(error)
    await read(send, answers)
    (await ended).unwrap()  # raises what ended trio


if __name__ == "__main__":
    asyncio.run(main())
