"""A program on asyncio that calls code of trio, and the reverse: both loops in one thread."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import trio

import penstock
from penstock import aio


async def words() -> AsyncIterator[str]:
    """A generator that waits in asyncio."""
    for word in ("demand", "crosses", "loops"):
        await asyncio.sleep(0)
        yield word


async def shout(word: str) -> str:
    """An async function of asyncio, for example a call of a library."""
    await asyncio.sleep(0)
    return word.upper()


async def in_trio() -> list[str]:
    """Runs in trio, with trio's timeouts and nurseries, and all of penstock."""

    async def shouted(word: str) -> str:
        return await aio.in_asyncio(shout, word)

    with trio.fail_after(60):
        return await penstock.collect(aio.from_asyncio(words).map(shouted))


async def main() -> None:
    try:
        async with penstock.subscribe(["a"]):  # this task belongs to asyncio
            pass
    except penstock.UsageError as error:
        print(error)
    print(await aio.in_trio(in_trio))

    # A client and a stream of trio, in blocks of asyncio: any protocol and any transport.
    service = aio.Service()
    service.publish("words", words, type=str)
    async with aio.serve(service, "reactivesocket+tcp://127.0.0.1:0") as server:
        url = str(server.addresses[0])
        async with aio.in_trio_block(penstock.connect(url)) as peer:
            print(await aio.in_trio(partial(peer.request, "words", type=str)))
        async with aio.subscribe(f"{url}/words", type=str, demand=2) as stream:
            print([word async for word in stream])


if __name__ == "__main__":
    asyncio.run(main())
