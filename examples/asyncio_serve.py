"""A service of a program on asyncio: its publishers and requests run in tasks of asyncio."""

import asyncio
from collections.abc import AsyncIterator

from penstock import aio

service = aio.Service()


@service.publisher("words/{count}")
async def words(count: int) -> AsyncIterator[str]:
    """Stands for a model that makes one token after the other."""
    try:
        for number in range(count):
            await asyncio.sleep(0)  # here the program awaits a library of asyncio
            yield f"word {number}"
    finally:
        print("the generator has ended")


@service.request("length")
async def length(payload: str) -> int:
    await asyncio.sleep(0)
    return len(payload)


async def main() -> None:
    async with (
        aio.serve(service, "tcp://127.0.0.1:0") as server,
        aio.connect(server.addresses[0]) as peer,
    ):
        print("four has", await peer.request("length", "four", type=int), "letters")
        async with peer.subscribe("words/1000000", type=str, demand=2) as stream:
            print(await anext(stream))
            print(await anext(stream))
        # Leaving the block of the stream has cancelled it, and with it the generator.


if __name__ == "__main__":
    asyncio.run(main())
