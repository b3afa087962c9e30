"""Manual demand: with `demand=0` no element is made before `request(n)`, and
`statistics().starved` is True until then.
"""

from collections.abc import AsyncIterator

import trio

import penstock


async def pages() -> AsyncIterator[str]:
    """Pages; print a line each time that one is fetched."""
    for number in range(1, 100):
        print(f"    (fetching page {number})")
        yield f"page {number}"


async def ask_later(stream: penstock.Stream[str]) -> None:
    """Request one more element after one second."""
    await trio.sleep(1)
    print("starved before the request:", stream.statistics().starved)
    stream.request(1)


async def main() -> None:
    """Request two pages, read them, then wait until another task requests a third."""
    async with penstock.subscribe(pages, demand=0) as stream, trio.open_nursery() as nursery:
        await trio.sleep(0.5)
        print("after 0.5 s without a request:", stream)

        stream.request(2)
        print("read", await anext(stream))
        print("read", await anext(stream))
        print(stream)

        nursery.start_soon(ask_later, stream)
        print("read", await anext(stream))  # waits here until ask_later() calls request()


if __name__ == "__main__":
    trio.run(main)
