"""Requests: one service on one port, read by name through RS.io,
and through ReactiveSocket by name and by data.
"""

from collections.abc import AsyncIterator
from functools import partial

import trio

import penstock

library = penstock.Service()
shelf = {"sand": "The Book of Sand", "garden": "The Garden of Forking Paths"}


@library.publisher("titles/{most}", serializer="text")
async def titles(most: int) -> AsyncIterator[str]:
    """A publisher: its name is the same in every protocol."""
    for title in list(shelf.values())[:most]:
        yield title


@library.request_response
async def title(data: bytes) -> bytes:
    """One value for one request, whose data is not the name of a publisher."""
    if data.decode() not in shelf:
        raise penstock.PublicError("no such book")
    return shelf[data.decode()].encode()


@library.fire_and_forget
async def returned(data: bytes) -> None:
    print("without an answer:      ", data.decode())


@library.request_stream
async def words(data: bytes) -> AsyncIterator[bytes]:
    for word in shelf[data.decode()].split():
        yield word.encode()


async def main() -> None:
    async with penstock.serve(
        library, "tcp://127.0.0.1:0", on_violation=partial(print, "on_violation:           ")
    ) as server:
        (address,) = server.addresses
        async with penstock.subscribe(f"{address}/titles/1", serializer="text") as stream:
            print("RS.io, by name:         ", [each async for each in stream])

        async with penstock.connect(f"reactivesocket+{address}") as peer:
            print("one value:              ", await peer.request_response("garden"))
            async with peer.request_stream("titles/2", serializer="text") as stream:
                print("a stream, by name:      ", [each async for each in stream])
            async with peer.request_stream("sand", demand=1) as stream:
                print("a stream, for data:     ", [each async for each in stream])
            try:
                await peer.request_response("vanity")
            except penstock.PublisherFailed as error:
                print("the text of a failure:  ", error)
            await peer.fire_and_forget("the book of sand is back")


if __name__ == "__main__":
    trio.run(main)
