"""A program on asyncio that reads a service: `penstock.aio` has no run of trio. The service has
one, in another thread here.
"""

import asyncio
import concurrent.futures
import threading
from collections.abc import AsyncIterator

import trio

import penstock
from penstock import aio

service = penstock.Service()


@service.publisher("numbers", serializer="json")
async def numbers() -> AsyncIterator[int]:
    """Publish numbers without end, as far as they are asked for."""
    number = 0
    while True:
        yield number
        number += 1


@service.request("upper")
async def upper(payload: str) -> str:
    """Answer in capitals."""
    return payload.upper()


async def serve(url: "concurrent.futures.Future[str]", stop: threading.Event) -> None:
    """The service, on trio."""
    async with penstock.serve(service, "tcp://127.0.0.1:0") as server:
        url.set_result(str(server.addresses[0]))
        await trio.to_thread.run_sync(stop.wait)


async def main() -> None:
    url: concurrent.futures.Future[str] = concurrent.futures.Future()
    stop = threading.Event()
    thread = threading.Thread(target=trio.run, args=(serve, url, stop))
    thread.start()
    address = await asyncio.wrap_future(url)
    async with aio.connect(address) as peer:
        async with peer.subscribe("numbers", type=int, demand=4) as stream:
            async for number in stream:
                print("number", number)
                if number == 3:
                    break
        print(
            await asyncio.gather(
                peer.request("upper", "several", type=str),
                peer.request("upper", "at once", type=str),
            )
        )
    stop.set()
    thread.join()


if __name__ == "__main__":
    asyncio.run(main())
