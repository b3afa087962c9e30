"""Manual demand: with `demand=0` nothing is made until you ask, and `statistics()` says when nobody did."""

from collections.abc import AsyncIterator

import trio

import penstock


async def pages() -> AsyncIterator[str]:
    """Say each time that work is done."""
    for number in range(1, 100):
        print(f"    (fetching page {number})")
        yield f"page {number}"


async def ask_later(stream: penstock.Stream[str]) -> None:
    """Permit one more element, a second from now."""
    await trio.sleep(1)
    print("starved, before asking:", stream.statistics().starved)
    stream.request(1)


async def main() -> None:
    """Ask for two pages, read them, then wait until another task asks for a third."""
    async with penstock.subscribe(pages, demand=0) as stream, trio.open_nursery() as nursery:
        await trio.sleep(0.5)
        print("half a second later, nobody has asked:", stream)

        stream.request(2)
        print("read", await anext(stream))
        print("read", await anext(stream))
        print(stream)

        nursery.start_soon(ask_later, stream)
        print("read", await anext(stream))  # waits here: only a request() can bring it


if __name__ == "__main__":
    trio.run(main)
